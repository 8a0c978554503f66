"""Generalized assignment: costs, penalties, moves and input, held against sums over all jobs."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest
from probes import costs_of, refuses

import jaxopt_search as js
from jaxopt_search.checks import MAX_INT32

AGENTS, JOBS = 3, 4
ONES = np.ones((2, 3), int)


def instance(kind="integer", seed=0, agents=AGENTS, jobs=JOBS):
    """Returns costs, loads and capacities that few solutions keep."""
    rng = np.random.default_rng(seed)
    costs, loads = rng.integers(-20, 80, (agents, jobs)), rng.integers(0, 9, (agents, jobs))
    costs = costs + rng.random(costs.shape) if kind == "float" else costs
    return costs, loads, loads.sum(axis=1) // agents + 1


def solutions(agents=AGENTS, jobs=JOBS):
    return np.array(list(itertools.product(range(agents), repeat=jobs)), np.int32)


def in_full(given, solution):
    """Returns the cost of the jobs, and the load beyond all capacities."""
    costs, loads, capacities = given
    used = [0] * len(capacities)
    for job, agent in enumerate(solution):
        used[agent] += loads[agent][job]
    over = sum(max(0, one - room) for one, room in zip(used, capacities, strict=True))
    return sum(costs[agent][job] for job, agent in enumerate(solution)), over


@pytest.mark.parametrize("kind", ["integer", "float"])
def test_costs_are_those_of_the_definition(kind):
    """Of all 81 solutions of 4 jobs."""
    given, x = instance(kind), solutions()
    problem = js.generalized_assignment(*given)
    totals, over = map(np.array, zip(*(in_full(given, one) for one in x), strict=True))
    fixed, penalty = (np.asarray(part) for part in (problem.fixed_penalty, problem.penalty))
    expected = totals + np.where(over > 0, fixed + penalty * over, 0)
    is_exact = kind == "integer"
    tolerance = {"rtol": 0, "atol": 0} if is_exact else {"rtol": 1e-5, "atol": 1e-2}
    costs = np.asarray(costs_of(problem, x))
    assert costs.dtype == (np.int32 if is_exact else np.float32)
    np.testing.assert_allclose(costs, expected, **tolerance)
    np.testing.assert_allclose([problem.host.cost(one) for one in x], expected, **tolerance)
    np.testing.assert_array_equal([problem.host.is_feasible(one) for one in x], over == 0)
    assert 0 < (over == 0).sum() < len(x) / 2
    np.testing.assert_array_equal(costs <= problem.host.max_feasible, over == 0)


def test_a_move_that_reduces_the_overload_pays():
    """Even if some is left, and the job costs the most there and the least here."""
    problem = js.generalized_assignment([[0, 0, 0], [1000, 0, 0]], ONES, [1, 1])
    at = costs_of(problem, jnp.int32([[0, 0, 0], [1, 0, 0]]))
    assert at[1] < at[0]


@pytest.mark.parametrize("unit", [0.1, 0.25, 1e-6])
def test_loads_may_be_decimals(unit):
    """Such as hours: the same solutions are feasible, whatever is left beside whole parts."""
    (costs, loads, capacities), x = instance(), solutions()
    problem = js.generalized_assignment(costs, loads * unit, (capacities + 0.001) * unit)
    over = np.array([in_full((costs, loads, capacities), one)[1] for one in x])
    np.testing.assert_array_equal(costs_of(problem, x) <= problem.host.max_feasible, over == 0)
    assert problem.host.remaining(x[0]) == f"an overload of {over[0] * unit:g} remains"


def test_bounds_are_proven():
    """Exact up to int32, and refused beyond, where floats serve."""
    loads, capacities = [[1, 0], [0, 1]], [0, 1]
    most = MAX_INT32 // 12 - 1
    problem = js.generalized_assignment([[most, 0], [0, 0]], loads, capacities)
    x = solutions(2, 2)
    assert costs_of(problem, x).tolist() == [problem.host.cost(one) for one in x]
    with refuses(ValueError, "expected below 2.14748e+09; use a problem of dtype='float32'"):
        js.generalized_assignment([[MAX_INT32, 0], [0, 0]], loads, capacities)
    inexact = js.generalized_assignment(
        [[MAX_INT32, 0], [0, 0]], loads, capacities, dtype="float32"
    )
    assert inexact.costs.dtype == jnp.float32
    roomy = js.generalized_assignment(ONES, ONES, [10**12, 1])
    assert roomy.host.is_feasible(solutions(2, 3)[0])
    assert costs_of(roomy, solutions(2, 3)).max() > roomy.host.max_feasible
    zeros = js.generalized_assignment(np.zeros((2, 2)), loads, capacities, dtype="float32")
    found = np.asarray(costs_of(zeros, x)) <= zeros.host.max_feasible
    np.testing.assert_array_equal(found, [zeros.host.is_feasible(one) for one in x])


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: js.generalized_assignment([1], ONES, [1, 1]), "costs has shape (1,)"),
        (lambda: js.generalized_assignment(ONES, ONES[:, :2], [1, 1]), "loads has shape (2, 2)"),
        (lambda: js.generalized_assignment(ONES * np.nan, ONES, [1, 1]), "costs[0,0] is NaN"),
        (lambda: js.generalized_assignment(ONES, -ONES, [1, 1]), "loads hold -1, expected"),
        (
            lambda: js.generalized_assignment(ONES, ONES / 3, [1, 1]),
            "loads have more than 6 digits",
        ),
        (lambda: js.generalized_assignment(ONES * 1e38, ONES, [1, 1]), "multiply costs by a"),
        (
            lambda: js.generalized_assignment(ONES, ONES * 999.000001, [1, 1]),
            "parts of 1 / 1000000, exp",
        ),
    ],
)
def test_bad_input_is_refused_in_one_line(make, text):
    with refuses(ValueError, text):
        make()


@pytest.mark.parametrize("kind", ["integer", "float"])
def test_no_feasible_solution_costs_less_than_the_bound(kind):
    """Of random instances, and close to it; where nothing can be feasible, it is still a number."""
    for seed in range(8):
        given = instance(kind, seed, jobs=6)
        best = min(
            (total for total, over in (in_full(given, x) for x in solutions(jobs=6)) if not over),
            default=np.inf,
        )
        bound = js.generalized_assignment(*given).lower_bound()
        assert bound is not None and bound <= best and (best == np.inf or bound > best - 60)
