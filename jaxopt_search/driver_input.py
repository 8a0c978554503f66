"""What `solve` checks and prepares on the host before anything is compiled."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxopt_search import exchange, loop, random, readout, steps
from jaxopt_search.checks import (
    MAX_INT32,
    check_count,
    check_number,
    highest_cost_that_meets,
    plain_array,
)
from jaxopt_search.loop import RunState
from jaxopt_search.neighborhoods.full_evaluation import solution_shape
from jaxopt_search.problems.host import Host
from jaxopt_search.types import Problem, Result, Search, Solution, Status

_ROUNDING = 2.0**-20  # the relative error of a float cost on the device, amply


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
    host: Host | None,
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
        max_steps=None if max_steps is None else check_count("max_steps", max_steps, 0, None),
        max_seconds=None if max_seconds is None else check_number("max_seconds", max_seconds, 0),
        target=target,
        goal=goal,
        patience=None
        if patience is None
        else check_count("patience", patience, 1, loop.MAX_PATIENCE),
        check_every=check_count("check_every", check_every, 1, loop.MAX_PATIENCE),
        chunk_steps=None if chunk_steps is None else check_count("chunk_steps", chunk_steps),
    )


def shapes(problem: Problem) -> tuple[Any, jax.ShapeDtypeStruct]:
    """Returns the shapes of a solution and of its cost."""
    solution = solution_shape(problem)
    return solution, _cost.eval_shape(problem, solution)


@jax.jit
def _cost(problem: Problem, solution: Solution) -> jax.Array:
    return problem.cost(solution)


def check_size(solution: Solution, num_searches: int) -> None:
    """Refuses more searches than an array can index."""
    elements = num_searches * max(leaf.size for leaf in jax.tree.leaves(solution))
    if elements > MAX_INT32:
        raise ValueError(
            f"num_searches is {num_searches}, expected fewer: their solutions have {elements}"
            f" elements in all, beyond {MAX_INT32}"
        )


def start_solutions(
    problem: Problem,
    host: Host | None,
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
    if host is not None:
        initial = plain_array(initial, "initial")
        is_one = initial.ndim <= 1
        rows = [initial] if is_one else list(initial)
        names = ["initial"] if is_one else [f"initial[{i}]" for i in range(len(rows))]
        starts = [host.check(row, name) for row, name in zip(rows, names, strict=True)]
        initial = starts[0] if is_one else np.array(starts)
    else:
        is_one = np.ndim(jax.tree.leaves(initial)[0]) <= jax.tree.leaves(shape)[0].ndim
        lead = () if is_one else (len(jax.tree.leaves(initial)[0]),)
        initial = jax.tree.map(lambda leaf, one: _checked_leaf(leaf, lead, one), initial, shape)
    initial = jax.tree.map(jnp.asarray, initial)
    if is_one:
        return _around(problem, key, initial, num_searches)
    if (found := len(jax.tree.leaves(initial)[0])) != num_searches:
        raise ValueError(f"initial holds {found} solutions, expected {num_searches}")
    return initial


def _checked_leaf(leaf: Any, lead: tuple[int, ...], one: jax.ShapeDtypeStruct) -> np.ndarray:
    """Returns a part of a user's start solutions with the dtype of a random one."""
    array = plain_array(leaf, "initial")
    if array.shape != lead + one.shape or not np.can_cast(array.dtype, one.dtype, "same_kind"):
        raise ValueError(
            f"initial has a part of shape {array.shape} and dtype {array.dtype}, expected"
            f" {lead + one.shape} and {one.dtype}"
        )
    return array.astype(one.dtype)


def _around(problem: Problem, key: random.Key, one: Solution, num_searches: int) -> Solution:
    index = lax.iota(jnp.uint32, num_searches)
    perturb = getattr(problem, "perturb", lambda key, solution: solution)

    def start(index: jax.Array) -> Solution:
        moved = perturb(random.start_key(key, index), one)
        return jax.tree.map(lambda a, b: jnp.where(index == 0, a, b), one, moved)

    return jax.vmap(start)(index)


def refuse_tracers(*arguments: Any, caller: str = "solve") -> None:
    """Refuses to drive a run from inside a traced function."""
    if loop.is_traced(arguments):
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
    key, num_searches = random.as_key(0), state.index.shape[0]
    expected = jax.eval_shape(lambda: loop.fresh(key, problem, search, None, num_searches))
    signature = [
        [(np.shape(leaf), np.dtype(leaf.dtype)) for leaf in jax.tree.leaves(tree)]
        for tree in (state, expected)
    ]
    if signature[0] != signature[1]:
        raise ValueError("state is of another problem or search, expected one made with these")
    return num_searches


def reopened(
    problem: Problem, host: Host | None, search: Search, state: RunState, target: Any
) -> RunState:
    """Returns a checked state ready to go on.

    Of the searches that met an earlier run's target, those that meet this one's keep their hits.

    Raises:
      ValueError: if it was made with another instance.
    """
    if host is not None and jnp.issubdtype(state.best_cost.dtype, jnp.integer):
        solution, cost = jax.device_get(readout.best(problem, search, state))
        if host.cost(solution) != host.in_full(cost.item()):
            raise ValueError("state is of another instance, expected one made with this problem")
    settled = exchange.settled(problem, search, state.searches)
    costs = exchange.best_costs(search, settled, state.index)
    meets = jnp.zeros(costs.shape, bool) if target is None else costs <= target
    hit = jax.tree.map(
        lambda kept, never: jnp.where(meets, kept, never), state.hit, steps.never(costs.shape)
    )
    status = jnp.where(steps.is_never(hit).all(), Status.RUNNING, Status.TARGET)
    return state._replace(hit=hit, status=status.astype(jnp.int32))
