"""Simulated annealing, and local search by other rules: the step of PSPM.

Sources: Kirkpatrick, Gelatt, Vecchi, "Optimization by simulated annealing", 1983; Lam, Tsoi, Luk,
"Parallel neighbourhood search on many-core platforms", Algorithms 1 and 2 and section 3.2;
Sohn, "Parallel N-ary speculative computation of simulated annealing", 1995, for the first of many.
"""

import abc
import dataclasses
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

import jax
import jax.numpy as jnp

from jaxopt_search.backends import memory, random
from jaxopt_search.checks import check_count, check_option
from jaxopt_search.neighborhoods.full_evaluation import as_neighborhood
from jaxopt_search.pytrees import pytree
from jaxopt_search.searches import schedules
from jaxopt_search.searches.acceptance import Acceptance, Metropolis, Trial
from jaxopt_search.searches.base import TrajectorySearch, Walk
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
    null_delta,
)

Choose: TypeAlias = Literal["best", "first"]
KeepBest: TypeAlias = Literal["light", "standard"]

_MAX_WARPS = 8
# The schedulers of an H200. With programs enough for all, one of several warps is slower: its warps
# wait for one another.
_WARPS_AT_ONCE = 528


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


class _Sampled(Walk, Protocol):
    """The state of a `SampledSearch`: a walk with what the rule of acceptance remembers."""

    @property
    def history(self) -> Any: ...


StateT = TypeVar("StateT", bound=_Sampled)


