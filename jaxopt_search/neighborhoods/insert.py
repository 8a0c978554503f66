"""Move entries of a permutation to another position, one or a few neighbors; priced in full."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search.backends.random import another, below
from jaxopt_search.checks import check_suits
from jaxopt_search.neighborhoods.swap import positions
from jaxopt_search.types import Entries, EnumerableMoves, Moves, Words


class Segment(NamedTuple):
    """`length` entries from position `start` on come to stand from `target` on; int32 scalars."""

    start: jax.Array
    length: jax.Array
    target: jax.Array


@dataclasses.dataclass(frozen=True)
class Insert(EnumerableMoves):
    """Moves of one entry to another position, n >= 2: what is between moves up by one.

    In orders, such as of jobs, neighbors mostly stay neighbors, unlike with `Swap`.

    Example:
      >>> Insert().apply(None, jnp.array([3, 0, 2, 1]), Segment(0, 1, 2)).tolist()
      [0, 2, 3, 1]
    """

    num_words = 2
    space = "permutation"

    def propose(self, problem: Any, solution: jax.Array, words: Words) -> Segment:
        n = _size(problem, solution)
        start = below(words[0], n)
        return Segment(start, jnp.int32(1), another(words[1], start, n))

    def apply(self, problem: Any, solution: jax.Array, move: Segment) -> jax.Array:
        return _moved(solution, move)

    def num_moves(self, problem: Any, solution: jax.Array) -> int:
        return (int(_size(problem, solution)) - 1) ** 2

    def shape(self, problem: Any, solution: jax.Array) -> tuple[int, int]:
        """Returns the shape of a table of positions by entries that come there.

        Of two neighbors that change places, the first one does.
        """
        return solution.shape[0], solution.shape[0]

    def extent(self, problem: Any, solution: jax.Array) -> tuple[Any, Any]:
        number = _size(problem, solution)
        return number, number

    def move_at(
        self, problem: Any, solution: jax.Array, row: jax.Array, column: jax.Array
    ) -> tuple[Segment, jax.Array]:
        start = jnp.argmax(solution == column).astype(jnp.int32)
        return Segment(start, jnp.int32(1), row), (start != row) & (start != row + 1)

    def undone(self, problem: Any, solution: jax.Array, move: Segment) -> Entries:
        return ((move.start, solution[move.start]),)


@dataclasses.dataclass(frozen=True)
class InsertSegment(Moves):
    """Moves of up to `max_length` neighboring entries to another position, in their order.

    Example:
      >>> InsertSegment(2).apply(None, jnp.array([3, 0, 2, 1]), Segment(0, 2, 1)).tolist()
      [2, 3, 0, 1]
    """

    max_length: int = 3

    num_words = 3
    space = "permutation"

    def propose(self, problem: Any, solution: jax.Array, words: Words) -> Segment:
        n = _size(problem, solution)
        length = 1 + below(words[0], jnp.minimum(self.max_length, n - 1))
        start = below(words[1], n - length + 1)
        return Segment(start, length, another(words[2], start, n - length + 1))

    def apply(self, problem: Any, solution: jax.Array, move: Segment) -> jax.Array:
        return _moved(solution, move)


def _size(problem: Any, solution: jax.Array) -> Any:
    free, n = positions(problem, solution)
    check_suits("Insert", "one without fixed entries", problem, free is None)
    return n


def _moved(solution: jax.Array, move: Segment) -> jax.Array:
    """Returns the solution after a move."""
    start, length, target = move
    place = lax.iota(jnp.int32, solution.shape[0])
    is_own = (place >= target) & (place < target + length)
    is_passed = (place >= jnp.minimum(start, target)) & (
        place < jnp.maximum(start, target) + length
    )
    shift = jnp.where(target > start, length, -length)
    return solution[place + jnp.where(is_own, start - target, jnp.where(is_passed, shift, 0))]
