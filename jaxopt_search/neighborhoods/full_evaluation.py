"""What a search takes for its neighborhood: one with deltas, or moves that are priced in full."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxopt_search.backends.costs import cost_change, cost_of
from jaxopt_search.contracts import solution_shape
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
)


class Evaluated(NamedTuple):
    """A solution and its cost, [] int32 or float32; the cost is None in a snapshot."""

    solution: Solution
    cost: Any


@pytree
@dataclasses.dataclass(frozen=True)
class FullEvaluation(Enumerable):
    """The neighborhood of `moves`, O(cost of the problem) a move. Not portable: XLA only.

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

    def obstacle(self, problem: Any) -> str:
        return f"{type(self.moves).__name__} has no delta of its own and is priced in full"

    def init(self, problem: Any, solution: Solution) -> Evaluated:
        return Evaluated(solution, cost_of(problem, solution))

    def known_cost(self, representation: Evaluated) -> Cost:
        return representation.cost

    def solution(self, problem: Any, snapshot: Evaluated) -> Solution:
        return snapshot.solution

    def snapshot(self, representation: Evaluated) -> Evaluated:
        return representation._replace(cost=None)

    def propose(
        self, problem: Any, representation: Evaluated, words: tuple[jax.Array, ...]
    ) -> Move:
        def one(words: tuple[jax.Array, ...]) -> Move:
            return self.moves.propose(problem, representation.solution, words)

        return _of_each(one, words)

    def delta(self, problem: Any, representation: Evaluated, move: Move) -> Cost:
        def one(move: Move) -> Cost:
            after = self.moves.apply(problem, representation.solution, move)
            return cost_change(cost_of(problem, after), representation.cost)

        return _of_each(one, move)

    def commit(
        self, problem: Any, representation: Evaluated, move: Move, accept: jax.Array
    ) -> Evaluated:
        after = self.init(problem, self.moves.apply(problem, representation.solution, move))
        return jax.tree.map(lambda new, old: jnp.where(accept, new, old), after, representation)

    def num_moves(self, problem: Any) -> int:
        return self.moves.num_moves(problem, solution_shape(problem))

    def shape(self, problem: Any) -> tuple[int, int]:
        return self.moves.shape(problem, solution_shape(problem))

    def extent(self, problem: Any) -> tuple[Any, Any]:
        return self.moves.extent(problem, solution_shape(problem))

    def move_at(
        self, problem: Any, representation: Evaluated, row: jax.Array, column: jax.Array
    ) -> tuple[Move, jax.Array]:
        def one(at: tuple[jax.Array, jax.Array]) -> tuple[Move, jax.Array]:
            return self.moves.move_at(problem, representation.solution, *at)

        return _of_each(one, (row, column))

    def undone(self, problem: Any, representation: Evaluated, move: Move) -> Entries:
        return self.moves.undone(problem, representation.solution, move)


def _of_each(one: Callable[[Any], Any], tree: Any) -> Any:
    """Returns what a function gives for a tree of scalars, or for each place of arrays."""
    for _ in range(jax.tree.leaves(tree)[0].ndim):
        one = jax.vmap(one)
    return one(tree)


def as_neighborhood(neighborhood: Any) -> Neighborhood:
    """Returns a `Neighborhood`, or `FullEvaluation` of `Moves`.

    Raises:
      TypeError: if it is neither, or no pytree.
    """
    kind = type(neighborhood).__name__
    if isinstance(neighborhood, Moves):
        return FullEvaluation(neighborhood)
    if not isinstance(neighborhood, Neighborhood):
        raise TypeError(
            f"neighborhood is a {kind}, expected a js.Neighborhood, such as Relocate(), or js.Moves"
        )
    if jax.tree.leaves(neighborhood) == [neighborhood]:
        raise TypeError(
            f"neighborhood is a {kind}, expected a pytree; decorate the class with"
            " jax.tree_util.register_static or jaxopt_search.pytree"
        )
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
        is_in_full = isinstance(neighborhood, FullEvaluation)
        kind = type(neighborhood.moves if is_in_full else neighborhood).__name__
        raise TypeError(
            f"neighborhood is a {kind}, expected a js.Enumerable, whose moves stand"
            " in a table, such as SwapTable()"
        )
    return neighborhood
