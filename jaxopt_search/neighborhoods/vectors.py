"""Moves of vectors: another value for a variable, or two variables that exchange theirs."""

import abc
import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from jaxopt_search.backends import tables
from jaxopt_search.backends.memory import load
from jaxopt_search.backends.random import another, below
from jaxopt_search.neighborhoods.full_evaluation import Evaluated, FullEvaluation
from jaxopt_search.neighborhoods.swap import Positions, Swap
from jaxopt_search.problems.finite import vector
from jaxopt_search.pytrees import pytree
from jaxopt_search.types import (
    Cost,
    Entries,
    Enumerable,
    Neighborhood,
    Rank,
    Scan,
    Tallied,
    Words,
    null_delta,
)


class Assignment(NamedTuple):
    """A variable and the value that it gets, int32."""

    variable: jax.Array
    value: jax.Array


Vector: TypeAlias = Tallied | Evaluated
"""A vector with its tally or, where the problem has no hooks, its cost."""


class VectorNeighborhood(Neighborhood):
    """What neighborhoods of vectors share: moves are priced by the problem's hooks or in full.

    Representations are `types.Tallied` or, for problems without hooks, `Evaluated`.
    """

    space = "vector"
    is_portable = True

    @abc.abstractmethod
    def price(self, problem: Any, tallied: Tallied, move: Any) -> Cost:
        """Returns the change in cost by the problem's hooks, if the move is not null; portable."""

    @abc.abstractmethod
    def assignments(self, solution: Any, move: Any) -> Sequence[Assignment]:
        """Returns what a move assigns; portable. It is null if the first one changes nothing."""

    def apply(self, problem: Any, solution: jax.Array, move: Any) -> jax.Array:
        """Returns the solution after `move`; under XLA only."""
        after = solution
        for variable, value in self.assignments(solution, move):
            after = after.at[variable].set(value)
        return after

    def init(self, problem: Any, solution: jax.Array) -> Vector:
        if not problem.has_hooks:
            return FullEvaluation(self).init(problem, solution)
        return Tallied(solution, problem.tally(solution))

    def solution(self, problem: Any, snapshot: Vector) -> jax.Array:
        return snapshot.solution

    def snapshot(self, state: Vector) -> Vector:
        if isinstance(state, Evaluated):
            return state._replace(cost=None)
        return state._replace(tally=None)

    def known_cost(self, state: Vector) -> Cost | None:
        return state.cost if isinstance(state, Evaluated) else None

    def delta(self, problem: Any, state: Vector, move: Any) -> Cost:
        if isinstance(state, Evaluated):
            change = FullEvaluation(self).delta(problem, state, move)
        else:
            change = self.price(problem, state, move)
        assigned = self.assignments(state.solution, move)
        is_none = assigned[0].value == load(state.solution, assigned[0].variable)
        for variable, value in assigned:
            is_none = is_none | (value >= load(problem.domain_sizes, variable))
        return jnp.where(is_none, null_delta(change.dtype), change)

    def commit(self, problem: Any, state: Vector, move: Any, accept: jax.Array) -> Vector:
        if isinstance(state, Evaluated):
            return FullEvaluation(self).commit(problem, state, move, accept)
        for variable, value in self.assignments(state.solution, move):
            state = vector.assigned(problem, state, variable, value, accept)
        return state


