"""How a kernel cuts a table: into blocks of rows, of which its threads handle one at a time.

A block holds whole rows; its columns stand in one tile or several. Pallas-Triton has arrays of
powers of two only, so heights and widths are such numbers, and what they cover beyond the table is
in excess: there the last row or column is looked up once more, and masked. How a table is cut
decides how fast a kernel is, and no result. `tables` cuts for code of single entries, `rows` for
code of whole rows.
"""

from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp

from jaxopt_search.backends.memory import LANES, power_of_two

Shape: TypeAlias = tuple[int, int]
"""Rows and columns of a table."""


class Load(NamedTuple):
    """What a program of a kernel is given at a time.

    Attributes:
      num_warps: a power of two.
      per_thread: entries of a block that each thread handles.
    """

    num_warps: int
    per_thread: int


# For single entries: what was fastest for tabu search on an H200.
_TINY, _MOST_TINY_COLUMNS = Load(num_warps=1, per_thread=16), 16
_NARROW, _MOST_NARROW_COLUMNS = Load(num_warps=4, per_thread=8), 32
_MEDIUM, _MOST_MEDIUM_COLUMNS = Load(num_warps=2, per_thread=16), 64
_LONG, _LONG_BEYOND = Load(num_warps=4, per_thread=8), 2**12
"""`_LONG` is for tables of few columns with more entries than this."""
_BROAD = Load(num_warps=8, per_thread=4)
"""For tables of more columns than `_MEDIUM` is for."""
_SMALL = 2**10
"""Entries that are handled in one block, by whatever warps there are."""

# For whole rows: what was fastest for genetic search on an H200. A block has twice the entries for
# which warps are chosen, so that a table of that size takes one block.
_WARP_PER_THREAD, _BLOCK_PER_THREAD, _MOST_WARPS = 16, 32, 8


class Cut(NamedTuple):
    """How a table is cut.

    Attributes:
      shape: of the table.
      height: rows of a block, a power of two.
      widths: columns of the tiles of a block, powers of two.
    """

    shape: Shape
    height: int
    widths: tuple[int, ...]

    @property
    def num_blocks(self) -> int:
        """How many blocks there are; the last one may have rows in excess."""
        return -(-self.shape[0] // self.height)


def for_entries(shape: Shape) -> Cut:
    """Returns how a table is cut for code of single entries: in blocks of one tile."""
    rows, width = shape[0], power_of_two(shape[1])
    if power_of_two(rows) * width <= _SMALL:
        return Cut(shape, power_of_two(rows), (width,))
    return for_some_rows(shape)


def for_some_rows(shape: Shape) -> Cut:
    """Like `for_entries`, but for some of the rows, it is not known how many."""
    rows, width = shape[0], power_of_two(shape[1])
    load = load_of_entries(shape)
    return Cut(shape, _height(rows, width, load.num_warps, load.per_thread), (width,))


def load_of_entries(shape: Shape) -> Load:
    """Returns the load of a program that handles single entries of a table."""
    rows, columns = shape
    if columns > _MOST_MEDIUM_COLUMNS:
        return _BROAD
    if rows * power_of_two(columns) > _LONG_BEYOND:
        return _LONG
    if columns > _MOST_NARROW_COLUMNS:
        return _MEDIUM
    return _TINY if columns <= _MOST_TINY_COLUMNS else _NARROW


def for_rows(shape: Shape) -> Cut:
    """Returns how a table is cut for code of whole rows: with few columns in excess."""
    widths = tuple(_widths(shape[1]))
    height = _height(shape[0], sum(widths), warps_of_rows(shape), _BLOCK_PER_THREAD)
    return Cut(shape, height, widths)


def warps_of_rows(shape: Shape) -> int:
    """Returns the warps of a program that handles whole rows of a table."""
    entries = power_of_two(shape[0]) * sum(_widths(shape[1]))
    return min(power_of_two(-(-entries // (LANES * _WARP_PER_THREAD))), _MOST_WARPS)


def _height(rows: int, width: int, num_warps: int, per_thread: int) -> int:
    """Returns the rows of a block with this many entries per thread, rounded to a power of two."""
    height = max(num_warps * LANES * per_thread // width, 1)
    return min(1 << height.bit_length() - 1, power_of_two(rows))


def _widths(columns: int) -> list[int]:
    """Returns powers of two that cover this many columns, with at most a quarter in excess."""
    widths: list[int] = []
    while columns > 0:
        width = power_of_two(columns)
        if width - columns > max(1, columns // 4):
            width //= 2
        widths.append(width)
        columns -= width
    return widths


def clamped(places: jax.Array, size: int | jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns places on an axis of this size, the last one in excess; and which are not in excess.

    Args:
      places: int32, at least 0.
    """
    return jnp.minimum(places, size - 1), places < size
