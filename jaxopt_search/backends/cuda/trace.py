# pyright: basic
"""What a program of a kernel does, as a jaxpr in which accesses of memory are operations.

A buffer is an array wrapped by `Buffer`, so that portable code hands it on as it does under XLA:
a write returns the buffer as it is afterwards. `load_p`, `store_p` and `copy_p` are what becomes
of an access; `emit` writes them as reads and writes in place.
"""

import dataclasses
import pathlib
import traceback
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.core import ShapedArray
from jax.extend.core import ClosedJaxpr, Primitive, jaxpr_as_fun

from jaxopt_search.backends import memory
from jaxopt_search.backends.backend import IN_BOUNDS, LANES, Backend, Index, power_of_two

_JAX, _OURS = (str(pathlib.Path(file).parent) for file in (jax.__file__, memory.__file__))

load_p, store_p = Primitive("load"), Primitive("store")
pick_p, settled_p = Primitive("pick"), Primitive("settled")
copy_p = Primitive("copy_buffer")  # JAX has a `copy` of its own
each_p = Primitive("each")
each_p.multiple_results = True


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


@each_p.def_abstract_eval
def _(*operands: Any, jaxpr: Any, num_shared: int) -> Any:
    shape = max((one.shape for one in operands[num_shared:]), key=len, default=())
    return [ShapedArray(shape, aval.dtype) for aval in jaxpr.out_avals]


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
    frames = trace.frames if trace else ()
    return _first_of_others((one.function_name, one.file_name, one.line_num) for one in frames)


def last_function(trace: TracebackType | None) -> str:
    """Returns the innermost function of a traceback that is neither JAX's nor a backend's."""
    frames = [*traceback.walk_tb(trace)][::-1]
    codes = ((frame.f_code, line) for frame, line in frames)
    return _first_of_others((code.co_qualname, code.co_filename, line) for code, line in codes)


def _first_of_others(frames: Iterable[tuple[str, str, int]]) -> str:
    places = (
        f"{function} ({pathlib.Path(file).name}:{line})"
        for function, file, line in frames
        if not file.startswith((_JAX, _OURS))
    )
    return next(places, "")


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


def shapes_of(tree: Any) -> Any:
    """Returns the shapes and dtypes of arrays and numbers."""
    return jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct(jnp.shape(leaf), jnp.result_type(leaf)), tree
    )


class Kernel(Backend):
    """A search in a program of a kernel: code that is traced to be emitted, or interpreted."""

    is_kernel = True

    def takes(self, buffer: Any) -> bool:
        return isinstance(buffer, Buffer)

    def num_lanes(self, number: int) -> int:
        return max(power_of_two(number), LANES) if number > 1 else 1

    def each_index(
        self, num: jax.Array, max_num: int, body: Callable[..., Any], tree: Any, tile: int
    ) -> Any:
        tile = min(tile, power_of_two(max_num))
        lane = lax.iota(jnp.int32, tile)

        def in_tile(number: jax.Array, tree: Any) -> Any:
            index = number * tile + lane
            return body(index, index < num, tree)

        return self.fori_loop(lax.div(num + (tile - 1), jnp.int32(tile)), in_tile, tree)

    def minimum(self, values: jax.Array) -> jax.Array:
        return jnp.min(values)

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

    def each(self, fn: Callable[[Any, Any], Any], shared: Any, lanes: Any) -> Any:
        shared, lanes = jax.tree.map(_array, shared), jax.tree.map(jnp.asarray, lanes)
        one_lane = jax.tree.map(lambda values: jax.ShapeDtypeStruct((), values.dtype), lanes)
        # JAX keeps what it has traced of a function, and this one is new.
        alone = jax.make_jaxpr(lambda *both: fn(*both), return_shape=True)
        jaxpr, result = alone(shapes_of(shared), one_lane)
        if large := [aval.shape for aval in jaxpr.out_avals if aval.shape]:
            raise TypeError(f"a move holds an array of shape {large[0]}, expected numbers")
        jaxpr, held = _taking_constants(jaxpr)
        read = *held, *jax.tree.leaves(shared)
        made = each_p.bind(*read, *jax.tree.leaves(lanes), jaxpr=jaxpr, num_shared=len(read))
        return jax.tree.unflatten(jax.tree.structure(result), made)

    def overwrite(self, tree: Any, fn: Callable[[Any], Any], shared: Any, where: jax.Array) -> Any:
        leaves, structure = jax.tree.flatten(tree)
        new = [self._entries(leaf, i, fn, shared) for i, leaf in enumerate(leaves)]
        for i, (leaf, (place, entries)) in enumerate(zip(leaves, new, strict=True)):
            if isinstance(leaf, Buffer):
                leaves[i] = self.store(leaf, place, entries, where & (place < leaf.size))
            else:
                leaves[i] = jnp.where(where, entries, leaf)
        return structure.unflatten(leaves)

    def _entries(self, leaf: Any, number: int, fn: Callable[[Any], Any], shared: Any) -> Any:
        """Returns the entries of a leaf of `fn(shared)`, a lane each, and where they stand."""
        is_buffer = isinstance(leaf, Buffer)
        place = lax.iota(jnp.int32, self.num_lanes(leaf.size)) if is_buffer else jnp.int32(0)

        def entry(shared: Any, k: jax.Array) -> jax.Array:
            whole = jax.tree.leaves(fn(shared))[number].ravel()
            return whole.at[jnp.minimum(k, whole.size - 1)].get(**IN_BOUNDS)

        return place, self.each(entry, shared, place)

    def when(self, where: jax.Array, change: Callable[[Any, jax.Array], Any], tree: Any) -> Any:
        def changed(now: Any, _: jax.Array) -> Any:
            return _arrays_of(tree, change(_buffers_of(tree, now), where))

        return _buffers_of(tree, super().when(where, changed, _arrays_of(tree, tree)))

    def fori_loop(self, num: Any, body: Callable[[jax.Array, Any], Any], tree: Any) -> Any:
        def step(i: jax.Array, now: Any) -> Any:
            return _arrays_of(tree, body(i, _buffers_of(tree, now)))

        return _buffers_of(tree, super().fori_loop(num, step, _arrays_of(tree, tree)))

    def while_loop(
        self, goes_on: Callable[[Any], Any], change: Callable[[Any, jax.Array], Any], tree: Any
    ) -> Any:
        def step(now: Any, where: jax.Array) -> Any:
            return _arrays_of(tree, change(_buffers_of(tree, now), where))

        def is_next(now: Any) -> Any:
            return goes_on(_buffers_of(tree, now))

        return _buffers_of(tree, super().while_loop(is_next, step, _arrays_of(tree, tree)))


