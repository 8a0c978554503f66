"""load, store, copy and pick mean the same on arrays and on the refs of a kernel."""

import contextlib
import functools

import jax
import jax.numpy as jnp
import kernels
import numpy as np
import pytest

from jaxopt_search.backends import launch, memory
from jaxopt_search.backends.packed_pairs import Pairs, load_pair, pack


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


def test_no_index_is_taken_for_a_negative_one():
    """XLA would compile five operations more for each access, in each of the kernels around it."""

    def work(buffer, index, lanes):
        value = memory.pick(memory.load(buffer, lanes), index)
        buffer = memory.store(buffer, index, value, index > 1)
        return memory.store(buffer, lanes, value, lanes > 1)

    index, lanes = jnp.int32(2), jnp.arange(3)
    code = str(jax.make_jaxpr(work)(jnp.arange(9), index, lanes))
    assert " gt " in code and " lt " not in code


@pytest.mark.parametrize("backend", [None, "native", "gpu"])
def test_what_is_computed_once(backend):
    """For searches side by side a barrier keeps XLA on a GPU from computing it in each use."""
    alone = memory.one_search(backend) if backend else contextlib.nullcontext()
    with alone:
        code = str(jax.make_jaxpr(lambda x: memory.computed_once((x + 1, x)))(jnp.arange(5)))
    assert ("optimization_barrier" in code) == (backend is None)


@pytest.mark.parametrize("interpret", [False, True])
def test_what_is_compiled_apart(interpret):
    """It is a loop of its own in a kernel for a GPU, and nothing elsewhere."""

    def num_loops(work):
        def step(i, prices, purse):
            return purse + work(lambda at: memory.load(prices, at), i)

        go = functools.partial(launch, step, jnp.int32(3), interpret=interpret)
        return str(jax.make_jaxpr(go)(jnp.arange(3), jnp.arange(2))).count("while[")

    plain = num_loops(lambda fn, *arguments: fn(*arguments))
    assert plain > 0
    assert num_loops(memory.compiled_apart) == plain + (not interpret)


def test_a_block_is_read_and_written_where_there_is_a_table():
    """Rows and lanes broadcast; a lane beyond the last column reads anything, writes nothing."""

    def double(source, target):
        row, lane = (jax.lax.broadcasted_iota(jnp.int32, (2, 4), axis) for axis in (0, 1))
        value = memory.load(source, (row, lane), lane < 3)
        return memory.store(target, (row, lane), 2 * value, lane < 3)

    table = jnp.asarray([[1, 2, 3], [4, 5, 6]], jnp.int32)
    out_shape = jax.ShapeDtypeStruct((2, 3), jnp.int32)

    def body(source_ref, target_ref):
        assert double(source_ref, target_ref) is target_ref

    kernels.check_in_kernel(body, out_shape, lambda table: 2 * table, table)
    assert double(table, jnp.zeros_like(table)).tolist() == (2 * table).tolist()


@pytest.mark.parametrize("lane", [0, 2, 3])
@pytest.mark.parametrize(
    "values",
    [
        jnp.asarray([5, -7, -(2**31), 3], jnp.int32),
        jnp.asarray([5, 2**32 - 1, 0, 3], jnp.uint32),
        jnp.asarray([0.5, -2.0, -jnp.inf, 3.0], jnp.float32),
        jnp.asarray([True, False, False, True]),
    ],
    ids=lambda values: str(values.dtype),
)
def test_one_lane_is_picked(values, lane):
    """The value of the lane, whatever the others hold."""

    def body(values_ref, out_ref):
        (picked,) = memory.pick((values_ref[...],), jnp.int32(lane))
        out_ref[0] = picked

    def expected(values):
        return memory.pick(values, jnp.int32(lane))[None]

    out_shape = jax.ShapeDtypeStruct((1,), values.dtype)
    kernels.check_in_kernel(body, out_shape, expected, values)
    assert expected(values)[0] == values[lane]


@pytest.mark.parametrize("are_packed", [True, False])
def test_pairs_are_read_together(are_packed):
    """Both numbers come back, the largest that fit among them."""
    first = jnp.asarray([0, 65535, 7, 1], jnp.int32)
    second = jnp.asarray([65535, 0, 9, 65535], jnp.int32)
    pairs = pack(first, second) if are_packed else Pairs(first, second)
    assert pairs.size == 4
    index = jnp.asarray([1, 3, 0, 2], jnp.int32)

    def body(first_ref, *refs):
        second_ref, index_ref, out_ref = refs if pairs.second is not None else (None, *refs)
        numbers = load_pair(Pairs(first_ref, second_ref), index_ref[...])
        out_ref[...] = numbers[0] * 3 + numbers[1]

    arrays = [array for array in (*pairs, index) if array is not None]
    out_shape = jax.ShapeDtypeStruct((4,), jnp.int32)
    kernels.check_in_kernel(body, out_shape, lambda *_: (first * 3 + second)[index], *arrays)


def test_what_is_the_same_for_all_searches_is_branched_on():
    """Under `vmap` nothing is computed where it does not hold."""

    def change(tree, where):
        return jnp.where(where, tree + 1, tree)

    def several(where, values):
        one = functools.partial(memory.when, where, change, all_alike=True)
        return jax.vmap(one)(values)

    values = jnp.arange(5)
    np.testing.assert_array_equal(several(jnp.bool_(True), values), values + 1)
    np.testing.assert_array_equal(several(jnp.bool_(False), values), values)
    assert "cond" in str(jax.make_jaxpr(several)(jnp.bool_(True), values))


@pytest.mark.parametrize("number", [0, 5, 64, 70])
def test_each_index_is_handled_once_wherever(number):
    """All at a time, one after the other, or a tile at a time: the same, and nothing beyond."""
    source = jnp.arange(1, 81, dtype=jnp.int32)

    def add(source, sums, number):
        def body(index, where, sums):
            place = 79 - index  # of which a tile in excess is out of range
            more = memory.load(sums, place, where) + memory.load(source, index, where)
            return memory.store(sums, place, more, where)

        return memory.each_index(number, 70, body, sums)

    def in_kernel(source_ref, number_ref, out_ref):
        memory.copy(out_ref, source_ref, number_ref[0] >= 0)
        memory.barrier()
        assert add(source_ref, out_ref, number_ref[0]) is out_ref

    expected = np.arange(1, 81)
    expected[80 - number :] += np.arange(1, number + 1)[::-1]
    numbers = jnp.full(1, number, jnp.int32)
    with memory.one_search("native"):
        natively = jax.jit(add)(source, source, numbers[0])
    np.testing.assert_array_equal(natively, expected)
    out_shape = jax.ShapeDtypeStruct((80,), jnp.int32)
    side_by_side = functools.partial(kernels.check_in_kernel, in_kernel, out_shape)
    side_by_side(lambda source, number: add(source, source, number[0]), source, numbers)
    np.testing.assert_array_equal(add(source, source, numbers[0]), expected)
