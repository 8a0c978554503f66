"""Assignments built on the host: swaps make them no cheaper, and what is fixed stays."""

import itertools

import numpy as np
import pytest
from qaps import KINDS, double_sum, matrices

import jaxopt_search as js
from jaxopt_search.problems.qap.construction import constructed_assignment


def least_by_a_swap(cost, assignment, facilities):
    """Returns the lowest cost after one swap."""
    costs = []
    for pair in itertools.combinations(facilities, 2):
        swapped = assignment.copy()
        swapped[list(pair)] = assignment[list(pair[::-1])]
        costs.append(cost(swapped))
    return min(costs, default=np.inf)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [2, 3, 9, 20])
def test_no_swap_makes_it_cheaper(kind, n):
    """Of any two facilities, of any kind of matrices; and it is the same each time."""
    flow, distance = matrices(n, kind, seed=n)
    problem = js.qap(flow, distance)
    found = constructed_assignment(problem)
    assert found.dtype == np.int32
    assert sorted(found) == list(range(n))
    cost = double_sum(flow, distance, found)
    assert least_by_a_swap(lambda p: double_sum(flow, distance, p), found, range(n)) >= cost - 1e-3
    np.testing.assert_array_equal(found, constructed_assignment(problem))


@pytest.mark.parametrize("kind", ["symmetric", "asymmetric"])
@pytest.mark.parametrize("num_fixed", [1, 4, 8, 9])
def test_what_is_fixed_stays(kind, num_fixed):
    """And no swap of the others helps."""
    n, rng = 9, np.random.default_rng(num_fixed)
    flow, distance = matrices(n, kind)
    pairs = np.stack([rng.permutation(n), rng.permutation(n)], axis=1)[:num_fixed]
    found = constructed_assignment(js.qap(flow, distance, partial_match=pairs))
    np.testing.assert_array_equal(found[pairs[:, 0]], pairs[:, 1])
    assert sorted(found) == list(range(n))
    free = np.setdiff1d(np.arange(n), pairs[:, 0])
    cost = double_sum(flow, distance, found)
    assert least_by_a_swap(lambda p: double_sum(flow, distance, p), found, free) >= cost


def test_a_single_facility():
    assert constructed_assignment(js.qap([[3]], [[4]])).tolist() == [0]
