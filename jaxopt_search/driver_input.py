"""What `solve` checks and prepares on the host before anything is compiled."""

import dataclasses
import math
import operator
from typing import Any

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxopt_search import random, steps
from jaxopt_search.problems.host import Host
from jaxopt_search.types import Problem, Solution, Status

_MAX_ELEMENTS = 2**31 - 1


@dataclasses.dataclass(frozen=True, kw_only=True)
class Limits:
    """When a run ends and how often that is looked at; checked.

    Attributes:
      target: in the device's units and dtype, or None.
      Others: as in `solve`; None for no limit.
    """

    max_steps: int | None
    max_seconds: float | None
    target: np.generic | None
    patience: int | None
    check_every: int
    chunk_steps: int | None


def check_limits(
    *,
    dtype: Any,
    unit: int,
    max_steps: Any,
    max_seconds: Any,
    target: Any,
    patience: Any,
    check_every: Any,
    chunk_steps: Any,
) -> Limits:
    """Returns the limits of a run.

    Args:
      dtype: of costs on the device.
      unit: in which the device counts costs.

    Raises:
      ValueError: for a limit out of range, or if there is none.
    """
    if max_steps is None and max_seconds is None and target is None and patience is None:
        raise ValueError("no limit is given, expected max_steps, max_seconds, target or patience")
    if max_seconds is not None and not max_seconds >= 0:
        raise ValueError(f"max_seconds is {max_seconds}, expected a number >= 0")
    largest = steps.MAX_INT32
    return Limits(
        max_steps=None if max_steps is None else check_count("max_steps", max_steps, 0),
        max_seconds=max_seconds,
        target=None if target is None else device_target(target, dtype, unit),
        patience=None if patience is None else check_count("patience", patience, 1, largest),
        check_every=check_count("check_every", check_every, 1, largest),
        chunk_steps=None
        if chunk_steps is None
        else check_count("chunk_steps", chunk_steps, 1, largest),
    )


def check_count(name: str, value: Any, minimum: int, maximum: int | None = None) -> int:
    """Returns `value` as a Python integer in range; floats are accepted if integral."""
    upper = "" if maximum is None else f" to {maximum}"
    try:
        count = int(value) if isinstance(value, float | np.floating) else operator.index(value)
        is_valid = count == value and count >= minimum and (maximum is None or count <= maximum)
    except (TypeError, ValueError, OverflowError):
        count, is_valid = 0, False
    if not is_valid or isinstance(value, bool):
        raise ValueError(f"{name} is {value!r}, expected an integer from {minimum}{upper or ' up'}")
    return count


def device_target(target: float, dtype: Any, unit: int) -> np.generic:
    """Returns the highest device cost that meets `target`."""
    if math.isnan(target):
        raise ValueError("target is nan, expected a number")
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return dtype.type(target)
    limits = np.iinfo(dtype)
    if math.isinf(target):
        return dtype.type(limits.max if target > 0 else limits.min)
    return dtype.type(min(max(math.floor(target) // unit, limits.min), limits.max))


def shapes(problem: Problem) -> tuple[Any, jax.ShapeDtypeStruct]:
    """Returns the shapes of a solution and of its cost."""
    key = jax.eval_shape(lambda: jax.random.key(0, impl="threefry2x32"))
    solution = jax.eval_shape(problem.init, key)
    return solution, jax.eval_shape(problem.cost, solution)


def start_solutions(
    problem: Problem, host: Host | None, key: Any, num_searches: int, shape: Any, initial: Any
) -> Solution | None:
    """Returns start solutions, leaves [num_searches, ...], as `solve` describes them.

    Args:
      shape: of one solution.
      initial: as in `solve`.
    """
    if initial is None:
        return None
    is_batched = np.ndim(jax.tree.leaves(initial)[0]) > jax.tree.leaves(shape)[0].ndim
    if not is_batched:
        one = host.check(initial, "initial") if host else initial
        return _around(problem, key, jax.tree.map(jnp.asarray, one), num_searches)
    if host is not None:
        initial = np.stack(
            [host.check(row, f"initial[{i}]") for i, row in enumerate(np.asarray(initial))]
        )
    found = len(jax.tree.leaves(initial)[0])
    if found != num_searches:
        raise ValueError(f"initial holds {found} solutions, expected 1 or {num_searches}")
    return jax.tree.map(jnp.asarray, initial)


def _around(problem: Problem, key: Any, one: Solution, num_searches: int) -> Solution:
    index = lax.iota(jnp.uint32, num_searches)
    perturb = getattr(problem, "perturb", lambda key, solution: solution)

    def start(index: jax.Array) -> Solution:
        moved = perturb(random.start_key(random.as_key(key), index), one)
        return jax.tree.map(lambda a, b: jnp.where(index == 0, a, b), one, moved)

    return jax.vmap(start)(index)


def check_size(solution: Solution, num_searches: int) -> None:
    """Refuses more searches than an array can index."""
    elements = num_searches * max(leaf.size for leaf in jax.tree.leaves(solution))
    if elements > _MAX_ELEMENTS:
        raise ValueError(
            f"num_searches is {num_searches}, expected fewer: their solutions have {elements}"
            f" elements in all, beyond {_MAX_ELEMENTS}"
        )


def refuse_tracers() -> None:
    """Refuses to drive a run from inside a traced function."""
    if isinstance(lax.add(np.float32(0), np.float32(0)), jax.core.Tracer):
        raise RuntimeError(
            "solve is a host driver and was called inside jit or vmap; use run there"
        )


def reopened(state: Any) -> Any:
    """Returns a finished run's state ready to go on; hits of a target that ended it are dropped."""
    if int(state.status) == Status.TARGET:
        state = state._replace(hit=steps.never(state.index.shape))
    return state._replace(status=jnp.int32(Status.RUNNING))
