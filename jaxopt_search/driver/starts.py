"""Where a run starts: start solutions of a user's own, or the state of an earlier run.

One start solution is spread over all searches. A state is checked to be one of this problem.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxopt_search import contracts
from jaxopt_search.backends import counts, random
from jaxopt_search.backends.costs import cost_change, cost_of, meets
from jaxopt_search.checks import check_permutation, check_vector, plain_array
from jaxopt_search.engine import outcome, starting
from jaxopt_search.engine.state import RunState, best_costs, settled
from jaxopt_search.neighborhoods.swap import positions
from jaxopt_search.results import Result, Status
from jaxopt_search.types import Problem, Search, Solution, VectorProblem

_DRIFT = 0.01
"""Of running float costs, relative; less than between instances."""


class FirstStarts(NamedTuple):
    """Start solutions of the first searches; the others start at random. For the solvers."""

    solutions: np.ndarray


def check_starts(problem: Problem, shape: Any, num_searches: int, initial: Any) -> tuple[Any, bool]:
    """Returns the start solutions given as `initial`, checked, and whether it is one for all.

    Args:
      shape: of one solution.

    Raises:
      ValueError, TypeError: if it does not hold solutions of the problem, or as many as needed.
    """
    check = check_of(problem)
    if isinstance(initial, FirstStarts):
        assert check is not None
        return _checked_rows(check, initial.solutions[:num_searches], "constructed")
    if check is None:
        solutions, is_one = _checked_arrays(shape, initial)
    else:
        solutions, is_one = _checked_rows(check, initial)
    found = num_searches if is_one else len(jax.tree.leaves(solutions)[0])
    if found != num_searches:
        raise ValueError(f"initial holds {found} solutions, expected {num_searches}")
    return solutions, is_one


def check_of(problem: Any) -> Callable[[Any, str], np.ndarray] | None:
    """Returns the function that checks one start solution, if there is one."""
    if (original := problem.host) is not None:
        return original.check
    if isinstance(problem, VectorProblem):
        return functools.partial(check_vector, np.asarray(problem.domain_sizes))
    if problem.space == contracts.PERMUTATION:
        (n,) = contracts.solution_shape(problem).shape
        return functools.partial(check_permutation, n=n)
    return None


def _checked_rows(
    check: Callable[[Any, str], np.ndarray], initial: Any, name: str = "initial"
) -> tuple[np.ndarray, bool]:
    """Returns start solutions, each by its check, and whether it is one for all."""
    initial = plain_array(initial, name)
    if initial.ndim <= 1:
        return check(initial, name), True
    return np.array([check(row, f"{name}[{i}]") for i, row in enumerate(initial)]), False


def _checked_arrays(shape: Any, initial: Any) -> tuple[Any, bool]:
    """Likewise, of a problem that has no check of its own, with its dtypes."""
    blanks, structure = jax.tree.flatten(shape)
    if jax.tree_util.all_leaves([shape]):
        initial = plain_array(initial, "initial")
    elif isinstance(initial, list) and len(initial) == len(blanks):
        initial = jax.tree.unflatten(structure, initial)  # as `load_best` has it
    leaves, found = jax.tree.flatten(initial)
    if found != structure:
        raise ValueError(f"initial is {found}, expected {structure} as problem.init returns")
    is_one = np.ndim(leaves[0]) <= blanks[0].ndim
    lead = () if is_one else (len(leaves[0]),)
    checked = list[np.ndarray]()
    for leaf, blank in zip(leaves, blanks, strict=True):
        array, dtype = plain_array(leaf, "initial"), blank.dtype
        if array.shape != lead + blank.shape or not np.can_cast(array.dtype, dtype, "same_kind"):
            raise ValueError(
                f"initial has a part of shape {array.shape} and dtype {array.dtype}, expected"
                f" {lead + blank.shape} and {dtype}"
            )
        checked.append(array.astype(dtype))
        if dtype.kind in "iu" and (lost := array[checked[-1] != array]).size:
            raise ValueError(f"initial holds {lost[0]}, expected what {dtype} can hold")
    return jax.tree.unflatten(structure, checked), is_one


def for_all(
    problem: Problem, key: random.Key, starts: tuple[Any, bool], num_searches: int
) -> Solution:
    """Returns start solutions for the searches, leaves [num_searches, ...] or less, on the device.

    Of one for all, the first search gets just that, and the others solutions close by.
    """
    solutions, is_one = jax.tree.map(jax.device_put, starts[0]), starts[1]
    if not is_one:
        return solutions

    def start(index: jax.Array) -> Solution:
        moved = problem.perturb(random.start_key(key, index), solutions)
        return jax.tree.map(lambda a, b: jnp.where(index == 0, a, b), solutions, moved)

    return jax.vmap(start)(lax.iota(jnp.uint32, num_searches))


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
    num_searches = state.index.shape[0] if np.ndim(state.index) == 1 else 0
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
    is_own, original = bool(_is_of(problem, search, state)), problem.host
    is_exact = jnp.issubdtype(state.device_best.dtype, jnp.integer)
    if is_own and original is not None and is_exact:
        solution, cost = jax.device_get(outcome.best(problem, search, state))
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
    searches = settled(problem, search, state.searches)
    costs = best_costs(search, searches, state.index)
    never = counts.never(costs.shape)
    hit = jax.tree.map(lambda at, none: jnp.where(meets(costs, target), at, none), state.hit, never)
    status = jnp.where(counts.is_never(hit).all(), Status.RUNNING, Status.TARGET)
    return state._replace(hit=hit, status=status.astype(jnp.int32))


@jax.jit
def _is_of(problem: Problem, search: Search, state: RunState) -> jax.Array:
    """Returns whether the problem gives all searches the best costs that they have.

    Float costs may differ by as much as deltas may have drifted: that grows with the steps since
    costs were last computed in full, and with the largest costs on the way, such as the cost of a
    random start. Fixed entries must also be in their places.
    """
    solutions = jax.vmap(search.best, (None, 0))(problem, state.searches)
    costs = best_costs(search, state.searches, state.index)
    exact = jax.vmap(cost_of, (None, 0))(problem, solutions)
    start = problem.init(jax.random.key(0, impl="threefry2x32"))
    is_right = exact == costs
    if jnp.issubdtype(costs.dtype, jnp.floating):
        finite, on_the_way = jnp.isfinite(exact) & jnp.isfinite(costs), cost_of(problem, start)
        on_the_way = jnp.where(jnp.isfinite(on_the_way), jnp.abs(on_the_way), 0)
        rounding = jnp.finfo(costs.dtype).eps * state.since.refresh.astype(costs.dtype)
        drift = _DRIFT * jnp.maximum(jnp.abs(exact), jnp.abs(costs)) + rounding * on_the_way
        is_right |= finite & (jnp.abs(cost_change(exact, costs)) <= drift)
    if problem.free is not None:
        free, number = positions(problem, start)
        assert free is not None
        current = jax.vmap(search.current, (None, 0))(problem, state.searches)
        place = lax.iota(jnp.int32, free.shape[0])
        is_fixed = jnp.ones(start.shape, bool).at[free].set(place >= number)
        is_right &= jnp.all((current == start[None]) | ~is_fixed[None], axis=1)
    return is_right.all()
