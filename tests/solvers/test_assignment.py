"""solve_assignment: known optima, and what it says where nothing fits."""

import itertools

import numpy as np
import pytest
from probes import refuses

import jaxopt_search as js

QUICK = {"num_searches": 4, "devices": 1}


def planted(agents, jobs, kind, seed=0):
    """Returns costs, loads, capacities that one assignment fills, and its cost, which is optimal.

    Loads are worth 3 to 5 at each agent: whoever pays this for their capacity has the cheapest
    jobs.
    """
    rng = np.random.default_rng(seed)
    loads, worth = rng.integers(5, 30, (agents, jobs)), rng.integers(3, 6, agents)
    best, job = rng.integers(0, agents, jobs), np.arange(jobs)
    extra = rng.integers(1, 40, loads.shape)
    extra[best, job] = 0
    costs = 200 - worth[:, None] * loads + extra
    capacities = np.bincount(best, loads[best, job], agents).astype(int)
    if kind == "float":
        costs = costs * 0.37
    return costs, loads, capacities, costs[best, job].sum()


@pytest.mark.parametrize("kind", ["integer", "float"])
def test_a_planted_optimum_is_found_and_bounded(kind):
    """From random starts that overload agents, though only few assignments fit."""
    costs, loads, capacities, optimum = planted(4, 20, kind)
    result = js.solve_assignment(costs, loads, capacities, max_steps=20_000, **QUICK)
    used = np.bincount(result.x, loads[result.x, np.arange(20)], 4)
    assert result.feasible and (used <= capacities).all()
    assert result.fun == pytest.approx(optimum, rel=1e-6)
    assert 0.97 * optimum < result.bound <= optimum


@pytest.mark.parametrize("seed", range(3))
def test_loads_may_be_the_same_for_all_agents(seed):
    """The optimum of all assignments, where few fit."""
    rng = np.random.default_rng(seed)
    costs, loads = rng.integers(0, 50, (3, 7)), rng.integers(3, 12, 7)
    capacities = np.full(3, loads.sum() // 3 + 2)
    fitting = [
        costs[list(x), np.arange(7)].sum()
        for x in itertools.product(range(3), repeat=7)
        if (np.bincount(x, loads, 3) <= capacities).all()
    ]
    result = js.solve_assignment(costs, loads, capacities, max_steps=20_000, **QUICK)
    assert (result.fun, result.feasible) == (min(fitting), True)
    assert result.bound <= min(fitting)


def test_searches_leave_an_overload_that_no_move_lessens():
    """14 of 729 assignments fit, and all searches find one, from whatever start."""
    costs = [[29, 23, 27, 7, 10, 24], [9, 22, 3, 1, 27, 9], [5, 7, 0, 22, 26, 0]]
    loads = [[5, 3, 6, 7, 7, 0], [0, 9, 0, 5, 4, 3], [0, 1, 5, 1, 7, 8]]
    problem = js.generalized_assignment(costs, loads, [6, 7, 5])
    result = js.solve_assignment(problem, max_steps=20_000, num_searches=32, devices=1)
    assert result.costs.max() <= problem.host.max_feasible


def test_loads_and_capacities_belong_to_costs():
    problem = js.generalized_assignment([[1, 2]], [[1, 1]], [2])
    with refuses(ValueError, "loads is given with a problem"):
        js.solve_assignment(problem, [1, 1], [2], max_steps=1)
    with refuses(ValueError, "capacities is None"):
        js.solve_assignment([[1, 2]], [1, 1], max_steps=1)


def test_where_nothing_fits_it_says_so():
    """And a target is met by no solution that overloads an agent."""
    result = js.solve_assignment([[1, 2], [2, 1]], [3, 3], [2, 9], max_steps=2000, **QUICK)
    assert result.feasible and result.x.tolist() == [1, 1]
    how = QUICK | {"max_steps": 2000, "target": 10**6}
    result = js.solve_assignment([[1, 2], [2, 1]], [3, 3], [2, 5], **how)
    assert (result.fun, result.feasible, result.success) == (np.inf, False, False)


def test_many_agents_that_cannot_do_a_job():
    """They take no place among those to whom it is offered, cheap as they are."""
    shape = agents, jobs = 12, 6
    costs, loads, capacities = np.full(shape, 3), np.full(shape, 5), np.zeros(agents)
    costs[-1], capacities[-1] = 1000, 5 * jobs
    result = js.solve_assignment(costs, loads, capacities, max_steps=2000, **QUICK)
    assert (result.fun, result.x.tolist()) == (1000 * jobs, [agents - 1] * jobs)


def test_an_agent_who_does_what_is_left():
    """Dearer than all others, it is offered all jobs: with it, they always fit."""
    rng, (agents, jobs) = np.random.default_rng(0), (12, 24)
    costs, loads = rng.integers(1, 9, (agents, jobs)), np.full((agents, jobs), 2)
    costs[-1], capacities = 10**4, np.array([2] * (agents - 1) + [2 * jobs])
    result = js.solve_assignment(costs, loads, capacities, max_steps=5000, **QUICK)
    assert result.feasible and (result.x == agents - 1).sum() == jobs - (agents - 1)
