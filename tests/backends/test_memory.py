"""What portable code calls means the same everywhere: side by side, by itself, and in a kernel."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from kernels import check_everywhere

from jaxopt_search.backends import memory
from jaxopt_search.backends.memory import Pairs, load_pair, pack


@pytest.mark.parametrize(("where", "n"), [(False, 5), (True, 70)])
def test_store_and_copy_only_where_asked(where, n):
    """A write that is masked out leaves every element alone."""

    def work(given, old):
        source, where = given
        stored = memory.store(old, jnp.int32(3), memory.load(source, jnp.int32(1)), where)
        return memory.copy(stored, source, ~where)

    source, sevens = jnp.arange(n, dtype=jnp.int32), jnp.full(n, 7, jnp.int32)
    expected = sevens.at[3].set(1) if where else source
    check_everywhere(work, (source, jnp.bool_(where)), sevens, expected)


def test_lanes_read_and_write_where_they_are_asked():
    """Rows and lanes broadcast; a lane beyond the last column reads anything, writes nothing."""

    def double(source, target):
        lane = jax.lax.iota(jnp.int32, 4)
        for row in (0, 1):
            value = memory.load(source, (jnp.int32(row), lane), lane < 3)
            target = memory.store(target, (jnp.int32(row), 2 - lane), 2 * value, lane < 3)
        return target

    table = jnp.asarray([[1, 2, 3], [4, 5, 6]], jnp.int32)
    check_everywhere(double, table, jnp.zeros_like(table), 2 * table[:, ::-1])


def test_one_lane_is_picked():
    """The value of the lane, of any dtype, whatever the others hold."""
    lanes, given = (
        (2, 1, 2, 0),
        (
            jnp.asarray([5, -7, -(2**31), 3], jnp.int32),
            jnp.asarray([5, 2**32 - 1, 0, 3], jnp.uint32),
            jnp.asarray([0.5, -2.0, -jnp.inf, 3.0], jnp.float32),
            jnp.asarray([True, False, False, True]),
        ),
    )

    def work(given, _):
        picked = []
        for lane, values in zip(lanes, given, strict=True):
            own = memory.load(values, jax.lax.iota(jnp.int32, 4))
            picked.append(memory.pick(own, jnp.int32(lane)))
        return picked

    expected = [values[lane] for lane, values in zip(lanes, given, strict=True)]
    check_everywhere(work, given, [jnp.zeros((), one.dtype) for one in expected], expected)


def test_pairs_are_read_together():
    """Both numbers come back, the largest that fit among them; packed or not."""
    first = jnp.asarray([0, 65535, 7, 1], jnp.int32)
    second = jnp.asarray([65535, 0, 9, 65535], jnp.int32)
    both = pack(first, second), Pairs(first, second)

    def work(both, _):
        return [load_pair(pairs, jnp.int32(place)) for pairs in both for place in (1, 2)]

    zero = jnp.int32(0)
    check_everywhere(work, both, [(zero, zero)] * 4, [(65535, 0), (7, 9)] * 2)


def test_each_index_is_handled_once():
    """All at a time, one after the other, or a tile at a time: the same, and nothing beyond."""
    source = jnp.arange(1, 81, dtype=jnp.int32)

    def add(given, sums):
        source, numbers = given
        return tuple(map(functools.partial(add_to, source), numbers, sums))

    def add_to(source, number, sums):
        def body(index, where, sums):
            place = 79 - index  # of which a tile in excess is out of range
            more = memory.load(sums, place, where) + memory.load(source, index, where)
            return memory.store(sums, place, more, where)

        return memory.each_index(number, 70, body, sums)

    expected = np.arange(1, 81, dtype=np.int32)
    expected[10:] += np.arange(1, 71, dtype=np.int32)[::-1]
    given = source, (jnp.int32(0), jnp.int32(70))
    check_everywhere(add, given, (source, source), (np.asarray(source), expected))


def test_what_is_the_same_for_all_searches_is_branched_on():
    def change(tree, where):
        return jnp.where(where, tree + 1, tree)

    def several(where, values):
        one = functools.partial(memory.when, where, change, all_alike=True)
        return jax.vmap(one)(values)

    values = jnp.arange(5)
    np.testing.assert_array_equal(several(jnp.bool_(True), values), values + 1)
    np.testing.assert_array_equal(several(jnp.bool_(False), values), values)


@pytest.mark.parametrize("where", [False, True])
def test_what_waits_stays_as_it_is(where):
    """Whatever stands in the arrays that a write waits for."""

    def work(given, old):
        where, done = given
        return memory.store(old, jnp.int32(1), jnp.int32(9), memory.after(where, done))

    done = jnp.asarray([-(2**31), 3], jnp.int32), jnp.asarray([2**32 - 1], jnp.uint32)
    done += jnp.asarray([jnp.nan]), jnp.asarray([jnp.inf]), jnp.asarray([True, False])
    old = jnp.asarray([5, 6], jnp.int32)
    expected = jnp.asarray([5, 9 if where else 6], jnp.int32)
    check_everywhere(work, (jnp.bool_(where), done), old, expected)
