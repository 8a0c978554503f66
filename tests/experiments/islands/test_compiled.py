"""The islands' algorithm as plain loops: its parts against the library's, and its course."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxopt_search as js
from experiments.islands import compiled as compiled_islands
from experiments.islands.compiled import Setup
from jaxopt_search.crossovers import permutations


def matrices(n, seed=0):
    return np.random.default_rng(seed).integers(0, 50, (2, n, n))


@pytest.fixture
def loop():
    """The loop as Python runs it; numba compiles the same."""
    return compiled_islands.build(lambda fn: fn)


def test_children_agree_with_the_library():
    """Figure 7 goes from position to position, the library along all chains at once."""
    rng, pmx = np.random.default_rng(1), jax.jit(permutations.pmx)
    for n in (2, 9):
        for _ in range(20):
            first, second = (rng.permutation(n).astype(np.int32) for _ in range(2))
            start, end = sorted(rng.choice(n, 2, replace=False))
            child = np.zeros(n, np.int32)
            compiled_islands.pmx(first, second, start, end, child)
            position = np.arange(n)
            is_second = jnp.asarray((position >= start) & (position < end))
            expected = pmx(jnp.asarray(first), jnp.asarray(second), is_second)
            np.testing.assert_array_equal(child, expected)


def test_costs_agree_with_the_library():
    flow, distance = matrices(7)
    order = np.random.default_rng(2).permutation(7)
    expected = js.qap(flow, distance).host.cost(order)
    assert compiled_islands.cost(flow, distance, order) == expected


def test_a_run_finds_the_optimum_and_stops(loop):
    """With the cost of its assignment; a target that cannot be met takes all generations."""
    flow, distance = matrices(6)
    costs = [
        compiled_islands.cost(flow, distance, np.array(p)) for p in itertools.permutations(range(6))
    ]
    best = min(costs)
    setup = Setup(population=16, restart_every=10)
    made, cost, found = loop(flow, distance, setup, 0, 3000, best)
    assert cost == best == compiled_islands.cost(flow, distance, found)
    assert 0 < made < 3000
    assert loop(flow, distance, setup, 0, made, -1)[:2] == (made, best)


def test_a_population_restarts_when_enough_are_alike(loop):
    """Without mutation and restarts one that is all alike has no more new children."""
    flow, distance = matrices(9)
    setup = Setup(population=8, mutation=0.0, restart_every=30)

    def lowest(generations, **changes):
        return loop(flow, distance, setup._replace(**changes), 3, generations, -1)[1]

    assert lowest(100, alike=2.0) == lowest(600, alike=2.0) > lowest(600)
