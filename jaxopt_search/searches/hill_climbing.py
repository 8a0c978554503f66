"""Hill climbing: better and better neighbors, until no neighbor is better.

From many starts at once: Luong, Melab, Talbi, "Parallel local search on GPU: algorithmic level".
"""

import dataclasses
from typing import Any, Literal, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp

from jaxopt_search.checks import check_option
from jaxopt_search.neighborhoods.full_evaluation import as_enumerable
from jaxopt_search.pytrees import pytree, static
from jaxopt_search.searches.base import TableSearch
from jaxopt_search.types import (
    Cost,
    Enumerable,
    Info,
    Problem,
    Rank,
    Representation,
    Snapshot,
    Solution,
    Stream,
)

Improvement: TypeAlias = Literal["best", "first"]


class ClimbingState(NamedTuple):
    """The state of one search.

    Attributes:
      representation: of the current solution.
      cost: [] its cost.
      best: snapshot of the best solution that the search left when it adopted another one.
      best_cost: [] its cost.
      found: the move of the next step, a `base.Found`, made if it leads to a better solution.
      is_done: [] bool, whether the last step found no better neighbor.
    """

    representation: Representation
    cost: Cost
    best: Snapshot
    best_cost: Cost
    found: Any
    is_done: jax.Array


@pytree
@dataclasses.dataclass(frozen=True, kw_only=True)
class HillClimbing(TableSearch):
    """Build it with `hill_climbing`."""

    neighborhood: Enumerable
    choose: Improvement = static()

    def init(self, problem: Problem, solution: Solution) -> ClimbingState:
        start = self.start(problem, solution)
        return self.look(problem, ClimbingState(*start, None, jnp.bool_(False)))

    def step(
        self, stream: Stream, control: None, problem: Problem, state: ClimbingState
    ) -> tuple[ClimbingState, Info]:
        delta = self.neighborhood.delta(problem, state.representation, state.found.move)
        is_better = (delta < 0) & (state.found.key < 1)  # else there may be no move at all
        state = self.make_found(problem, state._replace(is_done=~is_better), delta, is_better)
        return state, Info(is_better.astype(jnp.int32))

    def is_done(self, state: ClimbingState) -> jax.Array:
        return state.is_done

    def forget(self, state: ClimbingState) -> ClimbingState:
        return state._replace(is_done=jnp.bool_(False))

    def rank(self, problem: Problem, state: ClimbingState) -> Rank:
        """Returns what ranks moves: by delta; or the better ones by their place in a circle.

        The circle starts at the move found before.
        """
        if self.choose == "best":
            return lambda entry, delta: (delta,)
        last = jnp.int32(0) if state.found is None else state.found.entry
        rows, columns = self.neighborhood.extent(problem)

        def rank(entry: jax.Array, delta: Cost) -> tuple[jax.Array, jax.Array]:
            ahead = entry - last
            around = jnp.where(ahead < 0, ahead + rows * columns, ahead)
            return (delta >= 0).astype(jnp.int32), around

        return rank


def hill_climbing(neighborhood: Any, *, choose: Improvement = "best") -> HillClimbing:
    """Returns hill climbing to a local optimum; a step looks at all neighbors and makes one move.

    A run in which all searches are at local optima ends at its next stop test, with the status
    `LOCAL_OPTIMA`. Equal neighbors do not count as better.

    Args:
      neighborhood: one whose moves stand in a table (`types.Enumerable`), such as `SwapTable()`; or
        `Swap()`, for any permutation problem, priced by full evaluation.
      choose: `"best"`, the best neighbor; `"first"`, the first better one, looked for in a
        circle that starts at the last move.

    Raises:
      ValueError: if `choose` is neither.
      TypeError: if the moves of `neighborhood` do not stand in a table.

    Example:
      >>> import jaxopt_search as js
      >>> flow, distance = [[0, 5, 2], [5, 0, 3], [2, 3, 0]], [[0, 8, 15], [8, 0, 13], [15, 13, 0]]
      >>> search = hill_climbing(js.SwapTable())
      >>> result = js.solve(js.qap(flow, distance), search, 0, num_searches=4)
      >>> result.fun, result.status.name
      (218, 'LOCAL_OPTIMA')
    """
    check_option("choose", choose, ("best", "first"))
    return HillClimbing(neighborhood=as_enumerable(neighborhood), choose=choose)
