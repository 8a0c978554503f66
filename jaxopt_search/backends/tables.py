# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
"""Elementwise code over the entries of tables; portable.

A table is a buffer [rows, columns]. Elsewhere its entries are handled all at once; in a kernel part
by part, some rows at a time. Kernels have arrays of powers of two only, so heights and widths of
parts are such numbers, and what they cover beyond the table is in excess: there the last row or
column is looked up once more, and masked. How a table is cut decides how fast a kernel is, and no
result. `rows` is for code of whole rows.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search.backends import bit_sets, memory
from jaxopt_search.backends.costs import null_delta
from jaxopt_search.backends.memory import LANES, load, power_of_two, store

Shape: TypeAlias = tuple[int, int]
"""Rows and columns of a table."""
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


NOTHING = Prepare(lambda row: None, lambda column: None)


class First(NamedTuple):
    """The entry that comes first.

    Attributes:
      keys: [] each.
      number: [] int32, row * columns + column.
    """

    keys: Values
    number: jax.Array


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
    return _change(_parts(shape, prepare, within), body, tables, where)


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
    if not memory.is_in_kernel():
        for row in rows:
            place = Place(row, lax.iota(jnp.int32, columns))
            counts = None if within is None else within.holds(place)
            old = [lax.dynamic_index_in_dim(one, row, keepdims=False) for one in tables]
            new = _Part(columns, place, None, is_real=counts).change(body, old, where)
            pairs = zip(tables, new, strict=True)
            tables = tuple(lax.dynamic_update_index_in_dim(*pair, row, 0) for pair in pairs)
        return tables

    def row_of(number: jax.Array) -> jax.Array:
        """Returns `rows[number]`."""
        found = jnp.broadcast_to(rows[0], number.shape)
        for k, row in enumerate(rows[1:], start=1):
            found = jnp.where(number == k, row, found)
        return found

    counts = None if within is None else within._replace(rows=jnp.int32(len(rows)))
    parts = _cut((len(rows), columns), NOTHING, counts, row_of)
    return _change(parts, body, tables, where)


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
    return _first(_parts(shape, prepare, within), keys_of, tables)


def first_of_some(
    shape: Shape,
    is_some: Callable[[jax.Array], jax.Array],
    keys_of: Body,
    tables: Any,
    prepare: Prepare = NOTHING,
) -> First:
    """Like `first`, but of some rows of tables only: where there are none, the highest keys.

    In a kernel and natively, other rows take hardly any time.

    Args:
      is_some: maps rows, of any shape, to whether they count.
    """
    if memory.is_in_kernel() or memory.is_native():
        cut = _cut_some if memory.is_in_kernel() else _rows_of_some
        parts, number = cut(shape, is_some, prepare)
        best = _first(parts, keys_of, tables)
        return best._replace(number=jnp.where(number > 0, best.number, jnp.int32(0)))

    def keys_of_some(place: Place, entries: Values) -> Values:
        where, keys = is_some(place.row), keys_of(place, entries)
        return tuple(jnp.where(where, key, null_delta(key.dtype)) for key in keys)

    found = first(shape, keys_of_some, tables, prepare)
    is_none = found.keys[0] == null_delta(found.keys[0].dtype)
    return found._replace(number=jnp.where(is_none, jnp.int32(0), found.number))


def in_rows(buffer: Any, row: jax.Array) -> jax.Array:
    """Returns the entries [row] of a buffer [rows], for `Prepare.of_row`.

    As `load`; but where all rows are handled at once they are not looked up, which is slow on a
    CPU.
    """
    if not memory.is_in_kernel() and row.shape == (buffer.shape[0], 1):
        return buffer[:, None]
    return load(buffer, row)


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


def _change(parts: "_Parts", body: Body, tables: Any, where: jax.Array) -> Any:
    return parts.backwards(lambda part, tables: part.change(body, tables, where), tables)


def _first(parts: "_Parts", keys_of: Body, tables: Any) -> First:
    def handle(part: _Part, best: First | None) -> First:
        keys = keys_of(part.place, part.load(tables))
        if best is None or not memory.is_native():
            return part.earlier(keys, best)
        # This always holds in a loop, which XLA does not know. Without a branch, it would compute
        # keys anew for each of the numbers that they choose.
        return memory.when(parts.last > 0, lambda best, _: part.earlier(keys, best), best)

    return parts.first_of(parts.backwards(handle, None))


def _parts(shape: Shape, prepare: Prepare, within: Within | None) -> "_Parts":
    """Returns the parts of tables: in a kernel some rows each, else a single one."""
    if memory.is_in_kernel():
        return _cut(shape, prepare, within)
    row, column = rows_and_columns(shape)
    place = Place(row, column, prepare.of_row(row), prepare.of_column(column))
    counts = None if within is None else within.holds(place)
    whole = _Part((within or shape)[1], place, None, is_real=counts)
    return _Parts(shape, True, jnp.int32(0), lambda number, is_last: whole)


class _Part(NamedTuple):
    """Entries of tables that are handled together: all, or some rows.

    Attributes:
      columns: of the tables, by which entries are numbered.
      place: where the entries are; those in excess count as the last row or column.
      column: as `place.column`; but with `is_column`, those in excess are beyond the tables. None
        where the entries are all that the tables hold.
      is_column: where columns are not in excess; None if `column` needs no mask.
      is_real: False for entries that do not count, other than for their columns; None for none.
    """

    columns: int | jax.Array
    place: Place
    column: jax.Array | None
    is_column: jax.Array | None = None
    is_real: jax.Array | None = None

    def load(self, tables: Any) -> Values:
        """Returns the entries of tables."""
        if self.column is None:
            return tuple(tables)
        row = self.place.row
        if row.ndim == 0:  # a whole row, natively
            return tuple(lax.dynamic_index_in_dim(one, row, keepdims=False) for one in tables)
        return tuple(load(table, (row, self.column), self.is_column) for table in tables)

    def change(self, body: Body, tables: Any, where: jax.Array) -> Any:
        """Returns the tables with new entries where the scalar `where` holds."""
        entries = body(self.place, self.load(tables))
        for some in (self.is_real, self.is_column):
            where = where if some is None else where & some
        pairs = zip(tables, entries, strict=True)
        if self.column is None:
            return tuple(jnp.where(where, new, old) for old, new in pairs)
        index = self.place.row, self.column
        return tuple(store(table, index, entry, where) for table, entry in pairs)

    def earlier(self, keys: Values, best: First | None) -> First:
        """Returns, in each lane, the first of the entries here and of `best`, which is behind."""
        number = self.place.row * self.columns + self.place.column
        found = First(tuple(jnp.broadcast_to(key, number.shape) for key in keys), number)
        found = found if self.is_real is None else _only(self.is_real, found)
        if best is None:
            return found
        is_behind, is_equal = jnp.bool_(False), jnp.bool_(True)
        for key, other in zip(best.keys, found.keys, strict=True):
            is_behind = is_behind | (is_equal & (key < other))
            is_equal = is_equal & (key == other)
        is_ahead = ~is_behind
        return jax.tree.map(lambda new, old: jnp.where(is_ahead, new, old), found, best)


class _Parts(NamedTuple):
    """All parts of tables.

    Attributes:
      shape: of the tables.
      is_one: whether there is a single part.
      last: [] int32, the number of the last part.
      at: maps the number of a part, and whether it is the last one, to the part.
      is_column: where the columns of all parts are not in excess; None if no lane is to be left
        out when lanes are compared.
    """

    shape: Shape
    is_one: bool
    last: jax.Array
    at: Callable[[jax.Array, bool], _Part]
    is_column: jax.Array | None = None

    def backwards(self, handle: Callable[[_Part, Any], Any], carry: Any) -> Any:
        """Returns `carry` after `handle(part, carry)` of each part, from the last one on.

        Of equal entries in a lane, the one that is seen last is the first then. The last part
        stands before the loop: it alone may be short of rows, and it gives `carry` its types.
        """

        def handle_next(number: jax.Array, carry: Any) -> Any:
            return handle(self.at(self.last - 1 - number, False), carry)

        carry = handle(self.at(self.last, True), carry)
        return carry if self.is_one else memory.fori_loop(self.last, handle_next, carry)

    def first_of(self, entries: First) -> First:
        """Returns the first of the entries that lanes have found."""
        if self.is_column is not None:
            entries = _only(self.is_column, entries)
        return _first_of(entries, self.shape)


def _cut(
    shape: Shape,
    prepare: Prepare,
    within: Within | None,
    row_of: Callable[[jax.Array], jax.Array] = lambda number: number,
) -> _Parts:
    """Returns the parts of tables of this shape, which may be some rows of larger ones.

    Args:
      within: the part of them that counts; None for all.
      row_of: maps their rows to those of the larger ones.
    """
    (rows, columns), height, width = within or shape, height_of(shape), power_of_two(shape[1])
    row, lane = rows_and_columns((height, width))
    column, is_column = clamped(lane, columns)
    there = prepare.of_column(column)
    if within is None and columns == width:
        lane, is_column = column, None
    is_one = height >= shape[0]
    last = 0 if is_one else (rows + (height - 1)) // height - 1
    _, is_row_of_last = clamped(last * height + row, rows)
    may_be_short = within is not None or rows % height != 0

    def some_rows(i: jax.Array, is_last: bool) -> _Part:
        inside = row_of(clamped(i * height + row, rows)[0])
        place = Place(inside, column, prepare.of_row(inside), there)
        is_real = is_row_of_last if is_last and may_be_short else None
        return _Part(columns, place, lane, is_column, is_real)

    return _Parts(shape, is_one, jnp.int32(last), some_rows, is_column)


def _cut_some(
    shape: Shape, is_some: Callable[[jax.Array], jax.Array], prepare: Prepare
) -> tuple[_Parts, jax.Array]:
    """Returns the parts of some rows of tables in a kernel, at least one, and their number."""
    (rows, columns), height = shape, height_of(shape, is_small=False)
    word, bit = rows_and_columns((power_of_two(-(-rows // bit_sets.BITS)), bit_sets.BITS))
    place, is_row = clamped(word * bit_sets.BITS + bit, rows)
    is_row = is_some(place) & is_row
    bits = is_row.astype(jnp.uint32) << jnp.broadcast_to(bit, is_row.shape).astype(jnp.uint32)
    bits = jnp.sum(bits, axis=1, dtype=jnp.uint32)
    number = bit_sets.count(bits)
    lane = lax.broadcasted_iota(jnp.int32, (1, power_of_two(columns)), 1)
    column, is_column = clamped(lane, columns)
    there = prepare.of_column(column)

    def members(i: jax.Array, is_last: bool) -> _Part:
        place = i * height + lax.iota(jnp.int32, height)
        row = jnp.minimum(bit_sets.members(bits, place), rows - 1)[:, None]
        is_real = (place < number)[:, None] & is_column
        return _Part(columns, Place(row, column, prepare.of_row(row), there), column, None, is_real)

    last = lax.div(jnp.maximum(number - 1, 0), jnp.int32(height))
    return _Parts(shape, height >= rows, last, members), number


def _rows_of_some(
    shape: Shape, is_some: Callable[[jax.Array], jax.Array], prepare: Prepare
) -> tuple[_Parts, jax.Array]:
    """Like `_cut_some`, natively: each of these rows is a part."""
    rows, columns = shape
    column = lax.iota(jnp.int32, columns)
    there = prepare.of_column(column)

    def note(row: jax.Array, noted: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        members, number = noted
        where = is_some(row)
        members = store(members, number, row, jnp.bool_(True))  # the next one may take its place
        return members, number + where.astype(jnp.int32)

    nobody = jnp.zeros(rows, jnp.int32), jnp.int32(0)
    members, number = memory.fori_loop(jnp.int32(rows), note, nobody)
    is_real = jnp.broadcast_to(number > 0, column.shape)

    def member(i: jax.Array, is_last: bool) -> _Part:
        place = Place(load(members, i), column, None, there)
        place = place._replace(here=prepare.of_row(place.row))
        return _Part(columns, place, column, None, is_real if is_last else None)

    return _Parts(shape, False, jnp.maximum(number - 1, 0), member), number


def _only(where: jax.Array, entries: First) -> First:
    """Returns entries with the highest keys there are where `where` does not hold."""
    keys = tuple(jnp.where(where, key, null_delta(key.dtype)) for key in entries.keys)
    return entries._replace(keys=keys)


def _first_of(entries: First, shape: Shape) -> First:
    """Returns the first of several entries of tables of this shape."""
    minimum, keys, is_first = memory.target().minimum, [], jnp.bool_(True)
    for key in entries.keys:
        lowest = minimum(jnp.where(is_first, key, null_delta(key.dtype)))
        is_first = is_first & (key == lowest)
        keys.append(lowest)
    beyond = jnp.int32(shape[0] * shape[1])
    return First(tuple(keys), minimum(jnp.where(is_first, entries.number, beyond)))


class _Load(NamedTuple):
    """What a program of a kernel is given at a time.

    Attributes:
      num_warps: a power of two.
      per_thread: entries of a part that each thread handles.
    """

    num_warps: int
    per_thread: int


_SMALL = 2**10
"""Entries that are handled in one part, by whatever warps there are."""


def _load_of(shape: Shape) -> _Load:
    """Returns what was fastest for tabu search on an H200."""
    rows, columns = shape
    if columns > 64:
        return _Load(num_warps=8, per_thread=8 if columns <= 128 else 16)
    if columns > 32 or rows * power_of_two(columns) > 2**12:
        return _Load(num_warps=4, per_thread=8)
    return _Load(num_warps=2 if columns > 16 else 1, per_thread=16)


def num_warps(shape: Shape) -> int:
    """Returns how many warps of a kernel handle tables of this shape fastest."""
    return _load_of(shape).num_warps


def height_of(shape: Shape, is_small: bool = True) -> int:
    """Returns how many rows of a table of this shape a kernel handles at a time.

    Args:
      is_small: whether a small table is handled at once; not if some rows are, it is not known how
        many.
    """
    rows, width = shape[0], power_of_two(shape[1])
    if is_small and power_of_two(rows) * width <= _SMALL:
        return power_of_two(rows)
    return height_for(rows, width, *_load_of(shape))


def height_for(rows: int, width: int, num_warps: int, per_thread: int) -> int:
    """Returns the rows of a part with this many entries per thread, rounded to a power of two."""
    height = max(num_warps * LANES * per_thread // width, 1)
    return min(1 << height.bit_length() - 1, power_of_two(rows))


def clamped(places: jax.Array, size: int | jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns places on an axis of this size, the last one in excess; and which are not in excess.

    Args:
      places: int32, at least 0.
    """
    return jnp.minimum(places, size - 1), places < size