class SampledSearch(TrajectorySearch[StateT]):
    """A search that prices some random moves in a step and makes one if it passes a test.

    A subclass has `rule`, the test.
    """

    moves_per_search: int
    """M, how many moves are priced: each has a lane, as `memory.lanes(M)` counts them."""
    choose: Choose
    keep_best: KeepBest

    @abc.abstractmethod
    def rule(self) -> Acceptance:
        """Returns the rule by which moves are made."""

    def step(
        self, stream: Stream, control: Any, problem: Problem, state: StateT
    ) -> tuple[StateT, Info]:
        """Proposes and prices M random moves, puts the cheapest to the test, and makes it."""
        hood, lane = self.neighborhood, memory.lanes(self.moves_per_search)
        to_test = self.rule().num_words if self.choose == "first" else 0
        words = stream.words(lane.astype(jnp.uint32), hood.num_words + to_test)

        def price(*words: jax.Array) -> tuple[Move, Cost]:
            at = problem, state.representation
            move = memory.compiled_apart(lambda *words: hood.propose(*at, words), *words)
            return move, memory.compiled_apart(lambda move: hood.delta(*at, move), move)

        moves, deltas = price(*words[: hood.num_words])
        state, is_made = self.choose_and_make(stream, control, problem, state, words, moves, deltas)
        return state, Info(accepted=is_made.astype(jnp.int32))

    def choose_and_make(
        self,
        stream: Stream,
        control: Any,
        problem: Problem,
        state: StateT,
        words: tuple[jax.Array, ...],
        moves: Move,
        deltas: Cost,
        where: jax.Array | None = None,
    ) -> tuple[StateT, jax.Array]:
        """Returns the state after one of the moves, if one passes, and whether it does; portable.

        Args:
          words: drawn in the slots of all lanes, [lanes] each.
          moves, deltas: of all lanes.
          where: [] bool, whether to make a move at all; None for yes.
        """
        hood, rule, lane = self.neighborhood, self.rule(), memory.lanes(self.moves_per_search)
        # Lanes in excess and NaN never win.
        counts = (lane < self.moves_per_search) & (deltas == deltas)
        deltas = jnp.where(counts, deltas, null_delta(deltas.dtype))
        if self.choose == "first":
            none = jnp.int32(lane.shape[0])
            trial = Trial(control, state.history, state.cost, deltas, words[hood.num_words :])
            winner = jnp.min(jnp.where(_passes(rule, trial), lane, none))
            move, delta = memory.pick((moves, deltas), jnp.minimum(winner, none - 1))
            is_made = winner < none
        else:
            delta = jnp.min(deltas)
            # Two minima take fewer instructions than an argmin.
            winner = jnp.min(jnp.where(deltas == delta, lane, jnp.int32(lane.shape[0])))
            to_test = self._words_of_the_test(stream, words)
            is_made = _passes(rule, Trial(control, state.history, state.cost, delta, to_test))
            move = memory.pick(moves, winner)
        is_made = is_made if where is None else where & is_made

        if self.keep_best == "light":
            # The solution about to be left for a worse one may be the best so far.
            state = self.remember(state, is_made & (delta > 0))
        state = self.make(problem, state, move, delta, is_made)
        if self.keep_best == "standard":
            state = self.remember(state, is_made)
        if state.history is not None:
            memory.barrier()
            state = state._replace(history=rule.after(state.history, state.cost))
            memory.barrier()
        return state, is_made

    def _words_of_the_test(
        self, stream: Stream, words: tuple[jax.Array, ...]
    ) -> tuple[jax.Array, ...]:
        """Returns the words in the slot behind the moves', which a lane in excess has drawn."""
        slot, number = self.moves_per_search, self.rule().num_words
        if number <= len(words) and all(slot < drawn.shape[0] for drawn in words):
            return memory.pick(words[:number], jnp.int32(slot))
        return stream.words(jnp.uint32(slot), number)

    def init(self, problem: Problem, solution: Solution) -> Any:
        start = self.start(problem, solution)
        return AnnealingState(*start, history=self.rule().start(start[1]))

    @property
    def draws(self) -> tuple[int, int]:
        to_propose, to_test = self.neighborhood.num_words, self.rule().num_words
        if self.choose == "first":
            return self.num_lanes(), to_propose + to_test
        return self.num_lanes() + 1, max(to_propose, to_test)

    def evaluations_per_step(self, problem: Any) -> int:
        return self.moves_per_search

    def check(self, problem: Problem, max_steps: int | None) -> None:
        self.rule().check(problem, max_steps)

    def control(self, step: jax.Array) -> Any:
        return self.rule().control(step)

    def num_warps(self, problem: Problem, num_searches: int) -> int:
        """Returns the warps of a program in a kernel, a power of two."""
        most = min(self.moves_per_search // 32, _MAX_WARPS, _WARPS_AT_ONCE // num_searches)
        to_price = 1 << max(1, most).bit_length() - 1
        return max(to_price, self.neighborhood.num_warps(problem))

    def num_lanes(self) -> int:
        """Returns the most lanes that M moves take where words are drawn ahead: for `draws`."""
        with memory.one_search("native"):
            return jax.eval_shape(lambda: memory.lanes(self.moves_per_search)).shape[0]


def _passes(rule: Acceptance, trial: Trial) -> jax.Array:
    """Returns whether moves pass the test and change something; portable."""
    return rule.passes(trial) & (trial.delta < null_delta(trial.delta.dtype))


@pytree
@dataclasses.dataclass(frozen=True, kw_only=True)
class SimulatedAnnealing(SampledSearch[AnnealingState]):
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


@pytree
@dataclasses.dataclass(frozen=True, kw_only=True)
class LocalSearch(SampledSearch[AnnealingState]):
    """Build it with `local_search`."""

    neighborhood: Neighborhood
    acceptance: Acceptance
    moves_per_search: int = dataclasses.field(metadata={"static": True})
    choose: Choose = dataclasses.field(metadata={"static": True})
    keep_best: KeepBest = dataclasses.field(metadata={"static": True})

    def rule(self) -> Acceptance:
        return self.acceptance


def local_search(
    neighborhood: Any,
    acceptance: Acceptance,
    *,
    moves_per_search: int = 1,
    choose: Choose = "best",
    keep_best: KeepBest = "light",
) -> LocalSearch:
    """Returns the search that prices `moves_per_search` moves a step and makes one if it passes.

    By `js.acceptance.metropolis(schedule)` it is `simulated_annealing`, bit for bit.

    Args:
      neighborhood: as in `simulated_annealing`.
      acceptance: the rule by which a move passes: `js.acceptance.threshold(schedule)`,
        `late_acceptance(length)`, `greedy()` or `metropolis(schedule)`, or one of your own, a
        subclass of `js.acceptance.Acceptance`.
      moves_per_search: M, the moves priced per step.
      choose: `"best"`: the cheapest move is put to the test. `"first"`: each move is, and the first
        that passes is made.
      keep_best: as in `simulated_annealing`.

    Raises:
      ValueError: if `moves_per_search`, `choose` or `keep_best` is out of range.
      TypeError: if `neighborhood` or `acceptance` is not of these kinds.

    Example:
      >>> import jaxopt_search as js
      >>> problem = js.tsp_from_instance(js.datasets.grid_tsp(4, 4))
      >>> search = local_search(js.Relocate(), js.acceptance.late_acceptance(20))
      >>> js.solve(problem, search, key=0, num_searches=8, max_steps=4000).fun
      160
    """
    _check_rule(acceptance)
    moves_per_search = check_count("moves_per_search", moves_per_search, 1, random.MAX_SLOTS - 1)
    check_option("choose", choose, ("best", "first"))
    check_option("keep_best", keep_best, ("light", "standard"))
    return LocalSearch(
        neighborhood=as_neighborhood(neighborhood),
        acceptance=acceptance,
        moves_per_search=moves_per_search,
        choose=choose,
        keep_best=keep_best,
    )


def _check_rule(acceptance: Any) -> None:
    """Refuses what is no rule of acceptance, or no pytree."""
    name = type(acceptance).__name__
    if isinstance(acceptance, type):
        raise TypeError(f"acceptance is the class {acceptance.__name__}, expected an instance")
    if not isinstance(acceptance, Acceptance):
        raise TypeError(
            f"acceptance is a {name}, expected a js.acceptance.Acceptance, as threshold returns"
        )
    if jax.tree_util.all_leaves([acceptance]):
        raise TypeError(
            f"acceptance is a {name}, expected a pytree; decorate the class with"
            " jaxopt_search.pytree or jax.tree_util.register_static"
        )
