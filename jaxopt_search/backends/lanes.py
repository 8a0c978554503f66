# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
"""The lanes of a search: what its elements or moves, several at a time, are handled by.

Under XLA they are an axis; in a kernel the threads of a warp, which read one another's values only
by reducing them. This is part of the module `memory`.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search.backends.backend import is_in_kernel, is_native, takes_turns

LANES = 32
"""Elements that `copy` and moves of many elements handle at once, a warp's number of threads."""


def each_lane(fn: Callable[..., Any], *arguments: Any) -> Any:
    """Returns `fn(*arguments)`, whose leaves are [M], or of one lane after the other.

    Example:
      >>> each_lane(lambda delta: delta * delta, jnp.array([1, 2, 3])).tolist()
      [1, 4, 9]
    """
    if takes_turns():
        return lax.map(lambda scalars: fn(*scalars), arguments)
    return fn(*arguments)


def power_of_two(number: int) -> int:
    """Returns the least power of two that is at least `number`.

    Example:
      >>> power_of_two(5), power_of_two(8)
      (8, 8)
    """
    return 1 << (number - 1).bit_length()


def lanes(number: int) -> jax.Array:
    """Returns the numbers of at least `number` lanes, [lanes] int32.

    More where that runs faster or has to be: a power of two in a kernel, and a full warp if they
    are several; a multiple of eight in a search by itself on a CPU.

    Example:
      >>> from jaxopt_search.backends.backend import one_search
      >>> lanes(3).tolist()
      [0, 1, 2]
      >>> with one_search("native"):
      ...     lanes(3).tolist()
      [0, 1, 2, 3, 4, 5, 6, 7]
    """
    if is_in_kernel():
        number = max(power_of_two(number), LANES) if number > 1 else 1
    elif is_native():
        number = -(-number // 8) * 8
    return lax.iota(jnp.int32, number)


def pick(tree: Any, lane: jax.Array) -> Any:
    """Returns the values that one lane holds.

    Args:
      tree: leaves [M], one value per lane.
      lane: [] int32 in range.

    Example:
      >>> pick({"delta": jnp.array([4, -2, 7])}, jnp.int32(1))
      {'delta': Array(-2, dtype=int32)}
    """
    return jax.tree.map(lambda values: _pick_value(values, lane), tree)


def _pick_value(values: jax.Array, lane: jax.Array) -> jax.Array:
    if not is_in_kernel():
        return lax.dynamic_index_in_dim(values, lane, keepdims=False, allow_negative_indices=False)
    # Lanes can read one another's values only by reducing them.
    if values.dtype == jnp.bool_:
        return _pick_value(values.astype(jnp.int32), lane) != 0
    is_integer = jnp.issubdtype(values.dtype, jnp.integer)
    least = jnp.iinfo(values.dtype).min if is_integer else -jnp.inf
    numbers = lax.iota(jnp.int32, values.shape[0])
    return jnp.max(jnp.where(numbers == lane, values, jnp.asarray(least, values.dtype)))


def row(tree: Any, number: int) -> Any:
    """Returns one row of values, [M] each, of leaves [rows, M].

    Example:
      >>> row(jnp.array([[1, 2], [3, 4]]), 1).tolist()
      [3, 4]
    """
    return jax.tree.map(lambda values: _row_of(values, number), tree)


def _row_of(values: jax.Array, number: int) -> jax.Array:
    if not is_in_kernel():
        return values[number]
    # A sum with zeros, of integers, which keep the bits of floats.
    is_there = lax.broadcasted_iota(jnp.int32, values.shape, 0) == number
    kind = values.dtype
    if kind.itemsize < 4:
        wider = jnp.float32 if jnp.issubdtype(kind, jnp.floating) else jnp.int32
        return _row_of(values.astype(wider), number).astype(kind)
    word = jnp.int32 if kind.itemsize == 4 else jnp.int64
    bits = lax.bitcast_convert_type(values, word)
    bits = jnp.sum(jnp.where(is_there, bits, jnp.zeros((), word)), axis=0, dtype=word)
    return lax.bitcast_convert_type(bits, kind)
