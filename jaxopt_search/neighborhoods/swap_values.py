"""Two variables exchange their values: moves that keep how often each value occurs."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from jaxopt_search.backends import memory, tables
from jaxopt_search.backends.memory import load
from jaxopt_search.neighborhoods.assign import Vector, VectorNeighborhood
from jaxopt_search.neighborhoods.full_evaluation import Evaluated, FullEvaluation
from jaxopt_search.neighborhoods.swap import Positions, Swap
from jaxopt_search.problems.finite import vector
from jaxopt_search.types import Cost, Entries, EnumerableMoves, Rank, null_delta


class _Swaps(EnumerableMoves):
    """Swaps for `FullEvaluation`."""

    num_words = 2

    def propose(self, problem: Any, solution: jax.Array, words: tuple[jax.Array, ...]) -> Positions:
        return Swap().propose(problem, solution, words)

    def apply(self, problem: Any, solution: jax.Array, move: Positions) -> jax.Array:
        return Swap().apply(problem, solution, move)

    def num_moves(self, problem: Any, solution: jax.Array) -> int:
        return SwapValues().num_moves(problem)

    def shape(self, problem: Any, solution: jax.Array) -> tuple[int, int]:
        return solution.shape[0], solution.shape[0]

    def move_at(
        self, problem: Any, solution: jax.Array, row: jax.Array, column: jax.Array
    ) -> tuple[Positions, jax.Array]:
        move = Positions(row, column)
        return move, ~_is_null(problem, solution, move)

    def undone(self, problem: Any, solution: jax.Array, move: Positions) -> Entries:
        return _undone(move)


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class SwapValues(VectorNeighborhood):
    """All n (n - 1) / 2 exchanges of the values of two variables.

    Moves are null where the values are equal, or where one lies outside the other's domain. A
    proposal draws two different variables, each pair equally likely. In tables, rows and columns
    are variables, and each exchange stands there twice; a move undoes itself.

    If the problem has hooks (`types.VectorProblem`), a move is priced by `swap_values_delta`, else
    by a full evaluation.

    Example:
      >>> import jaxopt_search as js
      >>> problem = js.graph_coloring([[0, 1], [2, 3]], 2)
      >>> search = js.hill_climbing(js.SwapValues())
      >>> js.solve(problem, search, 0, num_searches=1, initial=[[0, 0, 1, 1]]).fun
      0
    """

    num_words = 2
    _in_full = FullEvaluation(_Swaps())

    def propose(
        self, problem: Any, representation: Vector, words: tuple[jax.Array, ...]
    ) -> Positions:
        return Swap().propose(problem, representation.solution, words)

    def delta(self, problem: Any, representation: Vector, move: Positions) -> Cost:
        if isinstance(representation, Evaluated):
            change = self._in_full.delta(problem, representation, move)
        else:
            change = problem.swap_values_delta(*representation, move.first, move.second)
        is_none = _is_null(problem, representation.solution, move)
        return jnp.where(is_none, null_delta(change.dtype), change)

    def commit(
        self, problem: Any, representation: Vector, move: Positions, accept: jax.Array
    ) -> Vector:
        if isinstance(representation, Evaluated):
            return self._in_full.commit(problem, representation, move, accept)
        values = tuple(load(representation.solution, variable) for variable in move)
        for variable, value in zip(move, reversed(values), strict=True):
            representation = vector.assigned(problem, representation, variable, value, accept)
            memory.barrier()
        return representation

    def num_moves(self, problem: Any) -> int:
        n = problem.domain_sizes.shape[0]
        return n * (n - 1) // 2

    def shape(self, problem: Any) -> tuple[int, int]:
        n = problem.domain_sizes.shape[0]
        return n, n

    def first(
        self, problem: Any, representation: Vector, rank: Rank, others: tables.Values
    ) -> tuple[tables.First, Positions]:
        if isinstance(representation, Evaluated):
            return self._in_full.first(problem, representation, rank, others)
        n = problem.domain_sizes.shape[0]

        def keys_of(place: tables.Place, entries: tables.Values) -> Any:
            move = Positions(*jnp.broadcast_arrays(place.row, place.column))
            delta = self.delta(problem, representation, move)
            return rank(place.row * n + place.column, delta, *entries)

        found = tables.first((n, n), keys_of, others)
        return found, Positions(*tables.row_and_column(found.number, n))

    def undone(self, problem: Any, representation: Vector, move: Positions) -> Entries:
        return _undone(move)


def _is_null(problem: Any, solution: jax.Array, move: Positions) -> jax.Array:
    (i, j), sizes = move, problem.domain_sizes
    a, b = load(solution, i), load(solution, j)
    return (a == b) | (b >= load(sizes, i)) | (a >= load(sizes, j))


def _undone(move: Positions) -> Entries:
    return (move.first, move.second), (move.second, move.first)
