# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false
"""Where arrays lie: on one device, or in parts on several.

It tells programs apart: one that is compiled ahead serves a call only if the arrays of the call lie
where the shapes said that they would.
"""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, Sharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

AXIS = "devices"
"""The name that `pmap` has for the devices; another name would compile for arrays of this one."""


def in_parts(devices: Sequence[jax.Device]) -> Sharding:
    """Returns where arrays [D, ...] lie of which each device has a part."""
    return NamedSharding(Mesh(np.array(devices), (AXIS,)), P(AXIS))


def everywhere(devices: Sequence[jax.Device]) -> Sharding:
    """Returns where arrays lie that each of several devices has as a whole."""
    return NamedSharding(Mesh(np.array(devices), (AXIS,)), P())


def only_on(device: jax.Device) -> Sharding:
    """Returns where arrays lie that are bound to a device."""
    return SingleDeviceSharding(device)


def is_bound(tree: Any) -> bool:
    """Returns whether an array is bound to its device, and so is all that is made of it."""
    arrays = (leaf for leaf in jax.tree.leaves(tree) if isinstance(leaf, jax.Array))
    return any(array.committed for array in arrays)


def shapes(tree: Any, where: Sharding | None = None) -> Any:
    """Returns the shapes of arrays that lie there; None for where JAX puts them."""

    def shape(leaf: Any) -> jax.ShapeDtypeStruct:
        one = leaf if isinstance(leaf, jax.ShapeDtypeStruct) else jax.typeof(leaf)
        kind: Any = {"dtype": one.dtype, "weak_type": one.weak_type}
        return jax.ShapeDtypeStruct(one.shape, sharding=where, **kind)

    return jax.tree.map(shape, tree)


def split_leaf(num_devices: int, leaf: Any) -> np.ndarray:
    """Returns a leaf [N, ...] in equal parts, [D, ...]; copies of the last entry fill them up."""
    leaf = np.asarray(leaf)
    filled = np.concatenate([leaf, np.repeat(leaf[-1:], -len(leaf) % num_devices, axis=0)])
    return filled.reshape(num_devices, -1, *leaf.shape[1:])


def split_shape(num_devices: int, leaf: Any) -> jax.ShapeDtypeStruct:
    """Returns the shape of what `split_leaf` returns."""
    size, *rest = leaf.shape
    return jax.ShapeDtypeStruct((num_devices, -(-size // num_devices), *rest), leaf.dtype)
