"""What recipes follow from: scales of instances, sizes, and starts; nothing is searched."""

import jax
import numpy as np
import pytest
from scipy.sparse.csgraph import minimum_spanning_tree

import jaxopt_search as js
from jaxopt_search.problems.qap.construction import constructed_assignment
from jaxopt_search.solvers import scales


def test_near_distance():
    """The mean of the three nearest elsewhere, and never 0 or less; on the host and the device."""
    for matrix, expected in (
        (np.array([[0, 3, 4], [3, 0, 5], [4, 5, 0]]), 4.0),
        (np.zeros((5, 5), int), 1.0),
        (-np.ones((5, 5), int), 1.0),
        (np.repeat(np.repeat([[0, 4], [4, 0]], 5, axis=0), 5, axis=1), 4.0),
        (np.zeros((1, 1), int), 1.0),
    ):
        problem = js.tsp(matrix, allow_negative=True).padded()
        for measure in (scales.near_distance, scales.near_distance_on_device):
            assert float(measure(problem)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("coords", "expected"),
    [
        ([[0, 0], [8, 0], [1, 0], [3, 0]], 10**0.5),  # 1, 2 and 5
        ([[0, 0], [0, 3], [4, 0]], 12.5**0.5),
        ([[2, 2]] * 5, 0.0),
        ([[7, 1]], 0.0),
    ],
)
def test_tree_edge(coords, expected):
    """Root mean squares of edges, by hand."""
    assert float(scales.tree_edge(js.tsp_from_coords(coords))) == pytest.approx(expected)


def test_tree_edge_is_that_of_the_shortest_tree():
    """As SciPy finds it."""
    distances = np.random.default_rng(0).integers(1, 500, (40, 40))
    distances = np.triu(distances, 1) + np.triu(distances, 1).T
    expected = np.sqrt(np.square(minimum_spanning_tree(distances).data).mean())
    assert float(scales.tree_edge(js.tsp(distances))) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("metric", "storage", "sizes"),
    [
        ("EUCLID", "coordinates", (1, 2, 13)),
        ("CEIL_2D", "matrix", (13,)),
    ],
)
def test_scales_on_the_host_are_those_of_the_device(metric, storage, sizes):
    """Up to rounding."""
    for n in sizes:
        places = np.random.default_rng(n).integers(0, 2000, (n, 2)) + 0.3 * (metric == "EUCLID")
        problem = js.tsp_from_coords(places, metric=metric, storage=storage).padded()
        for name in ("near_distance", "tree_edge"):
            found, expected = (getattr(scales, name + end)(problem) for end in ("", "_on_device"))
            assert found == pytest.approx(float(expected), rel=1e-5)


@pytest.mark.parametrize("fixed", [None, [[2, 4], [0, 0]]])
def test_swap_change_is_a_mean_over_swaps(fixed, compiled):
    """Within five standard errors of that of 4000 on the device; padded or not, as is the start."""
    flow, distance = np.random.default_rng(0).integers(-20, 50, (2, 7, 7))
    problem = js.qap(flow, distance, partial_match=fixed)

    def change(key):
        keys = jax.random.split(key)
        pair = jax.random.choice(keys[0], problem.num_free, (2,), replace=False)
        pair = pair if fixed is None else problem.free[pair]
        return problem.swap_delta(problem.init(keys[1]), *pair)

    changes = np.abs(jax.jit(jax.vmap(change))(jax.random.split(jax.random.key(0), 4000)))
    compiled.clear()
    found = scales.swap_change(problem)
    assert not compiled
    padded = problem.padded(16)
    assert found == scales.swap_change(padded)
    np.testing.assert_array_equal(constructed_assignment(problem), constructed_assignment(padded))
    assert abs(found - changes.mean()) < 5 * changes.std() / 256**0.5
