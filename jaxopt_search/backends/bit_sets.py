# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
"""Sets of variables, a bit each, packed into words; portable but for `pack`, `unpack` and `full`.

A set of n variables is [ceil(n / 32)] uint32: bit v % 32 of word v // 32 says whether variable v is
in it. Members are counted and found by bit operations.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxopt_search.backends import memory
from jaxopt_search.backends.memory import load, store

__all__ = [
    "BITS",
    "added",
    "count",
    "everything",
    "first",
    "full",
    "member",
    "members",
    "num_words",
    "pack",
    "read",
    "removed",
    "unpack",
    "write",
]

BITS = 32
"""Variables to a word."""


def num_words(num_variables: int) -> int:
    """Returns the length of a set of this many variables.

    Example:
      >>> num_words(32), num_words(33)
      (1, 2)
    """
    return -(-num_variables // BITS)


def full(num_variables: int) -> np.ndarray:
    """Returns the set of all variables, [words] uint32.

    Example:
      >>> full(3).tolist(), full(33).tolist()
      ([7], [4294967295, 1])
    """
    words = np.full(num_words(num_variables), 2**BITS - 1, np.uint32)
    words[-1] = _last_word(num_variables)
    return words


def pack(members: jax.Array | np.ndarray) -> jax.Array:
    """Returns sets of what holds.

    Args:
      members: [..., n] bool.

    Returns:
      [..., ceil(n / 32)] uint32.

    Example:
      >>> pack(np.array([True, False, True])).tolist()
      [5]
    """
    members = jnp.asarray(members)
    *rest, n = members.shape
    room = num_words(n) * BITS - n
    bits = jnp.pad(members, [(0, 0)] * len(rest) + [(0, room)]).reshape(*rest, -1, BITS)
    places = lax.broadcasted_iota(jnp.uint32, bits.shape, bits.ndim - 1)
    return jnp.sum(bits.astype(jnp.uint32) << places, axis=-1, dtype=jnp.uint32)


def unpack(sets: jax.Array | np.ndarray, num_variables: int) -> jax.Array:
    """Returns whether each variable is in a set.

    Args:
      sets: [..., words] uint32.

    Returns:
      [..., num_variables] bool.

    Example:
      >>> unpack(np.array([5], np.uint32), 3).tolist()
      [True, False, True]
    """
    sets = jnp.asarray(sets)
    places = lax.broadcasted_iota(jnp.uint32, (*sets.shape, BITS), sets.ndim)
    bits = (sets[..., None] >> places) & jnp.uint32(1)
    return (bits != 0).reshape(*sets.shape[:-1], -1)[..., :num_variables]


def read(buffer: jax.Array, num_variables: int) -> jax.Array:
    """Returns a set as a value that the functions below take; bits beyond the variables are 0.

    Args:
      buffer: [words] uint32.
      num_variables: how many may be in the set.

    Returns:
      uint32, [] if it is one word, else [a power of two].

    Example:
      >>> int(read(jnp.array([5], jnp.uint32), 3)), read(jnp.array([5, 1], jnp.uint32), 33).tolist()
      (5, [5, 1])
    """
    size = num_words(num_variables)
    if size == 1:
        return load(buffer, jnp.int32(0)) & everything(num_variables)
    word = lax.iota(jnp.int32, memory.power_of_two(size))
    return load(buffer, jnp.minimum(word, size - 1)) & everything(num_variables)


def everything(num_variables: int) -> jax.Array:
    """Returns the set of all variables as `read` returns it.

    Example:
      >>> int(everything(3)), everything(65).tolist()
      (7, [4294967295, 4294967295, 1, 0])
    """
    last, size = jnp.uint32(_last_word(num_variables)), num_words(num_variables)
    if size == 1:
        return last
    word = lax.iota(jnp.int32, memory.power_of_two(size))
    bits = jnp.where(word == size - 1, last, jnp.uint32(2**BITS - 1))
    return jnp.where(word < size, bits, jnp.uint32(0))


def write(buffer: jax.Array, bits: jax.Array) -> jax.Array:
    """Returns the buffer that holds a set, [words] uint32.

    Args:
      buffer: [words] uint32, to be overwritten.
      bits: as `read` returns it.

    Example:
      >>> write(jnp.zeros(1, jnp.uint32), jnp.uint32(5)).tolist()
      [5]
    """
    if not bits.ndim:
        return store(buffer, jnp.int32(0), bits, jnp.bool_(True))
    word = lax.iota(jnp.int32, bits.shape[0])
    return store(buffer, word, bits, word < buffer.shape[0])


def count(bits: jax.Array) -> jax.Array:
    """Returns how many members sets have, [...] int32.

    Args:
      bits: [..., words] uint32, or [] for one word.

    Example:
      >>> int(count(jnp.uint32(5))), count(jnp.array([[5, 1], [0, 0]], jnp.uint32)).tolist()
      (2, [3, 0])
    """
    counts = _ones(bits)
    return jnp.sum(counts, axis=-1, dtype=jnp.int32) if counts.ndim else counts


def first(bits: jax.Array) -> jax.Array:
    """Returns the first member of a set that has one, [] int32.

    Example:
      >>> int(first(jnp.uint32(6))), int(first(jnp.array([0, 1], jnp.uint32)))
      (1, 32)
    """
    if not bits.ndim:
        return _lowest_bit(bits)
    word = lax.iota(jnp.int32, bits.shape[0])
    place = jnp.min(jnp.where(bits != 0, word, bits.shape[0] - 1))
    return place * BITS + _lowest_bit(_word(bits, place))


def member(bits: jax.Array, number: jax.Array) -> jax.Array:
    """Returns the member with this number, counted from 0, [] int32.

    Args:
      number: [] int32, below `count(bits)`.

    Example:
      >>> [int(member(jnp.uint32(13), jnp.int32(number))) for number in range(3)]
      [0, 2, 3]
    """
    if not bits.ndim:
        return _bit(bits, number)
    word = lax.iota(jnp.int32, bits.shape[0])
    counts = _ones(bits)
    place = jnp.sum((jnp.cumsum(counts) <= number).astype(jnp.int32), dtype=jnp.int32)
    place = jnp.minimum(place, bits.shape[0] - 1)
    before = jnp.sum(jnp.where(word < place, counts, jnp.int32(0)), dtype=jnp.int32)
    return place * BITS + _bit(_word(bits, place), number - before)


def added(bits: jax.Array, variable: jax.Array, where: jax.Array) -> jax.Array:
    """Returns the set with a variable put in where `where` holds.

    Args:
      bits: uint32, [] or [a power of two], as `read` returns it.
      variable: [] int32.
      where: [] bool.

    Returns:
      uint32, of the shape of `bits`.

    Example:
      >>> int(added(jnp.uint32(5), jnp.int32(1), jnp.bool_(True)))
      7
    """
    return bits | _only(bits, variable, where)


def removed(bits: jax.Array, variable: jax.Array, where: jax.Array) -> jax.Array:
    """Returns the set with a variable taken out where `where` holds.

    Args:
      bits: uint32, [] or [a power of two], as `read` returns it.
      variable: [] int32.
      where: [] bool.

    Returns:
      uint32, of the shape of `bits`.

    Example:
      >>> int(removed(jnp.uint32(5), jnp.int32(2), jnp.bool_(True)))
      1
    """
    return bits & ~_only(bits, variable, where)


def _only(bits: jax.Array, variable: jax.Array, where: jax.Array) -> jax.Array:
    """Returns the set of one variable, or of none, of the shape of `bits`."""
    place = variable.astype(jnp.uint32)
    bit = where.astype(jnp.uint32) << (place & jnp.uint32(BITS - 1))
    if not bits.ndim:
        return bit
    word = lax.iota(jnp.uint32, bits.shape[0])
    return jnp.where(word == place >> jnp.uint32(5), bit, jnp.uint32(0))


def _ones(words: jax.Array) -> jax.Array:
    return lax.population_count(words).astype(jnp.int32)


def _last_word(num_variables: int) -> int:
    """Returns the last word of the set of all variables."""
    return (1 << (num_variables - 1) % BITS + 1) - 1


def _word(bits: jax.Array, place: jax.Array) -> jax.Array:
    is_there = lax.iota(jnp.int32, bits.shape[0]) == place
    return jnp.sum(jnp.where(is_there, bits, jnp.uint32(0)), dtype=jnp.uint32)


def _lowest_bit(word: jax.Array) -> jax.Array:
    """Returns the number of zeros below the lowest one, [] int32."""
    return BITS - 1 - lax.clz(word & (~word + jnp.uint32(1))).astype(jnp.int32)


def members(bits: jax.Array, number: jax.Array) -> jax.Array:
    """Returns several members of a set, by their numbers, [M] int32.

    Args:
      bits: [words] uint32, a power of two.
      number: [M] int32; from `count(bits)` on anything is returned, in range.

    Example:
      >>> jax.jit(members)(jnp.array([5, 1], jnp.uint32), jnp.arange(3)).tolist()
      [0, 2, 32]
    """
    (words,) = bits.shape
    shape = number.shape[0], words
    counts = _ones(bits)
    upto = jnp.broadcast_to(jnp.cumsum(counts)[None], shape)
    place = jnp.sum((upto <= number[:, None]).astype(jnp.int32), axis=1, dtype=jnp.int32)
    place = jnp.minimum(place, words - 1)
    column = lax.broadcasted_iota(jnp.int32, shape, 1)
    before = jnp.where(column < place[:, None], jnp.broadcast_to(counts[None], shape), 0)
    word = jnp.where(column == place[:, None], jnp.broadcast_to(bits[None], shape), jnp.uint32(0))
    word = jnp.sum(word, axis=1, dtype=jnp.uint32)
    left = number - jnp.sum(before, axis=1, dtype=jnp.int32)
    return place * BITS + jnp.minimum(_bit(word, left), BITS - 1)


def _bit(word: jax.Array, number: jax.Array) -> jax.Array:
    """Returns the place of the one with this number, by halves."""
    place = jnp.zeros_like(number)
    for width in (16, 8, 4, 2, 1):
        below = (word >> place.astype(jnp.uint32)) & jnp.uint32((1 << width) - 1)
        num_below = _ones(below)
        is_above = number >= num_below
        place = jnp.where(is_above, place + width, place)
        number = jnp.where(is_above, number - num_below, number)
    return place
