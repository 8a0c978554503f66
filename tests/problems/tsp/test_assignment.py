"""Asymmetric tours from assignment problems, on the host."""

import itertools

import numpy as np
import pytest

import jaxopt_search as js
from jaxopt_search.problems.tsp import assignment


def length(matrix, tour):
    return matrix[tour, np.roll(tour, -1)].sum()


def planted(n, seed, degree=3):
    """Returns distances of few one-way edges, +inf elsewhere, along which there is a tour."""
    rng = np.random.default_rng(seed)
    matrix, tour = np.full((n, n), np.inf), rng.permutation(n)
    matrix[tuple(rng.integers(0, n, (2, (degree - 1) * n)))] = rng.integers(
        1, 100, (degree - 1) * n
    )
    matrix[tour, np.roll(tour, -1)] = rng.integers(1, 100, n)
    return matrix


@pytest.mark.parametrize("n", [3, 4, 7])
def test_few_cities_have_the_shortest_tour(n):
    """Of negative distances, too: as found among all tours."""
    for seed in range(5):
        matrix = np.random.default_rng(seed).integers(-20, 100, (n, n))
        tours = [(0, *rest) for rest in itertools.permutations(range(1, n))]
        expected = min(length(matrix, list(tour)) for tour in tours)
        tour = assignment.short_tour(js.tsp(matrix, allow_negative=True))
        assert sorted(tour) == list(range(n))
        assert length(matrix, tour) == expected


@pytest.mark.parametrize("n", [40, 100])
def test_random_distances_have_a_nearly_optimal_tour(n):
    """At most 5 % above the shortest cycles, a lower bound, at once and after few steps."""
    optimize = pytest.importorskip("scipy.optimize")
    for seed in range(4):
        matrix = np.random.default_rng(seed).integers(1, 1000, (n, n))
        pairs = optimize.linear_sum_assignment(matrix + 10**6 * np.eye(n))
        assert length(matrix, assignment.short_tour(js.tsp(matrix))) <= 1.05 * matrix[pairs].sum()


@pytest.mark.parametrize("seed", range(6))
def test_a_tour_without_forbidden_edges_is_found(seed):
    """Of 60 cities with three one-way edges each, where there is one."""
    problem = js.tsp(planted(60, seed), forbidden="inf")
    assert problem.host.is_feasible(assignment.short_tour(problem))


@pytest.mark.parametrize("n", [2, 9, 50])
def test_extra_costs_bound_the_tours_that_have_an_edge(n):
    """They are 0 or more, and add up to the length of a tour beyond the shortest cycles."""
    matrix = np.random.default_rng(n).integers(-50, 1000, (n, n))
    near, extra = assignment.likeliest(js.tsp(matrix, allow_negative=True), n)
    assert near.shape == (n, n - 1)
    assert extra.min() == 0
    assert (np.diff(extra, axis=1) >= 0).all()
    whole = np.zeros((n, n))
    np.put_along_axis(whole, near, extra, axis=1)
    tours = [np.random.default_rng(seed).permutation(n) for seed in range(5)]
    beyond = [length(matrix, tour) - length(whole, tour) for tour in tours]
    assert beyond == pytest.approx([beyond[0]] * 5)


def test_forbidden_edges_are_no_candidates():
    """Nor are their prices a part of the extra costs."""
    matrix = planted(30, 1)
    near, extra = assignment.likeliest(js.tsp(matrix, forbidden="inf"), 8)
    is_own = near == np.arange(30)[:, None]
    assert np.isinf(extra[is_own]).all()
    assert np.isfinite(np.take_along_axis(matrix, near, axis=1)[~is_own]).all()
    assert is_own.any()


def test_copies_of_cities_count_as_one_place():
    """They follow one another, and candidates lead elsewhere though there are fewer than copies."""
    few = np.random.default_rng(0).integers(50, 100, (6, 6))  # no detour is shorter
    np.fill_diagonal(few, 0)
    many = js.tsp(np.kron(few, np.ones((5, 5), int)))
    tour = assignment.short_tour(many)
    assert sorted(tour) == list(range(30))
    assert many.host.cost(tour) == length(few, assignment.short_tour(js.tsp(few)))
    near, extra = assignment.likeliest(many, 4)
    is_own = near // 5 == np.arange(30)[:, None] // 5
    assert (is_own.sum(axis=1) == 1).all() and (extra[is_own] == 0).all()
    assert assignment.likeliest(js.tsp(np.zeros((9, 9), int), is_symmetric=False), 4)[0].max() == 8
