"""Reading and writing buffers, the same for arrays under XLA and for refs inside a Pallas kernel.

Under XLA a buffer is an array and a write returns the new array. In a kernel a buffer is a
`jax.Ref`, a write happens in place, and the ref itself is returned; so code that goes on with what
`store` returned is right in both worlds.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

_LANES = 32


def load(buffer: Any, index: jax.Array) -> jax.Array:
    """Returns `buffer[index]` for a buffer of one axis; `index` must be in range.

    Args:
      buffer: [n] array or ref.
      index: integers of any shape under XLA, a scalar or one axis of lanes in a kernel.
    """
    if isinstance(buffer, jax.Ref):
        return buffer[index]
    return buffer.at[index].get(mode="promise_in_bounds")


def store(buffer: Any, index: jax.Array, value: jax.Array, where: jax.Array) -> Any:
    """Returns `buffer` with `value` at `index` where `where` holds; `index` must be in range.

    Under `vmap` a conditional computes both sides, so a rejected write puts back what was there:
    that touches one element and keeps the update in place.

    Args:
      buffer: [n] array or ref.
      index: [] integer.
      value: [] converted to the dtype of `buffer`.
      where: [] bool.
    """
    value = jnp.where(where, jnp.asarray(value, buffer.dtype), load(buffer, index))
    if isinstance(buffer, jax.Ref):
        buffer[index] = value
        return buffer
    return buffer.at[index].set(value, mode="promise_in_bounds")


def copy(destination: Any, source: Any, where: jax.Array) -> Any:
    """Returns `destination`, overwritten by `source` where the scalar `where` holds.

    Args:
      destination: a pytree of arrays or refs.
      source: a pytree of the same structure, shapes and dtypes.
      where: [] bool.
    """

    def copy_leaf(old: Any, new: Any) -> Any:
        if isinstance(old, jax.Ref):
            lax.cond(where, lambda: _copy_by_lanes(old, new), lambda: None)
            return old
        return jnp.where(where, new, old)

    return jax.tree.map(copy_leaf, destination, source)


def _copy_by_lanes(destination: jax.Ref, source: Any) -> None:
    (n,) = destination.shape
    lanes = lax.iota(jnp.int32, _LANES)

    def copy_tile(tile: jax.Array, carry: None) -> None:
        # Lanes past the end copy the last element once more, which needs no mask.
        index = jnp.minimum(tile * _LANES + lanes, n - 1)
        destination[index] = source[index]

    lax.fori_loop(0, -(-n // _LANES), copy_tile, None)
