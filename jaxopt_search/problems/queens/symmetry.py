"""Sets of N-Queens placements: which are the same, and how different they are.

A board has eight symmetries. Placements are told apart by fingerprints of 64 bits: sums of random
words, one for each queen's square, which need no new placement for a turned or mirrored board.
"""

from typing import Literal, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxopt_search.backends import random

__all__ = [
    "Distinct",
    "Diversity",
    "as_numbers",
    "canonical",
    "diversity",
    "fingerprint",
    "symmetric_images",
]

Distinct: TypeAlias = Literal["raw", "symmetry"]
"""Which placements differ: all that are not equal, or those that no turn or mirror makes equal."""

_AT_ONCE = 2**22
_KEY = (np.uint32(0x51554545), np.uint32(0x4E530000))


def fingerprint(
    queens: jax.Array, distinct: Distinct, num_entries: jax.Array | None = None
) -> jax.Array:
    """Returns two uint32 words that tell placements apart, [2].

    Args:
      queens: [n] int32, the column of the queen in each row.
      distinct: `"symmetry"` for the same words of all placements that are turned or mirrored into
        one another.
      num_entries: [] int32, only this many first rows have queens; None for all.

    Example:
      >>> queens = jnp.array([1, 3, 0, 2])
      >>> fingerprint(queens, "raw").tolist() == fingerprint(queens[::-1], "raw").tolist()
      False
      >>> fingerprint(queens, "symmetry").tolist() == fingerprint(queens[::-1], "symmetry").tolist()
      True
    """
    n = queens.shape[0] if num_entries is None else num_entries
    row = lax.iota(jnp.int32, queens.shape[0])
    is_queen, last = (row < n)[None], n - 1
    squares = [(row, queens)]
    if distinct == "symmetry":
        squares += [(last - a, b) for a, b in squares]
        squares += [(a, last - b) for a, b in squares]
        squares += [(b, a) for a, b in squares]
    words = _sums(is_queen, *map(jnp.stack, zip(*squares, strict=True)))
    is_least = words[:, 0] == jnp.min(words[:, 0])
    second = jnp.min(jnp.where(is_least, words[:, 1], np.uint32(2**32 - 1)))
    return jnp.stack([jnp.min(words[:, 0]), second])


def _sums(is_queen: jax.Array, row: jax.Array, column: jax.Array) -> jax.Array:
    """Returns the sums of two words for each of [I, n] squares with queens, [I, 2] uint32."""
    words = random.threefry2x32(_KEY, (row.astype(jnp.uint32), column.astype(jnp.uint32)))
    return jnp.sum(
        jnp.where(is_queen[None], jnp.stack(words, axis=1), np.uint32(0)), axis=-1, dtype=jnp.uint32
    )


def as_numbers(fingerprints: np.ndarray) -> np.ndarray:
    """Returns fingerprints [B, 2] as [B] uint64.

    Example:
      >>> as_numbers(np.array([[0, 7], [1, 7]], np.uint32)).tolist()
      [7, 4294967303]
    """
    return fingerprints[:, 0].astype(np.uint64) << np.uint64(32) | fingerprints[:, 1]


def symmetric_images(queens: np.ndarray) -> np.ndarray:
    """Returns the eight placements that turn and mirror into one another, [8, n]; on the host.

    Args:
      queens: [n] integers, a permutation.

    Example:
      >>> len(np.unique(symmetric_images(np.array([1, 3, 0, 2])), axis=0))
      2
    """
    last = len(queens) - 1
    images = [queens, queens[::-1]]
    images += [last - image for image in images]
    images += [np.argsort(image) for image in images]
    return np.array(images, queens.dtype)


def canonical(queens: np.ndarray) -> np.ndarray:
    """Returns the one of the `symmetric_images` that comes first when read as a number, [n].

    Example:
      >>> canonical(np.array([2, 0, 3, 1])).tolist()
      [1, 3, 0, 2]
    """
    images = symmetric_images(queens)
    return images[np.lexsort(images.T[::-1])[0]]


class Diversity(NamedTuple):
    """How different the placements of a set are.

    Attributes:
      mean_difference: the share of rows in which two of them differ, the mean over all pairs. For
        independent random permutations it is 1 - 1 / n.
      expected_difference: that number.
      coverage: the share of squares that have a queen in at least one placement.
      num_classes: placements that no symmetry turns into one another.
    """

    mean_difference: float
    expected_difference: float
    coverage: float
    num_classes: int


def diversity(placements: np.ndarray) -> Diversity:
    """Returns how different placements are.

    Args:
      placements: [B, n] integers, B >= 1.

    Raises:
      ValueError: if there are none, or they are not of this shape.

    Example:
      >>> diversity(np.array([[1, 3, 0, 2], [2, 0, 3, 1]]))
      Diversity(mean_difference=1.0, expected_difference=0.75, coverage=0.5, num_classes=1)
    """
    placements = np.asarray(placements)
    if placements.ndim != 2 or not placements.size:
        raise ValueError(f"placements has shape {placements.shape}, expected [B, n] with B >= 1")
    size, n = placements.shape
    alike, covered, rows = 0, 0, max(1, _AT_ONCE // size)
    for first in range(0, n, rows):
        part = placements[:, first : first + rows].astype(np.int64)
        squares = part + n * np.arange(part.shape[1])
        _, on_square = np.unique(squares, return_counts=True)
        alike += int(np.sum(on_square * (on_square - 1)))
        covered += len(on_square)
    words = _fingerprints(jnp.asarray(placements, jnp.int32))
    return Diversity(
        mean_difference=1 - alike / (max(size * (size - 1), 1) * n),
        expected_difference=1 - 1 / n,
        coverage=covered / n**2,
        num_classes=len(np.unique(as_numbers(np.asarray(words)))),
    )


@jax.jit
def _fingerprints(placements: jax.Array) -> jax.Array:
    return lax.map(lambda queens: fingerprint(queens, "symmetry"), placements, batch_size=256)
