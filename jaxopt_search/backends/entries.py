# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
"""Entries of tables in blocks, and which of them comes first; portable.

What `tables` needs where entries are not handled all at once: in a kernel, block by block, as
`tiling` cuts tables; and where lanes take turns (`memory.in_turns`), one by one.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search.backends import bit_sets, memory, tiling
from jaxopt_search.backends.memory import load, power_of_two, store
from jaxopt_search.backends.tiling import Shape
from jaxopt_search.types import null_delta

Values: TypeAlias = tuple[jax.Array, ...]


class Place(NamedTuple):
    """Where entries are.

    Attributes:
      row, column: integers, to be broadcast.
      here, there: what was prepared of the rows and of the columns.
    """

    row: jax.Array
    column: jax.Array
    here: Any = None
    there: Any = None


Body: TypeAlias = Callable[[Place, Values], Values]
"""Maps places and the tables' entries there."""


class Within(NamedTuple):
    """The part of tables that counts, [] int32 each: the first rows and columns.

    Entries outside are neither changed nor looked at, and numbers of entries are those of a table
    of this size.
    """

    rows: jax.Array
    columns: jax.Array

    def holds(self, place: Place) -> jax.Array:
        """Returns whether entries are inside."""
        return (place.row < self.rows) & (place.column < self.columns)


class Prepare(NamedTuple):
    """Functions of rows and of columns, which give what is needed of each in all its entries."""

    of_row: Callable[[jax.Array], Any]
    of_column: Callable[[jax.Array], Any]


_PARTS = 8
"""Of a table, which are compared side by side on a CPU."""


class First(NamedTuple):
    """The entry that comes first.

    Attributes:
      keys: [] each.
      number: [] int32, row * columns + column.
    """

    keys: Values
    number: jax.Array


NOTHING = Prepare(lambda row: None, lambda column: None)


class Block(NamedTuple):
    """Entries that are handled together: some rows, or, where lanes take turns, a single entry.

    Attributes:
      columns: of the tables, by which entries are numbered.
      place: where the entries are; those in excess count as the last row or column.
      column: as `place.column`; but with `is_column`, those in excess are beyond the tables.
      is_column: where columns are not in excess; None if `column` needs no mask.
      is_real: False for entries that do not count, other than for their columns; None for none.
    """

    columns: int | jax.Array
    place: Place
    column: jax.Array
    is_column: jax.Array | None = None
    is_real: jax.Array | None = None

    def load(self, tables: Any) -> Values:
        """Returns the entries of tables."""
        index = self.place.row, self.column
        return tuple(load(table, index, self.is_column) for table in tables)

    def store(self, tables: Any, entries: Values, where: jax.Array) -> Any:
        """Returns the tables with new entries where the scalar `where` holds."""
        for some in (self.is_real, self.is_column):
            where = where if some is None else where & some
        index = self.place.row, self.column
        pairs = zip(tables, entries, strict=True)
        return tuple(store(table, index, entry, where) for table, entry in pairs)

    def earlier(self, keys: Values, best: First | None) -> First:
        """Returns, in each lane, the first of the entries here and of `best`, which is behind."""
        number = self.place.row * self.columns + self.place.column
        found = First(tuple(jnp.broadcast_to(key, number.shape) for key in keys), number)
        found = found if self.is_real is None else _only(self.is_real, found)
        return found if best is None else _earlier(found, best)


class Blocks(NamedTuple):
    """All blocks of tables.

    Attributes:
      shape: of the tables.
      is_one: whether there is a single block.
      last: [] int32, the number of the last block.
      at: maps the number of a block, and whether it is the last one, to the block.
      is_column: where the columns of all blocks are not in excess; None if no lane is to be left
        out when lanes are compared.
    """

    shape: Shape
    is_one: bool
    last: jax.Array
    at: Callable[[jax.Array, bool], Block]
    is_column: jax.Array | None = None

    def backwards(self, handle: Callable[[Block, Any], Any], carry: Any) -> Any:
        """Returns `carry` after `handle(block, carry)` of each block, from the last one on.

        Of equal entries in a lane, the one that is seen last is the first then. The last block
        stands before the loop: it alone may be short of rows, and it gives `carry` its types.
        """

        def go_on(number: jax.Array, carry: Any) -> Any:
            return handle(self.at(self.last - 1 - number, False), carry)

        carry = handle(self.at(self.last, True), carry)
        return carry if self.is_one else memory.fori_loop(self.last, go_on, carry)

    def over_lanes(self, best: First) -> First:
        """Returns the first of the entries that lanes have found."""
        if not best.number.ndim:
            return best
        best = best if self.is_column is None else _only(self.is_column, best)
        return first_of(best, self.shape)


