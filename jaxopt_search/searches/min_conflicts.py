"""Min-conflicts: every lane works on one conflict until it is resolved.

Source: Minton, Johnston, Philips, Laird, "Minimizing conflicts: a heuristic repair method for
constraint satisfaction and scheduling problems", 1992; here many conflicts are worked on at once,
and the cheapest of their moves is made.
"""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxopt_search.backends import memory, random
from jaxopt_search.checks import check_count
from jaxopt_search.pytrees import pytree, static
from jaxopt_search.searches import annealing, schedules
from jaxopt_search.searches.acceptance import Acceptance, Trial, metropolis
from jaxopt_search.searches.base import TrajectorySearch
from jaxopt_search.types import Cost, Info, Representation, Snapshot, Solution, Stream, null_delta

_NEEDED = ("is_in_conflict", "propose_at", "num_words_at", "delta")


class MinConflictsState(NamedTuple):
    """The state of one search.

    Attributes:
      representation: of the current solution.
      cost: [] its cost.
      best: snapshot of the best solution remembered. The current solution may be better.
      best_cost: [] its cost.
      place: [lanes] int32, the position that each lane works on.
    """

    representation: Representation
    cost: Cost
    best: Snapshot
    best_cost: Cost
    place: jax.Array


@pytree
@dataclasses.dataclass(frozen=True, kw_only=True)
class MinConflicts(TrajectorySearch):
    """Build it with `min_conflicts`."""

    neighborhood: Any
    acceptance: Acceptance
    moves_per_search: int = static()

    def init(self, problem: Any, solution: Solution) -> MinConflictsState:
        number = max(memory.power_of_two(self.moves_per_search), memory.LANES)
        # As fractions of 2**32, so that `place * n // number` stays within a word.
        share = jnp.arange(number, dtype=jnp.uint32) * jnp.uint32(2**32 // number)
        place = random.below(share, problem.n)
        return MinConflictsState(*self.start(problem, solution), place=place)

    def step(
        self, stream: Stream, control: jax.Array, problem: Any, state: MinConflictsState
    ) -> tuple[MinConflictsState, Info]:
        hood, lane = self.neighborhood, memory.lanes(self.moves_per_search)
        is_own, none = lane < self.moves_per_search, jnp.int32(lane.shape[0])
        own = jnp.where(is_own, lane, 0)

        def work(
            tree: tuple[MinConflictsState, jax.Array], where: jax.Array
        ) -> tuple[MinConflictsState, jax.Array]:
            state, _ = tree
            at = problem, state.representation
            words = stream.words(lane.astype(jnp.uint32), hood.num_words_at + 1)
            other, *to_propose = words
            place = memory.load(state.place, own)
            is_in_conflict = hood.is_in_conflict(*at, place)
            place = jnp.where(is_in_conflict, place, random.below(other, problem.n))
            moves = hood.propose_at(*at, place, tuple(to_propose))
            deltas = hood.delta(*at, moves)
            state = state._replace(place=memory.store(state.place, own, place, is_own & where))

            # As in annealing: the cheapest move is put to the Metropolis test.
            deltas = jnp.where(is_own & (deltas == deltas), deltas, null_delta(deltas.dtype))
            delta = jnp.min(deltas)
            move = memory.pick(moves, jnp.min(jnp.where(deltas == delta, lane, none)))
            drawn = annealing.words_of_the_test(stream, self, words, 1)
            is_made = self.acceptance.passes(Trial(control, None, state.cost, delta, drawn))
            is_made = where & (is_made & (delta < null_delta(delta.dtype)))
            state = self.remember(state, is_made & (delta > 0))
            state = self.make(problem, state, move, delta, is_made)
            return state, is_made.astype(jnp.int32)

        is_open = state.cost > 0
        state, accepted = memory.when(is_open, work, (state, is_open.astype(jnp.int32)))
        return state, Info(accepted=accepted)

    def evaluations_per_step(self, problem: Any) -> int:
        return self.moves_per_search

    def num_warps(self, problem: Any, num_searches: int) -> int:
        to_price = annealing.warps_to_price(self.moves_per_search, num_searches)
        return max(to_price, self.neighborhood.num_warps(problem))


def min_conflicts(
    neighborhood: Any,
    schedule: float | jax.Array | schedules.Schedule = 0.1,
    *,
    moves_per_search: int = 32,
) -> MinConflicts:
    """Returns a search that works on one conflict for each of the moves that it prices.

    Each of `moves_per_search` lanes keeps a position that is in conflict, and proposes moves of it
    until it no longer is; then it looks at random ones for another. In a step the cheapest proposal
    is made if it passes the Metropolis test. A search whose cost is 0 makes no more moves.

    Args:
      neighborhood: a `Neighborhood` that also has, portable, `is_in_conflict(problem,
        representation, position)`, `propose_at(problem, representation, position, words)` and
        `num_words_at`, for a problem whose positions are numbered up to its `n`; such as
        `QueenSwap`.
      schedule: a temperature, or a function from the step to one.
      moves_per_search: M, the moves priced per step.

    Raises:
      ValueError: if `moves_per_search` is out of range.
      TypeError: if `neighborhood` or `schedule` is not of these kinds.

    Example:
      >>> import jaxopt_search as js
      >>> problem = js.nqueens(30)
      >>> js.solve(problem, min_conflicts(js.QueenSwap()), key=0, target=0, max_steps=2000).fun
      0
    """
    moves_per_search = check_count("moves_per_search", moves_per_search, 1, annealing.MAX_MOVES)
    if lacks := [name for name in _NEEDED if not hasattr(neighborhood, name)]:
        kind = type(neighborhood).__name__
        raise TypeError(f"neighborhood is a {kind} without {lacks[0]}, expected one like QueenSwap")
    return MinConflicts(
        neighborhood=neighborhood,
        acceptance=metropolis(schedule),
        moves_per_search=moves_per_search,
    )
