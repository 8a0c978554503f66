"""What `solve` checks and prepares on the host before anything is compiled."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxopt_search.checks import (
    MAX_STEPS,
    check_count,
    check_number,
    highest_cost_that_meets,
    plain_array,
)
from jaxopt_search.engine import exchanging, outcome, starting
from jaxopt_search.engine.state import MAX_PATIENCE, RunState
from jaxopt_search.guards import contracts, spaces
from jaxopt_search.guards.forks import refuse_orphans
from jaxopt_search.portable import counts, random
from jaxopt_search.portable.costs import cost_change, cost_of
from jaxopt_search.problems.finite import vector
from jaxopt_search.problems.host import Original
from jaxopt_search.types import Problem, Result, Search, Solution, Status

_ROUNDING = 2.0**-20  # the relative error of a float cost on the device, amply
_DRIFT = 0.01
"""Of running float costs, relative; less than between instances."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Limits:
    """When a run ends and how often that is looked at, checked; as in `solve`.

    The target is in the units and the dtype of the device, the goal is the same as it was given.
    """

    max_steps: int | None
    max_seconds: float | None
    target: Any
    goal: int | float | None
    patience: int | None
    check_every: int
    chunk_steps: int | None


def check_limits(
    *,
    dtype: Any,
    host: Original | None,
    max_steps: Any,
    max_seconds: Any,
    target: Any,
    patience: Any,
    check_every: Any,
    chunk_steps: Any,
    ends_by_itself: bool = False,
) -> Limits:
    """Returns the limits of a run; `dtype` is that of costs on the device.

    Raises:
      ValueError: for a limit out of range, or if there is none and the run needs one.
    """
    is_endless = max_steps is None and max_seconds is None and target is None and patience is None
    if is_endless and not ends_by_itself:
        raise ValueError("no limit is given, expected max_steps, max_seconds, target or patience")
    goal = None
    if target is not None:
        scale = (host.unit, host.offset) if host else ()
        goal = check_number("target", target)
        target = highest_cost_that_meets(goal, dtype, *scale)
        if np.issubdtype(dtype, np.floating) and np.isfinite(target):
            target += dtype.type(_ROUNDING) * abs(target)  # whether it is met, exact costs tell
        if host is not None and host.max_feasible is not None:
            target = min(target, dtype.type(host.max_feasible))
    return Limits(
        max_steps=None if max_steps is None else check_count("max_steps", max_steps, 0, MAX_STEPS),
        max_seconds=None if max_seconds is None else check_number("max_seconds", max_seconds, 0),
        target=target,
        goal=goal,
        patience=None if patience is None else check_count("patience", patience, 1, MAX_PATIENCE),
        check_every=check_count("check_every", check_every, 1, MAX_PATIENCE),
        chunk_steps=None if chunk_steps is None else check_count("chunk_steps", chunk_steps),
    )


def start_solutions(
    problem: Problem,
    host: Original | None,
    key: random.Key,
    num_searches: int,
    shape: Any,
    initial: Any,
) -> Solution | None:
    """Returns start solutions, leaves [num_searches, ...], as `solve` describes them.

    Args:
      shape: of one solution.
      initial: as in `solve`.
    """
    if initial is None:
        return None
    if (check := _check_of(problem, host)) is not None:
        initial = plain_array(initial, "initial")
        is_one = initial.ndim <= 1
        rows = [initial] if is_one else list(initial)
        names = ["initial"] if is_one else [f"initial[{i}]" for i in range(len(rows))]
        starts = [check(row, name) for row, name in zip(rows, names, strict=True)]
        initial = starts[0] if is_one else np.array(starts)
    else:
        if jax.tree_util.all_leaves([shape]):
            initial = plain_array(initial, "initial")
        if jax.tree.structure(initial) != jax.tree.structure(shape):
            raise ValueError(
                f"initial is {jax.tree.structure(initial)}, expected {jax.tree.structure(shape)} as"
                " problem.init returns"
            )
        is_one = np.ndim(jax.tree.leaves(initial)[0]) <= jax.tree.leaves(shape)[0].ndim
        lead = () if is_one else (len(jax.tree.leaves(initial)[0]),)
        initial = jax.tree.map(lambda leaf, one: _checked_leaf(leaf, lead, one), initial, shape)
    initial = jax.tree.map(jnp.asarray, initial)
    if is_one:
        return _around(problem, key, initial, num_searches)
    if (found := len(jax.tree.leaves(initial)[0])) != num_searches:
        raise ValueError(f"initial holds {found} solutions, expected {num_searches}")
    return initial


def _check_of(problem: Any, host: Original | None) -> Callable[[Any, str], np.ndarray] | None:
    """Returns what checks one start solution, if there is such a thing."""
    if host is not None:
        return host.check
    if spaces.has_domains(problem):
        return functools.partial(vector.check_vector, np.asarray(problem.domain_sizes))
    return None


def _checked_leaf(leaf: Any, lead: tuple[int, ...], one: jax.ShapeDtypeStruct) -> np.ndarray:
    """Returns a part of a user's start solutions with the dtype of a random one."""
    array = plain_array(leaf, "initial")
    if array.shape != lead + one.shape or not np.can_cast(array.dtype, one.dtype, "same_kind"):
        raise ValueError(
            f"initial has a part of shape {array.shape} and dtype {array.dtype}, expected"
            f" {lead + one.shape} and {one.dtype}"
        )
    converted = array.astype(one.dtype)
    if one.dtype.kind in "iu" and (lost := array[converted != array]).size:
        raise ValueError(f"initial holds {lost[0]}, expected what {one.dtype} can hold")
    return converted


