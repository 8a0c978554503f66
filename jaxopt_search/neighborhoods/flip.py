"""A binary variable gets its other value: moves for problems on vectors of zeros and ones."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search.backends import memory, tables
from jaxopt_search.backends.memory import load
from jaxopt_search.backends.random import below
from jaxopt_search.checks import check_suits
from jaxopt_search.neighborhoods.full_evaluation import Evaluated, FullEvaluation
from jaxopt_search.neighborhoods.vectors import Assign, Assignment, Vector, VectorNeighborhood
from jaxopt_search.types import (
    Cost,
    Entries,
    Moves,
    Rank,
    Scan,
    Tallied,
    VectorProblem,
    null_delta,
)

_COLUMNS = 32  # of the table: handled at once by a warp of a GPU, or a few vectors of a CPU


class _Flips(Moves):
    """Flips for `FullEvaluation`."""

    num_words = 1

    def propose(
        self, problem: Any, solution: jax.Array, words: tuple[jax.Array, ...]
    ) -> Assignment:
        return _propose(solution, words)

    def apply(self, problem: Any, solution: jax.Array, move: Assignment) -> jax.Array:
        return solution.at[move.variable].set(move.value)


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Flip(VectorNeighborhood):
    """All flips of a problem whose variables have two values.

    These are the moves of `Assign`, in another table: there each variable has an entry for each
    value, here only one. Variable i stands in row i // 32 and column i % 32. With so few rows, the
    default tenure of `tabu_search`, which counts them, is about n / 32.

    A variable with a domain of one value has a null move.

    Example:
      >>> import jaxopt_search as js
      >>> problem = js.max_cut(1, edges=[[0, 1], [1, 2], [2, 3], [3, 0]])
      >>> js.solve(problem, js.tabu_search(Flip()), 0, num_searches=2, max_steps=20).fun
      -4
    """

    num_words = 1
    _in_full = FullEvaluation(_Flips())

    def init(self, problem: Any, solution: jax.Array) -> Vector:
        is_binary = isinstance(problem, VectorProblem) and problem.max_domain == 2
        check_suits("Flip", "one on vectors with max_domain 2", problem, is_binary)
        return super().init(problem, solution)

    def propose(
        self, problem: Any, representation: Vector, words: tuple[jax.Array, ...]
    ) -> Assignment:
        return _propose(representation.solution, words)

    def delta(self, problem: Any, representation: Vector, move: Assignment) -> Cost:
        if not isinstance(representation, Evaluated):
            return Assign().delta(problem, representation, move)
        change = self._in_full.delta(problem, representation, move)
        is_none = load(problem.domain_sizes, move.variable) < 2
        return jnp.where(is_none, null_delta(change.dtype), change)

    def commit(
        self, problem: Any, representation: Vector, move: Assignment, accept: jax.Array
    ) -> Vector:
        return Assign().commit(problem, representation, move, accept)

    def num_moves(self, problem: Any) -> int:
        return Assign().num_moves(problem)

    def shape(self, problem: Any) -> tuple[int, int]:
        return _shape(problem.domain_sizes.shape[0])

    def move_at(
        self, problem: Any, representation: Vector, row: jax.Array, column: jax.Array
    ) -> tuple[Assignment, jax.Array]:
        number = row * _COLUMNS + column
        variable = jnp.minimum(number, representation.solution.shape[0] - 1)
        return _flip_of(representation.solution, variable), number == variable

    def first(
        self, problem: Any, representation: Vector, rank: Rank, others: tables.Values
    ) -> tuple[tables.First, Assignment]:
        if isinstance(representation, Evaluated):
            return super().first(problem, representation, rank, others)
        price = _pricing(problem, representation)

        def keys_of(place: tables.Place, entries: tables.Values) -> Any:
            number = place.row * _COLUMNS + place.column
            return rank(number, price(number), *entries)

        found = tables.first(self.shape(problem), keys_of, others)
        variable = jnp.minimum(found.number, representation.solution.shape[0] - 1)
        return found, _flip_of(representation.solution, variable)

    def undone(self, problem: Any, representation: Vector, move: Assignment) -> Entries:
        return (tables.row_and_column(move.variable, _COLUMNS),)


def _shape(n: int) -> tuple[int, int]:
    return -(-n // _COLUMNS), _COLUMNS


def _propose(solution: jax.Array, words: tuple[jax.Array, ...]) -> Assignment:
    return _flip_of(solution, below(words[0], solution.shape[0]))


def _flip_of(solution: jax.Array, variable: jax.Array) -> Assignment:
    return Assignment(variable, 1 - load(solution, variable))


def _pricing(problem: Any, tallied: Tallied) -> Callable[[jax.Array], Cost]:
    """Returns a function from numbers of entries of the table to the deltas there; portable."""
    n = problem.domain_sizes.shape[0]
    get_scan = problem.scan
    scan = None if get_scan is None else get_scan(*tallied)

    def look_up(variable: jax.Array) -> Any:
        """Returns what the flips of variables need: values, domain sizes, what `Scan` says."""
        own = tables.in_rows(tallied.solution, variable)
        size = tables.in_rows(problem.domain_sizes, variable)
        return own, size, None if scan is None else scan.of_variable(variable)

    def entries_of(scan: Scan, variable: jax.Array, value: jax.Array) -> tables.Values:
        return tuple(load(table, (variable, value)) for table in scan.tables)

    def price(number: jax.Array, found: Any) -> Cost:
        variable, (own, size, needed) = jnp.minimum(number, n - 1), found
        value = 1 - own
        if scan is None:
            change = problem.assign_delta(*tallied, variable, value)
        else:
            place = tables.Place(variable, value, needed, scan.of_value(value))
            change = scan.delta(place, entries_of(scan, variable, value))
        is_none = (number >= n) | (size < 2)
        return jnp.where(is_none, null_delta(change.dtype), change)

    if memory.is_in_kernel():
        return lambda number: price(number, look_up(jnp.minimum(number, n - 1)))
    # All at once and in order: looking things up by their numbers is slow on a CPU.
    rows, columns = _shape(n)
    in_order = look_up(lax.iota(jnp.int32, n)[:, None])
    spread = jax.tree.map(
        lambda values: jnp.pad(values.ravel(), (0, rows * columns - n)).reshape(rows, columns),
        in_order,
    )
    return lambda number: price(number, spread)
