# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
"""Keys of random words: what users hand in, and what is derived for each search and purpose."""

import operator
import sys
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from jaxopt_search.backends.threefry import Key, threefry2x32

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
        key = Key(*threefry2x32(key, (word, jnp.uint32(_FOR_FOLD))))
    return key


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
    return Key(*threefry2x32(key, (index, jnp.uint32(_FOR_INSTANCE))))


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
    own = Key(*threefry2x32(key, (index, jnp.uint32(_FOR_STEPS))))
    return Key(*threefry2x32(own, (epoch, jnp.uint32(_FOR_EPOCH))))


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
    return Key(*threefry2x32(key, (epoch, jnp.uint32(_FOR_EXCHANGE))))


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
    return typed_key(threefry2x32(key, (index, jnp.uint32(_FOR_START))))


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
    own = Key(*threefry2x32(key, (state, jnp.uint32(_FOR_STATE))))
    return Key(*threefry2x32(own, (successor, jnp.uint32(_FOR_SUCCESSOR))))


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
