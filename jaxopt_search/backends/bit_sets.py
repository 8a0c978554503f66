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
_ALL = np.uint32(2**BITS - 1)


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
    words = np.full(num_words(num_variables), _ALL)
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
      uint32, [a power of two].

    Example:
      >>> read(jnp.array([5, 1], jnp.uint32), 33).tolist()
      [5, 1]
    """
    size = num_words(num_variables)
    word = lax.iota(jnp.int32, memory.power_of_two(size))
    return load(buffer, jnp.minimum(word, size - 1)) & everything(num_variables)


def everything(num_variables: int) -> jax.Array:
    """Returns the set of all variables as `read` returns it.

    Example:
      >>> everything(3).tolist(), everything(65).tolist()
      ([7], [4294967295, 4294967295, 1, 0])
    """
    size = num_words(num_variables)
    word = lax.iota(jnp.int32, memory.power_of_two(size))
    bits = jnp.where(word == size - 1, jnp.uint32(_last_word(num_variables)), _ALL)
    return jnp.where(word < size, bits, jnp.uint32(0))


def write(buffer: jax.Array, bits: jax.Array) -> jax.Array:
    """Returns the buffer that holds a set, [words] uint32.

    Args:
      buffer: [words] uint32, to be overwritten.
      bits: as `read` returns it.

    Example:
      >>> write(jnp.zeros(1, jnp.uint32), jnp.array([5], jnp.uint32)).tolist()
      [5]
    """
    word = lax.iota(jnp.int32, bits.shape[0])
    return store(buffer, word, bits, word < buffer.shape[0])


def count(bits: jax.Array) -> jax.Array:
    """Returns how many members sets have, [...] int32.

    Args:
      bits: [..., words] uint32.

    Example:
      >>> count(jnp.array([[5, 1], [0, 0]], jnp.uint32)).tolist()
      [3, 0]
    """
    return jnp.sum(_ones(bits), axis=-1, dtype=jnp.int32)


def first(bits: jax.Array) -> jax.Array:
    """Returns the first member of a set that has one, [] int32.

    Example:
      >>> int(first(jnp.array([0, 1], jnp.uint32)))
      32
    """
    place = jnp.min(jnp.where(bits != 0, lax.iota(jnp.int32, bits.size), bits.size - 1))
    word = _word(bits, place)
    return place * BITS + BITS - 1 - lax.clz(word & (~word + jnp.uint32(1))).astype(jnp.int32)


def member(bits: jax.Array, number: jax.Array) -> jax.Array:
    """Returns the member with this number, counted from 0, [] int32.

    Args:
      number: [] int32; from `count(bits)` on anything is returned, in range.

    Example:
      >>> bits = jnp.array([13], jnp.uint32)
      >>> [int(member(bits, jnp.int32(number))) for number in range(3)]
      [0, 2, 3]
    """
    counts = _ones(bits)
    place = jnp.sum((jnp.cumsum(counts) <= number).astype(jnp.int32), dtype=jnp.int32)
    place = jnp.minimum(place, bits.size - 1)
    is_before = lax.iota(jnp.int32, bits.size) < place
    left = number - jnp.sum(jnp.where(is_before, counts, jnp.int32(0)), dtype=jnp.int32)
    return place * BITS + jnp.minimum(_bit(_word(bits, place), left), BITS - 1)


def members(bits: jax.Array, number: jax.Array) -> jax.Array:
    """Returns several members of a set, by their numbers, [M] int32; see `member`.

    Args:
      bits: [words] uint32, a power of two.
      number: [M] int32.

    Example:
      >>> members(jnp.array([5, 1], jnp.uint32), jnp.arange(3)).tolist()
      [0, 2, 32]
    """
    return jax.vmap(member, (None, 0))(bits, number)


def added(bits: jax.Array, variable: jax.Array, where: jax.Array) -> jax.Array:
    """Returns the set with a variable put in where `where` holds.

    Args:
      bits: uint32, [a power of two], as `read` returns it.
      variable: [] int32.
      where: [] bool.

    Returns:
      uint32, of the shape of `bits`.

    Example:
      >>> added(jnp.array([5], jnp.uint32), jnp.int32(1), jnp.bool_(True)).tolist()
      [7]
    """
    return bits | _only(bits, variable, where)


def removed(bits: jax.Array, variable: jax.Array, where: jax.Array) -> jax.Array:
    """Returns the set with a variable taken out where `where` holds.

    Args:
      bits: uint32, [a power of two], as `read` returns it.
      variable: [] int32.
      where: [] bool.

    Returns:
      uint32, of the shape of `bits`.

    Example:
      >>> removed(jnp.array([5], jnp.uint32), jnp.int32(2), jnp.bool_(True)).tolist()
      [1]
    """
    return bits & ~_only(bits, variable, where)


def _only(bits: jax.Array, variable: jax.Array, where: jax.Array) -> jax.Array:
    """Returns the set of one variable, or of none, of the shape of `bits`."""
    place = variable.astype(jnp.uint32)
    bit = where.astype(jnp.uint32) << (place & jnp.uint32(BITS - 1))
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
