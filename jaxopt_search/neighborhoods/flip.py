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
from jaxopt_search.neighborhoods.vectors import Assignment, Assignments, Vector
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
        if isinstance(state, Evaluated) or memory.is_in_kernel():
            return super().first(problem, state, rank, others)
        # All at once and in order: looking things up by their numbers is slow on a CPU.
        (rows, columns), n = self.shape(problem), state.solution.shape[0]
        change = problem.assign_delta(*state, lax.iota(jnp.int32, n), 1 - state.solution)
        none = null_delta(change.dtype)
        deltas = jnp.where(problem.domain_sizes < 2, none, change)
        deltas = jnp.pad(deltas, (0, rows * columns - n), constant_values=none)
        deltas = deltas.reshape(rows, columns)

        def keys_of(place: tables.Place, entries: tables.Values) -> Any:
            return rank(place.row * columns + place.column, deltas, *entries)

        found = tables.first((rows, columns), keys_of, others)
        return found, _flip_of(state, jnp.minimum(found.number, n - 1))

    def undone(self, problem: Any, state: Vector, move: Assignment) -> Entries:
        return (tables.row_and_column(move.variable, _COLUMNS),)


def _flip_of(state: Vector, variable: jax.Array) -> Assignment:
    return Assignment(variable, 1 - load(state.solution, variable))
