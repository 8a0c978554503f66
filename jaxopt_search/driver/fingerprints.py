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

from jaxopt_search.pytrees import described

_DIGITS = 16


def fingerprint(*trees: Any) -> str:
    """Returns a few hexadecimal digits that pytrees of equal classes and equal numbers share.

    Functions count by their code and what it holds, but for global variables, so that processes of
    one version of Python agree. The host's part of a problem does not count: its numbers are those
    of the device.

    Args:
      trees: problems, searches, exchanges, numbers, None; on any device.
    """
    found = hashlib.sha256()
    for path, leaf in jax.tree_util.tree_leaves_with_path(jax.device_get(trees)):
        found.update(repr((jax.tree_util.keystr(path), _words_of_array(leaf))).encode())
    found.update(repr(described(jax.tree.structure(trees), _Words().of)).encode())
    return found.hexdigest()[:_DIGITS]


def _words_of_array(array: Any) -> tuple[str, tuple[int, ...], str]:
    array = np.ascontiguousarray(array)
    return array.dtype.str, array.shape, hashlib.sha256(array.tobytes()).hexdigest()


class _Words:
    """Describes static parts of pytrees; those that may hold themselves once, then by name."""

    def __init__(self) -> None:
        self._seen = dict[int, Any]()  # by identity, which lasts as long as they are held here

    def of(self, part: Any) -> Any:
        """Returns a part in words."""
        if part is None or isinstance(part, str | bytes | int | float | complex | enum.Enum):
            return repr(part)
        if isinstance(part, np.ndarray | np.generic | jax.Array):
            return _words_of_array(part)
        if isinstance(part, types.CodeType):
            return part.co_code.hex(), part.co_names, self._all(part.co_consts)
        if isinstance(part, dict):
            return sorted((repr(key), self.of(value)) for key, value in part.items())
        if isinstance(part, set | frozenset):
            return sorted(map(repr, part))
        if isinstance(part, tuple | list):
            return self._all(part)
        name = getattr(part, "__qualname__", type(part).__qualname__)
        is_known = isinstance(part, type | types.ModuleType) or id(part) in self._seen
        if is_known or getattr(part, "all_are_equal", False):
            return name
        self._seen[id(part)] = part
        return name, self._all(_held(part))

    def _all(self, parts: Iterable[Any]) -> list[Any]:
        return list(map(self.of, parts))


def _held(part: Any) -> tuple[Any, ...]:
    """Returns what a function or an object holds."""
    if isinstance(part, functools.partial):
        return part.func, part.args, part.keywords
    if isinstance(part, types.MethodType):
        return part.__func__, part.__self__
    if isinstance(part, types.FunctionType):
        cells = [cell.cell_contents for cell in part.__closure__ or ()]
        return part.__code__, part.__defaults__, part.__kwdefaults__, *cells
    if dataclasses.is_dataclass(part):
        return tuple(getattr(part, field.name) for field in dataclasses.fields(part))
    if hasattr(part, "__wrapped__"):  # such as functions of `jit`
        return (part.__wrapped__,)
    return getattr(part, "__dict__", None), *_slots(part)


def _slots(part: Any) -> list[Any]:
    """Returns what an object holds by the `__slots__` of its classes."""
    named = [vars(one).get("__slots__", ()) for one in type(part).__mro__]
    names = [name for own in named for name in ((own,) if isinstance(own, str) else own)]
    return [getattr(part, name) for name in names if name[:2] != "__" and hasattr(part, name)]
