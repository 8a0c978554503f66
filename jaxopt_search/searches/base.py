"""What searches share that walk from one solution to a neighboring one and remember the best."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxopt_search.portable import memory, random, tables
from jaxopt_search.portable.costs import cost_of
from jaxopt_search.searches import schedules
from jaxopt_search.types import Cost, Move, Representation, Solution, null_delta

_MAX_WARPS = 8
# The schedulers of an H200. With programs enough for all, one of several warps is slower: its warps
# wait for one another.
_WARPS_AT_ONCE = 528


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


class TrajectorySearch:
    """A `Search` over a `neighborhood`, short of `init`, `control` and `step`.

    Its states are named tuples with, among others,

    - `representation` of the current solution and its `cost`, [];
    - `best`, the snapshot of the best solution remembered, and its `best_cost`, []. The current
      solution may be better.
    """

    neighborhood: Any

    def is_portable(self, problem: Any) -> bool:
        return _of(problem, getattr(self.neighborhood, "is_portable", False))

    def obstacle(self, problem: Any) -> str:
        return _of(problem, getattr(self.neighborhood, "obstacle", ""))

    def best_cost(self, state: Any) -> Cost:
        # Unlike `minimum`, this takes no NaN for the lowest, which an own delta may bring about.
        return jnp.where(state.cost < state.best_cost, state.cost, state.best_cost)

    def best(self, problem: Any, state: Any) -> Solution:
        return self.neighborhood.solution(problem, self._remember(state, jnp.bool_(True)).best)

    def current_cost(self, state: Any) -> Cost:
        return state.cost

    def current(self, problem: Any, state: Any) -> Solution:
        snapshot = self.neighborhood.snapshot(state.representation)
        return self.neighborhood.solution(problem, snapshot)

    def adopt(self, problem: Any, state: Any, solution: Solution) -> Any:
        state = self._remember(state, jnp.bool_(True))
        state = state._replace(
            representation=self.neighborhood.init(problem, solution),
            cost=cost_of(problem, solution),
        )
        return self._remember(state, jnp.bool_(True))  # the next step may leave it

    def refresh(self, problem: Any, state: Any) -> Any:
        hood, solution = self.neighborhood, self.current(problem, state)
        state = state._replace(
            representation=hood.init(problem, solution),
            cost=cost_of(problem, solution),
            best_cost=cost_of(problem, hood.solution(problem, state.best)),
        )
        return self._remember(state, jnp.bool_(True))

    def _start(self, problem: Any, solution: Solution) -> tuple[Any, Cost, Any, Cost]:
        """Returns the representation, the cost, the best and its cost with which a walk starts."""
        representation, cost = self.neighborhood.init(problem, solution), cost_of(problem, solution)
        return representation, cost, self.neighborhood.snapshot(representation), cost

    def _make(self, problem: Any, state: Any, move: Move, delta: Cost, where: jax.Array) -> Any:
        """Returns the state after `move`, if the scalar `where` holds."""

        def commit(representation: Representation, where: jax.Array) -> Representation:
            return self.neighborhood.commit(problem, representation, move, where)

        representation = memory.when(where, commit, state.representation)
        cost = self._cost_after(state.cost, delta, where, representation)
        return state._replace(representation=representation, cost=cost)

    def _cost_after(
        self, cost: Cost, delta: Cost, where: jax.Array, representation: Representation
    ) -> Cost:
        """Returns the cost after a move, if `where` holds: `representation` is the one then."""
        known_cost = getattr(self.neighborhood, "known_cost", lambda representation: None)
        known = known_cost(representation)
        return cost + jnp.where(where, delta, jnp.zeros_like(delta)) if known is None else known

    def _remember(self, state: Any, where: jax.Array) -> Any:
        """Returns the state with the current solution for its best, where it is better."""
        is_better = where & (state.cost < state.best_cost)
        current = self.neighborhood.snapshot(state.representation)
        return state._replace(
            best=memory.copy(state.best, current, is_better),
            best_cost=jnp.where(is_better, state.cost, state.best_cost),
        )


class TemperedSearch(TrajectorySearch):
    """A `TrajectorySearch` that prices some moves in a step and tests one at a temperature."""

    schedule: schedules.Schedule
    moves_per_search: int

    def evaluations_per_step(self, problem: Any) -> int:
        return self.moves_per_search

    def check(self, max_steps: int | None) -> None:
        """Refuses a schedule that is negative or not finite within `max_steps`; on the host."""
        schedules.check(self.schedule, max_steps)

    def control(self, step: jax.Array) -> jax.Array:
        """Returns the temperature."""
        return schedules.temperature(self.schedule, step)

    def _num_lanes(self) -> int:
        with memory.one_search("native"):
            return jax.eval_shape(lambda: memory.lanes(self.moves_per_search)).shape[0]


class TableSearch(TrajectorySearch):
    """A `TrajectorySearch` that looks at all moves of an enumerable neighborhood in each step.

    The table is brought up to date and searched in one pass, so that a state has, in `found`, the
    move of the next step. A subclass has `_rank(problem, state)`, what ranks moves, and `_others`.
    """

    def evaluations_per_step(self, problem: Any) -> int:
        return self.neighborhood.num_moves(problem)

    def num_warps(self, problem: Any, num_searches: int) -> int:
        return tables.num_warps(self.neighborhood.shape(problem))

    def control(self, step: jax.Array) -> None:
        return None

    def adopt(self, problem: Any, state: Any, solution: Solution) -> Any:
        return self._looked(problem, super().adopt(problem, state, solution))

    def refresh(self, problem: Any, state: Any) -> Any:
        return self._looked(problem, super().refresh(problem, state))

    def _rank(self, problem: Any, state: Any) -> Callable[..., tuple[jax.Array, ...]]:
        raise NotImplementedError

    def _others(self, state: Any) -> tuple[jax.Array, ...]:
        """Returns the tables that `_rank` needs beside that of the moves."""
        return ()

    def _looked(self, problem: Any, state: Any) -> Any:
        """Returns the state with what comes next; of the found move before, only `entry` counts."""
        rank, others = self._rank(problem, state), self._others(state)
        first, move = self.neighborhood.first(problem, state.representation, rank, others)
        return state._replace(found=Found(move, first.number, first.keys[0]))

    def _make_found(self, problem: Any, state: Any, delta: Cost, where: jax.Array) -> Any:
        """Returns the state after `state.found` was made, if `where` holds, with what comes next.

        Args:
          delta: [] that of the move.
        """
        hood, move = self.neighborhood, state.found.move
        if not hasattr(hood, "commit_and_first"):
            representation = hood.commit(problem, state.representation, move, where)
            cost = self._cost_after(state.cost, delta, where, representation)
            memory.barrier()
            return self._looked(problem, state._replace(representation=representation, cost=cost))
        state = state._replace(cost=state.cost + jnp.where(where, delta, jnp.zeros_like(delta)))
        rank, others = self._rank(problem, state), self._others(state)
        representation, first, move = hood.commit_and_first(
            problem, state.representation, move, where, rank, others
        )
        memory.barrier()
        found = Found(move, first.number, first.keys[0])
        return state._replace(representation=representation, found=found)


def _of(problem: Any, value: Any) -> Any:
    """Returns a value, or what a function gives for the problem."""
    return value(problem) if callable(value) else value


def num_warps(moves_per_search: int, num_searches: int) -> int:
    """Returns the warps of a program that prices so many moves at a time, a power of two."""
    most = max(1, min(moves_per_search // 32, _MAX_WARPS, _WARPS_AT_ONCE // num_searches))
    return 1 << most.bit_length() - 1


def passes(temperature: jax.Array, word: jax.Array, delta: Cost) -> jax.Array:
    """Metropolis: always if not worse, else with probability exp(-delta / temperature).

    A uniform u lies below that probability where -log(u), which is exponentially distributed, lies
    above delta / temperature; written so, temperature 0 accepts delta <= 0 only.
    """
    threshold = temperature * random.exponential(word)
    return (delta.astype(jnp.float32) <= threshold) & (delta < null_delta(delta.dtype))
