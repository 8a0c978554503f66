"""The state of an earlier run: whether it is one of this problem, and how it is continued."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxopt_search import capabilities
from jaxopt_search.backends import counts
from jaxopt_search.backends.costs import cost_change, cost_of, meets
from jaxopt_search.engine import exchanging, outcome, starting
from jaxopt_search.engine.state import RunState
from jaxopt_search.neighborhoods.swap import positions
from jaxopt_search.results import Result, Status
from jaxopt_search.types import Problem, Search

_DRIFT = 0.01
"""Of running float costs, relative; less than between instances."""


def check_state(problem: Problem, search: Search, state: Any) -> int:
    """Returns the number of searches in the state of an earlier run.

    Raises:
      TypeError: if `state` is not a `RunState`.
      ValueError: if it was made with a problem or a search of other sizes.
    """
    if isinstance(state, Result):
        raise TypeError("state is a Result, expected its .state")
    if not isinstance(state, RunState):
        raise TypeError(f"state is a {type(state).__name__}, expected the .state of a Result")
    for path, leaf in [("index", state.index), *leaves_by_path(state)]:
        if not isinstance(leaf, np.ndarray | np.generic | jax.Array):
            kind = "None" if leaf is None else f"a {type(leaf).__name__}"
            raise TypeError(f"state.{path} is {kind}, expected an array")
        if isinstance(leaf, jax.Array) and leaf.is_deleted():
            raise ValueError(f"state.{path} was deleted, expected an array that is there")
    num_searches = state.index.shape[0] if state.index.ndim == 1 else 0
    if not num_searches or signature(state) != signature(
        starting.shape(problem, search, num_searches)
    ):
        raise ValueError("state is of another problem or search, expected one made with these")
    return num_searches


def leaves_by_path(tree: Any) -> list[tuple[str, Any]]:
    """Returns the leaves of a pytree with where they are, such as `searches.best.cost`."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return [(jax.tree_util.keystr(path).removeprefix("."), leaf) for path, leaf in leaves]


def signature(tree: Any) -> Any:
    """Returns the structure of a pytree and the shapes and dtypes of its leaves, to compare."""
    leaves, structure = jax.tree.flatten(tree)
    return structure, [(np.shape(leaf), jnp.result_type(leaf)) for leaf in leaves]


def reopened(problem: Problem, search: Search, state: RunState, target: Any) -> RunState:
    """Returns a checked state ready to be continued.

    Of the searches that met an earlier run's target, those that meet this one's keep their hits.

    Raises:
      ValueError: if it was made with another instance.
    """
    is_own, original = bool(_is_of(problem, search, state)), capabilities.original(problem)
    is_exact = jnp.issubdtype(state.device_best.dtype, jnp.integer)
    if is_own and original is not None and is_exact:
        solution, cost = jax.device_get(outcome.best_on_device(problem, search, state))
        is_own = original.cost(solution) == original.in_full(cost.item())
    if not is_own:
        raise ValueError("state is of another instance, expected one made with this problem")
    # A search that meets a new target without a hit meets it now.
    step = jax.tree.map(lambda word: jnp.broadcast_to(word, state.hit.low.shape), state.step)
    is_open = counts.is_never(state.hit)
    hit = jax.tree.map(lambda now, at: jnp.where(is_open, now, at), step, state.hit)
    return retargeted(problem, search, state._replace(hit=hit), target)


def retargeted(problem: Problem, search: Search, state: RunState, target: Any) -> RunState:
    """Returns the state with the hits that meet `target`, and the status that follows."""
    settled = exchanging.settled(problem, search, state.searches)
    costs = exchanging.best_costs(search, settled, state.index)
    never = counts.never(costs.shape)
    hit = jax.tree.map(lambda at, none: jnp.where(meets(costs, target), at, none), state.hit, never)
    status = jnp.where(counts.is_never(hit).all(), Status.RUNNING, Status.TARGET)
    return state._replace(hit=hit, status=status.astype(jnp.int32))


@jax.jit
def _is_of(problem: Problem, search: Search, state: RunState) -> jax.Array:
    """Returns whether the problem gives all searches the best costs that they have.

    Float costs may differ by as much as deltas may have drifted: that grows with the steps since
    costs were last computed in full, and with the largest costs on the way, such as the cost of a
    random start. And whether what is fixed is in its place.
    """
    solutions = jax.vmap(search.best, (None, 0))(problem, state.searches)
    costs = exchanging.best_costs(search, state.searches, state.index)
    exact = jax.vmap(cost_of, (None, 0))(problem, solutions)
    start = problem.init(jax.random.key(0, impl="threefry2x32"))
    is_right = exact == costs
    if jnp.issubdtype(costs.dtype, jnp.floating):
        finite, on_the_way = jnp.isfinite(exact) & jnp.isfinite(costs), cost_of(problem, start)
        on_the_way = jnp.where(jnp.isfinite(on_the_way), jnp.abs(on_the_way), 0)
        rounding = jnp.finfo(costs.dtype).eps * state.since.refresh.astype(costs.dtype)
        drift = _DRIFT * jnp.maximum(jnp.abs(exact), jnp.abs(costs)) + rounding * on_the_way
        is_right |= finite & (jnp.abs(cost_change(exact, costs)) <= drift)
    if capabilities.free(problem) is not None:
        free, number = positions(problem, start)
        assert free is not None
        current = jax.vmap(search.current, (None, 0))(problem, state.searches)
        place = lax.iota(jnp.int32, free.shape[0])
        is_fixed = jnp.ones(start.shape, bool).at[free].set(place >= number)
        is_right &= jnp.all((current == start[None]) | ~is_fixed[None], axis=1)
    return is_right.all()
