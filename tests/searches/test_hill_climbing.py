"""Hill climbing: its course by a slow reference, and true local optima at its end."""

import functools

import chex
import numpy as np
import pytest
from cases import small_qap
from probes import refuses
from references import climb, swaps

import jaxopt_search as js


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "symmetric", "choose"), [(2, False, "best"), (8, True, "best"), (8, False, "first")]
)
def test_the_course_is_that_of_a_slow_reference(n, symmetric, choose):
    """Ten starts end at the same local optima, after as many moves; then the run ends."""
    problem = small_qap(n, seed=n, symmetric=symmetric)
    search = js.hill_climbing(js.SwapTable(), choose=choose)
    starts = js.init(3, problem, search, num_searches=10)
    state = js.advance(problem, search, starts, 200, check_every=50)
    assert js.Status(int(state.status)) == js.Status.LOCAL_OPTIMA
    for k in range(10):
        start, found = (s.searches.representation.location[k] for s in (starts, state))
        expected, moves = climb(problem, np.asarray(start), choose)
        np.testing.assert_array_equal(found, expected)
        assert int(state.info.accepted[k]) == moves
        cost = int(state.searches.cost[k])
        assert cost == problem.host.cost(expected) <= min(s[2] for s in swaps(problem, expected))


@pytest.mark.devices(2)
def test_a_run_continues_while_one_search_does():
    """On two devices, too, at the first stop test after the last of all is done."""
    problem, search = small_qap(9), js.hill_climbing(js.SwapTable())
    solve = functools.partial(js.solve, problem, search, 0, num_searches=6)
    result = solve(max_steps=1000, check_every=3, devices=2)
    assert (result.status, result.success) == (js.Status.LOCAL_OPTIMA, True)
    assert result.nit % 3 == 0 and result.nfev == result.nit * 6 * 36
    for steps, are_done in ((result.nit, True), (result.nit - 4, False)):
        alone = solve(max_steps=steps, devices=1)
        assert np.asarray(alone.state.searches.is_done).all() == are_done
        assert (alone.costs == result.costs).all() or not are_done


def test_no_limit_is_needed():
    """But where float costs are rounded, or an exchange may open the searches again."""
    search = js.hill_climbing(js.SwapTable())
    result = js.solve(small_qap(8), search, 0, num_searches=4, devices=1)
    assert result.status == js.Status.LOCAL_OPTIMA
    inexact = js.qap([[0, 0.5], [0.25, 0]], [[0, 1], [2, 0]])
    with refuses(ValueError, "no limit is given"):
        js.solve(inexact, search, 0, num_searches=4)
    with refuses(ValueError, "no limit is given"):
        js.solve(small_qap(8), search, 0, num_searches=4, exchange=js.ring(every=10))


def test_equal_neighbors_are_not_better():
    """Where all costs are the same every start is a local optimum, and no search moves."""
    flat = js.qap(1 - np.eye(6, dtype=int), 1 - np.eye(6, dtype=int))
    search = js.hill_climbing(js.SwapTable())
    start = js.init(0, flat, search, num_searches=3)
    state = js.advance(flat, search, start, 8, check_every=4)
    assert js.Status(int(state.status)) == js.Status.LOCAL_OPTIMA
    assert not np.asarray(state.info.accepted).any()
    found, expected = (each.searches.representation.location for each in (state, start))
    chex.assert_trees_all_equal(found, expected)


def test_what_it_refuses():
    """A neighborhood that does not enumerate its moves, and an unknown choice."""
    with refuses(TypeError, "neighborhood is a Relocate, expected a js.Enumerable", "SwapTable()"):
        js.hill_climbing(js.Relocate())
    with refuses(ValueError, "choose is 'worst'"):
        js.hill_climbing(js.SwapTable(), choose="worst")
