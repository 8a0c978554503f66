"""In which of several segments, set end to end, a number lies; portable."""

import functools

import jax
import jax.numpy as jnp

from jaxopt_search.portable import counts, memory
from jaxopt_search.portable.counts import Number
from jaxopt_search.portable.memory import load


def find(lengths: Number, value: Number) -> tuple[jax.Array, Number]:
    """Returns the segment in which a value lies, and how far into it.

    Args:
      lengths: of M segments, at most 2**16; a power of two in a search by itself on a CPU.
      value: [], below the total.

    Returns:
      [] int32, and what is left of the value.
    """
    if memory.is_native():
        return _find_by_halves(lengths, value)
    is_before = counts.is_at_most(counts.prefix_sums(lengths), value)
    before = jax.tree.map(lambda words: jnp.where(is_before, words, jnp.uint32(0)), lengths)
    place = jnp.sum(is_before.astype(jnp.int32), dtype=jnp.int32)
    return place, counts.subtract(value, counts.total(before))


def _find_by_halves(lengths: Number, value: Number) -> tuple[jax.Array, Number]:
    """Like `find`, by a tree of sums, which a CPU handles faster than prefix sums.

    A value that is not below the total lies in the last segment.
    """
    levels = [lengths]
    while (size := jax.tree.leaves(levels[-1])[0].shape[0]) > 1:
        pairs = jax.tree.map(lambda words, half=size // 2: words.reshape(half, 2), levels[-1])
        left = jax.tree.map(lambda words: words[:, 0], pairs)
        levels.append(counts.add(left, jax.tree.map(lambda words: words[:, 1], pairs)))
    place = jnp.int32(0)
    for level in reversed(levels[:-1]):
        place = place * 2
        left = jax.tree.map(functools.partial(load, index=place), level)
        is_right = counts.is_at_most(left, value)
        rest = counts.subtract(value, left)
        value = jax.tree.map(functools.partial(jnp.where, is_right), rest, value)
        place = place + is_right.astype(jnp.int32)
    return place, value
