"""64-bit step counts: carries, limits and order, against Python integers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxopt_search.portable import counts
from jaxopt_search.portable.counts import Steps

COUNTS = [0, 1, 2**31 - 2, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1, 2**32, 2**32 + 5, 2**40 + 7]


def count(value):
    return Steps(jnp.uint32(value >> 32), jnp.uint32(value & 0xFFFFFFFF))


@pytest.mark.parametrize("value", COUNTS)
def test_arithmetic(value):
    """Sums carry, int32 saturates, and the room before a carry is exact up to 2**31 - 1."""
    for amount in (0, 1, 1000, 2**31 - 1):
        found = jax.jit(counts.add)(count(value), jnp.int32(amount))
        assert counts.as_python(found) == value + amount
    assert int(jax.jit(counts.as_int32)(count(value))) == min(value, 2**31 - 1)
    room = 2**32 - value % 2**32
    assert int(jax.jit(counts.until_carry)(count(value))) == min(room, 2**31 - 1)


def test_the_first_of_many():
    """The smallest count has the lowest index of equals; never is above all others."""
    values = [2**40, 2**32 + 1, 2**32, 2**32]
    many = Steps(*(jnp.stack(words) for words in zip(*map(count, values), strict=True)))
    assert int(counts.first(many)) == 2
    never = counts.never((3,))
    assert np.asarray(counts.is_never(never)).all()
    assert not np.asarray(counts.is_never(many)).any()
    one = Steps(never.high.at[1].set(9), never.low)
    assert int(counts.first(one)) == 1


def test_room_before_a_carry_inside_a_loop():
    """As the run loop uses it: the shortest of several limits, carried around a while_loop.

    On a GPU this came out negative once, and runs ended without a step.
    """

    @jax.jit
    def total(start, limit):
        def block(carry):
            state, left = carry
            length = jnp.minimum(jnp.minimum(left, counts.until_carry(state)), limit)
            return counts.add(state, length), left - length

        return jax.lax.while_loop(lambda carry: carry[1] > 0, block, (start, jnp.int32(1000)))[0]

    for value in (0, 2**31 - 5, 2**32 - 5):
        assert counts.as_python(total(count(value), jnp.int32(100))) == value + 1000
