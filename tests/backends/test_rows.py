"""Code over blocks of whole rows means the same at once and in a kernel."""

import chex
import jax
import jax.numpy as jnp
import kernels
import numpy as np
import pytest

from jaxopt_search.backends import memory, rows


def table(shape, seed=0):
    return jnp.asarray(np.random.default_rng(seed).integers(-9, 9, shape), jnp.int32)


def rows_by_hand(a, b):
    """Returns what `rows_by_parts` does."""
    column = np.arange(a.shape[1])
    new = np.where(a > 0, a * b[:, :1] + column, a)
    return new, new.sum(axis=1)


def rows_by_parts(shape, a, sums, b):
    def body(block, carry):
        a, sums = carry
        for tile in block.tiles:
            old = tile.get(a)
            new = old * tile.get_column(b, jnp.int32(0)) + tile.column
            a = tile.put(a, new, old > 0)
        memory.barrier()
        total = block.sums([tile.get(a) for tile in block.tiles])
        return a, memory.store(sums, block.rows, total, block.is_row)

    return rows.by_rows(shape, body, (a, sums))


@pytest.mark.parametrize("shape", [(1, 1), (3, 2), (17, 9), (300, 35)], ids=str)
def test_blocks_of_rows(shape):
    """At once and in a kernel, where rows and columns do not fill blocks; and it lowers."""
    a, b = table(shape), table(shape, 1)
    none = jnp.zeros(shape[0], jnp.int32)
    expected = rows_by_hand(np.asarray(a), np.asarray(b))
    chex.assert_trees_all_equal(rows_by_parts(shape, a, none, b), expected)

    def body(a_ref, b_ref, out_a, out_sums):
        def copy(block, carry):
            for tile in block.tiles:
                tile.put(out_a, tile.get(a_ref))
            return carry

        rows.by_rows(shape, copy, (out_a, out_sums))
        memory.barrier()
        rows_by_parts(shape, out_a, out_sums, b_ref)

    out = jax.ShapeDtypeStruct(shape, jnp.int32), jax.ShapeDtypeStruct(shape[:1], jnp.int32)
    kernels.check_in_kernel(body, out, lambda a, b: rows_by_parts(shape, a, none, b), a, b)
