"""Tours of the shortest edges that still fit."""

import numpy as np
import pytest
from cases import coords_tsp, matrix_tsp

from jaxopt_search.problems.tsp import candidates
from jaxopt_search.problems.tsp.greedy import Paths, greedy_tour


def by_hand(matrix):
    """Returns the length of the tour of the shortest edges that close no cycle and leave none."""
    n = len(matrix)
    group, degree, total = list(range(n)), [0] * n, 0
    for i, j in zip(*np.unravel_index(np.argsort(matrix, axis=None), (n, n)), strict=True):
        if i != j and degree[i] < 2 and degree[j] < 2 and group[i] != group[j]:
            group = [group[i] if one == group[j] else one for one in group]
            degree[i], degree[j], total = degree[i] + 1, degree[j] + 1, total + matrix[i, j]
    first, last = (city for city in range(n) if degree[city] < 2)
    return total + matrix[first, last]


@pytest.mark.parametrize("num_candidates", [3, 29])
@pytest.mark.parametrize("problem", [matrix_tsp(30), matrix_tsp(30, dtype=np.float64)])
def test_the_shortest_edges_come_first(problem, num_candidates):
    """As by hand with all edges at hand; with few candidates, not much longer."""
    matrix = problem.distances_on_host().astype(float)
    near = candidates.neighbors(problem, num_candidates)
    tour = greedy_tour(problem, near, lambda a, b: matrix[a, b])
    assert sorted(tour) == list(range(30))
    length, expected = matrix[tour, np.roll(tour, -1)].sum(), by_hand(matrix)
    assert length == pytest.approx(expected, rel=0 if num_candidates == 29 else 0.25)


def test_a_path_takes_no_third_edge_and_closes_no_cycle():
    paths = Paths(5)
    paths.join(np.array([0, 1, 2, 1, 3]), np.array([1, 2, 0, 4, 3]))
    assert (paths.num, paths.ends().tolist()) == (3, [0, 2, 3, 4])
    paths.join(np.array([4, 3]), np.array([0, 2]))
    assert paths.tour().tolist() in ([3, 2, 1, 0, 4], [4, 0, 1, 2, 3])


def test_near_among_some():
    """Of some cities only, by coordinates as by a matrix."""
    cities = np.array([3, 8, 9, 14, 17, 20])
    for storage in ("matrix", "coordinates"):
        problem = coords_tsp(25, storage=storage)
        coords = problem.host.coords[cities]
        away = np.hypot(*(coords[:, None] - coords[None]).transpose(2, 0, 1))
        found = candidates.nearest_among(problem, cities, 9)
        assert found.shape == (6, 5)
        rows = np.searchsorted(cities, found)
        expected = np.sort(away, axis=1)[:, 1:]
        near = np.take_along_axis(away, rows, axis=1)
        np.testing.assert_allclose(near, expected, atol=1 if storage == "matrix" else 0)
