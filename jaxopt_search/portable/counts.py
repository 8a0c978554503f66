"""Step counts of 64 bits on the device, as two uint32 words."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxopt_search.checks import MAX_INT32

_MAX_WORD = np.uint32(2**32 - 1)


class Steps(NamedTuple):
    """A count `high * 2**32 + low`, or counts, of any shape. `never()` is above all others."""

    high: jax.Array
    low: jax.Array


def zero() -> Steps:
    """Returns the count 0."""
    return Steps(jnp.uint32(0), jnp.uint32(0))


def never(shape: tuple[int, ...]) -> Steps:
    """Returns counts that stand for "not yet"."""
    word = jnp.full(shape, _MAX_WORD)
    return Steps(word, word)


def is_never(steps: Steps) -> jax.Array:
    """Returns where a count is `never`, bool."""
    return (steps.high == _MAX_WORD) & (steps.low == _MAX_WORD)


def add(steps: Steps, amount: jax.Array) -> Steps:
    """Returns `steps + amount`; `amount` is a nonnegative int32."""
    low = steps.low + jnp.asarray(amount, jnp.uint32)
    return Steps(steps.high + (low < steps.low).astype(jnp.uint32), low)


def until_carry(steps: Steps) -> jax.Array:
    """Returns how many steps share the high word of `steps`, at most 2**31 - 1, as int32.

    Written without `minimum`: on an H200 with JAX 0.11.2, the minimum of this difference and a
    constant, plus 1, came out with the wrong sign inside the loop.
    """
    room = _MAX_WORD - steps.low
    return jnp.where(room < MAX_INT32, room.astype(jnp.int32) + 1, jnp.int32(MAX_INT32))


def as_int32(steps: Steps) -> jax.Array:
    """Returns the count as int32, held at 2**31 - 1."""
    is_small = (steps.high == 0) & (steps.low < MAX_INT32)
    return jnp.where(is_small, steps.low.astype(jnp.int32), jnp.int32(MAX_INT32))


def as_python(steps: Steps) -> int:
    """Returns one count as a Python integer; on the host."""
    return int(np.asarray(steps.high)) * 2**32 + int(np.asarray(steps.low))


def first(steps: Steps) -> jax.Array:
    """Returns the index of the smallest of [S] counts, the lowest of equals, as int32."""
    is_first = steps.high == steps.high.min()
    is_first &= steps.low == jnp.where(is_first, steps.low, _MAX_WORD).min()
    return jnp.argmax(is_first).astype(jnp.int32)
