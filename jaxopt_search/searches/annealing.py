"""Simulated annealing, with one or many moves priced per step.

Sources: Kirkpatrick, Gelatt, Vecchi, "Optimization by simulated annealing", 1983; Lam, Tsoi, Luk,
"Parallel neighbourhood search on many-core platforms", Algorithms 1 and 2 and section 3.2.
"""

import dataclasses
from typing import Any, Literal, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search import memory, random, schedules
from jaxopt_search.checks import check_count
from jaxopt_search.neighborhoods.full_evaluation import as_neighborhood
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

KeepBest: TypeAlias = Literal["light", "standard"]

_LANES_PER_WARP, _MAX_WARPS = 128, 8  # in a kernel


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
class SimulatedAnnealing:
    """Build it with `simulated_annealing`."""

    neighborhood: Any
    schedule: schedules.Schedule
    moves_per_search: int = dataclasses.field(metadata={"static": True})
    keep_best: KeepBest = dataclasses.field(metadata={"static": True})

    @property
    def evaluations_per_step(self) -> int:
        return self.moves_per_search

    @property
    def draws(self) -> tuple[int, int]:
        with memory.one_search("native"):
            lanes = jax.eval_shape(lambda: memory.lanes(self.moves_per_search))
        return lanes.shape[0] + 1, max(self.neighborhood.num_words, 1)

    @property
    def num_warps(self) -> int:
        return max(1, min(self.moves_per_search // _LANES_PER_WARP, _MAX_WARPS))

    @property
    def is_portable(self) -> bool:
        return getattr(self.neighborhood, "is_portable", False)

    @property
    def obstacle(self) -> str:
        return getattr(self.neighborhood, "obstacle", "")

    def check(self, max_steps: int | None) -> None:
        """Refuses a schedule that is negative or not finite within `max_steps`; on the host."""
        schedules.check(self.schedule, max_steps)

    def init(self, problem: Any, solution: Solution) -> AnnealingState:
        representation = self.neighborhood.init(problem, solution)
        cost = problem.cost(solution)
        return AnnealingState(
            representation, cost, self.neighborhood.snapshot(representation), cost
        )

    def control(self, step: jax.Array) -> jax.Array:
        """Returns the temperature."""
        return schedules.temperature(self.schedule, step)

    def step(
        self, stream: Stream, control: jax.Array, problem: Any, state: AnnealingState
    ) -> tuple[AnnealingState, Info]:
        move, delta = self._best_of_moves(stream, problem, state.representation)
        accept = self._accepts(stream, control, delta)
        if self.keep_best == "light":
            # The solution about to be left for a worse one may be the best so far.
            state = self._remember(state, accept & (delta > 0))

        def commit(representation: Representation, where: jax.Array) -> Representation:
            return self.neighborhood.commit(problem, representation, move, where)

        state = state._replace(
            representation=memory.when(accept, commit, state.representation),
            cost=state.cost + jnp.where(accept, delta, jnp.zeros_like(delta)),
        )
        if self.keep_best == "standard":
            state = self._remember(state, accept)
        return state, Info(accepted=accept.astype(jnp.int32))

    def best_cost(self, state: AnnealingState) -> Cost:
        return jnp.minimum(state.cost, state.best_cost)

    def best(self, problem: Any, state: AnnealingState) -> Solution:
        return self.neighborhood.solution(problem, self._remember(state, jnp.bool_(True)).best)

    def current_cost(self, state: AnnealingState) -> Cost:
        return state.cost

    def current(self, problem: Any, state: AnnealingState) -> Solution:
        snapshot = self.neighborhood.snapshot(state.representation)
        return self.neighborhood.solution(problem, snapshot)

    def adopt(self, problem: Any, state: AnnealingState, solution: Solution) -> AnnealingState:
        state = self._remember(state, jnp.bool_(True))
        return state._replace(
            representation=self.neighborhood.init(problem, solution), cost=problem.cost(solution)
        )

    def refresh(self, problem: Any, state: AnnealingState) -> AnnealingState:
        hood, solution = self.neighborhood, self.current(problem, state)
        return state._replace(
            representation=hood.init(problem, solution),
            cost=problem.cost(solution),
            best_cost=problem.cost(hood.solution(problem, state.best)),
        )

    def _best_of_moves(
        self, stream: Stream, problem: Any, representation: Representation
    ) -> tuple[Move, Cost]:
        """Returns the cheapest of `moves_per_search` random moves; the first of equals."""

        def propose(slot: jax.Array) -> Move:
            words = stream.words(slot, self.neighborhood.num_words)
            return self.neighborhood.propose(problem, representation, words)

        lane = memory.lanes(self.moves_per_search)
        deltas = self.neighborhood.delta(problem, representation, propose(lane.astype(jnp.uint32)))
        can_win = (lane < self.moves_per_search) & (deltas == deltas)  # NaN never wins
        deltas = jnp.where(can_win, deltas, null_delta(deltas.dtype))
        winner = lax.argmin(deltas, 0, jnp.int32).astype(jnp.uint32)
        # Proposing again from the winner's slot is cheaper than picking it out of the lanes.
        return propose(winner), jnp.min(deltas)

    def _accepts(self, stream: Stream, temperature: jax.Array, delta: Cost) -> jax.Array:
        """Metropolis: always if not worse, else with probability exp(-delta / temperature).

        A uniform u lies below that probability where -log(u), which is exponentially distributed,
        lies above delta / temperature; written so, temperature 0 accepts delta <= 0 only.
        """
        (word,) = stream.words(jnp.uint32(self.moves_per_search), 1)
        threshold = temperature * random.exponential(word)
        return (delta.astype(jnp.float32) <= threshold) & (delta < null_delta(delta.dtype))

    def _remember(self, state: AnnealingState, where: jax.Array) -> AnnealingState:
        is_better = where & (state.cost < state.best_cost)
        current = self.neighborhood.snapshot(state.representation)
        return state._replace(
            best=memory.copy(state.best, current, is_better),
            best_cost=jnp.where(is_better, state.cost, state.best_cost),
        )


def simulated_annealing(
    neighborhood: Any,
    schedule: Any,
    *,
    moves_per_search: int = 1,
    keep_best: KeepBest = "light",
) -> SimulatedAnnealing:
    """Returns simulated annealing that prices `moves_per_search` moves a step and makes one.

    In a step, that many random moves are priced, the cheapest is put to the Metropolis test, and
    is made if it passes; equal cost passes. With `num_searches` searches and an exchange this is
    the paper's PSPM; one search is SSPM, one move is PSSM.

    Args:
      neighborhood: a `Neighborhood`; or an object with `num_words`, `propose` and `apply` only,
        whose moves are then priced by full evaluation.
      schedule: a temperature, or a function from the step to one, such as an optax schedule.
      moves_per_search: M, the moves priced per step.
      keep_best: when a search writes down its best solution: `"standard"`, at once; `"light"` (the
        paper's LWSA), only before leaving it for a worse one. Best costs are the same; of several
        solutions of that cost, one remembers the first and the other the last.

    Raises:
      ValueError: if `moves_per_search` or `keep_best` is out of range.
      TypeError: if `neighborhood` or `schedule` is not of these kinds.

    Example:
      >>> from jaxopt_search.neighborhoods import Relocate
      >>> search = simulated_annealing(Relocate(), 10.0, moves_per_search=12)
    """
    moves_per_search = check_count("moves_per_search", moves_per_search, 1, random.MAX_SLOTS - 1)
    if keep_best not in ("light", "standard"):
        raise ValueError(f"keep_best is {keep_best!r}, expected 'light' or 'standard'")
    return SimulatedAnnealing(
        neighborhood=as_neighborhood(neighborhood),
        schedule=schedules.as_schedule(schedule),
        moves_per_search=moves_per_search,
        keep_best=keep_best,
    )
