# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
"""Reading and writing buffers, lanes, branches and loops: what portable code calls.

Under XLA a buffer is an array and a write returns the new array. In a kernel a buffer is memory, a
write happens in place, and the buffer after it is returned; so code that continues with what
`store` returned is right in both worlds. Lanes handle elements or moves, several at a time:
under XLA they are an axis; in a kernel the threads of a warp, which read one another's values only
by reducing them.

What runs portable code says by `one_search` for which target it is traced, around the call that
traces it. To hand that on as an argument would put it into every function that a user writes, so a
context variable holds it, which is reset when that call ends. What is compiled keeps what it was
traced for. JAX does not see it: a function that it caches, such as one under `jax.jit`, must not be
traced once for one target and used for another.
"""

import contextlib
import contextvars
from collections.abc import Callable, Generator
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxopt_search.backends.backend import (
    IN_BOUNDS,
    LANES,
    Backend,
    Index,
    named,
    power_of_two,
)

__all__ = [
    "IN_BOUNDS",
    "LANES",
    "Index",
    "after",
    "computed_once",
    "copy",
    "each",
    "each_index",
    "fori_loop",
    "is_alone",
    "is_in_kernel",
    "is_native",
    "lanes",
    "load",
    "number_before",
    "one_search",
    "overwrite",
    "pick",
    "power_of_two",
    "settled",
    "store",
    "target",
    "when",
    "while_loop",
]

Tree = TypeVar("Tree")

_XLA: Backend = named("xla")
_target: contextvars.ContextVar[Backend] = contextvars.ContextVar("target", default=_XLA)


@contextlib.contextmanager
def one_search(implementation: str) -> Generator[None]:
    """Declares that portable code traced within handles one search, or one state, by itself.

    Args:
      implementation: `"native"`, `"cuda"` or `"interpret"`.

    Example:
      >>> with one_search("native"):
      ...     is_alone(), is_native(), is_in_kernel()
      (True, True, False)
    """
    token = _target.set(named(implementation))
    try:
        yield
    finally:
        _target.reset(token)


def target() -> Backend:
    """Returns the target that code is traced for.

    Example:
      >>> type(target()).__name__
      'XLA'
    """
    return _target.get()


def _handler(buffer: Any) -> Backend:
    """Returns what reads and writes a buffer: the target; or XLA, of an array in a kernel."""
    own = target()
    return own if own.takes(buffer) else _XLA


def is_in_kernel() -> bool:
    """Returns whether a kernel is traced, interpreted or for a GPU.

    Example:
      >>> with one_search("interpret"):
      ...     is_in_kernel()
      True
      >>> is_in_kernel()
      False
    """
    return target().is_kernel


def is_native() -> bool:
    """Returns whether a search runs by itself on a CPU, compiled as one function.

    Example:
      >>> with one_search("native"):
      ...     is_native()
      True
      >>> is_native()
      False
    """
    return target().is_native


def is_alone() -> bool:
    """Returns whether portable code that is traced handles one search, or one state, by itself.

    Example:
      >>> with one_search("native"):
      ...     is_alone()
      True
      >>> is_alone()
      False
    """
    return target().is_alone


def load(buffer: Any, index: Index, where: jax.Array | None = None) -> jax.Array:
    """Returns `buffer[index]`.

    Args:
      buffer: [n] or [rows, columns] array or buffer.
      index: integers of any shape; of a buffer of two axes, a pair of them, broadcast.
      where: bool, of the shape of the index: where it is in range, and anything may be returned
        elsewhere. None for everywhere.

    Example:
      >>> load(jnp.array([5, 6, 7]), jnp.array([2, 0])).tolist()
      [7, 5]
    """
    return _handler(buffer).load(buffer, index, where)


