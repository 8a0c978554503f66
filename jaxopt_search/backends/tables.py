# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
"""Elementwise code over the entries of tables; portable.

A table is a buffer [rows, columns]. Under XLA its entries are handled all at once; in a kernel
block by block, as `tiling` cuts them; and where lanes take turns (`memory.in_turns`), one by one.
`rows` is for code of whole rows.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search.backends import memory, tiling
from jaxopt_search.backends.entries import (
    NOTHING,
    Block,
    Blocks,
    Body,
    First,
    Place,
    Prepare,
    Values,
    Within,
    all_blocks,
    blocks_of_some,
    first_of,
    row_and_column,
    rows_and_columns,
)
from jaxopt_search.backends.memory import load
from jaxopt_search.backends.tiling import Shape
from jaxopt_search.types import null_delta

__all__ = [
    "Body",
    "First",
    "Place",
    "Prepare",
    "Values",
    "Within",
    "first",
    "first_of_some",
    "in_rows",
    "num_warps",
    "row_and_column",
    "rows_and_columns",
    "update",
    "update_and_first",
    "update_rows",
    "within",
]


def within(rows: Any, columns: Any) -> Within | None:
    """Returns the part of tables that counts; None for all, if both are Python integers."""
    if isinstance(rows, int) and isinstance(columns, int):
        return None
    return Within(jnp.int32(rows), jnp.int32(columns))


def update(
    shape: Shape,
    body: Body,
    tables: Any,
    where: jax.Array,
    prepare: Prepare = NOTHING,
    within: Within | None = None,
) -> Any:
    """Returns the tables after `body`, if the scalar `where` holds.

    Args:
      shape: of the tables.
      body: returns the new entries. It may read the tables themselves at entries that stay as they
        are.
      tables: a tuple of buffers.
      where: [] bool.
      prepare: gives what `body` finds prepared; it may read what `body` may.
      within: the part of the tables that counts; None for all. What `body` and `prepare` give for
        entries outside does not matter.
    """
    if not _at_once():
        return _updated(all_blocks(shape, prepare, within), body, tables, where)
    place = _everywhere(shape, prepare)
    where = where if within is None else where & within.holds(place)
    return tuple(jnp.where(where, *pair) for pair in zip(body(place, tables), tables, strict=True))


def in_rows(buffer: Any, row: jax.Array) -> jax.Array:
    """Returns the entries [row] of a buffer [rows], for `Prepare.of_row`.

    As `load`; but where all rows are handled at once they are not looked up, which is slow on a
    CPU.
    """
    if _at_once() and row.shape == (buffer.shape[0], 1):
        return buffer[:, None]
    return load(buffer, row)


def update_rows(
    rows: tuple[jax.Array, ...],
    columns: int,
    body: Body,
    tables: Any,
    where: jax.Array,
    within: Within | None = None,
) -> Any:
    """Like `update`, but for the entries of a few rows only, which count.

    Args:
      rows: [] int32 each, different ones if `where` holds.
    """
    if not _at_once():
        counts = None if within is None else within._replace(rows=jnp.int32(len(rows)))
        row_of = functools.partial(_row_of, rows)
        blocks = all_blocks((len(rows), columns), NOTHING, counts, row_of)
        return _updated(blocks, body, tables, where)
    for row in rows:
        tables = _with_row(row, columns, body, tables, where, within)
    return tables


def _row_of(rows: tuple[jax.Array, ...], number: jax.Array) -> jax.Array:
    """Returns `rows[number]`."""
    found = jnp.broadcast_to(rows[0], number.shape)
    for k, row in enumerate(rows[1:], start=1):
        found = jnp.where(number == k, row, found)
    return found


def _with_row(
    row: jax.Array,
    columns: int,
    body: Body,
    tables: Any,
    where: jax.Array,
    within: Within | None,
) -> Any:
    """Returns the tables with new entries in a row."""
    old = tuple(lax.dynamic_index_in_dim(table, row, keepdims=False) for table in tables)
    place = Place(row, lax.iota(jnp.int32, columns))
    new, where = body(place, old), where if within is None else where & within.holds(place)
    return tuple(
        lax.dynamic_update_index_in_dim(table, jnp.where(where, *pair), row, 0)
        for table, *pair in zip(tables, new, old, strict=True)
    )


def first(
    shape: Shape,
    keys_of: Body,
    tables: Any,
    prepare: Prepare = NOTHING,
    within: Within | None = None,
) -> First:
    """Returns the entry with the lowest keys, compared one after the other; the first of equals.

    Args:
      shape: of the tables.
      keys_of: returns the keys of entries.
      tables: a tuple of buffers.
      prepare: gives what `keys_of` finds prepared.
      within: as in `update`; it says how the entry is numbered, too.
    """
    if not _at_once():
        return _first_in(all_blocks(shape, prepare, within), keys_of, tables)
    place = _everywhere(shape, prepare)
    keys = tuple(jnp.broadcast_to(key, shape) for key in keys_of(place, tables))
    _, columns = within or shape
    numbered = First(keys, place.row * columns + place.column)
    return first_of(numbered, shape, None if within is None else within.holds(place))


def first_of_some(
    shape: Shape,
    is_some: Callable[[jax.Array], jax.Array],
    keys_of: Body,
    tables: Any,
    prepare: Prepare = NOTHING,
) -> First:
    """Like `first`, but of some rows of tables only: where there are none, the highest keys.

    In a kernel other rows take no time.

    Args:
      is_some: maps rows, of any shape, to whether they count.
    """
    if memory.is_in_kernel():
        blocks, number = blocks_of_some(shape, is_some, prepare)
        best = _first_in(blocks, keys_of, tables)
        return best._replace(number=jnp.where(number > 0, best.number, jnp.int32(0)))
    found = first(shape, _keys_of_some(is_some, keys_of), tables, prepare)
    is_none = found.keys[0] == null_delta(found.keys[0].dtype)
    return found._replace(number=jnp.where(is_none, jnp.int32(0), found.number))


def _keys_of_some(is_some: Callable[[jax.Array], jax.Array], keys_of: Body) -> Body:
    """Returns a function like `keys_of` that gives the highest keys in all but some rows."""

    def keys(place: Place, entries: Values) -> Values:
        where, found = is_some(place.row), keys_of(place, entries)
        return tuple(jnp.where(where, key, null_delta(key.dtype)) for key in found)

    return keys


def update_and_first(
    shape: Shape,
    body: Body,
    keys_of: Body,
    tables: Any,
    others: Any,
    where: jax.Array,
    prepare: Prepare = NOTHING,
    within: Within | None = None,
) -> tuple[Any, First]:
    """Like `update` and then `first`, in one pass if that is faster.

    Args:
      body: as in `update`; and it returns entries as they are if `where` does not hold.
      keys_of: returns the keys of entries of `tables` after the update, followed by `others`.
      others: a tuple of further buffers.
      within: as in `first`.
    """
    if memory.is_in_kernel():
        blocks = all_blocks(shape, prepare, within)

        def handle(block: Block, carry: tuple[Any, First | None]) -> tuple[Any, First]:
            tables, best = carry
            entries, further = block.load(tables), block.load(others)
            entries = body(block.place, entries)
            tables = block.store(tables, entries, where)
            return tables, block.earlier(keys_of(block.place, (*entries, *further)), best)

        tables, best = blocks.backwards(handle, (tables, None))
        return tables, blocks.over_lanes(best)
    if memory.takes_turns():
        tables = update(shape, body, tables, where, prepare, within)
    elif within is not None:
        tables = update(shape, body, tables, jnp.bool_(True), prepare, within)
    else:
        tables = body(_everywhere(shape, prepare), tables)
    return tables, first(shape, keys_of, (*tables, *others), within=within)


def num_warps(shape: Shape) -> int:
    """Returns how many warps of a kernel handle tables of this shape fastest."""
    return tiling.load_of_entries(shape).num_warps


def _at_once() -> bool:
    return not (memory.is_in_kernel() or memory.takes_turns())


def _everywhere(shape: Shape, prepare: Prepare) -> Place:
    row, column = rows_and_columns(shape)
    return Place(row, column, prepare.of_row(row), prepare.of_column(column))


def _updated(blocks: Blocks, body: Body, tables: Any, where: jax.Array) -> Any:
    def handle(block: Block, tables: Any) -> Any:
        return block.store(tables, body(block.place, block.load(tables)), where)

    return blocks.backwards(handle, tables)


def _first_in(blocks: Blocks, keys_of: Body, tables: Any) -> First:
    def handle(block: Block, best: First | None) -> First:
        return block.earlier(keys_of(block.place, block.load(tables)), best)

    return blocks.over_lanes(blocks.backwards(handle, None))
