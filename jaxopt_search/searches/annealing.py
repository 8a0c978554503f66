"""Simulated annealing, and local search by other rules: the step of PSPM.

Sources: Kirkpatrick, Gelatt, Vecchi, "Optimization by simulated annealing", 1983; Lam, Tsoi, Luk,
"Parallel neighbourhood search on many-core platforms", Algorithms 1 and 2 and section 3.2;
Sohn, "Parallel N-ary speculative computation of simulated annealing", 1995, for the first of many.
"""

import dataclasses
from typing import Any, Literal, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp

from jaxopt_search.backends import memory, random, tables
from jaxopt_search.checks import check_count, check_option
from jaxopt_search.contracts import check_part
from jaxopt_search.neighborhoods.full_evaluation import as_enumerable, as_neighborhood
from jaxopt_search.pytrees import pytree, static
from jaxopt_search.searches import acceptance as rules
from jaxopt_search.searches import schedules
from jaxopt_search.searches.acceptance import Acceptance, Trial
from jaxopt_search.searches.base import TrajectorySearch
from jaxopt_search.types import (
    Cost,
    Info,
    Neighborhood,
    Problem,
    Representation,
    Snapshot,
    Solution,
    Stream,
    null_delta,
)

Choose: TypeAlias = Literal["best", "first", "next"]
KeepBest: TypeAlias = Literal["light", "standard"]

MAX_MOVES = random.MAX_SLOTS - 1
"""The most moves that a step can price: a slot of random words each, and one for the test."""

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
      entry: [] int32, of the table of moves, which the next step tries first; None if moves are
        random.
    """

    representation: Representation
    cost: Cost
    best: Snapshot
    best_cost: Cost
    history: Any = None
    entry: Any = None


@pytree
@dataclasses.dataclass(frozen=True, kw_only=True)
class LocalSearch(TrajectorySearch):
    """Build it with `local_search` or, for simulated annealing, with `simulated_annealing`."""

    neighborhood: Neighborhood
    acceptance: Acceptance
    moves_per_search: int = static()
    choose: Choose = static()
    keep_best: KeepBest = static()

    def init(self, problem: Problem, solution: Solution) -> AnnealingState:
        start = self.start(problem, solution)
        entry = jnp.int32(0) if self.choose == "next" else None
        return AnnealingState(*start, self.acceptance.start(start[1]), entry)

    def step(
        self, stream: Stream, control: Any, problem: Problem, state: AnnealingState
    ) -> tuple[AnnealingState, Info]:
        """Prices M moves, random or the next ones, a lane each, and makes one that passes."""
        hood: Any = self.neighborhood
        rule, lane = self.acceptance, memory.lanes(self.moves_per_search)
        representation, none = state.representation, jnp.int32(lane.shape[0])
        to_propose = 0 if self.choose == "next" else hood.num_words
        to_test = 0 if self.choose == "best" else rule.num_words
        words = stream.words(lane.astype(jnp.uint32), to_propose + to_test)
        counts = lane < self.moves_per_search
        if self.choose == "next":
            rows, columns = hood.extent(problem)
            entry, end = state.entry + lane, rows * columns
            place = tables.row_and_column(jnp.minimum(entry, end - 1), columns)
            moves, is_move = hood.move_at(problem, representation, *place)
            counts = counts & (entry < end) & is_move
        else:
            moves = hood.propose(problem, representation, words[:to_propose])
        deltas = hood.delta(problem, representation, moves)
        # Lanes in excess and NaN never win.
        deltas = jnp.where(counts & (deltas == deltas), deltas, null_delta(deltas.dtype))

        def passes(delta: Cost, words: tuple[jax.Array, ...]) -> jax.Array:
            trial = Trial(control, state.history, state.cost, delta, words)
            return rule.passes(trial) & (delta < null_delta(delta.dtype))

        if self.choose != "best":
            is_passing = passes(deltas, words[to_propose:])
            winner = jnp.min(jnp.where(is_passing, lane, none))
            move, delta = memory.pick((moves, deltas), jnp.minimum(winner, none - 1))
            is_made = winner < none
            if self.choose == "next":
                after = state.entry + jnp.minimum(winner + 1, self.moves_per_search)
                state = state._replace(entry=jnp.where(after < end, after, 0))
        else:
            delta = jnp.min(deltas)
            # Two minima take fewer instructions than an argmin.
            winner = jnp.min(jnp.where(deltas == delta, lane, none))
            is_made = passes(delta, words_of_the_test(stream, self, words, rule.num_words))
            move = memory.pick(moves, winner)

        if self.keep_best == "light":
            # The solution about to be left for a worse one may be the best so far.
            state = self.remember(state, is_made & (delta > 0))
            is_made = memory.after(is_made, state.best)
        state = self.make(problem, state, move, delta, is_made)
        if self.keep_best == "standard":
            state = self.remember(state, is_made)
        if state.history is not None:
            state = state._replace(history=rule.after(state.history, state.cost))
        return state, Info(accepted=is_made.astype(jnp.int32))

    def evaluations_per_step(self, problem: Any) -> int:
        return self.moves_per_search

    def num_warps(self, problem: Problem, num_searches: int) -> int:
        to_price = warps_to_price(self.moves_per_search, num_searches)
        return max(to_price, self.neighborhood.num_warps(problem))


def words_of_the_test(
    stream: Stream, search: Any, drawn: tuple[jax.Array, ...], number: int
) -> tuple[jax.Array, ...]:
    """Returns words in the slot behind the moves', which a lane in excess may have drawn."""
    slot = search.moves_per_search
    if number <= len(drawn) and all(slot < words.shape[0] for words in drawn):
        return memory.pick(drawn[:number], jnp.int32(slot))
    return stream.words(jnp.uint32(slot), number)


