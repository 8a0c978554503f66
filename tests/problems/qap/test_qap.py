"""QAP instances: costs and swap deltas are exact, on every matrix, everywhere."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from probes import costs_of
from qaps import KINDS, double_sum, matrices

import jaxopt_search as js
from jaxopt_search.problems.qap.build import qap
from jaxopt_search.problems.qap.construction import constructed_assignment


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 5])
def test_cost_is_the_double_sum(n, kind):
    """On the device and on the host, with whatever stands on the diagonals."""
    flow, distance = matrices(n, kind)
    problem = qap(flow, distance)
    orders = np.array([np.random.default_rng(seed).permutation(n) for seed in range(5)], np.int32)
    expected = [double_sum(flow.tolist(), distance.tolist(), p) for p in orders]
    on_host = [problem.host.cost(p) for p in orders]
    costs = costs_of(problem, orders)
    if kind == "float":
        assert costs.dtype == jnp.float32
        np.testing.assert_allclose(costs, expected, rtol=1e-6)
        np.testing.assert_allclose(on_host, expected, rtol=1e-14)
    else:
        assert costs.dtype == jnp.int32
        assert costs.tolist() == expected == on_host
        assert type(on_host[0]) is int


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [2, 5])
def test_swap_delta_is_the_change_in_cost(n, kind):
    """Along walks, and of each entry of the table of swaps."""
    problem = qap(*matrices(n, kind))
    assert problem.is_symmetric == (kind == "symmetric")
    js.testing.check_neighborhood(js.DeltaSwap(), problem, implementations=False)


@pytest.mark.parametrize("num_fixed", [0, 1, 8, 9])
def test_large_flows_are_constructed_over_short_distances(num_fixed):
    """Of asymmetric matrices both ways count; what is fixed stays."""
    n, rng = 9, np.random.default_rng(num_fixed)
    flow, distance = matrices(n, "asymmetric")
    pairs = np.stack([rng.permutation(n), rng.permutation(n)], axis=1)[:num_fixed]
    found = constructed_assignment(qap(flow, distance, partial_match=pairs))
    assert sorted(found) == list(range(n))
    np.testing.assert_array_equal(found[pairs[:, 0]], pairs[:, 1])
    flows, distances = ((one + one.T).sum(axis=1) for one in (flow, distance))
    free = np.setdiff1d(np.arange(n), pairs[:, 0])
    assert (np.diff(distances[found[free[np.argsort(-flows[free])]]]) >= 0).all()


@pytest.mark.parametrize("n", [1, 3, 30])
def test_perturbed_assignments_stay_near(n):
    """Four facilities, or all where there are fewer, change places; every facility can be one."""
    problem = qap(*matrices(n, "symmetric"))
    p = problem.init(jax.random.key(1))
    keys = jax.random.split(jax.random.key(0), 200)
    moved = np.asarray(jax.jit(jax.vmap(lambda key: problem.perturb(key, p)))(keys))
    np.testing.assert_array_equal(np.sort(moved), np.broadcast_to(np.arange(n), (200, n)))
    has_moved = moved != np.asarray(p)
    assert (has_moved.sum(axis=1) == (min(n, 4) if n > 1 else 0)).all()
    assert has_moved.any(axis=0).all() == (n > 1)
    assert problem.is_trivial == (n == 1)


def test_instances_of_one_size_share_their_code(compiled):
    """Another one of the same size and symmetry compiles nothing, whatever the device counts in."""
    search = js.simulated_annealing(js.Swap(), 10.0)
    units, num_compiled = set(), []
    for seed, (unit, shift) in enumerate([(1, 0), (1, 0), (1, 10**9), (10**10, 10**8)]):
        flow, distance = matrices(5, "symmetric", seed)
        problem = qap(flow * unit, distance + shift * (1 - np.eye(5, dtype=int)))
        result = js.solve(problem, search, seed, num_searches=2, max_steps=20)
        num_compiled.append(sum("advance_by" in name or "fresh" in name for name in compiled))
        assert result.fun == problem.host.cost(result.x)
        units.add(problem.device_units)
    assert len(units) == 3
    assert min(num_compiled) == max(num_compiled) > 0


def test_there_may_be_more_locations_than_facilities():
    """But not fewer; a start has places of their own. See `test_a_linear_term_counts`, too."""
    flow, distance = np.random.default_rng(0).integers(1, 20, (2, 6, 6))
    flow = flow[:4, :4]
    with pytest.raises(ValueError, match="expected"):
        js.qap(distance, flow)
    with pytest.raises(ValueError, match="initial holds 3 twice"):
        js.solve_qap(flow, distance, max_steps=1, initial=[3, 1, 3, 5])


@pytest.mark.parametrize("kind", ["odd", "large", "floats", "fewer", "fixed", "highest"])
def test_a_linear_term_counts(kind):
    """What each facility costs where it is, as brute force finds it; the bound is not above."""
    flow, distance = np.random.default_rng(0).integers(-5, 20, (2, 5, 5))
    linear = np.random.default_rng(1).integers(-99, 99, (5, 5))
    number, options = 5, {}
    if kind == "large":
        linear = linear * 10**6
    elif kind == "floats":
        flow, linear = flow / 3, linear / 7
    elif kind == "fewer":
        number, flow, linear = 4, flow[:4, :4], linear[:4]
    elif kind == "fixed":
        options = {"partial_match": [[2, 0]]}
    elif kind == "highest":
        options = {"maximize": True}
    orders = [np.array(one) for one in itertools.permutations(range(5), number)]
    orders = [one for one in orders if kind != "fixed" or one[2] == 0]
    costs = [
        (flow * distance[np.ix_(one, one)]).sum() + linear[np.arange(number), one].sum()
        for one in orders
    ]
    result = js.solve_qap(flow, distance, linear=linear, max_steps=50, **options)
    assert result.fun == pytest.approx(max(costs) if kind == "highest" else min(costs), rel=1e-12)
    assert isinstance(result.fun, int) == (kind != "floats") and len(result.x) == number
    assert (result.bound >= result.fun) if kind == "highest" else (result.bound <= result.fun)
    with pytest.raises(ValueError, match="linear has shape"):
        js.qap(flow, distance, linear=linear[:2])


@pytest.mark.parametrize("linear", [None, np.zeros((2, 3), int)])
def test_pairs_are_of_facilities_and_locations_that_there_are(linear):
    """Those added to fill the locations, or for linear costs, are none of the user's."""
    distance = [[0, 1, 9], [1, 0, 9], [9, 9, 0]]
    with pytest.raises(ValueError, match=r"partial_match\[0,0\] is 2, expected 0 to 1"):
        js.qap([[0, 1], [1, 0]], distance, linear=linear, partial_match=[[2, 0]])
