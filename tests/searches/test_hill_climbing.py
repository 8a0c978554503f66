"""Hill climbing: its course by a slow reference, and true local optima at its end."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import small_qap
from probes import refuses
from references import climb, swaps

import jaxopt_search as js

CASES = [
    (2, False, "best"),
    (3, True, "first"),
    (8, True, "best"),
    (8, False, "first"),
]


@jax.jit
def started(search, problem, key):
    return search.init(problem, problem.init(key))


@pytest.mark.slow
@pytest.mark.parametrize(("n", "symmetric", "choose"), CASES)
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
    """With several searches on several devices, at the first stop test after the last is done."""
    problem, search = small_qap(9), js.hill_climbing(js.SwapTable())
    results = [
        js.solve(problem, search, 0, num_searches=6, max_steps=1000, check_every=3, devices=devices)
        for devices in (1, 2)
    ]
    chex.assert_trees_all_equal(*(result.costs for result in results))
    alone = [
        js.solve(problem, search, 0, num_searches=6, max_steps=steps, devices=1)
        for steps in (results[0].nit, results[0].nit - 4)
    ]
    np.testing.assert_array_equal(results[0].costs, alone[0].costs)
    for result in results:
        assert (result.status, result.success) == (js.Status.LOCAL_OPTIMA, True)
        assert result.nit % 3 == 0
        assert result.nfev == result.nit * 6 * 36
    assert not np.asarray(alone[1].state.searches.is_done).all()


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


@pytest.mark.parametrize("choose", ["best", "first"])
def test_equal_neighbors_are_not_better(choose):
    """Where all costs are the same every start is a local optimum, and no search moves."""
    flat = js.qap(1 - np.eye(6, dtype=int), 1 - np.eye(6, dtype=int))
    search = js.hill_climbing(js.SwapTable(), choose=choose)
    start = js.init(0, flat, search, num_searches=3)
    state = js.advance(flat, search, start, 8, check_every=4)
    assert js.Status(int(state.status)) == js.Status.LOCAL_OPTIMA
    assert not np.asarray(state.info.accepted).any()
    found, expected = (each.searches.representation.location for each in (state, start))
    chex.assert_trees_all_equal(found, expected)


def test_an_adopted_solution_does_not_cost_the_best():
    """A search that is given a worse solution climbs again, and remembers the better one."""
    problem, search = small_qap(9), js.hill_climbing(js.SwapTable())
    state = started(search, problem, jax.random.key(0))
    step = jax.jit(lambda state: search.step(None, None, problem, state)[0])
    for _ in range(20):
        state = step(state)
    assert bool(state.is_done)
    best = search.best(problem, state)
    worst = max(swaps(problem, np.asarray(best)), key=lambda swap: swap[2])[1]
    state = search.adopt(problem, state, jnp.asarray(worst))
    assert not bool(state.is_done)
    np.testing.assert_array_equal(search.best(problem, state), best)
    assert int(search.best_cost(state)) == problem.host.cost(np.asarray(best))


def test_what_it_refuses():
    """A neighborhood that does not enumerate its moves, and an unknown choice."""
    with refuses(TypeError, "neighborhood is a Relocate, expected a js.Enumerable", "SwapTable()"):
        js.hill_climbing(js.Relocate())
    with refuses(ValueError, "choose is 'worst'"):
        js.hill_climbing(js.SwapTable(), choose="worst")
