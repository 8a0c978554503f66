"""A QAP with room for more facilities is the same instance: costs, starts, deltas, bit for bit."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from qaps import matrices

import jaxopt_search as js
from jaxopt_search.backends import rows


@functools.cache
def pair(n, kind, fixed=None, capacity=16):
    """Returns an instance and the same one padded."""
    problem = js.qap(*matrices(n, kind), partial_match=fixed)
    return problem, problem.padded(capacity)


@jax.jit
def results(problem, keys, neighbors):
    """Returns what a problem makes of some keys; `neighbors` [2, M] facilities."""

    def of_one(key):
        start = problem.init(key)
        near = problem.perturb(key, start)
        deltas = problem.swap_delta(start, *neighbors)
        return start, near, problem.cost(start), problem.cost(near), deltas

    starts, *rest = jax.vmap(of_one)(keys)
    costs = rows.by_rows(starts.shape, lambda block, _: problem.row_costs(block, starts), None)
    return starts, *rest, costs


def check_same(problem, padded):
    n, capacity = problem.n, padded.capacity
    keys = jax.random.split(jax.random.key(7), 20)
    facilities = jnp.asarray(np.random.default_rng(0).integers(0, n, (2, 12)), jnp.int32)
    exact = jax.tree.map(np.asarray, results(problem, keys, facilities))
    found = jax.tree.map(np.asarray, results(padded, keys, facilities))
    for own, of_more in zip(exact[:2], found[:2], strict=True):
        np.testing.assert_array_equal(of_more[:, :n], own)
        np.testing.assert_array_equal(of_more[:, n:], np.tile(np.arange(n, capacity), (20, 1)))
    for own, of_more in zip(exact[2:], found[2:], strict=True):
        assert own.dtype == of_more.dtype
        np.testing.assert_array_equal(of_more, own)


@pytest.mark.parametrize(
    ("n", "kind", "fixed", "capacity"),
    [
        (13, "diagonal", None, 20),
        (13, "float", None, 13),
        (3, "asymmetric", None, 16),
        (6, "float", ((1, 3), (2, 1), (0, 5), (4, 2)), 16),
    ],
)
def test_costs_starts_and_deltas(n, kind, fixed, capacity):
    """Also where there is room but for them, and where fewer than four can change places."""
    problem, padded = pair(n, kind, fixed, capacity)
    check_same(problem, padded)
    assert int(padded.num_free) == problem.num_free


def test_what_the_host_keeps():
    """Exact costs and starts are of the user's facilities; bounds of the room are checked."""
    problem, padded = pair(6, "symmetric", capacity=16)
    x = np.random.default_rng(0).permutation(6)
    assert padded.host.cost(np.r_[x, 6:16]) == problem.host.cost(x)
    np.testing.assert_array_equal(padded.host.check(x, "x"), np.r_[x, 6:16])
    np.testing.assert_array_equal(padded.host.own(np.r_[x, 6:16]), x)
    assert problem.padded().capacity == 16
    assert not padded.is_trivial and pair(1, "asymmetric")[1].is_trivial
    with pytest.raises(ValueError, match="capacity is 5"):
        problem.padded(5)
    with pytest.raises(ValueError, match="padded already"):
        padded.padded(20)
