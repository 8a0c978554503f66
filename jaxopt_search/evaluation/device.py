"""Counting attacking pairs on the device: pure functions from a placement to a `Total`.

All but `histogram` compare queens pair by pair. Written as q[i] + i and q[i] - i, the two diagonals
of a queen, an attack is that either is the same for both queens.

Source: "Parallel schemes of the N-Queens fitness function on CPU and GPU", Algorithms 1 and 7 on.
"""

from collections.abc import Callable
from typing import TypeAlias

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search.evaluation import totals
from jaxopt_search.evaluation.totals import Total

Scheme: TypeAlias = Callable[[jax.Array], Total]
"""From [n] int32, the column of the queen in each row, to the number of attacking pairs."""

_LANES = 2**22
"""Pairs that `fine_index` compares at once, at least a whole row of its table."""
_ROWS, _COLUMNS = 8192, 1024
"""What is compared at once, row by column."""


def serial(queens: jax.Array) -> Total:
    """Counts in two nested loops, one pair after the other."""
    n = queens.shape[0]

    def row(i: jax.Array, count: Total) -> Total:
        def pair(j: jax.Array, attacks: jax.Array) -> jax.Array:
            return attacks + (jnp.abs(queens[i] - queens[j]) == j - i).astype(jnp.uint32)

        return totals.add(count, totals.of(lax.fori_loop(i + 1, n, pair, jnp.uint32(0))))

    return lax.fori_loop(0, n, row, totals.of(jnp.uint32(0)))


def coarse(queens: jax.Array) -> Total:
    """Counts with a lane per queen, which compares it with all queens behind it."""
    return _by_tiles(queens, _COLUMNS)


def subtasks(queens: jax.Array, *, threshold: int) -> Total:
    """Counts with a lane for every `threshold` comparisons of a queen with those behind it."""
    return _by_tiles(queens, threshold)


def _by_tiles(queens: jax.Array, columns: int) -> Total:
    """Counts with a lane per queen and so many comparisons of each at a time."""
    n = queens.shape[0]
    rows, columns = min(n, _ROWS), min(n, columns)
    row = lax.iota(jnp.int32, n)
    # What fills the tiles up attacks nothing.
    room, nothing = (0, rows + columns), 3 * n
    rising = jnp.pad(queens + row, room, constant_values=nothing)
    falling = jnp.pad(queens - row, room, constant_values=nothing)

    def cut(start: jax.Array, size: int) -> tuple[jax.Array, ...]:
        diagonals = (lax.dynamic_slice(d, (start,), (size,)) for d in (rising, falling))
        return (start + lax.iota(jnp.int32, size), *diagonals)

    def look_at_rows(block: jax.Array, count: Total) -> Total:
        i, *own = (part[:, None] for part in cut(block * rows, rows))

        def look(tile: jax.Array, counts: jax.Array) -> jax.Array:
            j, *others = (part[None, :] for part in cut(tile * columns, columns))
            attacks = ((own[0] == others[0]) | (own[1] == others[1])) & (i < j) & (j < n)
            return counts + jnp.sum(attacks, axis=1, dtype=jnp.uint32)

        first, last = block * rows // columns, -(-n // columns)
        counts = lax.fori_loop(first, last, look, jnp.zeros(rows, jnp.uint32))
        return totals.add(count, totals.total(totals.of(counts)))

    return lax.fori_loop(0, -(-n // rows), look_at_rows, totals.of(jnp.uint32(0)))


def pair_list(n: int) -> jax.Array:
    """Returns all pairs of rows i < j, [2, n (n - 1) / 2] int32: what `fine_pairs` goes by."""
    return jnp.stack(jnp.triu_indices(n, 1)).astype(jnp.int32)


def fine_pairs(pairs: jax.Array, queens: jax.Array) -> Total:
    """Counts with a lane for each pair of a list from `pair_list`."""
    first, second = queens[pairs[0]], queens[pairs[1]]
    attacks = jnp.abs(first - second) == pairs[1] - pairs[0]
    return totals.of(jnp.sum(attacks, dtype=jnp.uint32))


def fine_index(queens: jax.Array) -> Total:
    """Counts with a lane per pair, which computes from its number what it compares.

    The triangle of pairs is folded to a rectangle: its row r holds those of queen r and those of
    the queen as far from the end, n - 1 or n of them together.
    """
    n = queens.shape[0]
    shift = n % 2
    width, height = n - 1 + shift, n // 2
    rows = max(1, min(_LANES // max(width, 1), height))
    lane = lax.iota(jnp.int32, rows * width)

    def look(chunk: jax.Array, count: Total) -> Total:
        number = chunk * rows + lane // width
        i, j = _unfolded(number, lane % width, n)
        attacks = (jnp.abs(queens[i] - queens[j]) == j - i) & (number < height)
        return totals.add(count, totals.of(jnp.sum(attacks, dtype=jnp.uint32)))

    return lax.fori_loop(0, -(-height // rows), look, totals.of(jnp.uint32(0)))


def _unfolded(row: jax.Array, column: jax.Array, n: int) -> tuple[jax.Array, jax.Array]:
    """Returns the pair i < j that stands at a place of the folded triangle."""
    shift = n % 2
    is_own = column >= row + shift
    i = jnp.where(is_own, row, n - 1 - shift - row)
    j = jnp.where(is_own, column + 1 - shift, n - 1 - column)
    return i, j


def histogram(queens: jax.Array) -> Total:
    """Counts the queens on each diagonal, O(n): each attacks all others that stand on it."""
    n = queens.shape[0]
    row = lax.iota(jnp.int32, n)
    diagonals = jnp.stack([queens + row, queens - row + (3 * n - 2)])
    on = jnp.zeros(4 * n - 2, jnp.uint32).at[diagonals].add(1, mode="promise_in_bounds")
    others = on.at[diagonals].get(mode="promise_in_bounds") - 1
    return totals.half(totals.total(totals.of(others.ravel())))


PURE: dict[str, Scheme] = {
    "serial": serial,
    "coarse": coarse,
    "fine_index": fine_index,
    "histogram": histogram,
}
