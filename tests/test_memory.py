"""load, store and copy mean the same on arrays and on the refs of a kernel."""

import jax
import jax.numpy as jnp
import kernels
import pytest

from jaxopt_search import memory


@pytest.mark.parametrize("n", [5, 32, 70])
@pytest.mark.parametrize("where", [True, False])
def test_store_and_copy_only_where_asked(where, n):
    """A write that is masked out leaves every element alone; arrays and refs agree."""

    def work(source, old, where):
        stored = memory.store(old, jnp.int32(3), memory.load(source, jnp.int32(1)), where)
        return memory.copy(stored, source, ~where)

    def body(source_ref, sevens_ref, where_ref, out_ref):
        memory.copy(out_ref, sevens_ref, where_ref[0] | ~where_ref[0])
        assert work(source_ref, out_ref, where_ref[0]) is out_ref

    def expected(source, sevens, where):
        return work(source, sevens, where[0])

    source = jnp.arange(n, dtype=jnp.int32)
    arrays = (source, jnp.full(n, 7, jnp.int32), jnp.asarray([where]))
    kernels.check_in_kernel(body, jax.ShapeDtypeStruct((n,), jnp.int32), expected, *arrays)
    changed = [7] * n
    changed[3] = 1
    assert expected(*arrays).tolist() == (changed if where else list(range(n)))


def test_load_reads_lanes():
    """A gather of many lanes, with repeats."""

    def body(buffer_ref, index_ref, out_ref):
        out_ref[...] = memory.load(buffer_ref, index_ref[...])

    buffer = jnp.arange(16, dtype=jnp.int32) ** 2
    index = jnp.asarray([3, 0, 15, 3], jnp.int32)
    out_shape = jax.ShapeDtypeStruct((4,), jnp.int32)
    kernels.check_in_kernel(body, out_shape, memory.load, buffer, index)
    assert memory.load(buffer, index).tolist() == [9, 0, 225, 9]