class Assignments(VectorNeighborhood, Enumerable):
    """What neighborhoods share whose moves are an `Assignment` each.

    A subclass says how moves are proposed, and which ones its table has. The one that is here has
    variables as rows and values as columns.
    """

    def price(self, problem: Any, tallied: Tallied, move: Assignment) -> Cost:
        return problem.assign_delta(*tallied, *move)

    def assignments(self, solution: Any, move: Assignment) -> Sequence[Assignment]:
        return (move,)

    def num_moves(self, problem: Any) -> int:
        return int(np.sum(np.asarray(problem.domain_sizes, np.int64) - 1))

    def shape(self, problem: Any) -> tuple[int, int]:
        return problem.domain_sizes.shape[0], problem.max_domain

    def undone(self, problem: Any, state: Vector, move: Assignment) -> Entries:
        return ((move.variable, load(state.solution, move.variable)),)


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Assign(Assignments):
    """All assignments of another value to a variable; on binary vectors, all flips.

    A proposal draws a variable and then one of its other values, each equally likely; a variable
    with only one value gives a null move. In tables, rows are variables and columns are values; a
    move undoes the assignment of the value that the variable had.

    If the problem has hooks (`types.VectorProblem`), a move is priced by `assign_delta`, else by a
    full evaluation. A pass over all moves is as fast as the problem's `scan` makes it.

    Example:
      >>> import jaxopt_search as js
      >>> triangle = js.graph_coloring([[0, 1], [1, 2], [2, 0]], 3)
      >>> js.solve(triangle, js.hill_climbing(js.Assign()), 0, num_searches=4).fun
      0
    """

    num_words = 2

    def propose(self, problem: Any, state: Vector, words: Words) -> Assignment:
        solution = state.solution
        variable = below(words[0], solution.shape[0])
        size, own = load(problem.domain_sizes, variable), load(solution, variable)
        return Assignment(variable, another(words[1], own, size))

    def move_at(
        self, problem: Any, state: Vector, row: jax.Array, column: jax.Array
    ) -> tuple[Assignment, bool]:
        return Assignment(row, column), True

    def first(
        self, problem: Any, state: Vector, rank: Rank, others: tables.Values
    ) -> tuple[tables.First, Assignment]:
        if isinstance(state, Evaluated) or problem.scan is None:
            return super().first(problem, state, rank, others)
        return first(problem, state, rank, others)


def first(
    problem: Any,
    tallied: Tallied,
    rank: Rank,
    others: tables.Values,
    guide: Any = None,
) -> tuple[tables.First, Assignment]:
    """Like `types.Enumerable.first`, for the table of assignments; portable.

    Args:
      guide: a `Guided`, which says what is a move; None if all are.
    """
    scan, columns = scan_of(problem, tallied), problem.max_domain
    shape = problem.domain_sizes.shape[0], columns

    def of_row(variable: jax.Array) -> Any:
        own = tables.in_rows(tallied.solution, variable)
        size = tables.in_rows(problem.domain_sizes, variable)
        to_allow = None if guide is None else guide.needed(problem, tallied, variable)
        return own, size, scan.of_variable(variable), to_allow

    def keys_of(place: tables.Place, entries: tables.Values) -> Any:
        (own, size, to_price, to_allow), number = place.here, len(scan.tables)
        change = scan.delta(place._replace(here=to_price), entries[:number])
        is_none = (place.column == own) | (place.column >= size)
        if guide is not None:
            is_none = is_none | ~guide.allows(problem, tallied, place.row, place.column, to_allow)
        delta = jnp.where(is_none, null_delta(change.dtype), change)
        return rank(place.row * columns + place.column, delta, *entries[number:])

    prepare = tables.Prepare(of_row, scan.of_value)
    all_tables = *scan.tables, *others
    if guide is None or guide.heuristic.is_movable is None:
        found = tables.first(shape, keys_of, all_tables, prepare)
        return found, Assignment(*tables.row_and_column(found.number, columns))
    is_movable = functools.partial(guide.heuristic.is_movable, problem, tallied)
    found = tables.first_of_some(shape, is_movable, keys_of, all_tables, prepare)
    variable, value = tables.row_and_column(found.number, columns)
    is_move = is_movable(variable)
    return found, Assignment(variable, jnp.where(is_move, value, load(tallied.solution, variable)))