def _buffers_of(tree: Any, arrays: Any) -> Any:
    """Returns arrays as buffers where `tree` has buffers."""
    return jax.tree.map(
        lambda old, new: Buffer(new) if isinstance(old, Buffer) else new, tree, arrays
    )


def _arrays_of(tree: Any, changed: Any) -> Any:
    """Returns the arrays of what `tree` has become, with buffers where it has them."""
    for (path, old), leaf in zip(
        jax.tree.leaves_with_path(tree), jax.tree.leaves(changed), strict=True
    ):
        if isinstance(old, Buffer) and not isinstance(leaf, Buffer):
            raise TypeError(
                f"the buffer state{jax.tree_util.keystr(path)} was replaced, expected the"
                " buffer itself, as `store` returns it"
            )
    return jax.tree.map(_array, changed)


def _flat(buffer: Buffer, index: Index) -> jax.Array:
    """Returns indices of a buffer's elements, row by row."""
    if not isinstance(index, tuple):
        return jnp.asarray(index)
    if len(index) == 1:
        return jnp.asarray(index[0])
    row, column = index
    return jnp.asarray(row).astype(jnp.int32) * jnp.int32(buffer.shape[1]) + column


def _taking_constants(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, list[Any]]:
    """Returns a jaxpr that is given the arrays it holds before its other operands, and these."""
    number = len(closed.consts)
    if not number:
        return closed, []

    def run(*operands: jax.Array) -> list[jax.Array]:
        return jaxpr_as_fun(ClosedJaxpr(closed.jaxpr, operands[:number]))(*operands[number:])

    avals = *map(jax.typeof, closed.consts), *closed.in_avals
    shapes = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in avals]
    return jax.make_jaxpr(run)(*shapes), closed.consts


def trace(
    body: Callable[[jax.Array, Any, Any], Any], shared: Any, carry: Any, target: str
) -> tuple[ClosedJaxpr, list[Any]]:
    """Returns the program that makes steps, and the arrays that its code holds.

    A program maps these arrays, the number of steps, the leaves of what is read, and those of what
    is carried to the latter after these steps. What has an axis is a buffer.

    Args:
      body: maps the number of a step, what is read and what is carried to the latter.
      shared, carry: pytrees of the shapes and dtypes that one program sees.
      target: the name of the target.
    """

    def run(num_steps: jax.Array, *own: Any) -> Any:
        shared, carry = jax.tree.map(lambda one: Buffer(one) if one.ndim else one, own)
        with memory.one_search(target):
            end = memory.fori_loop(num_steps, lambda i, carry: body(i, shared, carry), carry)
        return jax.tree.map(_array, end)

    number = jax.ShapeDtypeStruct((), jnp.int32)
    return _taking_constants(jax.make_jaxpr(run)(number, shared, carry))
