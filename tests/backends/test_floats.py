"""Float arithmetic that is rounded alike everywhere."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxopt_search as js
from jaxopt_search.backends import floats


def rounded(a, b):
    """Returns float32 of `floats.product`, in NumPy."""
    return ((a * b).view(np.int32) & -2).view(np.float32)


def halved(values):
    """Returns `floats.total` over the last axis, in NumPy, pair by pair."""
    size = 1 << max(values.shape[-1] - 1, 0).bit_length()
    row = np.zeros((*values.shape[:-1], size), np.float32)
    row[..., : values.shape[-1]] = values
    while row.shape[-1] > 1:
        first, second = np.split(row, 2, axis=-1)
        row = first + second
    return row[..., 0]


@pytest.mark.parametrize("shape", [(3,), (16, 37)])
def test_sums_of_products_are_those_of_numpy(shape):
    """Bit for bit, whatever stands around them, in a batch of any size."""
    rng = np.random.default_rng()
    a, b, c = rng.standard_normal((3, *shape)).astype(np.float32)

    def fn(a, b, c):
        squares = floats.product(a, a) + floats.product(b, b)
        return floats.total(squares - floats.product(b, c))

    expected = halved(rounded(a, a) + rounded(b, b) - rounded(b, c))
    np.testing.assert_array_equal(jax.jit(fn)(a, b, c), expected)
    if len(shape) > 1:
        np.testing.assert_array_equal(jax.jit(jax.vmap(fn))(a, b, c), expected)


def test_integers_are_multiplied_and_summed_as_ever():
    values = jnp.asarray([3, -5, 2**30], jnp.int32)
    chex.assert_trees_all_equal(floats.product(values, values), values * values)
    assert (floats.total(values), floats.total(values).dtype) == (2**30 - 2, jnp.int32)


def test_zeros_at_the_end_change_no_total():
    """As padding adds them where searches do not divide evenly among devices."""
    values = np.random.default_rng().random(21, np.float32)
    totals = {float(floats.total(jnp.asarray(np.pad(values, (0, room))))) for room in (0, 3, 50)}
    assert len(totals) == 1


@pytest.mark.parametrize("value", [1.0, 1.5, 2.0, 3e38, 1e-30, 0.0])
def test_power_of_two(value):
    """The highest by which the value stays below the bound."""
    power = float(floats.power_of_two(15, jnp.float32(value)))
    assert np.frexp(power)[0] == 0.5
    assert value * power < 2**15
    assert value * power >= 2**14 or power == 2.0**127


def test_costs_do_not_depend_on_how_many_there_are():
    """Nor do the deltas of swaps: one alone and the same among sixteen agree, bit for bit."""
    rng = np.random.default_rng()
    tsp = js.tsp_from_coords(rng.random((37, 2)), storage="coordinates")
    qap = js.qap(*rng.random((2, 150, 150)))
    tours, assignments = (
        jnp.asarray([rng.permutation(n) for _ in range(16)], jnp.int32) for n in (37, 150)
    )

    def of(tour, assignment):
        delta = qap.swap_delta(assignment, jnp.int32(3), jnp.int32(7))
        table = js.SwapTable().init(qap, assignment)
        return tsp.cost(tour), qap.cost(assignment), delta, table

    many = jax.jit(jax.vmap(of))(tours, assignments)
    few = jax.jit(jax.vmap(of))(tours[:2], assignments[:2])
    chex.assert_trees_all_equal(jax.tree.map(lambda leaf: leaf[:2], many), few)
    one = jax.jit(of)(tours[0], assignments[0])
    chex.assert_trees_all_equal(one, jax.tree.map(lambda leaf: leaf[0], many))
