"""Fingerprints of instances and configurations: whether two runs have the same."""

import dataclasses
import enum
import functools
import hashlib
import types
from collections.abc import Iterable
from typing import Any

import jax
import numpy as np

_DIGITS = 16
_DEPTH = 12  # of parts in parts, some of which hold themselves


def fingerprint(*trees: Any) -> str:
    """Returns a few hexadecimal digits that pytrees of equal classes and equal numbers share.

    Functions count by their code and what it holds, so that processes of one version of Python
    agree. The host's part of a problem does not count: its numbers are those of the device.

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


def _static(part: Any, depth: int = _DEPTH) -> Any:
    """Returns a static part of a pytree, in words: of functions the code, with what it holds."""
    name = getattr(part, "__qualname__", type(part).__qualname__)
    if depth == 0 or getattr(part, "all_are_equal", False):
        return name
    if part is None or isinstance(part, str | bytes | int | float | complex | enum.Enum):
        return repr(part)
    if isinstance(part, np.ndarray | np.generic | jax.Array):
        array = np.asarray(part)
        return array.dtype.str, array.shape, array.tobytes().hex()
    if isinstance(part, types.CodeType):
        return part.co_code.hex(), part.co_names, _all(part.co_consts, depth)
    return name, _held(part, depth)


def _held(part: Any, depth: int) -> Any:
    """Returns what a static part holds, in words; nothing of what is not known."""
    if isinstance(part, dict):
        return sorted((repr(key), _static(value, depth - 1)) for key, value in part.items())
    if isinstance(part, tuple | list):
        return _all(part, depth)
    if isinstance(part, set | frozenset):
        return sorted(map(repr, part))
    if isinstance(part, functools.partial):
        return _all((part.func, part.args, part.keywords), depth)
    if isinstance(part, types.FunctionType):
        cells = [cell.cell_contents for cell in part.__closure__ or ()]
        return _all((part.__code__, part.__defaults__, part.__kwdefaults__, *cells), depth)
    if isinstance(part, types.MethodType):
        return _all((part.__func__, part.__self__), depth)
    if dataclasses.is_dataclass(part) and not isinstance(part, type):
        return _all([getattr(part, field.name) for field in dataclasses.fields(part)], depth)
    # Of functions of `jit`, and of what `tree_util.Partial` makes of partial functions.
    inside = getattr(part, "__wrapped__", getattr(part, "fun", None))
    return None if inside is None or isinstance(part, type) else _static(inside, depth - 1)


def _all(parts: Iterable[Any], depth: int) -> list[Any]:
    return [_static(part, depth - 1) for part in parts]
