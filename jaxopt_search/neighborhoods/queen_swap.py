"""N-Queens: two rows exchange their queens, priced in O(1) by counters of the diagonals.

The counters are from Sosic and Gu, "A polynomial time algorithm for the N-Queens problem", 1990.
"""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxopt_search.backends.memory import load, store
from jaxopt_search.backends.random import another
from jaxopt_search.checks import check_suits
from jaxopt_search.neighborhoods.swap import Positions, Swap
from jaxopt_search.problems.queens.attacks import on_diagonals
from jaxopt_search.problems.queens.problem import NQueens
from jaxopt_search.types import Neighborhood, Words, null_delta


class CountedQueens(NamedTuple):
    """A placement with the number of queens on each diagonal.

    Attributes:
      queens: [n] the column of the queen in each row; all are int16 for n below 2**15, else int32.
      rising: [2 n] queens with that sum of row and column. None in a snapshot.
      falling: [2 n] queens with that difference of column and row, plus n. None in a snapshot.

    Here n is the problem's capacity; what is no queen stands on no diagonal.
    """

    queens: jax.Array
    rising: Any
    falling: Any


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class QueenSwap(Neighborhood):
    """All n (n - 1) / 2 swaps of two rows of an `NQueens` problem.

    `propose_at` draws four random rows, and takes the first one from which a queen would find no
    other on its new diagonals, or the last.

    Example:
      >>> import jaxopt_search as js
      >>> problem, hood = js.nqueens(4), QueenSwap()
      >>> placed = hood.init(problem, jnp.arange(4))
      >>> int(hood.delta(problem, placed, Positions(jnp.int32(0), jnp.int32(1))))
      -4
    """

    num_words = 2
    num_words_at = 4
    is_portable = True
    space = "permutation"

    def init(self, problem: Any, solution: jax.Array) -> CountedQueens:
        check_suits("QueenSwap", "an NQueens", problem, isinstance(problem, NQueens))
        rising, falling = on_diagonals(solution, problem.num_entries)
        return CountedQueens(solution.astype(rising.dtype), rising, falling)

    def solution(self, problem: Any, snapshot: CountedQueens) -> jax.Array:
        return snapshot.queens.astype(jnp.int32)

    def snapshot(self, placed: CountedQueens) -> CountedQueens:
        return placed._replace(rising=None, falling=None)

    def propose(self, problem: Any, placed: CountedQueens, words: Words) -> Positions:
        return Swap().propose(problem, placed.queens, words)

    def propose_at(
        self, problem: Any, placed: CountedQueens, row: jax.Array, words: Words
    ) -> Positions:
        """Returns a swap of `row` with another one."""

        def partner(word: jax.Array) -> tuple[jax.Array, jax.Array]:
            other = another(word, row, problem.n)
            column = _load(placed.queens, other)
            rising = load(placed.rising, row + column)
            falling = load(placed.falling, column - row + problem.capacity)
            return other, (rising == 0) & (falling == 0)

        *others, last = (partner(word) for word in words)
        chosen = last[0]
        for other, is_free in reversed(others):
            chosen = jnp.where(is_free, other, chosen)
        return Positions(row, chosen)

    def is_in_conflict(self, problem: Any, placed: CountedQueens, row: jax.Array) -> jax.Array:
        """Returns whether the queen in `row` is attacked."""
        return is_attacked(problem.capacity, placed, row)

    def delta(self, problem: Any, placed: CountedQueens, move: Positions) -> jax.Array:
        i, k = move
        a, b = _load(placed.queens, i), _load(placed.queens, k)

        def of(counts: jax.Array, *places: jax.Array) -> tuple[jax.Array, ...]:
            return tuple(_load(counts, place) for place in places)

        n = problem.capacity
        old_i, old_k, new_i, new_k = of(placed.rising, i + a, k + b, i + b, k + a)
        change = new_i + new_k - old_i - old_k
        old_i, old_k, new_i, new_k = of(placed.falling, a - i + n, b - k + n, b - i + n, a - k + n)
        change += new_i + new_k - old_i - old_k + 4
        # The two attack each other before on one diagonal, and afterwards on one that crosses it.
        are_facing = jnp.abs(i - k) == jnp.abs(a - b)
        change += 2 * are_facing.astype(jnp.int32)
        return jnp.where(problem.n < 2, null_delta(change.dtype), change)

    def commit(
        self, problem: Any, placed: CountedQueens, move: Positions, accept: jax.Array
    ) -> CountedQueens:
        (i, k), (queens, rising, falling) = move, placed
        a, b, n = _load(queens, i), _load(queens, k), problem.capacity
        one = accept.astype(jnp.int32)
        rising_after = _moved(rising, (i + a, k + b), (i + b, k + a), one)
        falling_after = _moved(falling, (a - i + n, b - k + n), (b - i + n, a - k + n), one)
        for place, count in rising_after:
            rising = store(rising, place, count, jnp.bool_(True))
        for place, count in falling_after:
            falling = store(falling, place, count, jnp.bool_(True))
        queens = store(queens, i, b, accept)
        return CountedQueens(store(queens, k, a, accept), rising, falling)


def _moved(
    counts: Any, left: tuple[jax.Array, ...], met: tuple[jax.Array, ...], one: jax.Array
) -> list[tuple[jax.Array, jax.Array]]:
    """Returns four diagonals with their counts after two queens changed diagonals."""
    after = []
    for (place, other), change in ((left, -one), (met, one)):
        both = change + change * (place == other).astype(jnp.int32)
        for each in (place, other):
            after.append((each, _load(counts, each) + both))
    return after


def _load(buffer: Any, index: jax.Array) -> jax.Array:
    return load(buffer, index).astype(jnp.int32)


def is_attacked(capacity: int, placed: CountedQueens, row: jax.Array) -> jax.Array:
    """Returns whether the queen in each of `row` is attacked; portable."""
    column = _load(placed.queens, row)
    falling = load(placed.falling, column - row + capacity)
    return (load(placed.rising, row + column) > 1) | (falling > 1)
