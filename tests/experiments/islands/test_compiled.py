"""The islands' algorithm as plain loops: its parts against the library's, and its course."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np

from experiments.islands import compiled as compiled_islands
from experiments.islands.compiled import Setup
from jaxopt_search.crossovers import operators


def matrices(n, seed=0):
    return np.random.default_rng(seed).integers(0, 50, (2, n, n))


def test_children_agree_with_the_library():
    """Figure 7 goes from position to position, the library along all chains at once."""
    rng, pmx = np.random.default_rng(1), jax.jit(operators.pmx)
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


def test_a_run_finds_the_optimum_and_stops():
    """With the cost of its assignment; a target that cannot be met takes all generations."""
    flow, distance = matrices(6)
    loop = compiled_islands.build(lambda fn: fn)
    costs = [
        compiled_islands.cost(flow, distance, np.array(p)) for p in itertools.permutations(range(6))
    ]
    best = min(costs)
    setup = Setup(population=16, restart_every=10)
    made, cost, found = loop(flow, distance, setup, 0, 3000, best)
    assert cost == best == compiled_islands.cost(flow, distance, found)
    assert 0 < made < 3000
    assert loop(flow, distance, setup, 0, made, -1)[:2] == (made, best)
