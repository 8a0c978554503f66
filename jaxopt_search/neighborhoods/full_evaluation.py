"""What a search takes for its neighborhood: one with deltas, or moves that are priced in full."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxopt_search.backends import memory
from jaxopt_search.backends.costs import cost_change, cost_of
from jaxopt_search.contracts import check_part, solution_shape
from jaxopt_search.pytrees import pytree
from jaxopt_search.types import (
    Cost,
    Entries,
    Enumerable,
    EnumerableMoves,
    Move,
    Moves,
    Neighborhood,
    Solution,
    Words,
)


class Evaluated(NamedTuple):
    """A solution and its cost, [] int32 or float32; the cost is None in a snapshot."""

    solution: Solution
    cost: Any


@pytree
@dataclasses.dataclass(frozen=True)
class FullEvaluation(Enumerable):
    """The neighborhood of `moves`, O(cost of the problem) a move. Portable to kernels only.

    In a kernel a thread prices a move: it computes the cost of the solution after it, by whatever
    plain JAX that is.

    Example:
      >>> import jaxopt_search as js
      >>> problem, hood = js.nqueens(4), FullEvaluation(js.Swap())
      >>> placed = hood.init(problem, jnp.arange(4))
      >>> swap = hood.propose(problem, placed, (jnp.uint32(0), jnp.uint32(0)))
      >>> [int(row) for row in swap], int(placed.cost), int(hood.delta(problem, placed, swap))
      ([0, 1], 6, -4)
    """

    moves: Any = dataclasses.field(metadata={"static": True})

    @property
    def num_words(self) -> int:
        return self.moves.num_words

    @property
    def space(self) -> str | None:
        return self.moves.space

    def init(self, problem: Any, solution: Solution) -> Evaluated:
        return Evaluated(solution, cost_of(problem, solution))

    def known_cost(self, state: Evaluated) -> Cost:
        return state.cost

    def solution(self, problem: Any, snapshot: Evaluated) -> Solution:
        return snapshot.solution

    def snapshot(self, state: Evaluated) -> Evaluated:
        return state._replace(cost=None)

    def propose(self, problem: Any, state: Evaluated, words: Words) -> Move:
        return _each(self.moves.propose, problem, state, words)

    def delta(self, problem: Any, state: Evaluated, move: Move) -> Cost:
        def one(own: Any, move: Move) -> Cost:
            problem, (solution, cost) = own
            return cost_change(cost_of(problem, self.moves.apply(problem, solution, move)), cost)

        return memory.each(one, (problem, state), move)

    def commit(self, problem: Any, state: Evaluated, move: Move, accept: jax.Array) -> Evaluated:
        def after(own: tuple[Any, Solution, Move]) -> Solution:
            return self.moves.apply(*own)

        (solution, cost), own = state, (problem, state.solution, move)
        cost_after = memory.each(lambda own, lane: cost_of(own[0], after(own)), own, ())
        solution = memory.overwrite(solution, after, own, accept)
        return Evaluated(solution, jnp.where(accept, cost_after, cost))

    def num_moves(self, problem: Any) -> int:
        return self.moves.num_moves(problem, solution_shape(problem))

    def shape(self, problem: Any) -> tuple[int, int]:
        return self.moves.shape(problem, solution_shape(problem))

    def extent(self, problem: Any) -> tuple[Any, Any]:
        return self.moves.extent(problem, solution_shape(problem))

    def move_at(
        self, problem: Any, state: Evaluated, row: jax.Array, column: jax.Array
    ) -> tuple[Move, jax.Array]:
        return _each(self.moves.move_at, problem, state, row, column)

    def undone(self, problem: Any, state: Evaluated, move: Move) -> Entries:
        return _each(self.moves.undone, problem, state, move)


def _each(method: Callable[..., Any], problem: Any, state: Evaluated, *lanes: Any) -> Any:
    """Returns what one of the moves' methods returns, for each lane."""

    def one(own: Any, lane: Any) -> Any:
        return method(*own, *lane)

    return memory.each(one, (problem, state.solution), lanes)


def as_neighborhood(neighborhood: Any) -> Neighborhood:
    """Returns a `Neighborhood`, or `FullEvaluation` of `Moves`.

    Raises:
      TypeError: if it is neither, or no pytree.
    """
    if isinstance(neighborhood, Moves):
        return FullEvaluation(neighborhood)
    check_part(neighborhood, Neighborhood)
    return neighborhood


def is_enumerable(neighborhood: Neighborhood) -> bool:
    """Returns whether the moves stand in a table."""
    if isinstance(neighborhood, FullEvaluation):
        return isinstance(neighborhood.moves, EnumerableMoves)
    return isinstance(neighborhood, Enumerable)


def as_enumerable(neighborhood: Any) -> Enumerable:
    """Like `as_neighborhood`, but the moves must stand in a table.

    Raises:
      TypeError: if they do not, and as `as_neighborhood`.
    """
    neighborhood = as_neighborhood(neighborhood)
    if not is_enumerable(neighborhood):
        found = neighborhood.moves if isinstance(neighborhood, FullEvaluation) else neighborhood
        raise TypeError(
            f"neighborhood is a {type(found).__name__}, expected a js.Enumerable, whose moves stand"
            " in a table, such as SwapTable()"
        )
    return neighborhood
