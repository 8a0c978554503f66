# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
"""Blocks of whole rows of tables; portable.

A table is a buffer [rows, columns]. Under XLA all rows are handled at once; in a kernel block by
block, with a lane per entry. `tables` is for code of single entries.
"""

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search.backends import floats, memory
from jaxopt_search.backends.memory import LANES, load, power_of_two, store
from jaxopt_search.backends.tables import Shape, clamped, height_for


class Tile(NamedTuple):
    """Some columns of the rows of a block.

    Attributes:
      row: [R, 1] int32.
      column: [1, C] int32; those in excess, in a kernel, are the last one, as are rows.
      is_real: [R, C] bool, False in rows and columns in excess; None if this is the whole table.
    """

    row: jax.Array
    column: jax.Array
    is_real: jax.Array | None

    def get(self, table: Any) -> jax.Array:
        """Returns the entries of a table here, [R, C]."""
        return table if self.is_real is None else load(table, (self.row, self.column))

    def get_column(self, table: Any, column: jax.Array) -> jax.Array:
        """Returns the entries of a table in these rows and one column, to be broadcast to [R, C].

        Args:
          column: [] int32.
        """
        if self.is_real is None:
            return lax.dynamic_slice_in_dim(table, column, 1, axis=1)
        # In a kernel each lane reads it for itself.
        return load(table, (self.row, jnp.broadcast_to(column, self.column.shape)))

    def put(self, table: Any, values: jax.Array, where: jax.Array | None = None) -> Any:
        """Returns the table with [R, C] values here; where `where` holds, if given."""
        if self.is_real is None:
            return values if where is None else jnp.where(where, values, table)
        return store(table, (self.row, self.column), values, self.only_real(where))

    def only_real(self, where: jax.Array | None = None) -> jax.Array:
        """Returns [R, C] `where`, or True, but False in excess."""
        shape = self.row.shape[0], self.column.shape[1]
        is_real = jnp.ones(shape, bool) if self.is_real is None else self.is_real
        return is_real if where is None else is_real & where


class Block(NamedTuple):
    """Whole rows that are handled together.

    Attributes:
      rows: [R] int32. Those in excess, in a kernel, are the last one.
      is_row: [R] bool, False for rows in excess.
      tiles: all columns, in parts that leave few lanes idle.
      whole: all columns in one.
    """

    rows: jax.Array
    is_row: jax.Array
    tiles: tuple[Tile, ...]
    whole: Tile

    def put(self, table: Any, of_tiles: Sequence[jax.Array]) -> Any:
        """Returns the table with the [R, C] values of each tile in these rows."""
        for tile, values in zip(self.tiles, of_tiles, strict=True):
            table = tile.put(table, values)
        return table

    def sums(self, of_tiles: Sequence[jax.Array]) -> jax.Array:
        """Returns the sums over columns, [R], of [R, C] values of each tile."""
        if not memory.is_in_kernel():
            return floats.total(of_tiles[0])
        parts = [
            jnp.sum(jnp.where(tile.only_real(), values, jnp.zeros_like(values)), axis=1)
            for tile, values in zip(self.tiles, of_tiles, strict=True)
        ]
        return functools.reduce(jnp.add, parts).astype(of_tiles[0].dtype)


def by_rows(shape: Shape, body: Callable[[Block, Any], Any], tree: Any) -> Any:
    """Returns `tree` after `body`, which handles all rows at once, or in a kernel some at a time.

    Args:
      shape: of the tables, rows and columns.
      body: maps a block and `tree` to `tree`; writes to its buffers what belongs to these rows.
      tree: a pytree of arrays, buffers and scalars.
    """
    num_rows, num_columns = shape
    if not memory.is_in_kernel():
        rows = lax.iota(jnp.int32, num_rows)
        whole = Tile(rows[:, None], lax.iota(jnp.int32, num_columns)[None], None)
        return body(Block(rows, jnp.ones(num_rows, bool), (whole,), whole), tree)
    widths = widths_of(num_columns)
    height = height_for(num_rows, sum(widths), num_warps(shape), _PER_THREAD)

    def some_rows(number: jax.Array, tree: Any) -> Any:
        place = number * height + lax.iota(jnp.int32, height)
        rows, is_row = clamped(place, num_rows)

        def tile(first: int, width: int) -> Tile:
            place = first + lax.iota(jnp.int32, width)[None]
            column, is_column = clamped(place, num_columns)
            return Tile(rows[:, None], column, is_row[:, None] & is_column)

        firsts = itertools.accumulate(widths[:-1], initial=0)
        tiles = tuple(map(tile, firsts, widths))
        whole = tiles[0] if len(tiles) == 1 else tile(0, power_of_two(num_columns))
        return body(Block(rows, is_row, tiles, whole), tree)

    return memory.fori_loop(jnp.int32(-(-num_rows // height)), some_rows, tree)


# Entries of a block for each thread, which are all in its registers, and of a table for each thread
# of a program: of genetic search on an H100, blocks four times as large run a fifth faster, and
# compile for three seconds longer.
_PER_THREAD, _TABLE_PER_THREAD, _MOST_WARPS = 8, 16, 8


def num_warps(shape: Shape) -> int:
    """Returns how many warps of a kernel handle the rows of tables of this shape fastest."""
    entries = power_of_two(shape[0]) * sum(widths_of(shape[1]))
    return min(power_of_two(-(-entries // (LANES * _TABLE_PER_THREAD))), _MOST_WARPS)


def widths_of(columns: int) -> list[int]:
    """Returns powers of two that cover this many columns, with at most a quarter in excess."""
    widths: list[int] = []
    while columns > 0:
        width = power_of_two(columns)
        if width - columns > max(1, columns // 4):
            width //= 2
        widths.append(width)
        columns -= width
    return widths