def scan_of(problem: Any, tallied: Tallied) -> Scan:
    """Returns the problem's `Scan`, or one made of its `assign_delta`."""
    if problem.scan is not None:
        return problem.scan(*tallied)

    def delta(place: tables.Place, entries: tables.Values) -> Cost:
        variable, value = jnp.broadcast_arrays(place.row, place.column)
        return problem.assign_delta(*tallied, variable, value)

    return Scan((), lambda variable: None, lambda value: None, delta)


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class SwapValues(VectorNeighborhood, Enumerable):
    """All n (n - 1) / 2 exchanges of the values of two variables.

    Moves are null where the values are equal, or where one lies outside the other's domain. A
    proposal draws two different variables, each pair equally likely. In tables, rows and columns
    are variables, and each exchange stands there twice; a move undoes itself.

    If the problem has hooks (`types.VectorProblem`), a move is priced by `swap_values_delta`, else
    by a full evaluation.

    Example:
      >>> import jaxopt_search as js
      >>> problem = js.graph_coloring([[0, 1], [2, 3]], 2)
      >>> search = js.hill_climbing(js.SwapValues())
      >>> js.solve(problem, search, 0, num_searches=1, initial=[[0, 0, 1, 1]]).fun
      0
    """

    num_words = 2

    def price(self, problem: Any, tallied: Tallied, move: Positions) -> Cost:
        return problem.swap_values_delta(*tallied, *move)

    def assignments(self, solution: Any, move: Positions) -> Sequence[Assignment]:
        first, second = (load(solution, variable) for variable in move)
        return Assignment(move.first, second), Assignment(move.second, first)

    def propose(self, problem: Any, state: Vector, words: Words) -> Positions:
        return Swap().propose(problem, state.solution, words)

    def num_moves(self, problem: Any) -> int:
        n = problem.domain_sizes.shape[0]
        return n * (n - 1) // 2

    def shape(self, problem: Any) -> tuple[int, int]:
        n = problem.domain_sizes.shape[0]
        return n, n

    def move_at(
        self, problem: Any, state: Vector, row: jax.Array, column: jax.Array
    ) -> tuple[Positions, bool]:
        return Positions(row, column), True

    def undone(self, problem: Any, state: Vector, move: Positions) -> Entries:
        return (move.first, move.second), (move.second, move.first)


class AssignmentOrSwap(NamedTuple):
    """A variable gets a value or, if `second` is another one, exchanges values with that; int32.

    Attributes:
      first: the variable.
      value: what it gets.
      second: the other variable; `first` for an assignment.
    """

    first: jax.Array
    value: jax.Array
    second: jax.Array


@pytree
@dataclasses.dataclass(frozen=True, kw_only=True)
class AssignOrSwap(VectorNeighborhood):
    """The moves of `Assign` and of `SwapValues` together: half of the proposals are of either kind.

    Where only few values suit a variable, a proposal draws from these: an assignment from the
    `values` of the variable, a partner for an exchange from the `variables` of its value. What is
    drawn may be a null move.

    Moves are priced by `assign_delta` and `swap_values_delta`, or else by a full evaluation. They
    stand in no table.

    Attributes:
      values: [n, K] int32, values for each variable; None for all.
      variables: [max_domain, L] int32, variables for each value; None for all.

    Example:
      >>> import jaxopt_search as js
      >>> costs, loads = [[1, 2, 3], [4, 4, 4]], [[2, 2, 2], [1, 1, 1]]
      >>> problem = js.generalized_assignment(costs, loads, [4, 9])
      >>> search = js.simulated_annealing(js.AssignOrSwap(), 1.0)
      >>> js.solve(problem, search, 0, num_searches=4, max_steps=100).fun
      7
    """

    values: Any = None
    variables: Any = None
    num_words = 3

    def price(self, problem: Any, tallied: Tallied, move: AssignmentOrSwap) -> Cost:
        first, value, second = move
        swapped = problem.swap_values_delta(*tallied, first, second)
        assigned = problem.assign_delta(*tallied, first, value)
        return jnp.where(second == first, assigned, swapped)

    def assignments(self, solution: Any, move: AssignmentOrSwap) -> Sequence[Assignment]:
        own = load(solution, move.first)
        back = jnp.where(move.second == move.first, move.value, own)
        return Assignment(move.first, move.value), Assignment(move.second, back)

    def propose(self, problem: Any, state: Vector, words: Words) -> AssignmentOrSwap:
        solution = state.solution
        first = below(words[0], solution.shape[0])
        own, is_swap = load(solution, first), below(words[1], 2) == 1
        if self.values is None:
            value = below(words[2], load(problem.domain_sizes, first))
        else:
            value = load(self.values, (first, below(words[2], self.values.shape[1])))
        if self.variables is None:
            second = below(words[2], solution.shape[0])
        else:
            second = load(self.variables, (own, below(words[2], self.variables.shape[1])))
        value = jnp.where(is_swap, load(solution, second), value)
        return AssignmentOrSwap(first, value, jnp.where(is_swap, second, first))
