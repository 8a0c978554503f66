# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
"""Random words as a pure function of (key, search index, step, slot).

The generator is Threefry-2x32 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1,
2, 3", SC 2011): additions, rotations and exclusive ors only, so every target computes the same
bits. Keys are derived with its 20 rounds; the words of a step take 13, the fewest for which the
paper reports that all of TestU01's BigCrush passes.

Words are turned into numbers with exact arithmetic (integers, and float operations that
cannot be rounded differently), so runs on integer costs agree bit for bit between targets.
"""

import functools
import operator
import sys
import warnings
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer

from jaxopt_search.backends import counts

__all__ = [
    "KEY_ROUNDS",
    "MAX_SLOTS",
    "WORD_ROUNDS",
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

KEY_ROUNDS = 20
"""Rounds by which keys are derived."""
WORD_ROUNDS = 13
"""Rounds by which the words of a step are drawn."""

_ROTATIONS = (13, 15, 26, 6, 17, 29, 16, 24)
_PARITY = 0x1BD11BDA  # Skein's key-schedule constant


class Key(NamedTuple):
    """Two uint32 words, scalars or [S] arrays."""

    first: jax.Array
    second: jax.Array


# Traced once for each shape: some hundred operations, drawn from at many places of a step.
@functools.partial(jax.jit, static_argnames="rounds", inline=True)
def threefry2x32(
    key: tuple[Any, Any], counter: tuple[Any, Any], rounds: int = KEY_ROUNDS
) -> tuple[jax.Array, jax.Array]:
    """Returns two random words: the Threefry-2x32 block cipher of `counter` under `key`.

    Args:
      key: two uint32 arrays, or scalars of NumPy's, that broadcast with the counter.
      counter: likewise.
      rounds: the number of rounds.

    Returns:
      Two uint32 arrays of the broadcast shape.

    Example:
      >>> zeros = jnp.uint32(0), jnp.uint32(0)
      >>> [hex(word) for word in threefry2x32(zeros, zeros)]  # as in the authors' known answers
      ['0x6b200159', '0x99ba4efe']
    """
    keys = *key, key[0] ^ key[1] ^ jnp.uint32(_PARITY)
    x0, x1 = jnp.broadcast_arrays(counter[0] + key[0], counter[1] + key[1])
    for number in range(rounds):
        distance = np.uint32(_ROTATIONS[number % 8])
        x0 = lax.add(x0, x1)
        left = lax.shift_left(x1, distance)
        right = lax.shift_right_logical(x1, np.uint32(32) - distance)
        x1 = lax.bitwise_xor(lax.bitwise_or(left, right), x0)
        if number % 4 == 3:
            turn = number // 4 + 1
            x0, x1 = x0 + keys[turn % 3], x1 + keys[(turn + 1) % 3] + jnp.uint32(turn)
    return x0, x1


MAX_SLOTS = 2**24
"""Slots that a search may draw from in one step."""


class Stream(NamedTuple):
    """The random words of one search at one step: a pure function of (key, search, step, slot).

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


def uniform(word: jax.Array) -> jax.Array:
    """Returns float32 in [0, 1), of the shape of `word`: its upper 24 bits, exactly.

    Args:
      word: uint32, any shape.

    Example:
      >>> uniform(jnp.array([0, 2**30, 2**31], jnp.uint32)).tolist()
      [0.0, 0.25, 0.5]
    """
    return (word >> jnp.uint32(8)).astype(jnp.float32) * jnp.float32(2**-24)


def mixed(word: jax.Array) -> jax.Array:
    """Returns words with their bits mixed, uint32 of the same shape; portable.

    For many choices of little weight: a key's words cost several times as much. The finalizer of
    MurmurHash3 (Appleby, 2011).

    Args:
      word: uint32, any shape.

    Example:
      >>> mixed(jnp.array([0, 1, 2], jnp.uint32)).tolist()
      [0, 1364076727, 821347078]
    """
    word = (word ^ (word >> jnp.uint32(16))) * jnp.uint32(0x85EBCA6B)
    word = (word ^ (word >> jnp.uint32(13))) * jnp.uint32(0xC2B2AE35)
    return word ^ (word >> jnp.uint32(16))


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


_PACKAGE = __name__.partition(".")[0]

# What a key is derived for; the second counter word keeps the families apart.
_FOR_STEPS, _FOR_EPOCH, _FOR_START, _FOR_EXCHANGE, _FOR_FOLD, _FOR_INSTANCE = range(6)
_FOR_STATE, _FOR_SUCCESSOR = 6, 7


def as_key(key: Any) -> Key:
    """Returns the two words of a user's key.

    Args:
      key: an integer seed of any size and sign; a `jax.random.key`; a legacy uint32[2] key; or
        what this function returned.
        Seeds beyond 32 bits are folded in whole, 32 bits at a time.

    Raises:
      TypeError: if `key` is none of these.
      ValueError: if `key` is None or an array of several keys.

    Example:
      >>> [int(word) for word in as_key(42)], [int(word) for word in as_key(jax.random.key(42))]
      ([0, 42], [0, 42])
    """
    if isinstance(key, Key):
        return key
    if key is None:
        raise ValueError("key is None, expected an integer seed or a jax.random.key")
    if isinstance(key, jax.Array) and not isinstance(key, Tracer) and key.is_deleted():
        raise ValueError("key is an array that was deleted, expected a live one")
    if isinstance(key, jax.Array) and jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        return _from_typed_key(key)
    if isinstance(key, bool | np.bool_):
        raise TypeError(f"key is {key!r}, expected an integer seed or a jax.random.key")
    if isinstance(key, jax.Array | np.ndarray) and key.ndim:
        if key.dtype != np.uint32:
            raise TypeError(f"key has dtype {key.dtype}, expected an integer seed or a key")
        if key.shape != (2,):
            raise ValueError(f"key has shape {key.shape}, expected one key, not a batch")
        return Key(jnp.asarray(key[0]), jnp.asarray(key[1]))
    try:
        seed = operator.index(key)
    except TypeError as error:
        raise TypeError(
            f"key is a {type(key).__name__}, expected an integer seed or a jax.random.key"
        ) from error
    return _from_seed(seed)


def as_argument(key: Any) -> Any:
    """Returns a key as an argument of a compiled function that calls `as_key`; computes nothing.

    Args:
      key: as in `as_key`.

    Raises:
      TypeError, ValueError: as `as_key`.

    Example:
      >>> as_argument(42)
      Key(first=np.uint32(0), second=np.uint32(42))
    """
    if type(key) is int and 0 <= key < 2**32:
        words: Any = np.uint32(0), np.uint32(key)
        return Key(*words)
    if isinstance(key, jax.Array) and jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        is_one_of_ours = not key.ndim and "threefry" in str(jax.random.key_impl(key))
        return key if is_one_of_ours else as_key(key)
    return as_key(key)


def _from_typed_key(key: jax.Array) -> Key:
    if key.ndim:
        raise ValueError(f"key has shape {key.shape}, expected one key, not a batch")
    data = jax.random.key_data(key)
    implementation = str(jax.random.key_impl(key))
    if "threefry" in implementation:
        return Key(data[0], data[1])
    warnings.warn(
        f"key uses {implementation!r}; its data is folded into a Threefry key, on which all runs"
        " are based",
        stacklevel=_frames_of_the_library(),
    )
    return _fold([data[i] for i in range(data.shape[0])])


def _frames_of_the_library() -> int:
    """Returns the stack level at which a warning names the line of the user's call."""
    level, frame = 1, sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame.f_back is not None:
        package = frame.f_globals.get("__package__") or ""  # None in a script
        if not package.startswith(_PACKAGE):
            break
        level, frame = level + 1, frame.f_back
    return level


def _from_seed(seed: int) -> Key:
    """Returns (0, seed) for seeds of 32 bits, as JAX does; a fold of all the bits for others."""
    if 0 <= seed < 2**32:
        return Key(*jax.device_put((np.uint32(0), np.uint32(seed))))
    words, rest = [], abs(seed)
    while rest:
        words.append(jnp.uint32(rest & 0xFFFFFFFF))
        rest >>= 32
    return _fold([jnp.uint32(seed < 0), *words])


def _fold(words: list[jax.Array]) -> Key:
    key = Key(jnp.uint32(len(words)), jnp.uint32(_FOR_FOLD))
    for word in words:
        key = _derive(key, word, _FOR_FOLD)
    return key


def _derive(key: Key, word: Any, purpose: int) -> Key:
    return Key(*threefry2x32(key, (word, jnp.uint32(purpose))))


def instance_key(key: Key, index: jax.Array) -> Key:
    """Returns the key of the run on one of many instances.

    Args:
      key: the key of all runs.
      index: uint32 number of the instance, any shape.

    Example:
      >>> keys = instance_key(as_key(0), jnp.arange(3, dtype=jnp.uint32))
      >>> keys.first.shape, len(set(keys.first.tolist()))
      ((3,), 3)
    """
    return _derive(key, index, _FOR_INSTANCE)


def search_key(key: Key, index: jax.Array, epoch: jax.Array) -> Key:
    """Returns the key of the steps of one search.

    Args:
      key: the run's key.
      index: uint32 global index of the search, any shape.
      epoch: [] uint32, the high word of the step.

    Example:
      >>> keys = search_key(as_key(0), jnp.arange(3, dtype=jnp.uint32), jnp.uint32(0))
      >>> keys.first.shape, len(set(keys.first.tolist()))
      ((3,), 3)
    """
    own = _derive(key, index, _FOR_STEPS)
    return _derive(own, epoch, _FOR_EPOCH)


def exchange_key(key: Key, epoch: jax.Array) -> Key:
    """Returns the key of the exchanges of a run, which belong to no search.

    Args:
      key: the run's key.
      epoch: [] uint32, the high word of the step.

    Example:
      >>> first, later = (exchange_key(as_key(0), jnp.uint32(epoch)) for epoch in (0, 1))
      >>> first.first.dtype, int(first.first) == int(later.first)
      (dtype('uint32'), False)
    """
    return _derive(key, epoch, _FOR_EXCHANGE)


def start_key(key: Key, index: jax.Array) -> jax.Array:
    """Returns the typed key from which a search draws its first solution, of the shape of `index`.

    Args:
      key: the run's key.
      index: uint32 global index of the search, any shape.

    Example:
      >>> key = start_key(as_key(0), jnp.uint32(5))
      >>> key.shape, key.dtype
      ((), key<fry>)
    """
    return typed_key(_derive(key, index, _FOR_START))


def successor_key(key: Key, state: jax.Array, successor: jax.Array) -> Key:
    """Returns the key of one of the successors of a state.

    Args:
      key: the user's key.
      state, successor: uint32 numbers, any shape.

    Example:
      >>> number = jnp.arange(4, dtype=jnp.uint32)
      >>> keys = successor_key(as_key(0), number // 2, number % 2)
      >>> keys.first.shape, len(set(keys.first.tolist()))
      ((4,), 4)
    """
    own = _derive(key, state, _FOR_STATE)
    return _derive(own, successor, _FOR_SUCCESSOR)


def typed_key(words: tuple[jax.Array, jax.Array]) -> jax.Array:
    """Returns typed keys of two uint32 arrays of any shape, which is that of the keys.

    Example:
      >>> jax.random.key_data(typed_key((jnp.uint32(0), jnp.uint32(42)))).tolist()
      [0, 42]
    """
    return jax.random.wrap_key_data(jnp.stack(words, axis=-1), impl="threefry2x32")


def data_of(key: Any) -> jax.Array:
    """Returns the two words of a typed key, [2] uint32.

    Raises:
      TypeError: if it is not a typed key.

    Example:
      >>> data_of(jax.random.key(42)).tolist()
      [0, 42]
    """
    if not (isinstance(key, jax.Array) and jnp.issubdtype(key.dtype, jax.dtypes.prng_key)):
        raise TypeError(f"key is a {type(key).__name__}, expected a jax.random.key")
    return jax.random.key_data(key)
