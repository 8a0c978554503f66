"""Counts of 64 bits on the device, as two uint32 words."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

_SIXTEEN, _LOWER = np.uint32(16), np.uint32(0xFFFF)
_AT_ONCE = 2**16
"""So many halves of words add up in 32 bits."""


class Total(NamedTuple):
    """A count `high * 2**32 + low`, or counts, of any shape."""

    high: jax.Array
    low: jax.Array


def add(a: Total, b: Total) -> Total:
    """Returns the sum of two counts; portable."""
    low = a.low + b.low
    return Total(a.high + b.high + (low < a.low).astype(jnp.uint32), low)


def total(counts: Total) -> Total:
    """Returns the sum over the last axis."""
    size = counts.low.shape[-1]
    if size > _AT_ONCE:
        room = [(0, 0)] * (counts.low.ndim - 1) + [(0, -size % _AT_ONCE)]
        filled = (jnp.pad(word, room) for word in counts)
        return total(total(Total(*(w.reshape(*w.shape[:-1], -1, _AT_ONCE) for w in filled))))
    lower, upper = (_sum(half) for half in _halves(counts.low))
    upper = upper + (lower >> _SIXTEEN)
    high = _sum(counts.high) + (upper >> _SIXTEEN)
    return Total(high, (upper << _SIXTEEN) | (lower & _LOWER))


def _halves(word: jax.Array) -> tuple[jax.Array, jax.Array]:
    return word & _LOWER, word >> _SIXTEEN


def _sum(words: jax.Array) -> jax.Array:
    return jnp.sum(words, axis=-1, dtype=jnp.uint32)


def of(count: jax.Array) -> Total:
    """Returns nonnegative counts of 32 bits as counts of 64."""
    low = count.astype(jnp.uint32)
    return Total(jnp.zeros_like(low), low)


def half(count: Total) -> Total:
    """Returns half of an even count."""
    one = jnp.uint32(1)
    return Total(count.high >> one, (count.high << jnp.uint32(31)) | (count.low >> one))


def as_int32(count: Total) -> jax.Array:
    """Returns a count below 2**31 as int32."""
    return count.low.astype(jnp.int32)


def as_python(count: Total) -> int | np.ndarray:
    """Returns one count as a Python integer, several as an int64 array; on the host."""
    high, low = (np.asarray(word).astype(np.int64) for word in count)
    both = high * 2**32 + low
    return int(both) if both.ndim == 0 else both