def store(buffer: Any, index: Index, value: jax.Array, where: jax.Array) -> Any:
    """Returns `buffer` with `value` at `index` where `where` holds.

    Under `vmap` a conditional computes both sides, so a rejected scalar write puts back what was
    there: that touches one element and keeps the update in place.

    Args:
      buffer: [n] or [rows, columns] array or buffer.
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
    parts = index if isinstance(index, tuple) else (index,)
    if not jnp.ndim(parts[-1]):
        return _handler(buffer).store(buffer, index, value, where)
    shape = jnp.broadcast_shapes(*map(jnp.shape, parts))
    value, where = jnp.broadcast_to(value, shape), jnp.broadcast_to(where, shape)
    return _handler(buffer).store_lanes(buffer, parts, value, where)


def copy(destination: Any, source: Any, where: jax.Array) -> Any:
    """Returns `destination`, overwritten by `source` where the scalar `where` holds.

    Args:
      destination: a pytree of arrays or buffers.
      source: a pytree of the same structure, shapes and dtypes.
      where: [] bool.

    Example:
      >>> copy(jnp.array([0, 0]), jnp.array([5, 6]), jnp.bool_(True)).tolist()
      [5, 6]
    """

    def copy_all(destination: Any, where: jax.Array) -> Any:
        return jax.tree.map(
            lambda old, new: _handler(old).copy(old, new, where), destination, source
        )

    return when(where, copy_all, destination)


def settled(buffer: Any) -> Any:
    """Returns a buffer for reading elements that are not written to from here on; portable.

    A kernel then reads them between writes to others, for which it would else have to wait.

    Example:
      >>> settled(jnp.array([5, 6])).tolist()
      [5, 6]
    """
    return _handler(buffer).settled(buffer)


def when(
    where: jax.Array,
    change: Callable[[Any, jax.Array], Any],
    tree: Any,
    *,
    all_alike: bool = False,
    in_place: bool = False,
) -> Any:
    """Returns `change(tree, where)`, which must be `tree` itself unless the scalar `where` holds.

    Costs nothing where `where` does not hold, if there are branches: where a search runs by itself.
    Where all run side by side it is left to masks. Buffers are written in place.

    Args:
      where: [] bool.
      change: writes to the buffers of a pytree where its second argument holds, and returns them.
      tree: a pytree of arrays, buffers and scalars.
      all_alike: whether `where` is the same for all searches, so that they can branch together.
      in_place: whether a search by itself on a CPU loops, once or never, in place of a branch: XLA
        copies whole buffers that a branch writes to, but a branch is faster where they are small.

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
    if in_place and is_native():
        num = where.astype(jnp.int32)
        return fori_loop(num, lambda _, tree: change(tree, jnp.bool_(True)), tree)
    return target().when(where, change, tree)


def fori_loop(num: jax.Array, body: Callable[[jax.Array, Any], Any], tree: Any) -> Any:
    """Returns `tree` after `body(i, tree)` for i = 0 to `num` - 1; buffers are written in place.

    Args:
      num: [] int32.
      body: returns a tree of the same types and shapes, with the same buffers in it.
      tree: a pytree of arrays, buffers and scalars.

    Example:
      >>> int(fori_loop(jnp.int32(4), lambda i, total: total + i, jnp.int32(0)))
      6
    """
    return target().fori_loop(num, body, tree)


def while_loop(
    goes_on: Callable[[Any], jax.Array],
    change: Callable[[Any, jax.Array], Any],
    tree: Any,
) -> Any:
    """Returns `tree` after `change(tree, where)` while `goes_on(tree)` holds; written in place.

    Searches side by side go on together until none does any more.

    Args:
      goes_on: returns [] bool; reads no buffers.
      change: as in `when`: it must return `tree` itself unless the scalar `where` holds.
      tree: a pytree of arrays, buffers and scalars.

    Example:
      >>> def halve(number, where):
      ...     return jnp.where(where, number // 2, number)
      >>> with one_search("native"):
      ...     int(while_loop(lambda number: number > 5, halve, jnp.int32(40)))
      5
    """
    return target().while_loop(goes_on, change, tree)


def number_before(where: jax.Array) -> jax.Array:
    """Returns in how many of the lanes before each one `where` holds, int32; for `each_index`.

    Args:
      where: bool, [M] or [].

    Example:
      >>> number_before(jnp.array([True, False, True])).tolist()
      [0, 1, 1]
    """
    return target().number_before(where)


