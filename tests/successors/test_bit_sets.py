"""Sets of variables as bits, against NumPy's own packing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxopt_search.successors import bit_sets

SIZES = [1, 32, 200]


def packed(members):
    """Returns the words of [..., n] bools by NumPy alone."""
    n = members.shape[-1]
    padded = np.zeros((*members.shape[:-1], -(-n // 32) * 32), bool)
    padded[..., :n] = members
    return np.packbits(padded, axis=-1, bitorder="little").view("<u4")


def some(n, *shape):
    return np.random.default_rng(n).random((*shape, n)) < 0.5


@pytest.mark.parametrize("n", SIZES)
def test_pack_and_unpack_are_those_of_numpy(n):
    """Bit v % 32 of word v // 32 is member v, for any leading axes, and unpacking gives it back."""
    for members in [some(n)] if n == 32 else [some(n, 2, 4)]:
        words = bit_sets.pack(jnp.asarray(members))
        assert words.dtype == jnp.uint32
        np.testing.assert_array_equal(words, packed(members))
        found = bit_sets.unpack(words, n)
        assert found.dtype == jnp.bool_
        np.testing.assert_array_equal(found, members)


@pytest.mark.parametrize("n", SIZES)
def test_count_and_full(n):
    """The members are counted over all words; the full set has no bit beyond the last variable."""
    members = some(n, 5)
    counts = bit_sets.count(bit_sets.pack(jnp.asarray(members)))
    assert counts.dtype == jnp.int32
    np.testing.assert_array_equal(counts, members.sum(-1))
    full = bit_sets.full(n)
    assert full.dtype == jnp.uint32
    np.testing.assert_array_equal(full, packed(np.ones(n, bool)))


def test_without_promotion():
    """Under x64 and strict promotion the words are the same."""
    with jax.enable_x64(True), jax.numpy_dtype_promotion("strict"):
        words = bit_sets.pack(jnp.asarray(some(40, 3)))
        assert words.dtype == jnp.uint32
        np.testing.assert_array_equal(words, packed(some(40, 3)))
        np.testing.assert_array_equal(bit_sets.unpack(words, 40), some(40, 3))
        np.testing.assert_array_equal(bit_sets.count(words), some(40, 3).sum(-1))
        np.testing.assert_array_equal(bit_sets.full(33), [2**32 - 1, 1])