def _around(problem: Problem, key: random.Key, one: Solution, num_searches: int) -> Solution:
    index = lax.iota(jnp.uint32, num_searches)
    perturb = getattr(problem, "perturb", lambda key, solution: solution)

    def start(index: jax.Array) -> Solution:
        moved = perturb(random.start_key(key, index), one)
        return jax.tree.map(lambda a, b: jnp.where(index == 0, a, b), one, moved)

    return jax.vmap(start)(index)


def refuse_tracers(*arguments: Any, caller: str = "solve") -> None:
    """Refuses to drive a run from inside a traced function, or where JAX would hang."""
    refuse_orphans()
    if starting.is_traced(arguments):
        raise RuntimeError(
            f"{caller} is a host driver and was called inside jit or vmap; use run there"
        )


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
    for path, leaf in [("index", state.index), *_leaves_by_path(state)]:
        if not isinstance(leaf, np.ndarray | np.generic | jax.Array):
            kind = "None" if leaf is None else f"a {type(leaf).__name__}"
            raise TypeError(f"state.{path} is {kind}, expected an array")
        if isinstance(leaf, jax.Array) and leaf.is_deleted():
            raise ValueError(f"state.{path} was deleted, expected an array that is there")
    num_searches = state.index.shape[0] if state.index.ndim == 1 else 0
    if not num_searches or _signature(state) != _signature(
        starting.shape(problem, search, num_searches)
    ):
        raise ValueError("state is of another problem or search, expected one made with these")
    return num_searches


def _leaves_by_path(tree: Any) -> list[tuple[str, Any]]:
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return [(jax.tree_util.keystr(path).removeprefix("."), leaf) for path, leaf in leaves]


def _signature(tree: Any) -> Any:
    leaves, structure = jax.tree.flatten(tree)
    return structure, [(np.shape(leaf), np.dtype(leaf.dtype)) for leaf in leaves]


def steered(
    problem: Problem, before: tuple[Search, Any], after: tuple[Search, Any]
) -> tuple[Search, Any]:
    """Returns the search and the exchange to go on with, which a callback has put into a `Steer`.

    Raises:
      TypeError: if one of them is none, or the search has states of another kind.
    """
    search, exchange_rule = after
    if jax.tree.structure(before) != jax.tree.structure(after):
        contracts.check_search(search, "the callback's search")
        contracts.check_exchange(exchange_rule)
        if not _has_same_states(problem, before[0], search):
            kinds = [type(one).__name__ for one in (search, before[0])]
            raise TypeError(
                f"the callback's search is a {kinds[0]}, expected a {kinds[1]} with states of the"
                " same shapes"
            )
    return search, exchange_rule


def _has_same_states(problem: Problem, search: Search, other: Any) -> bool:
    try:
        ours, theirs = (_signature(starting.shape(problem, one, 1)) for one in (search, other))
        return ours == theirs
    except Exception:  # the other one is not for this problem
        return False


def reopened(
    problem: Problem, host: Original | None, search: Search, state: RunState, target: Any
) -> RunState:
    """Returns a checked state ready to go on.

    Of the searches that met an earlier run's target, those that meet this one's keep their hits.

    Raises:
      ValueError: if it was made with another instance.
    """
    is_own = bool(_is_of(problem, search, state))
    if is_own and host is not None and jnp.issubdtype(state.best_cost.dtype, jnp.integer):
        solution, cost = jax.device_get(outcome.best(problem, search, state))
        is_own = host.cost(solution) == host.in_full(cost.item())
    if not is_own:
        raise ValueError("state is of another instance, expected one made with this problem")
    return retargeted(problem, search, state, target)


def retargeted(problem: Problem, search: Search, state: RunState, target: Any) -> RunState:
    """Returns the state with the hits that meet `target`, and the status that follows."""
    settled = exchanging.settled(problem, search, state.searches)
    costs = exchanging.best_costs(search, settled, state.index)
    meets = jnp.zeros(costs.shape, bool) if target is None else costs <= target
    hit = jax.tree.map(
        lambda kept, never: jnp.where(meets, kept, never), state.hit, counts.never(costs.shape)
    )
    status = jnp.where(counts.is_never(hit).all(), Status.RUNNING, Status.TARGET)
    return state._replace(hit=hit, status=status.astype(jnp.int32))


@jax.jit
def _is_of(problem: Problem, search: Search, state: RunState) -> jax.Array:
    """Returns whether the best costs of all searches are those that the problem gives them.

    Of float costs, up to what deltas may have drifted by: that grows with the steps since they were
    computed anew, and with the largest costs on the way, such as that of a random start. And
    whether what is fixed is in its place.
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
    if (free := getattr(problem, "free", None)) is not None:
        current = jax.vmap(search.current, (None, 0))(problem, state.searches)
        is_fixed = jnp.ones(start.shape, bool).at[free].set(False)
        is_right &= jnp.all((current == start[None]) | ~is_fixed[None], axis=1)
    return is_right.all()
