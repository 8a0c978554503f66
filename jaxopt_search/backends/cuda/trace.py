# pyright: basic
"""What a program of a kernel does, as a jaxpr in which accesses of memory are operations.

A buffer is an array wrapped by `Buffer`, so that portable code hands it on as it does under XLA:
a write returns the buffer as it is afterwards. `load_p`, `store_p` and `copy_p` are what becomes
of an access; `emit` writes them as reads and writes in place.
"""

import dataclasses
import pathlib
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.core import ShapedArray
from jax.extend.core import ClosedJaxpr, Primitive

from jaxopt_search.backends import memory
from jaxopt_search.backends.backend import Index, Kernel

_JAX, _OURS = (str(pathlib.Path(file).parent) for file in (jax.__file__, memory.__file__))

load_p, store_p = Primitive("load"), Primitive("store")
copy_p, pick_p, settled_p = Primitive("copy"), Primitive("pick"), Primitive("settled")


@load_p.def_abstract_eval
def _(buffer: Any, index: Any, *where: Any) -> Any:
    return ShapedArray(index.shape, buffer.dtype)


@store_p.def_abstract_eval
@copy_p.def_abstract_eval
@settled_p.def_abstract_eval
def _(buffer: Any, *rest: Any) -> Any:
    return ShapedArray(buffer.shape, buffer.dtype)


@pick_p.def_abstract_eval
def _(values: Any, lane: Any) -> Any:
    return ShapedArray((), values.dtype)


class Unportable(Exception):
    """What keeps a program from being emitted, and the function that holds it."""

    def __init__(self, reason: str, function: str = "") -> None:
        super().__init__(f"{function or 'the search'} {reason}")
        self.reason, self.function = reason, function

    def at(self, equations: tuple[Any, ...]) -> "Unportable":
        """Returns the same of the function with the first of some equations that has one."""
        functions = (self.function, *map(function_of, equations))
        return Unportable(self.reason, next(filter(None, functions), ""))


def function_of(equation: Any) -> str:
    """Returns the innermost function around an equation that is neither JAX's nor a backend's."""
    trace = equation.source_info.traceback
    frames = [
        f"{frame.function_name} ({pathlib.Path(frame.file_name).name}:{frame.line_num})"
        for frame in (trace.frames if trace else ())
        if not frame.file_name.startswith((_JAX, _OURS))
    ]
    return frames[0] if frames else ""


def last_function(trace: TracebackType | None) -> str:
    """Returns the innermost function of a traceback that is neither JAX's nor a backend's."""
    frames = [
        f"{frame.f_code.co_qualname} ({pathlib.Path(frame.f_code.co_filename).name}:{line})"
        for frame, line in traceback.walk_tb(trace)
        if not frame.f_code.co_filename.startswith((_JAX, _OURS))
    ]
    return frames[-1] if frames else ""


@dataclasses.dataclass(frozen=True)
class Buffer:
    """Memory that a program reads or writes at indices, [n] or [rows, columns]."""

    array: jax.Array

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def ndim(self) -> int:
        return self.array.ndim

    @property
    def size(self) -> int:
        return self.array.size

    @property
    def dtype(self) -> Any:
        return self.array.dtype


def _array(leaf: Any) -> Any:
    return leaf.array if isinstance(leaf, Buffer) else leaf


