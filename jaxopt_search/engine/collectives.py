# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
"""What devices tell one another: identities where there is no device axis."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax


def all_gather(tree: Any, axis_name: str | None) -> Any:
    """Returns the leaves of all devices joined along their first axis, in device order."""
    if axis_name is None:
        return tree
    return jax.tree.map(lambda leaf: lax.all_gather(leaf, axis_name, tiled=True), tree)


def minimum(value: jax.Array, axis_name: str | None) -> jax.Array:
    """Returns the smallest value of any device."""
    return value if axis_name is None else lax.pmin(value, axis_name)


def total(value: jax.Array, axis_name: str | None) -> jax.Array:
    """Returns the sum over devices."""
    return value if axis_name is None else lax.psum(value, axis_name)


def device_index(axis_name: str | None) -> jax.Array:
    """Returns the number of this device along the axis, int32."""
    return jnp.int32(0) if axis_name is None else lax.axis_index(axis_name).astype(jnp.int32)
