# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
"""Targets of portable code: what a load, a branch or a loop is where the code runs.

The same portable code means different operations under XLA, in a loop on a CPU, and in a kernel.
`memory` has the functions that portable code calls; each is a method of the class of the target
for which the code is traced. `Backend` has them for arrays, `Kernel` for buffers in a kernel.
A target is a class, in `native` or `cuda.launch`, registered in the `BACKENDS` of its file.
"""

import functools
import importlib
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search.backends import loops

Tree = TypeVar("Tree")
Index: TypeAlias = jax.Array | tuple[jax.Array, ...]
"""Where in a buffer of one axis or of two."""

LANES = 32
"""Elements that `copy` and moves of many elements handle at once, a warp's number of threads."""

IN_BOUNDS: Any = {"mode": "promise_in_bounds", "wrap_negative_indices": False}
"""For `get`, `set` and `add` of an array where indices are in range."""

_PARTS = 8  # of a table, which are compared side by side on a CPU


def power_of_two(number: int) -> int:
    """Returns the least power of two that is at least `number`.

    Example:
      >>> power_of_two(5), power_of_two(8)
      (8, 8)
    """
    return 1 << (number - 1).bit_length()


class Backend:
    """A target of portable code; the functions of `memory` say what its methods do.

    Attributes:
      is_alone: whether a search, or a state, runs by itself, so that it can branch.
      is_native: whether it runs on a CPU, compiled as one function.
      is_kernel: whether lanes are a kernel's threads. Then buffers are memory, lanes are powers of
        two, and tables are handled block by block.
    """

    is_alone = True
    is_native = False
    is_kernel = False

    def load(self, buffer: Any, index: Index, where: jax.Array | None) -> jax.Array:
        how = IN_BOUNDS if where is None else {**IN_BOUNDS, "mode": "clip"}
        if isinstance(index, tuple) and where is None and jnp.ndim(index[-1]):
            # One index instead of two is faster on a CPU.
            row, column = index
            index, buffer = row.astype(jnp.int32) * buffer.shape[1] + column, buffer.ravel()
        return buffer.at[index].get(**how)

    def store(self, buffer: Any, index: Index, value: jax.Array, where: jax.Array) -> Any:
        """Like `memory.store` of a scalar."""
        value = jnp.where(where, value, self.load(buffer, index, None))
        return buffer.at[index].set(value, **IN_BOUNDS)

    def store_lanes(self, buffer: Any, index: Any, value: jax.Array, where: jax.Array) -> Any:
        """Like `memory.store` of lanes.

        Args:
          index: a tuple, the last one of it that of lanes.
          value, where: of the shape to which the index is broadcast.
        """
        *row, lanes = index
        kept = jnp.where(where, lanes, buffer.shape[-1])
        return buffer.at[(*row, kept)].set(value, **{**IN_BOUNDS, "mode": "drop"})

    def copy(self, destination: Any, source: Any, where: jax.Array) -> Any:
        """Like `memory.copy` of a leaf."""
        return jnp.where(where, source, destination)

    def takes(self, buffer: Any) -> bool:
        """Returns whether a buffer is its own to read and write; arrays in a kernel are `XLA`'s."""
        return True

    def settled(self, buffer: Any) -> Any:
        return buffer

    def when(self, where: jax.Array, change: Callable[[Any, jax.Array], Any], tree: Any) -> Any:
        """Like `memory.when` with a branch."""
        return lax.cond(where, lambda old: change(old, where), lambda old: old, tree)

    def fori_loop(self, num: Any, body: Callable[[jax.Array, Any], Any], tree: Any) -> Any:
        return loops.fori_loop(0, num, body, tree)

    def while_loop(
        self, goes_on: Callable[[Any], Any], change: Callable[[Any, jax.Array], Any], tree: Any
    ) -> Any:
        """Like `memory.while_loop`."""
        return loops.while_loop(goes_on, lambda tree: change(tree, jnp.bool_(True)), tree)

    def each_index(
        self, num: jax.Array, max_num: int, body: Callable[..., Any], tree: Any, tile: int
    ) -> Any:
        lane = lax.iota(jnp.int32, max_num)
        return body(lane, lane < num, tree)

    def number_before(self, where: jax.Array) -> jax.Array:
        """Like `memory.number_before`."""
        own = where.astype(jnp.int32)
        return jnp.cumsum(own) - own if own.ndim else jnp.zeros_like(own)

    def num_lanes(self, number: int) -> int:
        """Returns how many lanes `memory.lanes` has for this many."""
        return number

    def pick(self, values: jax.Array, lane: jax.Array) -> jax.Array:
        return lax.dynamic_index_in_dim(values, lane, keepdims=False, allow_negative_indices=False)

    def each(self, fn: Callable[[Any, Any], Any], shared: Any, lanes: Any) -> Any:
        one = functools.partial(fn, shared)
        for _ in range(max(map(jnp.ndim, jax.tree.leaves(lanes)), default=0)):
            one = jax.vmap(one)
        return one(lanes)

    def overwrite(self, tree: Any, fn: Callable[[Any], Any], shared: Any, where: jax.Array) -> Any:
        return jax.tree.map(functools.partial(jnp.where, where), fn(shared), tree)

    def minimum(self, values: jax.Array) -> jax.Array:
        """Returns the minimum. Parts of a table are compared first, which vectorizes on a CPU."""
        rows = values.shape[0]
        if values.ndim == 1 or rows < 2 * _PARTS:
            return jnp.min(values.ravel())
        length = -(-rows // _PARTS)
        starts = (min(part * length, rows - length) for part in range(_PARTS))
        return jnp.min(functools.reduce(jnp.minimum, (values[i : i + length] for i in starts)))

    def computed_once(self, tree: Tree) -> Tree:
        return tree

    def after(self, where: jax.Array, done: Any) -> jax.Array:
        return where


class XLA(Backend):
    """Searches side by side, by `vmap`: branches are left to masks."""

    is_alone = False

    def while_loop(
        self, goes_on: Callable[[Any], Any], change: Callable[[Any, jax.Array], Any], tree: Any
    ) -> Any:
        # All go on until the last one ends: else XLA would copy what each of them carries.
        return loops.while_loop(
            lambda tree: _of_any(goes_on(tree)), lambda tree: change(tree, goes_on(tree)), tree
        )

    def computed_once(self, tree: Tree) -> Tree:
        return lax.optimization_barrier(tree)


@jax.custom_batching.custom_vmap
def _of_any(where: jax.Array) -> jax.Array:
    """Returns whether a scalar holds in any of the searches side by side."""
    return where


@_of_any.def_vmap
def _(axis_size: int, in_batched: list[bool], where: jax.Array) -> tuple[jax.Array, bool]:
    return jnp.any(where, axis=0) if in_batched[0] else where, False


@functools.cache
def named(implementation: str) -> Any:
    """Returns the target of an implementation, from the file of its name.

    Example:
      >>> named("native").is_alone, named("xla").is_alone, named("interpret").is_kernel
      (True, False, True)
    """
    if implementation == "xla":
        return XLA()
    file = "native" if implementation == "native" else "cuda.launch"
    module = importlib.import_module(f"jaxopt_search.backends.{file}")
    return module.BACKENDS[implementation]
