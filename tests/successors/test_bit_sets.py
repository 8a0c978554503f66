"""Sets of variables as bits, against NumPy's own packing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from ways import wide_types

from jaxopt_search.successors import bit_sets


def packed(members):
    """Returns the words of [..., n] bools by NumPy alone."""
    n = members.shape[-1]
    padded = np.zeros((*members.shape[:-1], -(-n // 32) * 32), bool)
    padded[..., :n] = members
    return np.packbits(padded, axis=-1, bitorder="little").view("<u4")


@pytest.mark.parametrize("is_wide", [False, True])
@pytest.mark.parametrize("n", [32, 200])
def test_sets_are_those_of_numpy(n, is_wide):
    """Bit v % 32 of word v // 32 is member v, for any leading axes, also under x64.

    Unpacking gives the members back, they are counted over all words, and the full set has no bit
    beyond the last variable.
    """
    members, everyone = np.random.default_rng(n).random((2, 4, n)) < 0.5, np.ones(n, bool)
    with wide_types(is_wide), jax.numpy_dtype_promotion("strict"):
        words = bit_sets.pack(jnp.asarray(members))
        found = words, bit_sets.unpack(words, n), bit_sets.count(words), bit_sets.full(n)
    wanted = packed(members), members, members.sum(-1), packed(everyone)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)
    assert [str(one.dtype) for one in found] == ["uint32", "bool", "int32", "uint32"]
