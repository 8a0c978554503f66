"""Tours built on the host: near the shortest, for any kind of instance."""

import numpy as np
import pytest
from cases import coords_tsp, matrix_tsp

import jaxopt_search as js
from jaxopt_search.problems.tsp import candidates
from jaxopt_search.problems.tsp.construction import constructed_tour


@pytest.mark.parametrize(
    ("make", "most"),
    [
        (lambda seed: js.datasets.grid_tsp(6, 6, seed=seed), 1.06),
        (lambda seed: js.datasets.grid_tsp(10, 20, seed=seed), 1.06),
        (lambda seed: js.datasets.grid_tsp(37, 40, seed=seed), 1.07),
        (lambda seed: js.datasets.planted_tsp(60, seed=seed), 1.06),
    ],
)
def test_it_is_near_the_optimum(make, most):
    """On average of some instances."""
    instances = [make(seed) for seed in range(4)]
    tours = [constructed_tour(js.tsp_from_instance(each)) for each in instances]
    ratios = [
        each.tour_length(tour) / each.best_known
        for each, tour in zip(instances, tours, strict=True)
    ]
    assert np.mean(ratios) < most


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 9, 40])
@pytest.mark.parametrize(
    "make",
    [
        coords_tsp,
        lambda n: coords_tsp(n, metric="GEO", storage="matrix"),
        matrix_tsp,
        lambda n: matrix_tsp(n, dtype=np.float32),
        lambda n: matrix_tsp(n, symmetric=False),
        lambda n: js.tsp(np.zeros((n, n))),
        lambda n: js.tsp(-np.arange(n * n).reshape(n, n), allow_negative=True),
        lambda n: js.tsp_from_coords(np.ones((n, 2))),
        lambda n: js.tsp_from_coords(np.stack([np.arange(n), np.zeros(n)], axis=1)),
        lambda n: matrix_tsp(n).padded(),
    ],
)
def test_any_instance_has_one(make, n):
    """Also of few cities, of equal places, on a line, or with room for more; the same each time."""
    problem = make(n)
    tour = constructed_tour(problem)
    assert tour.dtype == np.int32
    assert sorted(tour) == list(range(n))
    np.testing.assert_array_equal(tour, constructed_tour(problem))


def test_lists_found_elsewhere_are_used():
    """However few candidates there are, the tour is complete."""
    problem = coords_tsp(50)
    tours = [constructed_tour(problem, candidates.neighbors(problem, num)) for num in (1, 2, 8)]
    assert all(sorted(tour) == list(range(50)) for tour in tours)
    np.testing.assert_array_equal(tours[2], constructed_tour(problem))
    assert problem.host.cost(tours[2]) < problem.host.cost(tours[0])


def test_a_forbidden_edge_is_avoided():
    """Where that is easy."""
    matrix = 1.0 + np.abs(np.subtract.outer(np.arange(12), np.arange(12)))
    matrix[3, 4] = matrix[4, 3] = np.inf
    problem = js.tsp(matrix, forbidden="inf")
    assert problem.host.is_feasible(constructed_tour(problem))