def warps_to_price(moves_per_search: int, num_searches: int) -> int:
    """Returns how many warps of a program in a kernel price moves fastest, a power of two."""
    most = min(moves_per_search // 32, _MAX_WARPS, _WARPS_AT_ONCE // num_searches)
    return 1 << max(1, most).bit_length() - 1


def simulated_annealing(
    neighborhood: Any,
    schedule: float | jax.Array | schedules.Schedule,
    *,
    moves_per_search: int = 1,
    choose: Choose = "best",
    keep_best: KeepBest = "light",
) -> LocalSearch:
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
        annealing with one move, up to M steps at a time. `"next"`: likewise, but moves are not
        random: they follow one another in the neighborhood's table, row by row, and a step
        continues behind the last one that was tried. Of `Flip` these are sweeps over the variables.
      keep_best: when a search writes down its best solution: `"standard"`, at once; `"light"` (the
        paper's LWSA), only before leaving it for a worse one. Best costs are the same; of several
        solutions of that cost, one remembers the first and the other the last.

    Raises:
      ValueError: if `moves_per_search`, `choose` or `keep_best` is out of range.
      TypeError: if `neighborhood` or `schedule` is not of these kinds, or with `"next"` if moves do
        not stand in a table (`types.Enumerable`).

    Example:
      >>> import jaxopt_search as js
      >>> problem = js.tsp_from_instance(js.datasets.grid_tsp(4, 4))
      >>> search = simulated_annealing(js.Relocate(), js.geometric(50.0, 0.99, 10))
      >>> js.solve(problem, search, 0, num_searches=8, max_steps=4000).fun
      160
    """
    rule = rules.metropolis(schedule)
    options: Any = {"choose": choose, "keep_best": keep_best}
    return local_search(neighborhood, rule, moves_per_search=moves_per_search, **options)


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
        that passes is made. `"next"`: likewise, of moves in the order of their table.
      keep_best: as in `simulated_annealing`.

    Raises:
      ValueError: if `moves_per_search`, `choose` or `keep_best` is out of range.
      TypeError: as `simulated_annealing`, or if `acceptance` is not of these kinds.

    Example:
      >>> import jaxopt_search as js
      >>> problem = js.tsp_from_instance(js.datasets.grid_tsp(4, 4))
      >>> search = local_search(js.Relocate(), js.acceptance.late_acceptance(20))
      >>> js.solve(problem, search, key=0, num_searches=8, max_steps=4000).fun
      160
    """
    check_option("choose", choose, ("best", "first", "next"))
    check_option("keep_best", keep_best, ("light", "standard"))
    check_part(acceptance, Acceptance)
    to_hood = as_enumerable if choose == "next" else as_neighborhood
    return LocalSearch(
        neighborhood=to_hood(neighborhood),
        acceptance=acceptance,
        moves_per_search=check_count("moves_per_search", moves_per_search, 1, MAX_MOVES),
        choose=choose,
        keep_best=keep_best,
    )
