"""Tours that go to the nearest city left."""

import numpy as np
import pytest

import jaxopt_search as js
from jaxopt_search.problems.tsp.nearest_neighbor import nearest_neighbor_tours


def tours_of(matrix, seed, num_tours):
    return nearest_neighbor_tours(js.tsp(matrix), np.random.default_rng(seed), num_tours)


@pytest.mark.parametrize("dtype", [int, float])
@pytest.mark.parametrize("n", [2, 9, 40])
def test_each_city_is_the_nearest_left(n, dtype):
    """All tours differ in their first cities; of equally near cities comes the first."""
    matrix = np.random.default_rng(n).integers(0, 12, (n, n)).astype(dtype)
    matrix = np.triu(matrix, 1) + np.triu(matrix, 1).T
    tours = tours_of(matrix, 0, n + 3)
    assert tours.dtype == np.int32
    assert sorted(tours[:, 0]) == list(range(n))
    for first, *others in tours.tolist():
        left, city = set(range(n)) - {first}, first
        for following in others:
            assert following == min(left, key=lambda other: (matrix[city, other], other))
            left.remove(city := following)
        assert not left


def test_a_single_city_and_few_tours():
    assert tours_of(np.zeros((1, 1), int), 0, 3).tolist() == [[0]]
    matrix = 1 - np.eye(20, dtype=int)
    few, others = tours_of(matrix, 1, 3), tours_of(matrix, 2, 3)
    assert few.shape == (3, 20)
    assert set(few[:, 0]) != set(others[:, 0])
