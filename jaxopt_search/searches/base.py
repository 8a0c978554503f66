"""What searches are built on that walk from one solution to a neighboring one.

Each class is a `types.Search` short of a few methods, its abstract ones. docs/your_own_search.md
shows how to write a search of your own on them.

- `SolutionSearch` keeps the current solution and the best one, as they are.
- `TrajectorySearch` keeps them as a neighborhood represents them. What it lacks is the step.
- `TableSearch` looks at all moves of a neighborhood in a step and knows which comes first.
"""

import abc
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxopt_search.backends import floats, memory, tables
from jaxopt_search.backends.costs import cost_of
from jaxopt_search.searches.acceptance import Acceptance
from jaxopt_search.types import (
    Cost,
    Enumerable,
    Move,
    Neighborhood,
    Problem,
    Rank,
    Representation,
    Search,
    Snapshot,
    Solution,
    VectorProblem,
)

__all__ = ["Found", "SolutionSearch", "TableSearch", "TrajectorySearch"]


class SolutionSearch(Search):
    """A search without a neighborhood, of which each step may change all of a solution.

    Its state is a `NamedTuple` with the fields `solution`, the current one; `cost`, [] of that;
    `best`, the best solution so far; and `best_cost`, [] of that. A subclass has `init`, `step` and
    `evaluations_per_step`, and makes its steps of `moved`.
    """

    def moved(self, problem: Any, state: Any, solution: Solution) -> Any:
        """Returns the state at another solution."""
        cost = cost_of(problem, solution)
        is_better = cost < state.best_cost
        choose = functools.partial(jnp.where, is_better)
        return state._replace(
            solution=solution,
            cost=cost,
            best=jax.tree.map(choose, solution, state.best),
            best_cost=choose(cost, state.best_cost),
        )

    def best_cost(self, state: Any) -> Cost:
        return state.best_cost

    def best(self, problem: Problem, state: Any) -> Solution:
        return state.best

    def current_cost(self, state: Any) -> Cost:
        return state.cost

    def current(self, problem: Problem, state: Any) -> Solution:
        return state.solution

    def adopt(self, problem: Problem, state: Any, solution: Solution) -> Any:
        return self.moved(problem, state, solution)