def each_index(
    num: jax.Array,
    max_num: int,
    body: Callable[[jax.Array, jax.Array, Any], Any],
    tree: Any,
    tile: int = LANES,
) -> Any:
    """Returns `tree` after `body(index, where, tree)` for indices 0 to `num` - 1; portable.

    As many at a time as suits the target: all of them where searches run side by side, one after
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
    return target().each_index(num, max_num, body, tree, tile)


def lanes(number: int) -> jax.Array:
    """Returns the numbers of at least `number` lanes, [lanes] int32.

    More where that runs faster or has to be: a power of two in a kernel, and a full warp if they
    are several; a multiple of eight in a search by itself on a CPU.

    Example:
      >>> lanes(3).tolist()
      [0, 1, 2]
      >>> with one_search("native"):
      ...     lanes(3).tolist()
      [0, 1, 2, 3, 4, 5, 6, 7]
    """
    return lax.iota(jnp.int32, target().num_lanes(number))


def pick(tree: Any, lane: jax.Array) -> Any:
    """Returns the values that one lane holds.

    Args:
      tree: leaves [M], one value per lane.
      lane: [] int32 in range.

    Example:
      >>> pick({"delta": jnp.array([4, -2, 7])}, jnp.int32(1))
      {'delta': Array(-2, dtype=int32)}
    """
    return jax.tree.map(lambda values: target().pick(values, lane), tree)


def each(fn: Callable[[Any, Any], Any], shared: Any, lanes: Any) -> Any:
    """Returns `fn(shared, lane)` of each lane: plain JAX, which may make arrays of its own.

    In a kernel each thread runs it by itself, entry after entry; elsewhere it is a `vmap`.

    Args:
      fn: maps a pytree of arrays and the numbers of one lane to a pytree of numbers.
      shared: a pytree of arrays, buffers and numbers, which all lanes read.
      lanes: a pytree of leaves [M], or of numbers for one result.

    Example:
      >>> table = jnp.array([5, 6, 7])
      >>> each(lambda table, k: jnp.sum(table[: 2]) * k, table, lanes(3)).tolist()
      [0, 11, 22]
    """
    return target().each(fn, shared, lanes)


def overwrite(tree: Any, fn: Callable[[Any], Any], shared: Any, where: jax.Array) -> Any:
    """Returns `fn(shared)` in the buffers of `tree` where the scalar `where` holds, else `tree`.

    Args:
      tree: a pytree of arrays, buffers and numbers.
      fn: plain JAX, which returns a tree of the same structure, shapes and dtypes.
      shared: a pytree that `fn` reads, `tree` among it.
      where: [] bool.

    Example:
      >>> order = jnp.array([5, 6, 7])
      >>> overwrite(order, lambda order: order[::-1], order, jnp.bool_(True)).tolist()
      [7, 6, 5]
    """
    return target().overwrite(tree, fn, shared, where)


def computed_once(tree: Tree) -> Tree:
    """Returns arrays as they are, but XLA on a GPU computes them no second time; portable.

    Else it does so in each of the kernels that use them, which take the longer to compile.

    Args:
      tree: a pytree of arrays, any shapes.

    Example:
      >>> import jax.numpy as jnp
      >>> computed_once(jnp.arange(3)).tolist()
      [0, 1, 2]
    """
    return target().computed_once(tree)


def after(where: jax.Array, done: Any) -> jax.Array:
    """Returns the truth value `where`, on a CPU not before `done` is computed; portable.

    XLA for CPUs copies a buffer that is written to, unless what is read of it is known to be read
    first. Where `done` was made from the buffer, a write under this `where` comes after that.

    Args:
      where: [] bool.
      done: a pytree of arrays or buffers, each with an element.

    Example:
      >>> numbers = jnp.array([5, 6])
      >>> where = after(jnp.bool_(True), load(numbers, jnp.int32(0)))
      >>> store(numbers, jnp.int32(0), jnp.int32(7), where).tolist()
      [7, 6]
    """
    return target().after(where, done)


PACKED_BELOW = 2**16


class Pairs(NamedTuple):
    """[n] pairs of numbers, read together where they fit into one word.

    Random accesses are what limits the speed of moves on a GPU, so that one in place of two counts.

    Attributes:
      first: [n] int32 or float32; if packed, uint32 with the first number in the lower half of the
        bits and the second one in the upper half.
      second: [n], of the same dtype; None if packed.
    """

    first: jax.Array
    second: jax.Array | None


def pack(first: Any, second: Any) -> Pairs:
    """Returns pairs of integers from 0 to 2**16 - 1, packed; of JAX or of NumPy."""
    upper = second.astype(np.uint32) << np.uint32(16)
    return Pairs(first.astype(np.uint32) | upper, None)


def load_pair(pairs: Pairs, index: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns the two numbers at `index`, int32 or float32; portable."""
    first = load(pairs.first, index)
    if pairs.second is not None:
        return first, load(pairs.second, index)
    lower, upper = first & jnp.uint32(PACKED_BELOW - 1), first >> jnp.uint32(16)
    return lower.astype(jnp.int32), upper.astype(jnp.int32)
