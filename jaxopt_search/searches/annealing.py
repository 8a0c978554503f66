"""Simulated annealing, with one or many moves priced per step.

Sources: Kirkpatrick, Gelatt, Vecchi, "Optimization by simulated annealing", 1983; Lam, Tsoi, Luk,
"Parallel neighbourhood search on many-core platforms", Algorithms 1 and 2 and section 3.2;
Sohn, "Parallel N-ary speculative computation of simulated annealing", 1995, for the first of many.
"""

import dataclasses
from typing import Any, Literal, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp

from jaxopt_search.backends import memory, random
from jaxopt_search.checks import check_count, check_option
from jaxopt_search.neighborhoods.base import as_neighborhood
from jaxopt_search.pytrees import pytree
from jaxopt_search.searches import schedules
from jaxopt_search.searches.acceptance import Metropolis, Trial
from jaxopt_search.searches.base import Chosen, SampledSearch
from jaxopt_search.types import (
    Cost,
    Info,
    Move,
    Neighborhood,
    Problem,
    Representation,
    Snapshot,
    Solution,
    Stream,
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
      history: what the rule of acceptance remembers; None if it remembers nothing.
    """

    representation: Representation
    cost: Cost
    best: Snapshot
    best_cost: Cost
    history: Any = None


class AnnealingStep(SampledSearch[AnnealingState]):
    """The step of annealing, by any rule of acceptance."""

    choose: Choose
    keep_best: KeepBest

    @property
    def draws(self) -> tuple[int, int]:
        to_propose, to_test = self.neighborhood.num_words, self.rule().num_words
        if self.choose == "first":
            return self.num_lanes(), to_propose + to_test
        return self.num_lanes() + 1, max(to_propose, to_test)

    def init(self, problem: Problem, solution: Solution) -> AnnealingState:
        start = self.start(problem, solution)
        return AnnealingState(*start, history=self.rule().start(start[1]))

    def step(
        self, stream: Stream, control: Any, problem: Problem, state: AnnealingState
    ) -> tuple[AnnealingState, Info]:
        move, delta, is_made = self._choose_one(stream, control, problem, state)
        if self.keep_best == "light":
            # The solution about to be left for a worse one may be the best so far.
            state = self.remember(state, is_made & (delta > 0))

        state = self.make(problem, state, move, delta, is_made)
        if self.keep_best == "standard":
            state = self.remember(state, is_made)
        if state.history is not None:
            memory.barrier()
            state = state._replace(history=self.rule().after(state.history, state.cost))
            memory.barrier()
        return state, Info(accepted=is_made.astype(jnp.int32))

    def _choose_one(
        self, stream: Stream, control: Any, problem: Problem, state: AnnealingState
    ) -> Chosen:
        """Returns the cheapest of M random moves, put to the test, or the first that passes it."""
        lane, num_words = memory.lanes(self.moves_per_search), self.neighborhood.num_words
        to_test = self.rule().num_words if self.choose == "first" else 0
        words = stream.words(lane.astype(jnp.uint32), num_words + to_test)

        def price(*words: jax.Array) -> tuple[Move, Cost]:
            hood, at = self.neighborhood, (problem, state.representation)
            move = memory.compiled_apart(lambda *words: hood.propose(*at, words), *words)
            return move, memory.compiled_apart(lambda move: hood.delta(*at, move), move)

        moves, deltas = price(*words[:num_words])
        deltas = self.only_real(lane, deltas)
        trial = Trial(control, state.history, state.cost, deltas, words[num_words:])
        if self.choose == "first":
            return self.first_to_pass(trial, moves)
        return self.cheapest(stream, words, trial, moves)


@pytree
@dataclasses.dataclass(frozen=True, kw_only=True)
class SimulatedAnnealing(AnnealingStep):
    """Build it with `simulated_annealing`."""

    neighborhood: Neighborhood
    schedule: schedules.Schedule
    moves_per_search: int = dataclasses.field(metadata={"static": True})
    choose: Choose = dataclasses.field(metadata={"static": True})
    keep_best: KeepBest = dataclasses.field(metadata={"static": True})

    def rule(self) -> Metropolis:
        return Metropolis(schedule=self.schedule)


def simulated_annealing(
    neighborhood: Any,
    schedule: float | jax.Array | schedules.Schedule,
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
      neighborhood: a `js.Neighborhood`, or `js.Moves`, which are priced by full evaluation.
      schedule: a temperature, or a function from the step to one, such as an optax schedule.
      moves_per_search: M, the moves priced per step.
      choose: `"best"`, as in the paper: the cheapest move is put to the test. `"first"`: each move
        is, and the first that passes is made, as if they were priced one after the other: like
        annealing with one move, up to M steps at a time.
      keep_best: when a search writes down its best solution: `"standard"`, at once; `"light"` (the
        paper's LWSA), only before leaving it for a worse one. Best costs are the same; of several
        solutions of that cost, one remembers the first and the other the last.

    Raises:
      ValueError: if `moves_per_search`, `choose` or `keep_best` is out of range.
      TypeError: if `neighborhood` or `schedule` is not of these kinds.

    Example:
      >>> import jaxopt_search as js
      >>> problem = js.tsp_from_instance(js.datasets.grid_tsp(4, 4))
      >>> search = simulated_annealing(js.Relocate(), js.geometric(50.0, 0.99, 10))
      >>> js.solve(problem, search, 0, num_searches=8, max_steps=4000).fun
      160
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
