"""A binary variable gets its other value: moves for problems on vectors of zeros and ones."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search.backends import memory, tables
from jaxopt_search.backends.memory import load
from jaxopt_search.backends.random import below
from jaxopt_search.checks import check_suits
from jaxopt_search.neighborhoods.full_evaluation import Evaluated
from jaxopt_search.neighborhoods.vectors import Assignment, Assignments, Vector, scan_of
from jaxopt_search.types import Entries, Rank, VectorProblem, Words, null_delta

_COLUMNS = 32  # of the table: handled at once by a warp of a GPU, or a few vectors of a CPU


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Flip(Assignments):
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

    def init(self, problem: Any, solution: jax.Array) -> Vector:
        is_binary = isinstance(problem, VectorProblem) and problem.max_domain == 2
        check_suits("Flip", "one on vectors with max_domain 2", problem, is_binary)
        return super().init(problem, solution)

    def propose(self, problem: Any, state: Vector, words: Words) -> Assignment:
        return _flip_of(state, below(words[0], state.solution.shape[0]))

    def shape(self, problem: Any) -> tuple[int, int]:
        return -(-problem.domain_sizes.shape[0] // _COLUMNS), _COLUMNS

    def move_at(
        self, problem: Any, state: Vector, row: jax.Array, column: jax.Array
    ) -> tuple[Assignment, jax.Array]:
        number = row * _COLUMNS + column
        variable = jnp.minimum(number, state.solution.shape[0] - 1)
        return _flip_of(state, variable), number == variable

    def first(
        self, problem: Any, state: Vector, rank: Rank, others: tables.Values
    ) -> tuple[tables.First, Assignment]:
        if isinstance(state, Evaluated):
            return super().first(problem, state, rank, others)
        scan, n = scan_of(problem, state), state.solution.shape[0]
        rows, columns = shape = self.shape(problem)

        def look_up(variable: jax.Array) -> Any:
            """Returns what the flips of variables need: values, domain sizes, what `Scan` says."""
            own = tables.in_rows(state.solution, variable)
            return own, tables.in_rows(problem.domain_sizes, variable), scan.of_variable(variable)

        spread = None
        if not memory.is_in_kernel():
            # All at once and in order: looking things up by their numbers is slow on a CPU.
            spread = jax.tree.map(
                lambda values: jnp.pad(values.ravel(), (0, rows * columns - n)).reshape(shape),
                look_up(lax.iota(jnp.int32, n)[:, None]),
            )

        def keys_of(place: tables.Place, entries: tables.Values) -> Any:
            number = place.row * columns + place.column
            variable = jnp.minimum(number, n - 1)
            own, size, needed = look_up(variable) if spread is None else spread
            value = 1 - own
            flip = tables.Place(variable, value, needed, scan.of_value(value))
            there = tuple(load(table, (variable, value)) for table in scan.tables)
            change = scan.delta(flip, there)
            is_none = (number >= n) | (size < 2)
            return rank(number, jnp.where(is_none, null_delta(change.dtype), change), *entries)

        found = tables.first(shape, keys_of, others)
        return found, _flip_of(state, jnp.minimum(found.number, n - 1))

    def undone(self, problem: Any, state: Vector, move: Assignment) -> Entries:
        return (tables.row_and_column(move.variable, _COLUMNS),)


def _flip_of(state: Vector, variable: jax.Array) -> Assignment:
    return Assignment(variable, 1 - load(state.solution, variable))
