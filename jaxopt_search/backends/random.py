# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
"""Random words as a pure function of (key, search index, step, slot).

The generator is in `threefry`; `keys` has how keys are made. Both are part of this module.

Words are turned into numbers with exact arithmetic (integers, and float operations that
cannot be rounded differently), so runs on integer costs agree bit for bit between backends.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search.backends import counts, memory
from jaxopt_search.backends.keys import (
    as_argument,
    as_key,
    data_of,
    exchange_key,
    instance_key,
    search_key,
    start_key,
    successor_key,
    typed_key,
)
from jaxopt_search.backends.threefry import (
    KEY_ROUNDS,
    WORD_ROUNDS,
    Key,
    threefry2x32,
)

__all__ = [
    "KEY_ROUNDS",
    "MAX_SLOTS",
    "WORD_ROUNDS",
    "DrawnStream",
    "Key",
    "Stream",
    "another",
    "as_argument",
    "as_key",
    "below",
    "data_of",
    "exchange_key",
    "exponential",
    "instance_key",
    "search_key",
    "start_key",
    "successor_key",
    "threefry2x32",
    "typed_key",
    "uniform",
]

MAX_SLOTS = 2**24
"""Slots that a search may draw from in one step."""


class Stream(NamedTuple):
    """The random words of one search at one step; see `types.Stream`.

    Attributes:
      key: the search's key.
      counter: [] uint32, the low word of the step.
      step: [] int32, the step, held at 2**31 - 1 once it is reached.

    Example:
      >>> key = search_key(as_key(0), jnp.uint32(3), jnp.uint32(0))
      >>> stream = Stream(key, counter=jnp.uint32(7), step=jnp.int32(7))
      >>> (words,) = stream.words(jnp.arange(5, dtype=jnp.uint32), 1)
      >>> below(words, 100).tolist()
      [31, 18, 24, 27, 27]
    """

    key: Key
    counter: jax.Array
    step: jax.Array

    def words(self, slot: jax.Array, num_words: int) -> tuple[jax.Array, ...]:
        """Returns `num_words` uint32 arrays of the shape of `slot`.

        Each slot below `MAX_SLOTS` holds up to 512 words; more words of a slot extend fewer.
        """
        words: list[jax.Array] = []
        for block in range((num_words + 1) // 2):
            position = slot + jnp.uint32(block * MAX_SLOTS)
            words += threefry2x32(self.key, (self.counter, position), WORD_ROUNDS)
        return tuple(words[:num_words])


class DrawnStream(NamedTuple):
    """The same words as a `Stream`, drawn before.

    Attributes:
      drawn: arrays [slots], one for each word of a slot.
      step: as in `Stream`.

    Example:
      >>> drawn = DrawnStream((jnp.array([11, 12, 13], jnp.uint32),), step=jnp.int32(7))
      >>> drawn.words(jnp.array([2, 0]), 1)[0].tolist()
      [13, 11]
    """

    drawn: tuple[jax.Array, ...]
    step: jax.Array

    def words(self, slot: jax.Array, num_words: int) -> tuple[jax.Array, ...]:
        """Returns the first `num_words` words of each slot, which must have been drawn."""
        return tuple(memory.load(words, slot) for words in self.drawn[:num_words])


def uniform(word: jax.Array) -> jax.Array:
    """Returns float32 in [0, 1), of the shape of `word`: its upper 24 bits, exactly.

    Args:
      word: uint32, any shape.

    Example:
      >>> uniform(jnp.array([0, 2**30, 2**31], jnp.uint32)).tolist()
      [0.0, 0.25, 0.5]
    """
    return (word >> jnp.uint32(8)).astype(jnp.float32) * jnp.float32(2**-24)


def below(word: jax.Array, n: int | jax.Array) -> jax.Array:
    """Returns int32 in [0, n), of the shape of `word`: the upper word of the 64-bit `word * n`.

    Each value has the share 1/n of the words to within 2**-32 (Lemire, "Fast random integer
    generation in an interval", 2019, without its rejection step).

    Args:
      word: uint32, any shape.
      n: between 1 and 2**31 - 1; it takes fewer operations where it is a Python integer.

    Example:
      >>> below(jnp.array([0, 2**31, 2**32 - 1], jnp.uint32), 6).tolist()
      [0, 3, 5]
    """
    upper = counts.upper_product(word, n if isinstance(n, int) else jnp.uint32(n))
    return upper.astype(jnp.int32)


def another(word: jax.Array, number: jax.Array, size: int | jax.Array) -> jax.Array:
    """Returns random numbers from 0 to `size` - 1 other than `number`, of the shape of `word`.

    Args:
      word: uint32, any shape.
      number: int32, of a shape that broadcasts with it; returned where there is no other.
      size: at least 1; int32 of such a shape if it is an array.

    Example:
      >>> another(jnp.array([0, 2**31, 2**32 - 1], jnp.uint32), jnp.int32(2), 4).tolist()
      [0, 1, 3]
    """
    if isinstance(size, int):
        return number if size < 2 else _without(below(word, size - 1), number)
    other = _without(below(word, jnp.maximum(size - 1, 1)), number)
    return jnp.where(size < 2, number, other)


def _without(other: jax.Array, number: jax.Array) -> jax.Array:
    """Returns `other`, a number that skips `number`: from `number` on it is 1 higher."""
    return other + (other >= number).astype(jnp.int32)


# log(1 + t) on [0, 1): coefficients of t, t**2, ... in units of 2**-15, which sum to log(2).
_LOG_COEFFICIENTS = (32749, -16113, 9486, -4458, 1049)
_LOG_2 = 22713


def exponential(word: jax.Array) -> jax.Array:
    """Returns float32 of the exponential distribution with mean 1, of the shape of `word`.

    It is minus the logarithm of `word`, a polynomial in integers, because float logarithms differ
    between backends in their last bits. It is right to 9e-5, a multiple of 2**-15, and at most
    16.7. So its product with a temperature is rounded once, in whatever order a compiler
    multiplies.

    Args:
      word: uint32, any shape.

    Example:
      >>> numbers = exponential(jnp.array([2**31, 2**30, 2**32 - 1], jnp.uint32))
      >>> [round(number, 3) for number in numbers.tolist()]
      [0.693, 1.386, 0.0]
    """
    # As a fraction of 2**24, `odd` is uniform in (0, 1); its float form splits it into
    # 2**exponent * (1 + t).
    odd = (word >> jnp.uint32(8)) | jnp.uint32(1)
    bits = lax.bitcast_convert_type(odd.astype(jnp.float32), jnp.int32)
    exponent = (bits >> 23) - 127
    t = (bits & 0x7FFFFF) >> 8
    log = jnp.zeros_like(t)
    for coefficient in reversed(_LOG_COEFFICIENTS):
        log = ((log + coefficient) * t + 2**14) >> 15
    minus_log = (24 - exponent) * _LOG_2 - log
    return minus_log.astype(jnp.float32) * jnp.float32(2**-15)
