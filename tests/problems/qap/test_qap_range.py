"""QAP costs beyond what int32 holds, and all of QAPLIB: exact, or refused."""

import csv
import functools
import itertools

import numpy as np
import pytest
from probes import costs_of
from qaps import all_assignments, all_pairs, deltas_of, matrices

import jaxopt_search as js
from jaxopt_search.datasets import readers
from jaxopt_search.problems.bounds import Bounds, largest_swap, qap_bounds
from jaxopt_search.problems.qap.build import qap, qap_from_instance


def largest_that_fits(flow, distance):
    """Returns `distance` times the largest integer with which costs still fit int32."""
    low, high = 1, 2**30
    while low < high:
        middle = (low + high + 1) // 2
        is_fit = qap_bounds(flow, distance * middle).fit
        low, high = (middle, high) if is_fit else (low, middle - 1)
    return distance * low


def assert_costs_differ_exactly(problem, exact, costs):
    """Checks that no cost on the device has wrapped: differences equal those of exact costs."""
    unit = problem.host.unit
    costs = [cost * unit for cost in np.asarray(costs).tolist()]
    assert [cost - costs[0] for cost in costs] == [cost - exact[0] for cost in exact]


@pytest.mark.parametrize("kind", ["symmetric", "diagonal", "negative"])
def test_costs_at_the_limits_of_int32(kind):
    """All assignments of 6 facilities, as dear as is accepted, and all swaps of some of them."""
    flow, distance = matrices(6, kind)
    distance = largest_that_fits(flow, distance)
    bounds = qap_bounds(flow, distance)
    assert bounds.high - bounds.low > 2**30
    problem, orders = qap(flow, distance), all_assignments(6)
    assert problem.host.unit == 1
    exact = [problem.host.cost(order) for order in orders]
    assert bounds.low <= min(exact) <= max(exact) <= bounds.high
    assert_costs_differ_exactly(problem, exact, costs_of(problem, orders))
    cost_of = dict(zip(map(tuple, orders.tolist()), exact, strict=True))
    pairs = np.asarray(all_pairs(6)).T.tolist()
    for order, deltas in zip(orders[::20], deltas_of(problem, orders[::20]), strict=True):
        for (r, s), delta in zip(pairs, deltas.tolist(), strict=True):
            after = order.copy()
            after[[r, s]] = after[[s, r]]
            assert delta == cost_of[tuple(after.tolist())] - cost_of[tuple(order.tolist())]
            assert abs(delta) <= bounds.delta


@pytest.mark.parametrize("kind", ["symmetric", "asymmetric", "diagonal", "negative"])
def test_bounds_hold(kind):
    """No cost and no swap of a small instance exceeds what is said about it."""
    for seed, n in itertools.product(range(30), (3, 5)):
        flow, distance = matrices(n, kind, seed)
        problem, orders = qap(flow, distance), all_assignments(n)
        low, high, *_ = qap_bounds(flow, distance)
        costs = np.asarray(costs_of(problem, orders))
        assert low <= costs.min() <= costs.max() <= high
        deltas = np.asarray(deltas_of(problem, orders))
        assert abs(deltas).max() <= largest_swap(flow, distance)


def test_range_of_costs_that_fits():
    """With many facilities it is the range of costs that counts: 2**32 - 2, and no more."""
    flow, distance = matrices(40, "symmetric")
    scale = largest_that_fits(flow, distance)[0, 1] // distance[0, 1]
    accepted, refused = (qap_bounds(flow, distance * k) for k in (scale, scale + 1))
    assert max(accepted.delta, refused.delta) < 2**30
    assert accepted.high - accepted.low <= 2**32 - 2 < refused.high - refused.low


@pytest.mark.parametrize(("largest", "is_fit"), [(2**31 - 2, True), (2**31 - 1, False)])
def test_deltas_that_fit(largest, is_fit):
    """With two facilities it is the one swap: the largest int32 is left to null moves."""
    flow, distance = np.array([[0, 1], [0, 0]]), np.array([[0, 0], [largest, 1]])
    assert qap_bounds(flow, distance) == Bounds(0, largest, largest, is_fit)
    if is_fit:
        deltas = deltas_of(qap(flow, distance), all_assignments(2))
        assert deltas[0].tolist() == [0, largest, largest, 0]
        assert deltas[1].tolist() == [0, -largest, -largest, 0]


def test_every_qaplib_file(data_dir):
    """All are there by name, accepted as they are, and published solutions cost what is said.

    Swaps of some are in neighborhoods/test_swap_table.py.
    """
    with open(data_dir / "qaplib" / "best_known.csv", newline="") as file:
        costs = {row["name"]: int(row["sln_cost"]) for row in csv.DictReader(file)}
    paths = {path.stem: path for path in (data_dir / "qaplib").glob("*.dat")}
    assert len(paths) > 100
    for name, path in paths.items():
        instance = js.datasets.load(name, data_dir=data_dir)
        _, _, found = readers.load_qaplib_solution(path.with_suffix(".sln"))
        problem = qap_from_instance(instance)
        assert problem.host.unit == 1
        assert problem.host.cost(readers.orient(instance, costs[name], found)) == costs[name]


def test_costs_beyond_int32_are_exact(data_dir):
    """Where int32 holds costs only relative to one, results, targets and resuming are exact."""
    instance = js.datasets.load("tai100b", data_dir=data_dir)
    problem = qap_from_instance(instance)
    assert problem.host.offset
    search = js.simulated_annealing(js.Swap(), js.geometric(1e7, 0.9, 100), moves_per_search=4)
    run = functools.partial(js.solve, problem, search, 0, num_searches=4)
    result = run(max_steps=300)
    assert result.fun == instance.cost(result.x) == min(result.costs)
    assert result.costs.tolist() == [instance.cost(x) for x in result.solutions]
    assert run(max_steps=300, target=result.fun).success
    assert not run(max_steps=300, target=result.fun - 1).success
    assert run(state=result.state, max_steps=350).fun <= result.fun
