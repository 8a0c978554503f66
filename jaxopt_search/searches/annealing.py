"""Simulated annealing, with one or many moves priced per step.

Sources: Kirkpatrick, Gelatt, Vecchi, "Optimization by simulated annealing", 1983; Lam, Tsoi, Luk,
"Parallel neighbourhood search on many-core platforms", Algorithms 1 and 2 and section 3.2;
Sohn, "Parallel N-ary speculative computation of simulated annealing", 1995, for the first of many.
"""

import dataclasses
from typing import Any, Literal, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp

from jaxopt_search.checks import check_count, check_option
from jaxopt_search.neighborhoods.base import as_neighborhood
from jaxopt_search.portable import memory, random
from jaxopt_search.searches import schedules
from jaxopt_search.searches.base import TemperedSearch, num_warps, passes
from jaxopt_search.types import (
    Cost,
    Info,
    Move,
    Representation,
    Snapshot,
    Solution,
    Stream,
    null_delta,
)

Choose: TypeAlias = Literal["best", "first"]
KeepBest: TypeAlias = Literal["light", "standard"]


class AnnealingState(NamedTuple):
    """The state of one search.

    Attributes:
      representation: of the current solution.
      cost: [] its cost.
      best: snapshot of the best solution remembered. In light-weight annealing the current
        solution may be better.
      best_cost: [] its cost.
    """

    representation: Representation
    cost: Cost
    best: Snapshot
    best_cost: Cost


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class SimulatedAnnealing(TemperedSearch):
    """Build it with `simulated_annealing`."""

    neighborhood: Any
    schedule: schedules.Schedule
    moves_per_search: int = dataclasses.field(metadata={"static": True})
    choose: Choose = dataclasses.field(metadata={"static": True})
    keep_best: KeepBest = dataclasses.field(metadata={"static": True})

    @property
    def draws(self) -> tuple[int, int]:
        if self.choose == "first":
            return self._num_lanes(), self.neighborhood.num_words + 1
        return self._num_lanes() + 1, max(self.neighborhood.num_words, 1)

    def num_warps(self, problem: Any, num_searches: int) -> int:
        to_commit = getattr(self.neighborhood, "num_warps", lambda problem: 1)
        return max(num_warps(self.moves_per_search, num_searches), to_commit(problem))

    def init(self, problem: Any, solution: Solution) -> AnnealingState:
        return AnnealingState(*self._start(problem, solution))

    def step(
        self, stream: Stream, control: jax.Array, problem: Any, state: AnnealingState
    ) -> tuple[AnnealingState, Info]:
        choose = self._best_move if self.choose == "best" else self._first_move
        move, delta, accept = choose(stream, control, problem, state.representation)
        if self.keep_best == "light":
            # The solution about to be left for a worse one may be the best so far.
            state = self._remember(state, accept & (delta > 0))

        state = self._make(problem, state, move, delta, accept)
        if self.keep_best == "standard":
            state = self._remember(state, accept)
        return state, Info(accepted=accept.astype(jnp.int32))

    def _best_move(
        self, stream: Stream, temperature: jax.Array, problem: Any, representation: Representation
    ) -> tuple[Move, Cost, jax.Array]:
        """Returns the cheapest move, the first of equals, its delta, and whether it is accepted."""
        lane = memory.lanes(self.moves_per_search)
        words = stream.words(lane.astype(jnp.uint32), self.neighborhood.num_words)
        moves, deltas = self._priced(problem, representation, lane, words)
        delta = jnp.min(deltas)
        # Two minima take fewer instructions than an argmin.
        winner = jnp.min(jnp.where(deltas == delta, lane, jnp.int32(lane.shape[0])))
        (word,) = stream.words(jnp.uint32(self.moves_per_search), 1)
        return memory.pick(moves, winner), delta, passes(temperature, word, delta)

    def _first_move(
        self, stream: Stream, temperature: jax.Array, problem: Any, representation: Representation
    ) -> tuple[Move, Cost, jax.Array]:
        """Returns the first move that is accepted, its delta, and whether there is one."""
        lane = memory.lanes(self.moves_per_search)
        *words, word = stream.words(lane.astype(jnp.uint32), self.neighborhood.num_words + 1)
        moves, deltas = self._priced(problem, representation, lane, tuple(words))
        none = jnp.int32(lane.shape[0])
        winner = jnp.min(jnp.where(passes(temperature, word, deltas), lane, none))
        move, delta = memory.pick((moves, deltas), jnp.minimum(winner, none - 1))
        return move, delta, winner < none

    def _priced(
        self,
        problem: Any,
        representation: Representation,
        lane: jax.Array,
        words: tuple[jax.Array, ...],
    ) -> tuple[Move, Cost]:
        """Returns the moves of all lanes and their deltas; lanes in excess have null moves."""

        def price(*words: jax.Array) -> tuple[Move, Cost]:
            move = self.neighborhood.propose(problem, representation, words)
            return move, self.neighborhood.delta(problem, representation, move)

        moves, deltas = memory.each_lane(price, *words)
        counts = (lane < self.moves_per_search) & (deltas == deltas)  # NaN never wins
        return moves, jnp.where(counts, deltas, null_delta(deltas.dtype))


def simulated_annealing(
    neighborhood: Any,
    schedule: Any,
    *,
    moves_per_search: int = 1,
    choose: Choose = "best",
    keep_best: KeepBest = "light",
) -> SimulatedAnnealing:
    """Returns simulated annealing that prices `moves_per_search` moves a step and makes one.

    In a step, that many random moves are priced, and one is made if it passes the Metropolis test;
    equal cost passes. With `num_searches` searches and an exchange this is the paper's PSPM; one
    search is SSPM, one move is PSSM.

    Args:
      neighborhood: a `Neighborhood`; or an object with `num_words`, `propose` and `apply` only,
        whose moves are then priced by full evaluation.
      schedule: a temperature, or a function from the step to one, such as an optax schedule.
      moves_per_search: M, the moves priced per step.
      choose: `"best"`, as in the paper: the cheapest move is put to the test. `"first"`: each move
        is, and the first that passes is made, as if they were priced one after the other; so the
        searches are those of annealing with one move, up to M steps at a time.
      keep_best: when a search writes down its best solution: `"standard"`, at once; `"light"` (the
        paper's LWSA), only before leaving it for a worse one. Best costs are the same; of several
        solutions of that cost, one remembers the first and the other the last.

    Raises:
      ValueError: if `moves_per_search`, `choose` or `keep_best` is out of range.
      TypeError: if `neighborhood` or `schedule` is not of these kinds.

    Example:
      >>> from jaxopt_search.neighborhoods import Relocate
      >>> search = simulated_annealing(Relocate(), 10.0, moves_per_search=12)
    """
    moves_per_search = check_count("moves_per_search", moves_per_search, 1, random.MAX_SLOTS - 1)
    check_option("choose", choose, ("best", "first"))
    check_option("keep_best", keep_best, ("light", "standard"))
    return SimulatedAnnealing(
        neighborhood=as_neighborhood(neighborhood),
        schedule=schedules.as_schedule(schedule),
        moves_per_search=moves_per_search,
        choose=choose,
        keep_best=keep_best,
    )
