"""Simulated annealing: the Metropolis rule, what is remembered, and limits known by hand."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from cases import Levels, dense_qubo, matrix_tsp

import jaxopt_search as js
from jaxopt_search.backends import random

NUM_STREAMS = 200_000


@jax.tree_util.register_static
class Flip(js.Moves):
    num_words = 1

    def propose(self, problem, solution, words):
        return words[0]

    def apply(self, problem, solution, move):
        return 1 - solution


def streams(seed):
    index = jnp.arange(NUM_STREAMS, dtype=jnp.uint32)
    key = random.search_key(random.as_key(seed), index, jnp.uint32(0))
    return random.Stream(key, jnp.zeros_like(index), jnp.zeros(NUM_STREAMS, jnp.int32))


@jax.jit
def steps_from_0(search, problem, many):
    """Returns how often a search makes its move in the first step, and a state after it."""

    def step(stream):
        state = search.init(problem, jnp.int32(0))
        return search.step(stream, search.control(stream.step), problem, state)

    states, info = jax.vmap(step)(many)
    return info.accepted.mean(), jax.tree.map(lambda leaf: leaf[0], states)


def test_worse_moves_pass_as_often_as_metropolis_says():
    """Acceptance is min(1, exp(-delta / T)) within six standard errors and the stated 1e-4."""
    many = streams(int(np.random.default_rng().integers(2**31)))
    for delta, temperature, dtype in (
        *((1, 1.0, jnp.int32), (3, 1.0, jnp.float32), (7, 10.0, jnp.int32)),
        *((1, 100.0, jnp.float32), (0, 1.0, jnp.int32), (-2, 0.5, jnp.float32)),
    ):
        search = js.simulated_annealing(Flip(), temperature)
        found, _ = steps_from_0(search, Levels(jnp.asarray([10, 10 + delta], dtype)), many)
        expected = min(1.0, np.exp(-delta / temperature))
        error = (expected * (1 - expected) / NUM_STREAMS) ** 0.5
        assert abs(float(found) - expected) <= 6 * error + (1e-4 if expected < 1 else 0)


@pytest.mark.parametrize("schedule", [0.0, optax.linear_schedule(0.0, 0.0, 10)])
def test_temperature_zero_is_hill_climbing(schedule):
    """No worse solution is ever accepted, equal ones are, and nothing becomes NaN."""
    search = js.simulated_annealing(Flip(), schedule)
    for costs, expected in (([5, 6], 0), ([5, 5], 1), ([5, 4], 1)):
        found, state = steps_from_0(search, Levels(jnp.asarray(costs, jnp.float32)), streams(1))
        assert int(state.representation.solution) == expected == float(found)
        assert np.isfinite(state.cost)


def test_null_moves_are_never_accepted():
    """However hot it is: on two cities every relocation is null, and the cost stays."""
    problem = matrix_tsp(2)
    search = js.simulated_annealing(js.Relocate(), 3e38, moves_per_search=3)
    state = js.run(0, problem, search, num_searches=4, max_steps=50)
    assert int(state.info.accepted.sum()) == 0
    expected = jnp.full(4, problem.cost(jnp.arange(2, dtype=jnp.int32)))
    chex.assert_trees_all_equal(state.searches.cost, expected)


def test_the_cheapest_of_the_moves_is_accepted_by_a_word_of_its_own():
    """That behind the words of all proposals, so acceptance does not depend on what is proposed."""
    moves, problem, hood, temperature = 5, matrix_tsp(12), js.Relocate(), jnp.float32(300.0)
    search = js.simulated_annealing(hood, 300.0, moves_per_search=moves)

    @jax.jit
    def one(stream):
        state = search.init(problem, problem.init(jax.random.key(3)))
        after, info = search.step(stream, search.control(stream.step), problem, state)
        words = [stream.words(jnp.uint32(slot), 2) for slot in range(moves)]
        move = [hood.propose(problem, state.representation, word) for word in words]
        deltas = [hood.delta(problem, state.representation, each) for each in move]
        delta, (word,) = jnp.stack(deltas).min(), stream.words(jnp.uint32(moves), 1)
        is_made = delta <= temperature * random.exponential(word)
        change = jnp.where(is_made, delta, 0)
        return (after.cost - state.cost, info.accepted == 1), (change, is_made)

    some = jax.tree.map(lambda leaf: leaf[:300], streams(5))
    found, expected = jax.vmap(one)(some)
    chex.assert_trees_all_equal(found, expected)
    assert found[1].any()


def test_of_equal_solutions_the_first_is_remembered():
    """Where each is written down at once; a search walks on between equals all the same."""
    search = js.simulated_annealing(Flip(), 1.0, keep_best="standard")
    problem = Levels(jnp.asarray([5, 5]))
    accepted, after = steps_from_0(search, problem, streams(5))
    assert (float(accepted), int(search.current(problem, after))) == (1, 1)
    assert int(search.best(problem, after)) == 0


def test_of_equally_cheap_moves_the_first_is_made():
    """Where all moves of a step cost the same, its first proposal is the one that is made."""
    problem, hood = js.tsp(np.ones((12, 12), np.int32) - np.eye(12, dtype=np.int32)), js.Relocate()
    search = js.simulated_annealing(hood, 0.0, moves_per_search=5)

    @jax.jit
    def one(stream):
        state = search.init(problem, problem.init(jax.random.key(3)))
        after, _ = search.step(stream, search.control(stream.step), problem, state)
        words = stream.words(jnp.uint32(0), 2)
        move = hood.propose(problem, state.representation, words)
        expected = hood.commit(problem, state.representation, move, jnp.bool_(True))
        return after.representation, expected

    some = jax.tree.map(lambda leaf: leaf[:100], streams(5))
    chex.assert_trees_all_equal(*jax.vmap(one)(some))


def test_the_first_of_the_moves_that_passes_is_made():
    """As if the moves were priced one after the other, each with a random word of its own."""
    moves, problem, hood, temperature = 5, matrix_tsp(12), js.Relocate(), 300.0
    search = js.simulated_annealing(hood, temperature, moves_per_search=moves, choose="first")

    @jax.jit
    def one(stream):
        state = search.init(problem, problem.init(jax.random.key(3)))
        after, info = search.step(stream, search.control(stream.step), problem, state)
        change, is_made = jnp.int32(0), jnp.bool_(False)
        for slot in reversed(range(moves)):
            *words, word = stream.words(jnp.uint32(slot), 3)
            move = hood.propose(problem, state.representation, tuple(words))
            delta = hood.delta(problem, state.representation, move)
            passes = delta <= temperature * random.exponential(word)
            change, is_made = jnp.where(passes, delta, change), is_made | passes
        return (after.cost - state.cost, info.accepted), (change, is_made.astype(jnp.int32))

    some = jax.tree.map(lambda leaf: leaf[:300], streams(5))
    found, expected = jax.vmap(one)(some)
    chex.assert_trees_all_equal(found, expected)


@pytest.mark.parametrize(("hood", "n"), [(js.Flip(), 37), (js.Assign(), 4)], ids=str)
def test_the_next_moves_stand_in_the_table_behind_those_tried(hood, n):
    """A step ends with the one that passes, or at the end of the table; the next begins there."""
    moves, problem, temperature = 5, dense_qubo(n), jnp.float32(60.0)
    search = js.simulated_annealing(hood, temperature, moves_per_search=moves, choose="next")
    state = search.init(problem, problem.init(jax.random.key(3)))
    step, price, commit = map(jax.jit, (search.step, hood.delta, hood.commit))
    (rows, columns), expected, entry = hood.shape(problem), state.representation, 0
    seen = set()
    for number in range(60):
        key = random.search_key(random.as_key(5), jnp.uint32(0), jnp.uint32(0))
        stream = random.Stream(key, jnp.uint32(number), jnp.int32(number))
        state, info = step(stream, temperature, problem, state)
        is_made = False
        for word in stream.words(jnp.arange(moves, dtype=jnp.uint32), 1)[0]:
            at = map(jnp.int32, divmod(entry, columns))
            move, is_move = hood.move_at(problem, expected, *at)
            delta = price(problem, expected, move)
            is_made = bool(is_move & (delta <= temperature * random.exponential(word)))
            expected = commit(problem, expected, move, jnp.bool_(is_made))
            entry = (entry + 1) % (rows * columns)
            if is_made or entry == 0:
                break
        chex.assert_trees_all_equal(state.representation, expected)
        assert int(info.accepted) == is_made
        seen.add((is_made, entry == 0))
    assert seen >= {(True, False), (False, False), (False, True)}


def test_the_next_moves_must_stand_in_a_table():
    with pytest.raises(TypeError, match=r"Relocate, expected a js\.Enumerable"):
        js.simulated_annealing(js.Relocate(), 1.0, choose="next")


@jax.jit
def bests_of(search, problem, states):
    return jax.vmap(lambda one: (search.best(problem, one), search.best_cost(one)))(states)


def test_light_and_standard_remember_the_same_best_cost():
    """LWSA walks the same path and reports the same best cost, solution and cost agreeing."""
    problem, lowest = matrix_tsp(9, dtype=np.float64), []
    for keep_best in ("light", "standard"):
        search = js.simulated_annealing(js.Relocate(), 60.0, keep_best=keep_best)
        states = js.run(7, problem, search, num_searches=6, max_steps=3000).searches
        best, best_costs = jax.device_get(bests_of(search, problem, states))
        costs = [problem.host.cost(tour) for tour in best]
        np.testing.assert_allclose(best_costs, costs, rtol=1e-5)
        assert (best_costs <= np.asarray(states.cost)).all()
        lowest.append((best_costs, states.representation))
    chex.assert_trees_all_equal(*lowest)


@jax.tree_util.register_static
class Onward(Flip):
    """Leads from each solution to the next."""

    def apply(self, problem, solution, move):
        return solution + 1


@pytest.mark.parametrize("keep_best", ["light", "standard"])
def test_light_writes_its_best_only_before_leaving_it_for_worse(keep_best):
    """The paper's Algorithm 2, line 12: of 6, 9, 5, 4, 4, 8, 7 light writes 4 only, standard 5 too.

    Both tell the lowest cost so far at any time, the start included.
    """
    costs = [6, 9, 5, 4, 4, 8, 7]
    written = {"light": [6, 6, 6, 6, 4, 4], "standard": [6, 5, 4, 4, 4, 4]}[keep_best]
    solution = {"light": [0, 0, 0, 0, 4, 4], "standard": [0, 2, 3, 3, 3, 3]}[keep_best]
    problem = Levels(jnp.asarray(costs, jnp.int32))
    search = js.simulated_annealing(Onward(), 1e9, keep_best=keep_best)
    stream = jax.tree.map(lambda leaf: leaf[0], streams(0))
    state, step = search.init(problem, jnp.int32(0)), jax.jit(search.step)
    found = []
    for number in range(1, len(costs)):
        state, _ = step(stream, search.control(stream.step), problem, state)
        assert int(state.cost) == costs[number]
        assert int(search.best_cost(state)) == min(costs[: number + 1])
        found.append((int(state.best_cost), int(state.best.solution)))
    assert found == list(zip(written, solution, strict=True))


def test_float_costs_are_refreshed():
    """A running float cost that has drifted is corrected at the next refresh; the path stays."""
    problem = matrix_tsp(12, dtype=np.float64)
    search = js.simulated_annealing(js.Relocate(), 30.0)
    state = js.init(0, problem, search, num_searches=3)
    state = js.advance(problem, search, state, 9_990)
    drifted = state._replace(searches=state.searches._replace(cost=state.searches.cost + 5))
    drifted = js.advance(problem, search, drifted, 20)
    expected = js.advance(problem, search, state, 20)
    chex.assert_trees_all_close(drifted.searches.cost, expected.searches.cost, rtol=1e-6)
    current = jax.jit(jax.vmap(search.current, in_axes=(None, 0)))
    tours = np.asarray(current(problem, expected.searches))
    costs = [problem.host.cost(tour) for tour in tours]
    np.testing.assert_allclose(expected.searches.cost, costs, rtol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"moves_per_search": 0}, "moves_per_search is 0, expected"),
        ({"choose": "last"}, "choose is 'last', expected one of best, first"),
        ({"keep_best": "never"}, "keep_best is 'never', expected"),
    ],
)
def test_arguments_out_of_range_are_named(arguments, message):
    """The factory refuses what cannot work."""
    with pytest.raises(ValueError, match=message):
        js.simulated_annealing(js.Relocate(), 1.0, **arguments)
