"""Elementwise code over the entries of tables; portable.

A table is a buffer [rows, columns]. Under XLA its entries are handled all at once; in a kernel row
by row, a lane per column; and where lanes take turns (`memory.in_turns`), one after the other.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search import memory
from jaxopt_search.memory import load, store
from jaxopt_search.types import null_delta

Shape: TypeAlias = tuple[int, int]
"""Rows and columns."""
Values: TypeAlias = tuple[jax.Array, ...]
Body: TypeAlias = Callable[[jax.Array, jax.Array, Any, Values], Values]
"""Maps rows, columns, what was prepared of the columns, and the tables' entries there."""
Prepare: TypeAlias = Callable[[jax.Array], Any]
"""Maps columns to what is needed of each in all rows; computed once where that is possible."""

_PARTS = 8


class First(NamedTuple):
    """The entry that comes first.

    Attributes:
      keys: [] each.
      number: [] int32, row * columns + column.
    """

    keys: Values
    number: jax.Array


def _nothing(column: jax.Array) -> None:
    return None


def update(
    shape: Shape, body: Body, tables: Any, where: jax.Array, prepare: Prepare = _nothing
) -> Any:
    """Returns the tables after `body`, if the scalar `where` holds.

    Args:
      shape: of the tables.
      body: returns the new entries. It may read the tables themselves at entries that stay as they
        are.
      tables: a tuple of buffers.
      where: [] bool.
      prepare: gives the third argument of `body`.
    """
    if not _at_once():
        return _update_in_blocks(jnp.int32(0), shape, body, tables, where, prepare)
    row, column = _rows_and_columns(shape)
    new = body(row, column, prepare(column), tables)
    return tuple(jnp.where(where, *pair) for pair in zip(new, tables, strict=True))


def update_row(row: jax.Array, columns: int, body: Body, tables: Any, where: jax.Array) -> Any:
    """Returns what `update` does, but for the entries of one row only."""
    if not _at_once():
        return _update_in_blocks(row, (1, columns), body, tables, where, _nothing)
    old = tuple(lax.dynamic_index_in_dim(table, row, keepdims=False) for table in tables)
    new = body(row, lax.iota(jnp.int32, columns), None, old)
    return tuple(
        lax.dynamic_update_index_in_dim(table, jnp.where(where, *pair), row, 0)
        for table, *pair in zip(tables, new, old, strict=True)
    )


def first(shape: Shape, keys_of: Body, tables: Any) -> First:
    """Returns the entry with the lowest keys, compared one after the other; the first of equals.

    Args:
      shape: of the tables.
      keys_of: returns the keys of entries.
      tables: a tuple of buffers.
    """
    nowhere = jnp.int32(shape[0] * shape[1])
    if _at_once():
        row, column = _rows_and_columns(shape)
        keys = tuple(jnp.broadcast_to(key, shape) for key in keys_of(row, column, None, tables))
        return _first_of(First(keys, row * shape[1] + column), nowhere)
    num_blocks, block = _blocks(jnp.int32(0), shape, _nothing)

    def entries(i: jax.Array) -> First:
        row, column, prepared, is_real = block(i)
        keys = keys_of(row, column, prepared, _entries(tables, row, column))
        keys = tuple(jnp.where(is_real, key, null_delta(key.dtype)) for key in keys)
        return First(keys, jnp.where(is_real, row * shape[1] + column, nowhere))

    def compare(i: jax.Array, best: First) -> First:
        found = entries(i + 1)
        is_lower = _is_lower(found.keys, best.keys)
        return jax.tree.map(lambda new, old: jnp.where(is_lower, new, old), found, best)

    best = memory.fori_loop(jnp.int32(num_blocks - 1), compare, entries(jnp.int32(0)))
    return _first_of(best, nowhere) if best.number.ndim else best


def _at_once() -> bool:
    return not (memory.is_in_kernel() or memory.takes_turns())


def _rows_and_columns(shape: Shape) -> tuple[jax.Array, jax.Array]:
    """Returns [rows, 1] and [1, columns] int32."""
    return lax.iota(jnp.int32, shape[0])[:, None], lax.iota(jnp.int32, shape[1])[None]


def _blocks(first_row: jax.Array, shape: Shape, prepare: Prepare) -> tuple[int, Callable[..., Any]]:
    """Returns the number of blocks of entries to handle together, and what tells the entries.

    That maps the number of a block to the rows, the columns, what was prepared of them, and whether
    they are real: the lanes of a row may be more than its columns.
    """
    rows, columns = shape

    def entry(i: jax.Array) -> Any:
        column = i % columns
        return first_row + i // columns, column, prepare(column), jnp.bool_(True)

    if memory.takes_turns():
        return rows * columns, entry
    lane = memory.lanes(columns)
    column = jnp.minimum(lane, columns - 1)
    prepared = prepare(column)

    def whole_row(i: jax.Array) -> Any:
        return first_row + i, column, prepared, lane < columns

    return rows, whole_row


def _entries(tables: Any, row: jax.Array, column: jax.Array) -> Values:
    return tuple(load(table, (row, column)) for table in tables)


def _update_in_blocks(
    first_row: jax.Array, shape: Shape, body: Body, tables: Any, where: jax.Array, prepare: Prepare
) -> Any:
    num_blocks, block = _blocks(first_row, shape, prepare)

    def update_block(i: jax.Array, tables: Any) -> Any:
        row, column, prepared, is_real = block(i)
        new = body(row, column, prepared, _entries(tables, row, column))
        return tuple(
            store(table, (row, column), value, is_real & where)
            for table, value in zip(tables, new, strict=True)
        )

    return memory.fori_loop(jnp.int32(num_blocks), update_block, tables)


def _first_of(entries: First, nowhere: jax.Array) -> First:
    """Returns the first of several entries."""
    keys, is_first = [], jnp.bool_(True)
    for key in entries.keys:
        lowest = _minimum(jnp.where(is_first, key, null_delta(key.dtype)))
        is_first = is_first & (key == lowest)
        keys.append(lowest)
    return First(tuple(keys), _minimum(jnp.where(is_first, entries.number, nowhere)))


def _minimum(values: jax.Array) -> jax.Array:
    """Returns the minimum. Parts of a table are compared first, which vectorizes on a CPU."""
    rows = values.shape[0]
    if values.ndim == 1 or rows < 2 * _PARTS:
        return jnp.min(values)
    length = -(-rows // _PARTS)
    starts = (min(part * length, rows - length) for part in range(_PARTS))
    return jnp.min(functools.reduce(jnp.minimum, (values[i : i + length] for i in starts)))


def _is_lower(keys: Values, than: Values) -> jax.Array:
    """Returns whether `keys` come before `than`, compared one after the other."""
    is_lower, is_equal = jnp.bool_(False), jnp.bool_(True)
    for key, other in zip(keys, than, strict=True):
        is_lower = is_lower | (is_equal & (key < other))
        is_equal = is_equal & (key == other)
    return is_lower
