"""Elementwise code over the entries of tables; portable.

A table is a buffer [rows, columns]. Under XLA its entries are handled all at once; in a kernel
block by block, each of several rows; and where lanes take turns (`memory.in_turns`), one by one.
For what goes beyond single entries of a row see `rows`.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search.portable import bit_sets, memory
from jaxopt_search.portable.memory import load, power_of_two, store
from jaxopt_search.types import null_delta

Shape: TypeAlias = tuple[int, int]
"""Rows and columns."""
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


class Prepare(NamedTuple):
    """Functions of rows and of columns, which give what is needed of each in all its entries."""

    of_row: Callable[[jax.Array], Any]
    of_column: Callable[[jax.Array], Any]


_PARTS = 8
_AT_ONCE = 2**10  # entries that a kernel handles in one block
# By the most columns: the warps of a kernel, and how many entries of a block each thread has.
_WARPS_AND_ENTRIES = {32: (1, 16), 64: (2, 16)}
_BEYOND = (8, 4)
_LONG = 2**12  # entries beyond which a table of few columns takes more warps
_WARPS_AND_ENTRIES_OF_LONG = (4, 8)


class First(NamedTuple):
    """The entry that comes first.

    Attributes:
      keys: [] each.
      number: [] int32, row * columns + column.
    """

    keys: Values
    number: jax.Array


_NOTHING = Prepare(lambda row: None, lambda column: None)


def update(
    shape: Shape, body: Body, tables: Any, where: jax.Array, prepare: Prepare = _NOTHING
) -> Any:
    """Returns the tables after `body`, if the scalar `where` holds.

    Args:
      shape: of the tables.
      body: returns the new entries. It may read the tables themselves at entries that stay as they
        are.
      tables: a tuple of buffers.
      where: [] bool.
      prepare: gives what `body` finds prepared; it may read what `body` may.
    """
    if not _at_once():
        return _in_blocks(0, shape, body, None, tables, (), where, prepare)[0]
    new = body(_everywhere(shape, prepare), tables)
    return tuple(jnp.where(where, *pair) for pair in zip(new, tables, strict=True))


def in_rows(buffer: Any, row: jax.Array) -> jax.Array:
    """Returns the entries [row] of a buffer [rows], for `Prepare.of_row`.

    As `load`; but where all rows are handled at once they are not looked up, which is slow on a
    CPU.
    """
    if _at_once() and row.shape == (buffer.shape[0], 1):
        return buffer[:, None]
    return load(buffer, row)


def update_row(row: jax.Array, columns: int, body: Body, tables: Any, where: jax.Array) -> Any:
    """Returns what `update` does, but for the entries of one row only."""
    if not _at_once():
        return _in_blocks(row, (1, columns), body, None, tables, (), where, _NOTHING)[0]
    old = tuple(lax.dynamic_index_in_dim(table, row, keepdims=False) for table in tables)
    new = body(Place(row, lax.iota(jnp.int32, columns)), old)
    return tuple(
        lax.dynamic_update_index_in_dim(table, jnp.where(where, *pair), row, 0)
        for table, *pair in zip(tables, new, old, strict=True)
    )


def first(shape: Shape, keys_of: Body, tables: Any, prepare: Prepare = _NOTHING) -> First:
    """Returns the entry with the lowest keys, compared one after the other; the first of equals.

    Args:
      shape: of the tables.
      keys_of: returns the keys of entries.
      tables: a tuple of buffers.
      prepare: gives what `keys_of` finds prepared.
    """
    if not _at_once():
        return _in_blocks(0, shape, None, keys_of, (), tables, jnp.bool_(True), prepare)[1]
    place = _everywhere(shape, prepare)
    keys = tuple(jnp.broadcast_to(key, shape) for key in keys_of(place, tables))
    return _first_of(First(keys, place.row * shape[1] + place.column), _nowhere(shape))


def first_of_some(
    shape: Shape,
    is_some: Callable[[jax.Array], jax.Array],
    keys_of: Body,
    tables: Any,
    prepare: Prepare = _NOTHING,
) -> First:
    """Returns the same as `first` of some rows of tables: where there are none, the highest keys.

    In a kernel other rows take no time.

    Args:
      is_some: maps rows, of any shape, to whether they count.
    """
    if memory.is_in_kernel():
        return _in_some_rows(shape, is_some, keys_of, tables, prepare)
    found = first(shape, _keys_of_some(is_some, keys_of), tables, prepare)
    is_none = found.keys[0] == null_delta(found.keys[0].dtype)
    return found._replace(number=jnp.where(is_none, jnp.int32(0), found.number))


def _keys_of_some(is_some: Callable[[jax.Array], jax.Array], keys_of: Body) -> Body:
    """Returns what gives the highest keys in all but some rows."""

    def keys(place: Place, entries: Values) -> Values:
        where, found = is_some(place.row), keys_of(place, entries)
        return tuple(jnp.where(where, key, null_delta(key.dtype)) for key in found)

    return keys


def _in_some_rows(
    shape: Shape, is_some: Any, keys_of: Body, tables: Any, prepare: Prepare
) -> First:
    """Like `first_of_some`, in blocks of the rows that count."""
    rows, columns = shape
    words, width = power_of_two(-(-rows // bit_sets.BITS)), power_of_two(columns)
    word, bit = _rows_and_columns((words, bit_sets.BITS))
    row = word * bit_sets.BITS + bit
    is_row = is_some(jnp.minimum(row, rows - 1)) & (row < rows)
    bits = is_row.astype(jnp.uint32) << jnp.broadcast_to(bit, row.shape).astype(jnp.uint32)
    bits = jnp.sum(bits, axis=1, dtype=jnp.uint32)
    number = bit_sets.count(bits)

    warps, entries_each = _warps_and_entries(rows, width)
    height = min(power_of_two(rows), max(1, warps * memory.LANES * entries_each // width))
    lane = lax.broadcasted_iota(jnp.int32, (1, width), 1)
    column = jnp.minimum(lane, columns - 1)
    there = prepare.of_column(column)

    def handle(i: jax.Array) -> First:
        place = i * height + lax.iota(jnp.int32, height)
        row = jnp.minimum(bit_sets.members(bits, place), rows - 1)[:, None]
        is_real = (place < number)[:, None] & (lane < columns)
        found = Place(row, column, prepare.of_row(row), there)
        keys = keys_of(found, tuple(load(table, (row, column)) for table in tables))
        keys = tuple(jnp.broadcast_to(key, is_real.shape) for key in keys)
        return _only(is_real, First(keys, row * columns + column))

    def go_on(i: jax.Array, best: First) -> First:
        return _earlier(handle(last - 1 - i), best)

    last = jnp.maximum((number - 1) // height, 0)
    best = _first_of(lax.fori_loop(0, last, go_on, handle(last)), _nowhere(shape))
    return best._replace(number=jnp.where(number > 0, best.number, jnp.int32(0)))


def update_and_first(
    shape: Shape,
    body: Body,
    keys_of: Body,
    tables: Any,
    others: Any,
    where: jax.Array,
    prepare: Prepare = _NOTHING,
) -> tuple[Any, First]:
    """Returns what `update` does, and of that what `first` does, in one pass if that is faster.

    Args:
      body: as in `update`; besides, it returns entries as they are if `where` does not hold.
      keys_of: returns the keys of entries of `tables` after the update, followed by `others`.
      others: a tuple of further buffers.
    """
    if memory.is_in_kernel():
        return _in_blocks(0, shape, body, keys_of, tables, others, where, prepare)
    if memory.takes_turns():
        tables = update(shape, body, tables, where, prepare)
    else:
        tables = body(_everywhere(shape, prepare), tables)
    return tables, first(shape, keys_of, (*tables, *others))


def _at_once() -> bool:
    return not (memory.is_in_kernel() or memory.takes_turns())


def _nowhere(shape: Shape) -> jax.Array:
    return jnp.int32(shape[0] * shape[1])


def _rows_and_columns(shape: Shape) -> tuple[jax.Array, jax.Array]:
    """Returns [rows, 1] and [1, columns] int32."""
    return lax.iota(jnp.int32, shape[0])[:, None], lax.iota(jnp.int32, shape[1])[None]


def _everywhere(shape: Shape, prepare: Prepare) -> Place:
    row, column = _rows_and_columns(shape)
    return Place(row, column, prepare.of_row(row), prepare.of_column(column))


class _Blocks(NamedTuple):
    """How a table is cut into blocks of entries that are handled together.

    Attributes:
      number: of blocks.
      place: maps the number of a block to where its entries are. What it has beyond the table
        counts as the last row or column.
      lane: the columns, without this; None if there are none beyond.
      is_row: where the last block has rows; None if it has no others.
    """

    number: int
    place: Callable[[jax.Array], Place]
    lane: jax.Array | None
    is_row: jax.Array | None


def _blocks(first_row: jax.Array | int, shape: Shape, prepare: Prepare) -> _Blocks:
    rows, columns = shape
    if memory.takes_turns():

        def entry(i: jax.Array) -> Place:
            row, column = first_row + i // columns, i % columns
            return Place(row, column, prepare.of_row(row), prepare.of_column(column))

        return _Blocks(rows * columns, entry, None, None)
    width = power_of_two(columns)
    height = _height(rows, width)
    row, lane = _rows_and_columns((height, width))
    column = jnp.minimum(lane, columns - 1)
    there = prepare.of_column(column)

    def block(i: jax.Array) -> Place:
        inside = first_row + jnp.minimum(i * height + row, rows - 1)
        return Place(inside, column, prepare.of_row(inside), there)

    number = -(-rows // height)
    return _Blocks(
        number,
        block,
        lane if columns < width else None,
        (number - 1) * height + row < rows if rows % height else None,
    )


def num_warps(shape: Shape) -> int:
    """Returns how many warps of a kernel handle tables of this shape fastest."""
    return _warps_and_entries(*shape)[0]


def _warps_and_entries(rows: int, columns: int) -> tuple[int, int]:
    most = next((most for most in _WARPS_AND_ENTRIES if columns <= most), None)
    if most is None:
        return _BEYOND
    is_long = rows * power_of_two(columns) > _LONG
    return _WARPS_AND_ENTRIES_OF_LONG if is_long else _WARPS_AND_ENTRIES[most]


def _height(rows: int, width: int) -> int:
    """Returns how many rows a kernel handles at once: all of a small table."""
    if power_of_two(rows) * width <= _AT_ONCE:
        return power_of_two(rows)
    warps, entries = _warps_and_entries(rows, width)
    return min(power_of_two(rows), max(1, warps * memory.LANES * entries // width))


def _in_blocks(
    first_row: jax.Array | int,
    shape: Shape,
    body: Body | None,
    keys_of: Body | None,
    tables: Any,
    others: Any,
    where: jax.Array,
    prepare: Prepare,
) -> tuple[Any, Any]:
    """Returns the tables after `body` and the first entry by `keys_of`, block by block.

    From the last one on, which alone may be short of rows; of equal entries in a lane, the one that
    is seen last is the first.
    """
    blocks = _blocks(first_row, shape, prepare)
    is_column = None if blocks.lane is None else blocks.lane < shape[1]

    def handle(i: jax.Array, tables: Any, is_row: jax.Array | None) -> tuple[Any, Any]:
        place = blocks.place(i)
        index = place.row, place.column if blocks.lane is None else blocks.lane
        entries, further = (
            tuple(load(table, index, is_column) for table in some) for some in (tables, others)
        )
        if body is not None:
            entries, is_real = body(place, entries), where
            for some in (is_row, is_column):
                is_real = is_real if some is None else is_real & some
            tables = tuple(
                store(table, index, entry, is_real)
                for table, entry in zip(tables, entries, strict=True)
            )
        if keys_of is None:
            return tables, None
        keys = keys_of(place, (*entries, *further))
        found = First(keys, place.row * shape[1] + place.column)
        return tables, found if is_row is None else _only(is_row, found)

    def go_on(number: jax.Array, carry: tuple[Any, Any]) -> tuple[Any, Any]:
        tables, best = carry
        tables, found = handle(last - 1 - number, tables, None)
        return tables, None if best is None else _earlier(found, best)

    last = jnp.int32(blocks.number - 1)
    # The last block stands before the loop, as it gives the keys their types, too.
    tables, best = memory.fori_loop(last, go_on, handle(last, tables, blocks.is_row))
    if best is None or not best.number.ndim:
        return tables, best
    return tables, _first_of(best if is_column is None else _only(is_column, best), _nowhere(shape))


def _earlier(found: First, best: First) -> First:
    """Returns, in each lane, `best` if it is lower, else what stands before it in the table."""
    is_ahead = ~_is_lower(best.keys, found.keys)
    return jax.tree.map(lambda new, old: jnp.where(is_ahead, new, old), found, best)


def _only(where: jax.Array, entries: First) -> First:
    """Returns entries with the highest keys there are where `where` does not hold."""
    keys = tuple(jnp.where(where, key, null_delta(key.dtype)) for key in entries.keys)
    return entries._replace(keys=keys)


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
