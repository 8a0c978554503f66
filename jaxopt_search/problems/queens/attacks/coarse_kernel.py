"""The coarse scheme and its pieces as a fused kernel on NVIDIA GPUs, through XLA elsewhere.

"Elsewhere" includes GPUs that are too old for kernels.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search import backends
from jaxopt_search.backends import counts
from jaxopt_search.backends.counts import Count
from jaxopt_search.backends.memory import load
from jaxopt_search.problems.queens.attacks import device

_ROWS, _COLUMNS, _NUM_WARPS = 64, 64, 2
"""A block of rows is a whole number of tiles of columns."""
_MAX_QUEENS = 2**22
"""Up to here sums of two coordinates are exact in float32."""


def coarse(queens: jax.Array) -> Count:
    """Counts with a lane per queen, which compares it with all queens behind it."""
    return _on_its_platform(queens, queens.shape[0], device.coarse)


def subtasks(queens: jax.Array, *, threshold: int) -> Count:
    """Counts with a lane for every `threshold` comparisons of a queen with those behind it."""
    other = functools.partial(device.subtasks, threshold=threshold)
    return _on_its_platform(queens, threshold, other)


def _on_its_platform(queens: jax.Array, length: int, other: device.Scheme) -> Count:
    has_none = any(map(backends.refusal, jax.local_devices()))
    if has_none or queens.shape[0] > _MAX_QUEENS:
        return other(queens)
    cuda = functools.partial(in_pieces, length=length)
    return lax.platform_dependent(queens, cuda=cuda, default=other)


def in_pieces(queens: jax.Array, *, length: int, implementation: str = "cuda") -> Count:
    """Counts in a kernel: a program for some queens and `length` of the queens behind each.

    Args:
      queens: [n] int32, n up to 2**22.
      length: queens behind that a program looks at, rounded up to whole tiles.
      implementation: the kernel's, see `backends.launch`.
    """
    n = queens.shape[0]
    num_blocks = -(-n // _ROWS)
    tiles = -(-min(length, n + _COLUMNS) // _COLUMNS)
    num_pieces = -(-n // (tiles * _COLUMNS))
    row = lax.iota(jnp.int32, n)
    # What fills tiles up attacks nothing: neither a queen nor other filling.
    room, nothing = (0, num_blocks * _ROWS + _COLUMNS - n), jnp.float32(jnp.nan)
    rising = jnp.pad((queens + row).astype(jnp.float32), room, constant_values=nothing)
    falling = jnp.pad((queens - row).astype(jnp.float32), room, constant_values=nothing)

    def count(i: jax.Array, diagonals: Any, own: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        block, piece, _ = own
        start = block * _ROWS
        first = start + piece * (tiles * _COLUMNS)
        of_rows = _attacks_in_piece(n, tiles, start, first, diagonals)
        return block, piece, jnp.sum(of_rows).astype(jnp.uint32)

    block, piece = jnp.divmod(lax.iota(jnp.int32, num_blocks * num_pieces), num_pieces)
    _, _, attacks = backends.launch(
        count,
        jnp.int32(1),
        (rising, falling),
        (block, piece, jnp.zeros(block.shape, jnp.uint32)),
        num_warps=_NUM_WARPS,
        implementation=implementation,
    )
    attacks = attacks.reshape(num_blocks, num_pieces)
    return counts.total(counts.total(counts.of(attacks)))


def _attacks_in_piece(
    n: int, tiles: int, start: jax.Array, first: jax.Array, diagonals: tuple[Any, ...]
) -> jax.Array:
    """Returns how many queens behind it each of some rows attacks, [_ROWS] int32; in a kernel.

    Args:
      n: queens.
      tiles: of the columns that are looked at.
      start: the first of the rows.
      first: the first of the columns.
      diagonals: the rising and the falling one of each queen.
    """
    i = start + lax.iota(jnp.int32, _ROWS)
    own = tuple(load(diagonal, i)[:, None] for diagonal in diagonals)

    def attacks(tile: jax.Array) -> tuple[jax.Array, jax.Array]:
        j = first + tile * _COLUMNS + lax.iota(jnp.int32, _COLUMNS)
        others = tuple(load(diagonal, j)[None, :] for diagonal in diagonals)
        # Two sums take fewer of the scarcer instructions than a logical or.
        is_on = [(a == b).astype(jnp.float32) for a, b in zip(own, others, strict=True)]
        return j, is_on[0] + is_on[1]

    def edge(tile: jax.Array, count: jax.Array) -> jax.Array:
        j, found = attacks(tile)
        return count + jnp.where(i[:, None] < j[None, :], found, 0.0)

    def inner(tile: jax.Array, count: jax.Array) -> jax.Array:
        return count + attacks(tile)[1]

    zero = jnp.zeros((_ROWS, _COLUMNS), jnp.float32)
    # Only tiles among a block's own rows hold pairs that are not to be counted.
    last = jnp.clip((n - first + _COLUMNS - 1) // _COLUMNS, 0, tiles)
    border = jnp.clip((start + _ROWS - first) // _COLUMNS, 0, last)
    count = lax.fori_loop(jnp.int32(0), border, edge, zero)
    count = lax.fori_loop(border, last, inner, count)
    return jnp.sum(count.astype(jnp.int32), axis=1)
