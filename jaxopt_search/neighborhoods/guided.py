"""A local heuristic as a neighborhood: it says which assignments are moves, and how likely each is.

Koester, Gross, Krueger, "FANG: Fast and Efficient Successor-State Generation for Heuristic
Optimization on GPUs": the successor function of one variable at a time.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from jaxopt_search.backends import counts, memory, tables
from jaxopt_search.backends.counts import Count
from jaxopt_search.backends.memory import load
from jaxopt_search.backends.random import below
from jaxopt_search.neighborhoods.vectors import Assignment, Assignments, first
from jaxopt_search.pytrees import pytree
from jaxopt_search.successors import heuristics
from jaxopt_search.types import Rank, Tallied, Words


@pytree
@dataclasses.dataclass(frozen=True)
class Guided(Assignments):
    """The assignments that a local heuristic allows, for a problem on vectors with hooks.

    A proposal draws a variable, each equally likely, and one of its values with the probability
    weight / sum of the weights; a variable without a positive weight gives a null move. The table
    of moves is like the one of `Assign`, but entries of weight 0 are no moves: tabu search and hill
    climbing choose among the moves that the heuristic allows. They are priced as in `Assign`.

    The heuristic is a `successors.LocalHeuristic` whose states are `types.Tallied` and whose
    possibilities are values. In addition, its `rate` and `num_possibilities` must be elementwise in
    the variable: here each lane may have a variable of its own. It may also have

    - `allows(problem, state, variable, possibility)`, elementwise, shapes broadcast: whether the
      weight is above 0, for values other than the variable's own. With it, a pass over the table
      computes no weights.
    - `is_movable(problem, state, variable)`, elementwise: False where no value is allowed. With it,
      a kernel skips these variables.

    Aggregates, and sums of weights in 64 bits, are folded value by value from 0 on.

    Attributes:
      heuristic: the guide.

    Example:
      >>> import jaxopt_search as js
      >>> problem = js.graph_coloring([[0, 1], [1, 2], [2, 3], [3, 4], [4, 0]], 3)
      >>> search = js.hill_climbing(Guided(js.successors.ConflictsOnly()))
      >>> js.solve(problem, search, 0, num_searches=8).fun
      0
    """

    heuristic: Any

    num_words = 3

    @property
    def is_portable(self) -> bool:
        return self.heuristic.is_portable

    def init(self, problem: Any, solution: jax.Array) -> Tallied:
        if not problem.has_hooks:
            raise TypeError(
                f"problem is a {type(problem).__name__} without assign_delta, expected one with"
                " hooks (types.VectorProblem) for Guided"
            )
        return Tallied(solution, problem.tally(solution))

    def propose(self, problem: Any, state: Tallied, words: Words) -> Assignment:
        variable = below(words[0], state.solution.shape[0])
        needed, zero = self._needed(problem, state, variable), jnp.zeros_like(words[0])

        def weight(value: jax.Array) -> jax.Array:
            return self._weight(problem, state, variable, value, needed)

        def add(value: jax.Array, total: Count) -> Count:
            return counts.add(total, weight(value))

        def count(value: jax.Array, sums: tuple[Count, jax.Array]) -> tuple[Count, jax.Array]:
            before, passed = sums
            total = counts.add(before, weight(value))
            return total, passed + counts.is_at_most(total, point).astype(jnp.int32)

        values, none = jnp.int32(problem.max_domain), Count(zero, zero)
        total = memory.fori_loop(values, add, none)
        point = counts.scaled(total, (words[1], words[2]))
        _, passed = memory.fori_loop(values, count, (none, jnp.zeros_like(variable)))
        own = load(state.solution, variable)
        return Assignment(variable, jnp.where(counts.is_zero(total), own, passed))

    def move_at(
        self, problem: Any, state: Tallied, row: jax.Array, column: jax.Array
    ) -> tuple[Assignment, jax.Array]:
        needed = self.needed(problem, state, row)
        return Assignment(row, column), self.allows(problem, state, row, column, needed)

    def first(
        self, problem: Any, state: Tallied, rank: Rank, others: tables.Values
    ) -> tuple[tables.First, Assignment]:
        return first(problem, state, rank, others, self)

    def needed(self, problem: Any, state: Tallied, variable: jax.Array) -> Any:
        """Returns what `allows` needs of variables, of any shape."""
        return None if self.heuristic.allows else self._needed(problem, state, variable)

    def allows(
        self, problem: Any, state: Tallied, variable: jax.Array, value: jax.Array, needed: Any
    ) -> jax.Array:
        """Returns whether assignments of another value are moves; variables and values broadcast.

        Args:
          needed: as `needed` returns it.
        """
        if self.heuristic.allows:
            return self.heuristic.allows(problem, state, variable, value)
        return self._weight(problem, state, variable, value, needed) > 0

    def _needed(self, problem: Any, state: Tallied, variable: jax.Array) -> tuple[Any, Any]:
        """Returns how many possibilities variables have, and the aggregates over all of them."""
        number = size = load(problem.domain_sizes, variable)
        if self.heuristic.num_possibilities is not None:
            number = self.heuristic.num_possibilities(problem, state, variable)
            number = jnp.minimum(jnp.maximum(number, jnp.int32(0)), size)
        aggregates = self.heuristic.aggregates
        if not aggregates:
            return number, ()

        def fold(value: jax.Array, folded: tuple[Any, ...]) -> tuple[Any, ...]:
            value = jnp.broadcast_to(value, variable.shape)
            rating = self.heuristic.rate(problem, state, variable, value)
            where = heuristics.only_rated(rating, value < number)
            pairs = zip(aggregates, folded, strict=True)
            return tuple(
                one.combine(old, heuristics.values(one, rating, where)) for one, old in pairs
            )

        start = jax.tree.map(
            lambda neutral: jnp.full(variable.shape, neutral),
            tuple(one.neutral for one in aggregates),
        )
        return number, memory.fori_loop(jnp.int32(problem.max_domain), fold, start)

    def _weight(
        self, problem: Any, state: Tallied, variable: jax.Array, value: jax.Array, needed: Any
    ) -> jax.Array:
        """Returns weights, uint32; variables and values broadcast."""
        shape = jnp.broadcast_shapes(variable.shape, value.shape)
        variable, value, (number, aggregates) = jax.tree.map(
            lambda leaf: jnp.broadcast_to(leaf, shape), (variable, value, needed)
        )
        rating = self.heuristic.rate(problem, state, variable, value)
        return heuristics.weights(self.heuristic, problem, aggregates, rating, value < number)
