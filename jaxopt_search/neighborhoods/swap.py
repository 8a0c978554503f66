"""Exchange two entries of a permutation, priced in full or by a delta, or move some, in full."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search.backends.memory import load, store
from jaxopt_search.backends.random import another, below
from jaxopt_search.checks import check_count, check_suits
from jaxopt_search.contracts import solution_shape
from jaxopt_search.types import Entries, Enumerable, EnumerableMoves, Moves, Words, null_delta


class Positions(NamedTuple):
    """Two different positions, int32 scalars."""

    first: jax.Array
    second: jax.Array


@dataclasses.dataclass(frozen=True)
class Swap(EnumerableMoves):
    """All n (n - 1) / 2 swaps, n >= 2, without a price of their own: see `FullEvaluation`.

    If the problem has `free`, [m] int32 with m >= 2, only these m positions are swapped.

    Example:
      >>> swap = Positions(jnp.int32(0), jnp.int32(2))
      >>> Swap().apply(None, jnp.array([3, 0, 2, 1]), swap).tolist()
      [2, 0, 3, 1]
    """

    num_words = 2
    space = "permutation"

    def propose(self, problem: Any, solution: jax.Array, words: Words) -> Positions:
        free, n = positions(problem, solution)
        first = below(words[0], n)
        second = another(words[1], first, n)
        if free is not None:
            first, second = load(free, first), load(free, second)
        return Positions(first, second)

    def num_moves(self, problem: Any, solution: jax.Array) -> int:
        n = int(positions(problem, solution)[1])
        return n * (n - 1) // 2

    def shape(self, problem: Any, solution: jax.Array) -> tuple[int, int]:
        """Returns the shape of a table of positions by their entries; a swap stands there twice."""
        return solution.shape[0], solution.shape[0]

    def extent(self, problem: Any, solution: jax.Array) -> tuple[Any, Any]:
        """Returns how many first rows and columns of it count: the problem may have room behind."""
        number = problem.num_entries
        return self.shape(problem, solution) if number is None else (number, number)

    def move_at(
        self, problem: Any, solution: jax.Array, row: jax.Array, column: jax.Array
    ) -> tuple[Positions, jax.Array]:
        """Returns the swap that brings entry `column` to position `row`, and whether it is one."""
        second = jnp.argmax(solution == column).astype(jnp.int32)
        is_swap = row != second
        free, number = positions(problem, solution)
        if free is not None:
            free = jnp.where(lax.iota(jnp.int32, free.shape[0]) < number, free, -1)
            is_swap &= (free == row).any() & (free == second).any()
        return Positions(row, second), is_swap

    def undone(self, problem: Any, solution: jax.Array, move: Positions) -> Entries:
        return tuple((position, solution[position]) for position in move)

    def apply(self, problem: Any, solution: jax.Array, move: Positions) -> jax.Array:
        pair = jnp.stack(move)
        return solution.at[pair].set(solution[pair[::-1]])


def positions(problem: Any, solution: jax.Array) -> tuple[jax.Array | None, Any]:
    """Returns the positions that may change, None for the first ones, and how many they are.

    The number is an integer, or [] int32 where the problem has room for more: then `free` may have
    more behind, too.
    """
    free = problem.free
    if problem.num_entries is None:
        return free, (solution if free is None else free).shape[0]
    return free, problem.num_entries if free is None else problem.num_free


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class DeltaSwap(Enumerable):
    """All n (n - 1) / 2 swaps of a problem with `swap_delta(permutation, first, second)`.

    In a QAP two facilities exchange their locations, at O(n) a price. Other problems are refused
    unless they have `swap_delta`. The representation is the permutation itself.

    In tables, rows and columns are positions, and a swap stands where the row is the lower one; it
    undoes itself.

    Example:
      >>> import jaxopt_search as js
      >>> flow, distance = [[0, 5, 2], [5, 0, 3], [2, 3, 0]], [[0, 8, 15], [8, 0, 13], [15, 13, 0]]
      >>> problem, assignment = js.qap(flow, distance), jnp.array([1, 0, 2])
      >>> swap = Positions(jnp.int32(0), jnp.int32(1))
      >>> int(problem.cost(assignment)), int(DeltaSwap().delta(problem, assignment, swap))
      (222, -4)
    """

    num_words = 2
    is_portable = True
    space = "permutation"

    def init(self, problem: Any, solution: jax.Array) -> jax.Array:
        suits = problem.swap_delta is not None
        check_suits("DeltaSwap", "one with swap_delta", problem, suits)
        return solution

    def solution(self, problem: Any, snapshot: jax.Array) -> jax.Array:
        return snapshot

    def snapshot(self, solution: jax.Array) -> jax.Array:
        return solution

    def propose(self, problem: Any, solution: jax.Array, words: Words) -> Positions:
        return Swap().propose(problem, solution, words)

    def delta(self, problem: Any, solution: jax.Array, move: Positions) -> jax.Array:
        change = problem.swap_delta(solution, move.first, move.second)
        n, _ = Swap().extent(problem, solution)
        is_null = jnp.full_like(change, n < 2, bool)
        return jnp.where(is_null, null_delta(change.dtype), change)

    def commit(
        self, problem: Any, solution: jax.Array, move: Positions, accept: jax.Array
    ) -> jax.Array:
        first, second = load(solution, move.first), load(solution, move.second)
        solution = store(solution, move.first, second, accept)
        return store(solution, move.second, first, accept)

    def num_moves(self, problem: Any) -> int:
        return Swap().num_moves(problem, solution_shape(problem))

    def shape(self, problem: Any) -> tuple[int, int]:
        return Swap().shape(problem, solution_shape(problem))

    def extent(self, problem: Any) -> tuple[Any, Any]:
        return Swap().extent(problem, solution_shape(problem))

    def move_at(
        self, problem: Any, solution: jax.Array, row: jax.Array, column: jax.Array
    ) -> tuple[Positions, jax.Array]:
        is_swap = row < column
        if problem.is_free is not None:
            is_swap &= (load(problem.is_free, row) & load(problem.is_free, column)) > 0
        return Positions(row, column), is_swap

    def undone(self, problem: Any, solution: jax.Array, move: Positions) -> Entries:
        return ((jnp.minimum(move.first, move.second), jnp.maximum(move.first, move.second)),)


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

    def __post_init__(self) -> None:
        object.__setattr__(self, "max_length", check_count("max_length", self.max_length))

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
    low, high = jnp.minimum(start, target), jnp.maximum(start, target) + length
    is_passed = (place >= low) & (place < high)
    shift = jnp.where(target > start, length, -length)
    return solution[place + jnp.where(is_own, start - target, jnp.where(is_passed, shift, 0))]