class Traced(Kernel):
    """The target of code that is traced to be emitted."""

    buffer = Buffer

    def load(self, buffer: Buffer, index: Index, where: jax.Array | None) -> jax.Array:
        index = _flat(buffer, index)
        masks = () if where is None else (jnp.broadcast_to(where, index.shape),)
        return load_p.bind(buffer.array, index, *masks)

    def store(self, buffer: Buffer, index: Index, value: jax.Array, where: jax.Array) -> Buffer:
        index = _flat(buffer, index)
        value, where = jnp.broadcast_to(value, index.shape), jnp.broadcast_to(where, index.shape)
        return Buffer(store_p.bind(buffer.array, index, value, where))

    store_lanes = store

    def copy(self, destination: Buffer, source: Buffer, where: jax.Array) -> Buffer:
        return Buffer(copy_p.bind(destination.array, source.array, jnp.asarray(where)))

    def settled(self, buffer: Buffer) -> Buffer:
        return Buffer(settled_p.bind(buffer.array))

    def pick(self, values: jax.Array, lane: jax.Array) -> jax.Array:
        return pick_p.bind(values, lane)

    def when(self, where: jax.Array, change: Callable[[Any, jax.Array], Any], tree: Any) -> Any:
        leaves, opened = _opened(lambda tree: change(tree, where), tree)
        return opened.merge(super().when(where, lambda old, _: opened.body(old), leaves))

    def fori_loop(self, num: Any, body: Callable[[jax.Array, Any], Any], tree: Any) -> Any:
        leaves, opened = _opened(body, tree)
        return opened.merge(super().fori_loop(num, opened.body, leaves))


class _Opened(NamedTuple):
    """A function of a tree that may hold buffers, as one of lists of arrays.

    Attributes:
      body: like the function, whose last argument and result is the list.
      merge: maps the list to the tree.
    """

    body: Callable[..., list[Any]]
    merge: Callable[[list[Any]], Any]


def _opened(fn: Callable[..., Any], tree: Any) -> tuple[list[Any], _Opened]:
    """Returns the arrays of a tree, and a function of the tree as one of these."""
    leaves, structure = jax.tree.flatten(tree)

    def merge(arrays: list[Any]) -> Any:
        pairs = zip(leaves, arrays, strict=True)
        return structure.unflatten(
            Buffer(array) if isinstance(leaf, Buffer) else array for leaf, array in pairs
        )

    def body(*arguments: Any) -> list[Any]:
        *others, arrays = arguments
        new = jax.tree.leaves(fn(*others, merge(arrays)))
        for (path, old), leaf in zip(jax.tree.leaves_with_path(tree), new, strict=True):
            if isinstance(old, Buffer) and not isinstance(leaf, Buffer):
                raise TypeError(
                    f"the buffer state{jax.tree_util.keystr(path)} was replaced, expected the"
                    " buffer itself, as `store` returns it"
                )
        return [_array(leaf) for leaf in new]

    return [_array(leaf) for leaf in leaves], _Opened(body, merge)


def _flat(buffer: Buffer, index: Index) -> jax.Array:
    """Returns indices of a buffer's elements, row by row."""
    if not isinstance(index, tuple):
        return jnp.asarray(index)
    if len(index) == 1:
        return jnp.asarray(index[0])
    row, column = index
    return row * jnp.asarray(buffer.shape[1], jnp.result_type(row)) + column


class Program(NamedTuple):
    """A traced program.

    Attributes:
      jaxpr: maps the number of steps, the leaves of what is read, and those of what is carried to
        the latter after these steps.
      is_buffer: of each carried leaf.
    """

    jaxpr: ClosedJaxpr
    is_buffer: tuple[bool, ...]


def trace(
    body: Callable[[jax.Array, Any, Any], Any], shared: Any, carry: Any, target: str
) -> Program:
    """Returns the program that makes steps.

    Args:
      body: maps the number of a step, what is read and what is carried to the latter.
      shared, carry: pytrees of the shapes and dtypes that one program sees.
      target: the name of the target.
    """
    leaves, structure = jax.tree.flatten((shared, carry))
    carried = jax.tree.leaves(carry)

    def run(num_steps: jax.Array, *values: jax.Array) -> list[jax.Array]:
        wrapped = (Buffer(value) if value.ndim else value for value in values)
        shared, carry = structure.unflatten(wrapped)
        with memory.one_search(target):
            end = memory.fori_loop(num_steps, lambda i, carry: body(i, shared, carry), carry)
        return [_array(leaf) for leaf in jax.tree.leaves(end)]

    number = jax.ShapeDtypeStruct((), jnp.int32)
    return Program(
        jax.make_jaxpr(run)(number, *leaves), tuple(bool(leaf.shape) for leaf in carried)
    )
