"""What searches are built on that walk from one solution to a neighboring one.

Each class is a `types.Search` short of a few methods, its abstract ones. docs/your_own_search.md
shows how to write a search of your own on them.

- `TrajectorySearch` keeps the current solution and the best one. What it lacks is the step.
- `SampledSearch` prices some random moves in a step and puts one of them to a test.
- `TableSearch` looks at all moves of a neighborhood in a step and knows which comes first.
"""

import abc
import functools
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeAlias, TypeVar

import jax
import jax.numpy as jnp

from jaxopt_search import capabilities
from jaxopt_search.portable import floats, memory, tables
from jaxopt_search.portable.costs import cost_of
from jaxopt_search.searches.acceptance import Acceptance, Trial
from jaxopt_search.types import (
    Cost,
    Enumerable,
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

__all__ = ["SampledSearch", "TableSearch", "TrajectorySearch"]

Rank: TypeAlias = Callable[..., tuple[jax.Array, ...]]
"""What `types.Enumerable.first` ranks moves by."""

_MAX_WARPS = 8
# The schedulers of an H200. With programs enough for all, one of several warps is slower: its warps
# wait for one another.
_WARPS_AT_ONCE = 528


class Walk(Protocol):
    """The state of a `TrajectorySearch`: a named tuple with at least these fields.

    Attributes:
      representation: of the current solution.
      cost: [] its cost.
      best: the snapshot of the best solution remembered. The current solution may be better.
      best_cost: [] its cost.
    """

    @property
    def representation(self) -> Representation: ...
    @property
    def cost(self) -> Cost: ...
    @property
    def best(self) -> Snapshot: ...
    @property
    def best_cost(self) -> Cost: ...
    def _replace(self, **changes: Any) -> Self: ...


StateT = TypeVar("StateT", bound=Walk)


class TrajectorySearch(abc.ABC, Generic[StateT]):
    """A search that walks over a `neighborhood` and remembers the best solution.

    A subclass has `init`, `step` and `evaluations_per_step`, and makes its steps of `make` and
    `remember`. It may replace `control`, `look` and `forget`, which do nothing here.
    """

    neighborhood: Neighborhood

    @abc.abstractmethod
    def evaluations_per_step(self, problem: Any) -> int:
        """Returns how many moves are priced in a step."""

    @abc.abstractmethod
    def init(self, problem: Any, solution: Solution) -> StateT:
        """Returns the state at `solution`; `start` returns the first four parts of it."""

    @abc.abstractmethod
    def step(
        self, stream: Stream, control: Any, problem: Any, state: StateT
    ) -> tuple[StateT, Info]:
        """Returns the state after a step; portable. See `types.Search.step`."""

    def control(self, step: jax.Array) -> Any:
        """Returns what steers all searches at `step`; see `types.Search.control`."""
        return None

    def look(self, problem: Any, state: StateT) -> StateT:
        """Returns the state after its current solution was replaced by other means than `make`."""
        return state

    def forget(self, state: StateT) -> StateT:
        """Returns the state of a search that is about to continue from another solution."""
        return state

    def start(
        self, problem: Problem, solution: Solution
    ) -> tuple[Representation, Cost, Snapshot, Cost]:
        """Returns the representation, the cost, the best and its cost with which a walk starts."""
        representation, cost = self.neighborhood.init(problem, solution), cost_of(problem, solution)
        return representation, cost, self.neighborhood.snapshot(representation), cost

    def make(
        self, problem: Problem, state: StateT, move: Move, delta: Cost, where: jax.Array
    ) -> StateT:
        """Returns the state after `move`, if the scalar `where` holds; portable."""

        def commit(representation: Representation, where: jax.Array) -> Representation:
            return self.neighborhood.commit(problem, representation, move, where)

        representation = memory.when(where, commit, state.representation)
        cost = self.cost_after(state.cost, delta, where, representation)
        return state._replace(representation=representation, cost=cost)

    def cost_after(
        self, cost: Cost, delta: Cost, where: jax.Array, representation: Representation
    ) -> Cost:
        """Returns the cost after a move, to this representation, if `where` holds; portable."""
        known = capabilities.known_cost(self.neighborhood, representation)
        return cost + jnp.where(where, delta, jnp.zeros_like(delta)) if known is None else known

    def remember(self, state: StateT, where: jax.Array | bool = True) -> StateT:
        """Returns the state whose best is the current solution, if that is better; portable.

        Args:
          where: [] bool, whether to look at all.
        """
        is_better = jnp.asarray(where) & (state.cost < state.best_cost)
        current = self.neighborhood.snapshot(state.representation)
        return state._replace(
            best=memory.copy(state.best, current, is_better),
            best_cost=jnp.where(is_better, state.cost, state.best_cost),
        )

    def is_portable(self, problem: Problem) -> bool:
        return capabilities.is_portable_for(self.neighborhood, problem)

    def obstacle(self, problem: Problem) -> str:
        return capabilities.obstacle_for(self.neighborhood, problem)

    def best_cost(self, state: StateT) -> Cost:
        # Unlike `minimum`, this takes no NaN for the lowest, which an own delta may bring about.
        return jnp.where(state.cost < state.best_cost, state.cost, state.best_cost)

    def best(self, problem: Problem, state: StateT) -> Solution:
        return self.neighborhood.solution(problem, self.remember(state).best)

    def current_cost(self, state: StateT) -> Cost:
        return state.cost

    def current(self, problem: Problem, state: StateT) -> Solution:
        snapshot = self.neighborhood.snapshot(state.representation)
        return self.neighborhood.solution(problem, snapshot)

    def adopt(self, problem: Problem, state: StateT, solution: Solution) -> StateT:
        state = self.forget(self.remember(state))._replace(
            representation=self.neighborhood.init(problem, solution),
            cost=cost_of(problem, solution),
        )
        return self.look(problem, self.remember(state))  # the next step may leave it

    def adopt_or_init(
        self, problem: Problem, state: StateT, solution: Solution, is_new: jax.Array
    ) -> StateT:
        """Returns `init` if the scalar `is_new` holds, else `adopt`, for less to compile than both.

        A subclass with an `adopt` of its own has this, too. `look` is called twice, and once more
        must change nothing.
        """
        fresh = self.init(problem, solution)
        kept = self.forget(self.remember(state))._replace(
            representation=fresh.representation, cost=fresh.cost
        )
        either = jax.tree.map(functools.partial(jnp.where, is_new), fresh, self.remember(kept))
        return self.look(problem, either)

    def refresh(self, problem: Problem, state: StateT) -> StateT:
        hood, solution = self.neighborhood, self.current(problem, state)
        representation = state.representation
        if floats.any_in(representation):  # integers do not drift
            representation = hood.init(problem, solution)
        state = state._replace(
            representation=representation,
            cost=cost_of(problem, solution),
            best_cost=cost_of(problem, hood.solution(problem, state.best)),
        )
        return self.look(problem, self.remember(state))


class Chosen(NamedTuple):
    """A move that was put to the test.

    Attributes:
      move: scalars.
      delta: [] the change in cost.
      is_made: [] bool, whether it passed.
    """

    move: Move
    delta: Cost
    is_made: jax.Array


class SampledSearch(TrajectorySearch[StateT]):
    """A `TrajectorySearch` that prices some random moves in a step and puts one to the test.

    A subclass has `rule`, the test, and `moves_per_search`, how many moves it prices: M. Each has a
    lane, as `memory.lanes(M)` counts them; `only_real` makes those in excess worthless.
    """

    moves_per_search: int

    @abc.abstractmethod
    def rule(self) -> Acceptance:
        """Returns the rule by which moves are made."""

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
        return max(to_price, capabilities.warps_per_move(self.neighborhood, problem))

    def num_lanes(self) -> int:
        """Returns the most lanes that M moves take where words are drawn ahead: for `draws`."""
        with memory.one_search("native"):
            return jax.eval_shape(lambda: memory.lanes(self.moves_per_search)).shape[0]

    def only_real(self, lane: jax.Array, deltas: Cost) -> Cost:
        """Returns the deltas, above all others in lanes in excess and for NaN; portable."""
        counts = (lane < self.moves_per_search) & (deltas == deltas)  # NaN never wins
        return jnp.where(counts, deltas, null_delta(deltas.dtype))

    def cheapest(self, stream: Stream, trial: Trial, moves: Move) -> Chosen:
        """Returns the cheapest move, the first of equals, put to the test; portable.

        Args:
          trial: with the deltas of all lanes, and without words.
          moves: leaves [lanes].
        """
        deltas, lane = trial.delta, memory.lanes(self.moves_per_search)
        delta = jnp.min(deltas)
        # Two minima take fewer instructions than an argmin.
        winner = jnp.min(jnp.where(deltas == delta, lane, jnp.int32(lane.shape[0])))
        words = stream.words(jnp.uint32(self.moves_per_search), self.rule().num_words)
        is_made = self.passes(trial._replace(delta=delta, words=words))
        return Chosen(memory.pick(moves, winner), delta, is_made)

    def first_to_pass(self, trial: Trial, moves: Move) -> Chosen:
        """Returns the first move that passes the test, if there is one; portable.

        Args:
          trial: with the deltas and the words of all lanes.
          moves: leaves [lanes].
        """
        lane = memory.lanes(self.moves_per_search)
        none = jnp.int32(lane.shape[0])
        winner = jnp.min(jnp.where(self.passes(trial), lane, none))
        move, delta = memory.pick((moves, trial.delta), jnp.minimum(winner, none - 1))
        return Chosen(move, delta, winner < none)

    def passes(self, trial: Trial) -> jax.Array:
        """Returns whether moves pass the test and change something; portable."""
        return self.rule().passes(trial) & (trial.delta < null_delta(trial.delta.dtype))


class Found(NamedTuple):
    """The move that comes first of all.

    Attributes:
      move: the move.
      entry: [] int32, where it stands in the table of moves.
      key: [] the first of its keys.
    """

    move: Move
    entry: jax.Array
    key: jax.Array


class TableWalk(Walk, Protocol):
    """The state of a `TableSearch`: a `Walk` with one more field."""

    @property
    def found(self) -> Any:
        """The `Found` move of the next step; None before the first look."""
        ...


TableStateT = TypeVar("TableStateT", bound=TableWalk)


class TableSearch(TrajectorySearch[TableStateT]):
    """A `TrajectorySearch` that looks at all moves of an enumerable neighborhood in each step.

    The table is brought up to date and searched in one pass, so that the state holds, in `found`,
    the move of the next step: `init` ends with `look`, and a step makes its move by `make_found`.
    A subclass has `rank`, which says what comes first.
    """

    neighborhood: Enumerable

    @abc.abstractmethod
    def rank(self, problem: Any, state: TableStateT) -> Rank:
        """Returns what ranks moves: `rank` of `types.Enumerable.first`; portable."""

    def others(self, state: TableStateT) -> tuple[Any, ...]:
        """Returns the buffers that `rank` needs besides the table of moves, of the same shape."""
        return ()

    def evaluations_per_step(self, problem: Any) -> int:
        return self.neighborhood.num_moves(problem)

    def num_warps(self, problem: Problem, num_searches: int) -> int:
        return tables.num_warps(self.neighborhood.shape(problem))

    def look(self, problem: Any, state: TableStateT) -> TableStateT:
        """Returns the state with what comes next; of the found move before, only `entry` counts."""
        rank, others = self.rank(problem, state), self.others(state)
        first, move = self.neighborhood.first(problem, state.representation, rank, others)
        return state._replace(found=Found(move, first.number, first.keys[0]))

    def make_found(
        self, problem: Problem, state: TableStateT, delta: Cost, where: jax.Array
    ) -> TableStateT:
        """Returns the state after its found move, if `where` holds, with what comes next.

        Args:
          delta: [] the change in cost that the move makes.
        """
        hood, move = self.neighborhood, state.found.move
        commit_and_first = capabilities.commit_and_first(hood)
        if commit_and_first is None:
            representation = hood.commit(problem, state.representation, move, where)
            cost = self.cost_after(state.cost, delta, where, representation)
            memory.barrier()
            return self.look(problem, state._replace(representation=representation, cost=cost))
        state = state._replace(cost=state.cost + jnp.where(where, delta, jnp.zeros_like(delta)))
        rank, others = self.rank(problem, state), self.others(state)
        representation, first, move = commit_and_first(
            problem, state.representation, move, where, rank, others
        )
        memory.barrier()
        found = Found(move, first.number, first.keys[0])
        return state._replace(representation=representation, found=found)
