"""A neighborhood for any problem: moves are priced by evaluating the whole solution.

It needs an object with `num_words`, `propose(problem, solution, words)` and
`apply(problem, solution, move)`: a few lines to start with for a new problem.
"""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search.backends import tables
from jaxopt_search.backends.costs import cost_change, cost_of
from jaxopt_search.contracts import solution_shape
from jaxopt_search.pytrees import pytree
from jaxopt_search.types import Cost, Entries, Enumerable, Move, Rank, Solution, null_delta


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

        return jax.vmap(one)(words) if words[0].ndim else one(words)

    def delta(self, problem: Any, representation: Evaluated, move: Move) -> Cost:
        def one(move: Move) -> Cost:
            after = self.moves.apply(problem, representation.solution, move)
            return cost_change(cost_of(problem, after), representation.cost)

        return jax.vmap(one)(move) if jax.tree.leaves(move)[0].ndim else one(move)

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

    def first(
        self, problem: Any, representation: Evaluated, rank: Rank, others: tables.Values
    ) -> tuple[tables.First, Move]:
        rows, columns = self.shape(problem)
        extent = self.extent(problem)

        def at(number: jax.Array, columns: Any) -> tuple[Move, jax.Array]:
            place = tables.row_and_column(number, columns)
            return self.moves.move_at(problem, representation.solution, *place)

        def delta(number: jax.Array) -> Cost:
            move, is_move = at(number, columns)
            change = self.delta(problem, representation, move)
            return jnp.where(is_move, change, null_delta(change.dtype))

        numbers = lax.iota(jnp.int32, rows * columns)
        deltas = jax.vmap(delta)(numbers)

        def keys_of(place: tables.Place, entries: tables.Values) -> Any:
            return rank(place.row * extent[1] + place.column, *entries)

        all_entries = (deltas.reshape(rows, columns), *others)
        found = tables.first((rows, columns), keys_of, all_entries, within=tables.within(*extent))
        return found, at(found.number, extent[1])[0]

    def undone(self, problem: Any, representation: Evaluated, move: Move) -> Entries:
        return self.moves.undone(problem, representation.solution, move)