class TrajectorySearch(Search):
    """A search that walks over a `neighborhood` and remembers the best solution.

    Its state is a `NamedTuple` whose first four fields are `representation`, of the current
    solution; `cost`, [] of that; `best`, the snapshot of the best solution remembered, where the
    current one may be better; and `best_cost`, [] of that.

    A subclass has `init`, `step` and `evaluations_per_step`, and makes its steps of `make` and
    `remember`. It may replace `look` and `forget`, which do nothing here. With a rule in
    `acceptance`, `control` returns what the rule needs for a step.
    """

    neighborhood: Neighborhood
    acceptance: Acceptance | None = None

    @property
    def parts(self) -> tuple[Any, ...]:
        return (self.neighborhood,)

    @abc.abstractmethod
    def init(self, problem: Any, solution: Solution) -> Any:
        """Returns the state at `solution`; `start` returns the first four parts of it."""

    def check(self, problem: Problem, max_steps: int | None) -> None:
        if self.acceptance is not None:
            self.acceptance.check(problem, max_steps)

    def control(self, step: jax.Array) -> Any:
        return None if self.acceptance is None else self.acceptance.control(step)

    def look(self, problem: Any, state: Any) -> Any:
        """Returns the state after its current solution was replaced by other means than `make`."""
        return state

    def forget(self, state: Any) -> Any:
        """Returns the state of a search that is about to continue from another solution."""
        return state

    def start(
        self, problem: Problem, solution: Solution
    ) -> tuple[Representation, Cost, Snapshot, Cost]:
        """Returns the representation, the cost, the best and its cost with which a walk starts."""
        cost = memory.computed_once(cost_of(problem, solution))
        representation = self.neighborhood.init(problem, solution)
        return representation, cost, self.neighborhood.snapshot(representation), cost

    def make(self, problem: Problem, state: Any, move: Move, delta: Cost, where: jax.Array) -> Any:
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
        known = self.neighborhood.known_cost(representation)
        return cost + jnp.where(where, delta, jnp.zeros_like(delta)) if known is None else known

    def remember(self, state: Any, where: jax.Array | bool = True) -> Any:
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
        is_priced_in_full = isinstance(problem, VectorProblem) and not problem.has_hooks
        return self.neighborhood.is_portable and not is_priced_in_full

    def best_cost(self, state: Any) -> Cost:
        # Unlike `minimum`, this takes no NaN for the lowest, which an own delta may bring about.
        return jnp.where(state.cost < state.best_cost, state.cost, state.best_cost)

    def best(self, problem: Problem, state: Any) -> Solution:
        return self.neighborhood.solution(problem, self.remember(state).best)

    def current_cost(self, state: Any) -> Cost:
        return state.cost

    def current(self, problem: Problem, state: Any) -> Solution:
        snapshot = self.neighborhood.snapshot(state.representation)
        return self.neighborhood.solution(problem, snapshot)

    def adopt(self, problem: Problem, state: Any, solution: Solution) -> Any:
        representation, cost, *_ = self.start(problem, solution)
        state = self.forget(self.remember(state))._replace(representation=representation, cost=cost)
        # The next step may leave the solution, and with it the best.
        return self.look(problem, self.remember(state))

    def refresh(self, problem: Problem, state: Any) -> Any:
        representation, cost = self.anew(problem, state.representation)
        best_cost = cost_of(problem, self.neighborhood.solution(problem, state.best))
        state = state._replace(representation=representation, cost=cost, best_cost=best_cost)
        return self.look(problem, self.remember(state))

    def anew(self, problem: Problem, representation: Representation) -> tuple[Representation, Cost]:
        """Returns a representation and its cost without what roundings have added up to."""
        hood = self.neighborhood
        solution = hood.solution(problem, hood.snapshot(representation))
        if floats.any_in(representation):  # integers do not drift
            representation = hood.init(problem, solution)
        return representation, cost_of(problem, solution)


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


class TableSearch(TrajectorySearch):
    """A `TrajectorySearch` that looks at all moves of an enumerable neighborhood in each step.

    The state holds, in `found`, the move of the next step: `init` ends with `look`, and a step
    makes its move by `make_found`. A subclass has `rank`, which says what comes first.
    """

    neighborhood: Enumerable

    @abc.abstractmethod
    def rank(self, problem: Any, state: Any) -> Rank:
        """Returns what ranks moves: `rank` of `types.Enumerable.first`; portable."""

    def others(self, state: Any) -> tuple[Any, ...]:
        """Returns the buffers that `rank` needs besides the table of moves, of the same shape."""
        return ()

    def evaluations_per_step(self, problem: Any) -> int:
        return self.neighborhood.num_moves(problem)

    def num_warps(self, problem: Problem, num_searches: int) -> int:
        return tables.num_warps(self.neighborhood.shape(problem))

    def look(self, problem: Any, state: Any) -> Any:
        """Returns the state with what comes next; of the found move before, only `entry` counts."""
        rank, others = self.rank(problem, state), self.others(state)
        first, move = self.neighborhood.first(problem, state.representation, rank, others)
        return state._replace(found=Found(move, first.number, first.keys[0]))

    def make_found(self, problem: Problem, state: Any, delta: Cost, where: jax.Array) -> Any:
        """Returns the state after its found move, if `where` holds, with what comes next.

        Args:
          delta: [] the change in cost that the move makes.
        """

        hood, move = self.neighborhood, state.found.move
        representation = hood.commit(problem, state.representation, move, where)
        cost = self.cost_after(state.cost, delta, where, representation)
        return self.look(problem, state._replace(representation=representation, cost=cost))
