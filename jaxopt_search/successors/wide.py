"""Sums of 32-bit words that may pass 32 bits, as pairs of words; portable.

There are no 64-bit integers without JAX's x64 mode.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxopt_search.portable import memory
from jaxopt_search.portable.memory import load

_HALF = 0xFFFF


class Wide(NamedTuple):
    """Unsigned integers below 2**64.

    Attributes:
      high: uint32, the upper 32 bits; None where they are known to be 0.
      low: uint32, the lower ones.
    """

    high: jax.Array | None
    low: jax.Array


def of_words(words: jax.Array, is_wide: bool) -> Wide:
    """Returns words as such numbers."""
    return Wide(jnp.zeros_like(words) if is_wide else None, words)


def _sum(number: Wide, other: Wide) -> Wide:
    """Returns the sum of numbers."""
    low = number.low + other.low
    if number.high is None or other.high is None:
        return Wide(None, low)
    return Wide(number.high + other.high + (low < other.low).astype(jnp.uint32), low)


def add(number: Wide, word: jax.Array) -> Wide:
    """Returns numbers plus words."""
    low = number.low + word
    if number.high is None:
        return Wide(None, low)
    return Wide(number.high + (low < word).astype(jnp.uint32), low)


def subtract(number: Wide, other: Wide) -> Wide:
    """Returns the difference, which must not be negative."""
    low = number.low - other.low
    if number.high is None or other.high is None:
        return Wide(None, low)
    return Wide(number.high - other.high - (number.low < other.low).astype(jnp.uint32), low)


def is_zero(number: Wide) -> jax.Array:
    """Returns whether numbers are 0."""
    return number.low == 0 if number.high is None else (number.high | number.low) == 0


def total(numbers: Wide, axis: int = 0) -> Wide:
    """Returns the sums over an axis, of at most 2**16 numbers."""

    def add_up(words: jax.Array) -> jax.Array:
        return jnp.sum(words, axis=axis, dtype=jnp.uint32)

    if numbers.high is None:
        return Wide(None, add_up(numbers.low))
    return _joined(add_up(numbers.high), *map(add_up, _halves(numbers.low)))


def prefix_sums(numbers: Wide) -> Wide:
    """Returns the sums of [M] numbers up to and including each, M at most 2**16."""
    if numbers.high is None:
        return Wide(None, jnp.cumsum(numbers.low, dtype=jnp.uint32))
    parts = (numbers.high, *_halves(numbers.low))
    return _joined(*(jnp.cumsum(part, dtype=jnp.uint32) for part in parts))


def is_at_most(numbers: Wide, bound: Wide) -> jax.Array:
    """Returns whether numbers are at most `bound`."""
    is_low = numbers.low <= bound.low
    if numbers.high is None or bound.high is None:
        return is_low
    return (numbers.high < bound.high) | ((numbers.high == bound.high) & is_low)


def scaled(number: Wide, words: tuple[jax.Array, jax.Array]) -> Wide:
    """Returns `floor(number * fraction)`, exactly.

    Args:
      number: [].
      words: [] uint32, the upper and the lower 32 of the 64 bits of a fraction in [0, 1).
    """
    upper, lower = words
    # The product has four words, of which the upper two count.
    carried, _ = multiplied(lower, number.low)
    high, low = multiplied(upper, number.low)
    low = low + carried
    high = high + (low < carried).astype(jnp.uint32)  # below 2**32 - 1 before
    if number.high is None:
        return Wide(None, high)
    more, least = multiplied(lower, number.high)
    low = low + least
    first, second = multiplied(upper, number.high)
    result = Wide(first, second)
    for word in (high, more, (low < least).astype(jnp.uint32)):
        result = add(result, word)
    return result


def multiplied(a: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns the upper and the lower word of the product of words."""
    (a_low, a_high), (b_low, b_high) = _halves(a), _halves(b)
    middle = a_high * b_low + (a_low * b_low >> jnp.uint32(16))
    rest = a_low * b_high + (middle & jnp.uint32(_HALF))
    upper = a_high * b_high + (middle >> jnp.uint32(16)) + (rest >> jnp.uint32(16))
    return upper, a * b


def _halves(word: jax.Array) -> tuple[jax.Array, jax.Array]:
    return word & jnp.uint32(_HALF), word >> jnp.uint32(16)


def _joined(high: jax.Array, lower: jax.Array, upper: jax.Array) -> Wide:
    """Returns numbers whose two lower parts count in units of 1 and 2**16, and may pass that."""
    upper = upper + (lower >> jnp.uint32(16))
    low = (upper << jnp.uint32(16)) | (lower & jnp.uint32(_HALF))
    return Wide(high + (upper >> jnp.uint32(16)), low)


def find(numbers: Wide, value: Wide) -> tuple[jax.Array, Wide]:
    """Returns in which of [M] numbers, set end to end, a value lies, and how far into it.

    Args:
      numbers: M at most 2**16.
      value: [], below the total.

    Returns:
      [] int32, and what is left of the value.
    """
    if memory.is_native():
        return _find_by_halves(numbers, value)
    is_before = is_at_most(prefix_sums(numbers), value)
    before = jax.tree.map(lambda words: jnp.where(is_before, words, jnp.uint32(0)), numbers)
    place = jnp.sum(is_before.astype(jnp.int32), dtype=jnp.int32)
    return place, subtract(value, total(before))


def _find_by_halves(numbers: Wide, value: Wide) -> tuple[jax.Array, Wide]:
    """Returns the same, short of a value that is not below the total: M is a power of two.

    A tree of sums, which a CPU handles faster than prefix sums.
    """
    levels = [numbers]
    while (size := levels[-1].low.shape[0]) > 1:
        pairs = jax.tree.map(lambda words, half=size // 2: words.reshape(half, 2), levels[-1])
        left = jax.tree.map(lambda words: words[:, 0], pairs)
        levels.append(_sum(left, jax.tree.map(lambda words: words[:, 1], pairs)))
    place = jnp.int32(0)
    for level in reversed(levels[:-1]):
        place = place * 2
        left = jax.tree.map(functools.partial(load, index=place), level)
        is_right = is_at_most(left, value)
        value = jax.tree.map(functools.partial(jnp.where, is_right), subtract(value, left), value)
        place = place + is_right.astype(jnp.int32)
    return place, value
