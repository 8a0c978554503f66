"""Fingerprints of instances and configurations: whether two runs have the same."""

import dataclasses
import hashlib
from typing import Any

import jax
import numpy as np

_DIGITS = 16


def fingerprint(*trees: Any) -> str:
    """Returns a few hexadecimal digits that pytrees of equal classes and equal numbers share.

    Functions count by their names, so that processes agree. The host's part of a problem does not
    count: its numbers are those of the device.

    Args:
      trees: problems, searches, exchanges, numbers, None; on any device.
    """
    found = hashlib.sha256()
    for path, leaf in jax.tree_util.tree_leaves_with_path(jax.device_get(trees)):
        array = np.asarray(leaf)
        words = jax.tree_util.keystr(path), array.dtype.str, array.shape
        found.update(repr(words).encode())
        found.update(np.ascontiguousarray(array).tobytes())
    found.update(repr(_described(jax.tree.structure(trees))).encode())
    return found.hexdigest()[:_DIGITS]


def _described(structure: Any) -> Any:
    """Returns what a structure of pytrees is, in words."""
    node = structure.node_data()
    if node is None:
        return "leaf" if structure.num_leaves else "nothing"
    return *map(_static, node), list(map(_described, structure.children()))


def _static(part: Any) -> Any:
    """Returns a static part of a pytree, in words."""
    if getattr(part, "all_are_equal", False):
        return type(part).__qualname__
    if dataclasses.is_dataclass(part) and not isinstance(part, type):
        values = (getattr(part, field.name) for field in dataclasses.fields(part))
        return type(part).__qualname__, list(map(_static, values))
    if isinstance(part, tuple | list):
        return list(map(_static, part))
    if callable(part):
        return f"{part.__module__}.{getattr(part, '__qualname__', type(part).__qualname__)}"
    is_plain = part is None or isinstance(part, str | int | float)
    return repr(part) if is_plain else type(part).__qualname__
