# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
"""Reading and writing buffers, the same for arrays under XLA and for refs inside a Pallas kernel.

Under XLA a buffer is an array and a write returns the new array. In a kernel a buffer is a
`jax.Ref`, a write happens in place, and the ref itself is returned; so code that continues with
what `store` returned is right in both worlds.

Where one search runs by itself, in a kernel or one after the other, `when` branches; where all run
side by side, `when` leaves it to masks. `backend` says how these functions know where they are;
`lanes` has those that need no buffer. Both are part of this module, too.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search.backends import loops
from jaxopt_search.backends.backend import (
    Backend,
    compiled_apart,
    computed_once,
    in_turns,
    is_alone,
    is_in_kernel,
    is_native,
    is_on_gpu,
    one_search,
    takes_turns,
)
from jaxopt_search.backends.lanes import LANES, each_lane, lanes, pick, power_of_two, row

__all__ = [
    "LANES",
    "Backend",
    "Index",
    "barrier",
    "compiled_apart",
    "computed_once",
    "copy",
    "each_index",
    "each_lane",
    "fori_loop",
    "in_turns",
    "is_alone",
    "is_in_kernel",
    "is_native",
    "lanes",
    "load",
    "one_search",
    "pick",
    "power_of_two",
    "row",
    "store",
    "takes_turns",
    "when",
]

Index: TypeAlias = jax.Array | tuple[jax.Array, ...]
"""Where in a buffer of one axis or of two."""

IN_BOUNDS: Any = {"mode": "promise_in_bounds", "wrap_negative_indices": False}
"""For `get`, `set` and `add` of an array where indices are in range."""


def barrier() -> None:
    """Orders reads and writes of different lanes: all before come before all after.

    Example:
      >>> def turned(buffer):
      ...     lane = lanes(3)
      ...     value = load(buffer, (lane + 1) % 3)
      ...     barrier()  # every lane has read before one writes
      ...     return store(buffer, lane, value, lane < 3)
      >>> turned(jnp.array([5, 6, 7])).tolist()
      [6, 7, 5]
    """
    if is_on_gpu():
        from jax.experimental.pallas import triton

        triton.debug_barrier()


def load(buffer: Any, index: Index, where: jax.Array | None = None) -> jax.Array:
    """Returns `buffer[index]`.

    Args:
      buffer: [n] or [rows, columns] array or ref.
      index: integers of any shape; of a buffer of two axes, a pair of them, broadcast.
      where: bool, of the shape of the index: where it is in range, and anything may be returned
        elsewhere. None for everywhere.

    Example:
      >>> load(jnp.array([5, 6, 7]), jnp.array([2, 0])).tolist()
      [7, 5]
    """
    if not isinstance(buffer, jax.Ref):
        how = IN_BOUNDS if where is None else {**IN_BOUNDS, "mode": "clip"}
        if isinstance(index, tuple) and where is None and jnp.ndim(index[-1]):
            # One index instead of two is faster on a CPU.
            row, column = index
            index, buffer = row * buffer.shape[1] + column, buffer.ravel()
        return buffer.at[index].get(**how)
    if where is None:
        return buffer[index]
    if is_on_gpu():
        from jax.experimental.pallas import triton

        return triton.load(buffer.at[index], mask=where, other=jnp.zeros((), buffer.dtype))
    pairs = zip(index if isinstance(index, tuple) else (index,), buffer.shape, strict=True)
    return buffer[tuple(jnp.minimum(one, size - 1) for one, size in pairs)]


def store(buffer: Any, index: Index, value: jax.Array, where: jax.Array) -> Any:
    """Returns `buffer` with `value` at `index` where `where` holds.

    Under `vmap` a conditional computes both sides, so a rejected scalar write puts back what was
    there: that touches one element and keeps the update in place.

    Args:
      buffer: [n] or [rows, columns] array or ref.
      index: [] integer in range, or integers of any shape, in range and different where `where`
        holds; of a buffer of two axes, a pair of these, broadcast.
      value: [] or of that shape, converted to the dtype of `buffer`.
      where: bool, likewise.

    Example:
      >>> buffer = jnp.array([5, 6, 7])
      >>> store(buffer, jnp.int32(1), 0, jnp.bool_(True)).tolist()
      [5, 0, 7]
      >>> store(buffer, jnp.int32(1), 0, jnp.bool_(False)).tolist()
      [5, 6, 7]
    """
    value = jnp.asarray(value, buffer.dtype)
    if jnp.ndim(index[-1] if isinstance(index, tuple) else index):
        return _store_lanes(buffer, index, value, where)
    value = jnp.where(where, value, load(buffer, index))
    if isinstance(buffer, jax.Ref):
        buffer[index] = value
        return buffer
    return buffer.at[index].set(value, **IN_BOUNDS)


def _store_lanes(buffer: Any, index: Index, value: jax.Array, where: jax.Array) -> Any:
    *row, lanes = index if isinstance(index, tuple) else (index,)
    shape = jnp.broadcast_shapes(*(jnp.shape(part) for part in (*row, lanes)))
    value, where = jnp.broadcast_to(value, shape), jnp.broadcast_to(where, shape)
    # A lane that is masked out must not write at all: another lane may own its element. The
    # interpreter has no such store.
    if isinstance(buffer, jax.Ref) and is_on_gpu():
        from jax.experimental.pallas import triton

        triton.store(buffer.at[index], value, mask=where)
        return buffer
    if is_native():
        # One after the other is as fast there, and compiles as one function.
        def one(lane: jax.Array, buffer: jax.Array) -> jax.Array:
            return store(buffer, (*row, lanes[lane]), value[lane], where[lane])

        return loops.fori_loop(0, lanes.shape[0], one, buffer)
    array = buffer[...] if isinstance(buffer, jax.Ref) else buffer
    kept = jnp.where(where, lanes, array.shape[-1])
    array = array.at[(*row, kept)].set(value, **{**IN_BOUNDS, "mode": "drop"})
    if isinstance(buffer, jax.Ref):
        buffer[...] = array
        return buffer
    return array


def when(
    where: jax.Array,
    change: Callable[[Any, jax.Array], Any],
    tree: Any,
    *,
    all_alike: bool = False,
) -> Any:
    """Returns `change(tree, where)`, which must be `tree` itself unless the scalar `where` holds.

    Costs nothing where `where` does not hold, if there are branches; refs are written in place.

    Args:
      where: [] bool.
      change: writes to the buffers of a pytree where its second argument holds, and returns them.
      tree: a pytree of arrays, refs and scalars.
      all_alike: whether `where` is the same for all searches, so that they can branch together.

    Example:
      >>> def clear_first(buffer, where):
      ...     return store(buffer, jnp.int32(0), 0, where)
      >>> when(jnp.bool_(True), clear_first, jnp.array([5, 6])).tolist()
      [0, 6]
      >>> when(jnp.bool_(False), clear_first, jnp.array([5, 6])).tolist()
      [5, 6]
    """
    if not is_alone() and not all_alike:
        return change(tree, where)

    values, merge = _split(tree)

    def taken(old: list[Any]) -> list[Any]:
        barrier()
        new = _values_of(change(merge(old), where), like=tree)
        barrier()
        return new

    return merge(lax.cond(where, taken, lambda old: old, values))


def fori_loop(num: jax.Array, body: Callable[[jax.Array, Any], Any], tree: Any) -> Any:
    """Returns `tree` after `body(i, tree)` for i = 0 to `num` - 1; refs are written in place.

    Args:
      num: [] int32.
      body: returns a tree of the same types and shapes, with the same refs in it.
      tree: a pytree of arrays, refs and scalars.

    Example:
      >>> int(fori_loop(jnp.int32(4), lambda i, total: total + i, jnp.int32(0)))
      6
    """
    values, merge = _split(tree)

    def step(i: jax.Array, old: list[Any]) -> list[Any]:
        return _values_of(body(i, merge(old)), like=tree)

    return merge(loops.fori_loop(0, num, step, values))


def each_index(
    num: jax.Array,
    max_num: int,
    body: Callable[[jax.Array, jax.Array, Any], Any],
    tree: Any,
    tile: int = LANES,
) -> Any:
    """Returns `tree` after `body(index, where, tree)` for indices 0 to `num` - 1; portable.

    As many at a time as suits the backend: all of them where searches run side by side, one after
    the other in a search by itself on a CPU, and a tile at a time in a kernel. The result may not
    depend on that: what `body` writes for an index it reads for no other.

    Args:
      num: [] int32.
      max_num: static, no lower.
      body: gets indices, [] or [M] int32, and where they are below `num`, bool of that shape; it
        returns `tree` with its buffers written there and nowhere else.
      tree: as in `fori_loop`.
      tile: indices that a kernel handles at once, a power of two.

    Example:
      >>> def double(index, where, buffer):
      ...     return store(buffer, index, 2 * load(buffer, index, where), where)
      >>> each_index(jnp.int32(2), 4, double, jnp.array([1, 2, 3, 4])).tolist()
      [2, 4, 3, 4]
    """
    if not is_alone():
        lane = lax.iota(jnp.int32, max_num)
        return body(lane, lane < num, tree)
    if is_native():
        return fori_loop(num, lambda i, tree: body(i, jnp.bool_(True), tree), tree)
    tile = min(tile, power_of_two(max_num))
    lane = lax.iota(jnp.int32, tile)

    def in_tile(number: jax.Array, tree: Any) -> Any:
        index = number * tile + lane
        return body(index, index < num, tree)

    return fori_loop(lax.div(num + (tile - 1), jnp.int32(tile)), in_tile, tree)


def _split(tree: Any) -> tuple[list[Any], Callable[[list[Any]], Any]]:
    """Returns the leaves of `tree` that are not refs, and a function that puts others there."""
    leaves, structure = jax.tree.flatten(tree)

    def merge(values: list[Any]) -> Any:
        rest = iter(values)
        return structure.unflatten(
            leaf if isinstance(leaf, jax.Ref) else next(rest) for leaf in leaves
        )

    return [leaf for leaf in leaves if not isinstance(leaf, jax.Ref)], merge


def _values_of(tree: Any, like: Any) -> list[Any]:
    """Returns the leaves of `tree` that are not refs, if its refs are the same as in `like`."""
    leaves = jax.tree.leaves(tree)
    for (path, old), new in zip(jax.tree.leaves_with_path(like), leaves, strict=True):
        if isinstance(old, jax.Ref) and new is not old:
            raise TypeError(
                f"the buffer state{jax.tree_util.keystr(path)} was replaced, expected the buffer"
                " itself, as `store` returns it"
            )
    return [leaf for leaf in leaves if not isinstance(leaf, jax.Ref)]


def copy(destination: Any, source: Any, where: jax.Array) -> Any:
    """Returns `destination`, overwritten by `source` where the scalar `where` holds.

    Args:
      destination: a pytree of arrays or refs.
      source: a pytree of the same structure, shapes and dtypes.
      where: [] bool.

    Example:
      >>> copy(jnp.array([0, 0]), jnp.array([5, 6]), jnp.bool_(True)).tolist()
      [5, 6]
    """

    def copy_all(destination: Any, where: jax.Array) -> Any:
        return jax.tree.map(lambda old, new: _copy_leaf(old, new, where), destination, source)

    return when(where, copy_all, destination)


def _copy_leaf(destination: Any, source: Any, where: jax.Array) -> Any:
    if not isinstance(destination, jax.Ref):
        return jnp.where(where, source, destination)
    (n,) = destination.shape
    tile = lax.iota(jnp.int32, LANES)

    def copy_tile(number: jax.Array, carry: None) -> None:
        # Lanes past the end copy the last element once more, which needs no mask.
        index = jnp.minimum(number * LANES + tile, n - 1)
        destination[index] = source[index]

    # Pallas-Triton takes a choice between two Python numbers to be one between bools.
    num_tiles = jnp.where(where, jnp.int32(-(-n // LANES)), jnp.int32(0))
    loops.fori_loop(0, num_tiles, copy_tile, None)
    return destination
