"""Local heuristics for problems on vectors: what a variable gets is drawn by what it would cost."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxopt_search.backends.memory import load
from jaxopt_search.checks import check_count
from jaxopt_search.problems.finite import vector
from jaxopt_search.successors.heuristics import Aggregate, LocalHeuristic
from jaxopt_search.types import Tallied, VectorProblem, null_delta

_MOST_HALVINGS = 20
_MAX_INT32 = np.int32(null_delta(np.int32))


class ValueRating(NamedTuple):
    """What a value would do.

    Attributes:
      delta: the change in cost, int32; the highest number there is where the value is forbidden.
      is_allowed: bool.
    """

    delta: jax.Array
    is_allowed: jax.Array


@dataclasses.dataclass(frozen=True)
class _ByDelta(LocalHeuristic):
    """What the heuristics here share: weights that halve with each step of the cost."""

    num_variables: int | None = None
    max_possibilities: int | None = None
    halving: int = 1

    is_portable = True
    max_weight = 2**_MOST_HALVINGS
    aggregates = (Aggregate(jnp.minimum, _MAX_INT32, lambda rating: rating.delta),)

    def rate(
        self, problem: Any, state: Tallied, variable: jax.Array, possibility: jax.Array
    ) -> ValueRating:
        variable = jnp.broadcast_to(variable, possibility.shape)
        delta = problem.assign_delta(*state, variable, possibility)
        if delta.dtype != jnp.int32:
            raise TypeError(
                f"problem is a {type(problem).__name__} with costs of {delta.dtype}, expected int32"
                f" for {type(self).__name__}"
            )
        is_allowed = possibility != load(state.solution, variable)
        is_allowed = is_allowed & self.allows(problem, state, variable, possibility)
        return ValueRating(jnp.where(is_allowed, delta, _MAX_INT32), is_allowed)

    def num_possibilities(self, problem: Any, state: Tallied, variable: jax.Array) -> jax.Array:
        kind = type(self).__name__
        if not isinstance(problem, VectorProblem) or not problem.has_hooks:
            found = "None" if problem is None else f"a {type(problem).__name__}"
            raise TypeError(
                f"problem is {found}, expected a js.VectorProblem with hooks for {kind}"
            )
        n, most = problem.domain_sizes.shape[0], problem.max_domain
        if not isinstance(state, Tallied):
            raise TypeError(f"state is a {type(state).__name__}, expected a Tallied for {kind}")
        check_count(f"{kind}.num_variables", self.num_variables or n, 1, n)
        check_count(f"{kind}.max_possibilities", self.max_possibilities or most, most, None)
        return load(problem.domain_sizes, variable)

    def weight(
        self, problem: Any, rating: ValueRating, aggregates: tuple[jax.Array, ...]
    ) -> jax.Array:
        # Modulo 2**32, the difference of two deltas is exact.
        more = rating.delta.astype(jnp.uint32) - aggregates[0].astype(jnp.uint32)
        if self.halving > 1:
            more = more // jnp.uint32(self.halving)
        weight = jnp.uint32(self.max_weight) >> jnp.minimum(more, jnp.uint32(_MOST_HALVINGS))
        return jnp.where(rating.is_allowed, weight, jnp.uint32(0))

    def assign(
        self, problem: Any, state: Tallied, variable: jax.Array, value: jax.Array, where: jax.Array
    ) -> Tallied:
        return vector.assigned(problem, state, variable, value, where)


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class ByDelta(_ByDelta):
    """Draws another value for a variable, the cheaper ones more often.

    For problems on vectors with hooks (`types.VectorProblem`) and int32 costs; its states are
    `types.Tallied`. The values that change the cost least have weight 2**20, those that cost
    `halving` more half of that, and so on; none has less than 1 but the value that the variable
    has, which is forbidden.

    Attributes:
      num_variables, max_possibilities: of the problem, which `generate` needs; `Guided` does not.
      halving: by how much more cost a weight halves, an integer of at least 1.

    Example:
      >>> import jaxopt_search as js
      >>> triangle = js.graph_coloring([[0, 1], [1, 2], [2, 0]], 3)
      >>> hood = js.Guided(js.successors.ByDelta())
      >>> js.solve(triangle, js.simulated_annealing(hood, 0.1), 0, max_steps=50, target=0).fun
      0
    """

    def allows(
        self, problem: Any, state: Tallied, variable: jax.Array, possibility: jax.Array
    ) -> jax.Array:
        return jnp.broadcast_to(jnp.bool_(True), possibility.shape)


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class ConflictsOnly(_ByDelta):
    """As `ByDelta`, but only for vertices that share their color with a neighbor.

    For `GraphColoring`. With tabu search this is the neighborhood of TabuCol (Hertz, de Werra,
    "Using tabu search techniques for graph coloring", Computing 39, 1987).

    Attributes:
      num_variables, max_possibilities, halving: as of `ByDelta`.

    Example:
      >>> import jaxopt_search as js
      >>> problem = js.graph_coloring([[0, 1], [1, 2], [2, 3], [3, 4], [4, 0]], 3)
      >>> search = js.tabu_search(js.Guided(js.successors.ConflictsOnly()), tenure=(1, 3))
      >>> js.solve(problem, search, 0, num_searches=2, max_steps=100, target=0).fun
      0
    """

    def allows(
        self, problem: Any, state: Tallied, variable: jax.Array, possibility: jax.Array
    ) -> jax.Array:
        return self.is_movable(problem, state, variable)

    def is_movable(self, problem: Any, state: Tallied, variable: jax.Array) -> jax.Array:
        if not hasattr(state.tally, "conflicts"):
            raise TypeError(
                f"problem is a {type(problem).__name__}, expected a GraphColoring for ConflictsOnly"
            )
        return load(state.tally.conflicts, variable) > 0
