"""Simulated annealing: the Metropolis rule, what is remembered, and limits known by hand.

Its walks are held against a slow reference in `test_acceptance`.
"""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from cases import Levels, dense_qubo

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
