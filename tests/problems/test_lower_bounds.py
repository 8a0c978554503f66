"""Bounds are below every solution's cost, and near the lowest."""

import numpy as np
import pytest
from probes import shortest
from qaps import cheapest

import jaxopt_search as js
from jaxopt_search.problems import lower_bounds


@pytest.mark.parametrize("is_integral", [True, False], ids=["integers", "floats"])
def test_no_bound_is_above_the_optimum(is_integral):
    """Of 600 instances: tours either way and assignments, with negative entries among them."""
    generator = np.random.default_rng(3)
    for number in range(100):
        matrix = generator.integers(-5 * (number % 3), 100, (7, 7))
        flow, distance = generator.integers(-3 * (number % 2), 10, (2, 6, 6))
        if not is_integral:
            matrix, flow, distance = (
                each + generator.random(each.shape) for each in (matrix, flow, distance)
            )
        both_ways = matrix + matrix.T
        assert lower_bounds.of_tours(both_ways, True) <= shortest(both_ways)
        assert lower_bounds.of_tours(matrix, False) <= shortest(matrix)
        for fixed, places in (((), ()), ([1, 4], [0, 4]), ([2, 0, 3, 1, 5], [0, 1, 2, 3, 4])):
            given = flow, distance, fixed, places
            bound = lower_bounds.of_assignments(*given)
            assert bound <= cheapest(*given)
        assert bound == pytest.approx(cheapest(*given), rel=1e-4)  # only one place is left


@pytest.mark.parametrize("scale", [1, 1000], ids=["floats", "integers"])
def test_bounds_of_tours_are_near(scale):
    """The shortest tour through these cities has a length of 6.2467."""
    xy = np.random.default_rng(0).random((60, 2)) * scale
    matrix = np.hypot(*(xy[:, None] - xy).T)
    matrix = matrix if scale == 1 else np.rint(matrix).astype(int)
    best = 6.2467 * scale
    assert 0.985 * best < lower_bounds.of_tours(matrix, True) < 1.001 * best


def test_bounds_that_are_reached():
    """Cities on a circle, cycles of one length, flows that all go along one path."""
    angle = np.linspace(0, 2 * np.pi, 12, endpoint=False)
    circle = np.abs(np.exp(1j * angle)[:, None] - np.exp(1j * angle))
    assert lower_bounds.of_tours(circle, True) == pytest.approx(12 * circle[0, 1])
    ones = np.ones((5, 5), int)
    assert lower_bounds.of_tours(ones, False) == 5
    assert lower_bounds.of_tours(np.array([[0, 3], [4, 0]]), False) == 7
    assert lower_bounds.of_tours(np.zeros((1, 1), int), True) == 0
    assert lower_bounds.of_assignments(ones, 2 * ones) == 50


@pytest.mark.parametrize("unit", [1, 1e-6, 1e6])
def test_problems_count_in_full(unit):
    """Whatever the device counts in, from a matrix or coordinates, padded or not."""
    xy = unit * np.array([[0, 0], [4, 0], [4, 3], [0, 3]])
    for storage in ("matrix", "coordinates"):
        problem = js.tsp_from_coords(xy, storage=storage)
        for each in (problem, problem.padded()):
            assert each.lower_bound() == pytest.approx(14 * unit)
    assert js.tsp_from_coords(xy / unit, metric="CEIL_2D").lower_bound() == 14
    many = np.full((4, 4), 30_000)
    assert js.qap(many, many).lower_bound() == 16 * 30_000**2
    ones = np.ones((4, 4))
    assert js.qap(unit * ones, ones).lower_bound() == pytest.approx(16 * unit)
