"""Rules of acceptance: their walks by a slow reference."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import Levels, OfSolutions, matrix_tsp
from probes import refuses

import jaxopt_search as js
from jaxopt_search.backends import random
from jaxopt_search.backends.memory import load

SIZE, REACH, STEPS, SEARCHES, MOVES = 100, 4, 200, 8, 3


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Jump(OfSolutions):
    """A move around a circle by up to `REACH` solutions; to the same one, it is null."""

    num_words = 1

    def propose(self, problem, representation, words):
        return (representation + SIZE + random.below(words[0], 2 * REACH + 1) - REACH) % SIZE

    def delta(self, problem, representation, move):
        change = load(problem.costs, move) - load(problem.costs, representation)
        return jnp.where(move == representation, js.null_delta(change.dtype), change)

    def commit(self, problem, representation, move, accept):
        return jnp.where(accept, move, representation)


def levels(dtype=np.int32):
    """Costs with many local optima, some of them equal."""
    return Levels(jnp.asarray(np.random.default_rng(1).integers(10, 80, SIZE), dtype))


def sinking(step):
    """The threshold: everything passes at first, nothing worse at last."""
    return jnp.where(step < 20, 1e30, jnp.maximum(60.0 - step // 2, 0.0))


@functools.cache
def words():
    """The words of all searches, and the exponential draws of them: [S, T, slots, 2] each."""
    slots = jnp.arange(MOVES + 1, dtype=jnp.uint32)
    index = jnp.arange(SEARCHES, dtype=jnp.uint32)
    keys = random.search_key(random.as_key(4), index, jnp.uint32(0))

    def at(key, step):
        return jnp.stack(random.Stream(key, step, step).words(slots, 2), axis=-1)

    each_step = jax.vmap(at, in_axes=(None, 0))
    drawn = jax.jit(jax.vmap(each_step, in_axes=(0, None)))
    found = drawn(keys, jnp.arange(STEPS, dtype=jnp.uint32))
    return np.asarray(found).tolist(), np.asarray(random.exponential(found)).tolist()


def slow_metropolis(step, delta, cost, memory, exponential):
    return delta <= 8 * exponential


def slow_threshold(step, delta, *_):
    return delta <= (1e30 if step < 20 else max(60 - step // 2, 0))


def slow_late(step, delta, cost, memory, _):
    """Algorithm 2 of Burke and Bykov: C(s*) < f[v] or C(s*) <= C(s)."""
    return cost + delta < memory[step % len(memory)] or delta <= 0


def slow_walk(passes, costs, solution, drawn, *, moves, choose, length=0):
    """Returns where a search ends, its lowest cost, how many moves it made, and its memory."""
    cost = lowest = costs[solution]
    memory, num_made = [cost] * length, 0
    for step, (words, exponentials) in enumerate(zip(*drawn, strict=True)):
        real = []
        for (word, _), (_, own) in list(zip(words, exponentials, strict=True))[:moves]:
            target = (solution + (word * (2 * REACH + 1) >> 32) - REACH) % SIZE
            real += [(target, own)] if target != solution else []
        if choose == "best":  # it is tested by a word behind those of all proposals
            real = sorted(real, key=lambda move: costs[move[0]])[:1]
            real = [(target, exponentials[moves][0]) for target, _ in real]
        for target, exponential in real:
            if passes(step, costs[target] - cost, cost, memory, exponential):
                solution, num_made = target, num_made + 1
                break
        cost = costs[solution]
        lowest = min(lowest, cost)
        if memory and cost < memory[step % length]:
            memory[step % length] = cost
    return solution, lowest, num_made, memory


RULES = {
    "metropolis": (js.acceptance.metropolis(8.0), slow_metropolis, {}),
    "threshold": (js.acceptance.threshold(sinking), slow_threshold, {}),
    "greedy": (js.acceptance.greedy(), lambda step, delta, *_: delta <= 0, {}),
    "strict": (js.acceptance.greedy(sideways=False), lambda step, delta, *_: delta < 0, {}),
    "late": (js.acceptance.late_acceptance(40), slow_late, {"length": 40}),
}


@pytest.mark.parametrize(
    ("name", "moves", "choose", "keep_best", "dtype"),
    [
        ("metropolis", MOVES, "best", "light", np.int32),
        ("metropolis", MOVES, "first", "standard", np.float32),
        ("threshold", MOVES, "first", "standard", np.int32),
        ("greedy", MOVES, "first", "light", np.int32),
        ("strict", 1, "best", "standard", np.int32),
        ("late", MOVES, "best", "light", np.float32),
    ],
    ids=str,
)
def test_the_walk_is_that_of_a_slow_reference(name, moves, choose, keep_best, dtype):
    """200 steps of 8 searches: the first of equally cheap moves, and never a null move."""
    rule, passes, memory = RULES[name]
    problem = levels(dtype)
    search = js.local_search(
        Jump(), rule, moves_per_search=moves, choose=choose, keep_best=keep_best
    )
    start = js.init(4, problem, search, num_searches=SEARCHES)
    end = js.advance(problem, search, start, STEPS, implementation="xla")
    costs = np.asarray(problem.costs).tolist()
    slow = [
        slow_walk(passes, costs, solution, drawn, moves=moves, choose=choose, **memory)
        for solution, *drawn in zip(start.searches.representation.tolist(), *words(), strict=True)
    ]
    solutions, lowest, num_made, memories = zip(*slow, strict=True)
    assert end.searches.representation.tolist() == list(solutions)
    assert jax.vmap(search.best_cost)(end.searches).tolist() == list(lowest)
    assert end.info.accepted.tolist() == list(num_made)
    assert sum(num_made) > 0
    if memory:
        assert end.searches.history.costs.tolist() == list(memories)


def test_by_the_metropolis_rule_it_is_annealing():
    schedule, options = js.geometric(50.0, 0.9), {"moves_per_search": 5, "choose": "first"}
    one = js.simulated_annealing(js.Relocate(), schedule, **options)
    rule = js.acceptance.metropolis(schedule)
    assert one == js.local_search(js.Relocate(), rule, **options)


def test_late_acceptance_lowers_for_cuda():
    search = js.local_search(js.Relocate(), js.acceptance.late_acceptance(50), moves_per_search=4)
    assert js.why_not_portable(matrix_tsp(9), search) == ""


def test_a_history_outlives_an_exchange():
    """A search that continues from another's solution keeps the costs of its own past."""
    problem = levels()
    search = js.local_search(Jump(), js.acceptance.late_acceptance(3))
    highest, lowest = int(problem.costs.max()), int(problem.costs.min())
    state = search.init(problem, jnp.argmax(problem.costs))
    after = search.adopt(problem, state, jnp.argmin(problem.costs))
    assert after.history.costs.tolist() == [highest] * 3
    assert (int(after.cost), int(search.best_cost(after))) == (lowest, lowest)


@dataclasses.dataclass(frozen=True)
class NoPytree(js.acceptance.Acceptance):
    def passes(self, trial):
        return trial.delta < 5


def test_what_it_refuses():
    """What is no rule or no pytree, lengths below 1, and thresholds that are negative in a run."""
    with refuses(TypeError, "acceptance is a float, expected a js.acceptance.Acceptance"):
        js.local_search(Jump(), 10.0)
    with refuses(TypeError, "acceptance is the class Greedy, expected a js.acceptance.Acceptance"):
        js.local_search(Jump(), js.acceptance.Greedy)
    with refuses(TypeError, "acceptance is a NoPytree, expected a pytree; decorate"):
        js.local_search(Jump(), NoPytree())
    with refuses(ValueError, "length is 0"):
        js.acceptance.late_acceptance(0)
    falling = js.local_search(Jump(), js.acceptance.threshold(lambda step: 10.0 - step))
    with refuses(ValueError, "schedule gives temperature -40.0 at step 50"):
        js.solve(levels(), falling, 0, max_steps=100)
