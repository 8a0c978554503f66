"""Classes of arrays as pytrees that JAX tells from one another.

`jax.tree_util.register_dataclass` takes classes with equal fields for equal (JAX 0.10 and 0.11), so
that a cache of `jit` confuses two of them now and then and runs one's program for the other.
"""

import dataclasses
from collections.abc import Iterable
from typing import Any, TypeVar

import jax
import numpy as np

Class = TypeVar("Class", bound=type[Any])


def static(**options: Any) -> Any:
    """Returns a field of a `pytree` that is part of the program; options as `dataclasses.field`."""
    return dataclasses.field(metadata={"static": True}, **options)


class IgnoredByJit:
    """A static part of a pytree that programs do not see: all objects of such a class are equal.

    So instances that differ in it share their compiled code, and nothing traced may depend on it.
    JAX's cache keeps the first one alive.
    """

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self))

    def __hash__(self) -> int:
        return hash(type(self))


def pytree(kind: Class) -> Class:
    """Registers a dataclass, as a decorator: fields marked static are part of the program.

    Like `jax.tree_util.register_dataclass`, but two classes are never taken for one another.

    Args:
      kind: the class.

    Example:
      >>> import dataclasses
      >>> @pytree
      ... @dataclasses.dataclass(frozen=True)
      ... class Cut:
      ...     weights: jax.Array
      ...     size: int = dataclasses.field(metadata={"static": True})
      >>> jax.tree.leaves(Cut(1.5, size=3))
      [1.5]
    """
    fields = [field for field in dataclasses.fields(kind) if field.init]
    static = [field.name for field in fields if field.metadata.get("static", False)]
    data = [field.name for field in fields if field.name not in static]

    def flatten(part: Any) -> tuple[list[Any], tuple[Any, ...]]:
        return [getattr(part, name) for name in data], tuple(getattr(part, name) for name in static)

    def flatten_with_keys(part: Any) -> tuple[list[tuple[Any, Any]], tuple[Any, ...]]:
        children, aux = flatten(part)
        return list(zip(map(jax.tree_util.GetAttrKey, data), children, strict=True)), aux

    def unflatten(aux: tuple[Any, ...], children: Iterable[Any]) -> Any:
        return kind(**dict(zip(static, aux, strict=True)), **dict(zip(data, children, strict=True)))

    jax.tree_util.register_pytree_with_keys(kind, flatten_with_keys, unflatten, flatten)
    compared: Any = kind
    if _is_generated(compared.__eq__):
        compared.__eq__ = _equal
    return kind


def _is_generated(method: Any) -> bool:
    """Returns whether `dataclasses` has made a method, which compares arrays as if numbers."""
    return getattr(getattr(method, "__code__", None), "co_filename", "") == "<string>"


def _equal(part: Any, other: Any) -> Any:
    """Returns whether two objects of a class have equal static fields and arrays."""
    if other.__class__ is not part.__class__:
        return NotImplemented
    (leaves, structure), (others, like) = jax.tree.flatten(part), jax.tree.flatten(other)
    if structure != like:
        return False
    return all(a is b or np.array_equal(a, b) for a, b in zip(leaves, others, strict=True))