def all_blocks(
    shape: Shape,
    prepare: Prepare,
    within: Within | None = None,
    row_of: Callable[[jax.Array], jax.Array] = lambda number: number,
) -> Blocks:
    """Returns the blocks of tables of this shape, which may be some rows of larger ones.

    Args:
      within: the part of them that counts; None for all.
      row_of: maps their rows to those of the larger ones.
    """
    (rows, columns), cut = within or shape, tiling.for_entries(shape)
    if memory.takes_turns():

        def entry(i: jax.Array, is_last: bool) -> Block:
            row, column = row_of(i // columns), i % columns
            place = Place(row, column, prepare.of_row(row), prepare.of_column(column))
            return Block(columns, place, column)

        return Blocks(shape, False, jnp.int32(rows * columns - 1), entry)
    row, lane = rows_and_columns((cut.height, cut.widths[0]))
    column, is_column = tiling.clamped(lane, columns)
    there = prepare.of_column(column)
    if within is None and columns == cut.widths[0]:
        lane, is_column = column, None
    is_one = cut.num_blocks == 1
    last = 0 if is_one else (rows + (cut.height - 1)) // cut.height - 1
    _, is_row_of_last = tiling.clamped(last * cut.height + row, rows)
    may_be_short = within is not None or rows % cut.height != 0

    def some_rows(i: jax.Array, is_last: bool) -> Block:
        inside = row_of(tiling.clamped(i * cut.height + row, rows)[0])
        place = Place(inside, column, prepare.of_row(inside), there)
        is_real = is_row_of_last if is_last and may_be_short else None
        return Block(columns, place, lane, is_column, is_real)

    return Blocks(shape, is_one, jnp.int32(last), some_rows, is_column)


def blocks_of_some(
    shape: Shape, is_some: Callable[[jax.Array], jax.Array], prepare: Prepare
) -> tuple[Blocks, jax.Array]:
    """Returns the blocks of some rows of tables in a kernel, at least one, and their number."""
    (rows, columns), cut = shape, tiling.for_some_rows(shape)
    word, bit = rows_and_columns((power_of_two(-(-rows // bit_sets.BITS)), bit_sets.BITS))
    place, is_row = tiling.clamped(word * bit_sets.BITS + bit, rows)
    is_row = is_some(place) & is_row
    bits = is_row.astype(jnp.uint32) << jnp.broadcast_to(bit, is_row.shape).astype(jnp.uint32)
    bits = jnp.sum(bits, axis=1, dtype=jnp.uint32)
    number = bit_sets.count(bits)
    lane = lax.broadcasted_iota(jnp.int32, (1, cut.widths[0]), 1)
    column, is_column = tiling.clamped(lane, columns)
    there = prepare.of_column(column)

    def members(i: jax.Array, is_last: bool) -> Block:
        place = i * cut.height + lax.iota(jnp.int32, cut.height)
        row = jnp.minimum(bit_sets.members(bits, place), rows - 1)[:, None]
        is_real = (place < number)[:, None] & is_column
        return Block(columns, Place(row, column, prepare.of_row(row), there), column, None, is_real)

    last = lax.div(jnp.maximum(number - 1, 0), jnp.int32(cut.height))
    return Blocks(shape, cut.num_blocks == 1, last, members), number


def row_and_column(number: jax.Array, columns: Any) -> tuple[jax.Array, jax.Array]:
    """Returns the row and the column of an entry by its number; portable.

    Args:
      number: int32 from 0 on, any shape.
      columns: of the table, an integer or [] int32.

    Example:
      >>> row_and_column(jnp.int32(7), 3)
      (Array(2, dtype=int32), Array(1, dtype=int32))
    """
    # Python's division would take ten operations more, for negative numbers.
    columns = jnp.broadcast_to(jnp.int32(columns), jnp.shape(number))
    return lax.div(number, columns), lax.rem(number, columns)


def rows_and_columns(shape: Shape) -> tuple[jax.Array, jax.Array]:
    """Returns [rows, 1] and [1, columns] int32."""
    return lax.iota(jnp.int32, shape[0])[:, None], lax.iota(jnp.int32, shape[1])[None]


def _earlier(found: First, best: First) -> First:
    """Returns, in each lane, `best` if it is lower, else `found`, which is ahead of it."""
    is_ahead = ~_is_lower(best.keys, found.keys)
    return jax.tree.map(lambda new, old: jnp.where(is_ahead, new, old), found, best)


def _only(where: jax.Array, entries: First) -> First:
    """Returns entries with the highest keys there are where `where` does not hold."""
    keys = tuple(jnp.where(where, key, null_delta(key.dtype)) for key in entries.keys)
    return entries._replace(keys=keys)


def first_of(entries: First, shape: Shape, where: jax.Array | None = None) -> First:
    """Returns the first of several entries of tables of this shape.

    Args:
      where: bool, which of them count, at least one; None for all.
    """
    keys, is_first = [], jnp.bool_(True) if where is None else where
    for key in entries.keys:
        lowest = _minimum(jnp.where(is_first, key, null_delta(key.dtype)))
        is_first = is_first & (key == lowest)
        keys.append(lowest)
    return First(
        tuple(keys), _minimum(jnp.where(is_first, entries.number, jnp.int32(shape[0] * shape[1])))
    )


def _minimum(values: jax.Array) -> jax.Array:
    """Returns the minimum. Parts of a table are compared first, which vectorizes on a CPU."""
    rows = values.shape[0]
    if memory.is_in_kernel() or values.ndim == 1 or rows < 2 * _PARTS:
        return jnp.min(values.ravel())
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
