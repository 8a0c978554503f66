"""Generalized assignment instances from matrices, checked on the host."""

import functools
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxopt_search.checks import MAX_INT32, check_best_known, check_option, plain_array, real_array
from jaxopt_search.interrupts import refuse_orphans
from jaxopt_search.problems.finite import vector
from jaxopt_search.problems.finite.generalized_assignment.problem import GeneralizedAssignment
from jaxopt_search.problems.host import Original
from jaxopt_search.problems.matrix_input import (
    DType,
    is_integral,
    largest_of,
    on_device,
    refuse_first,
)

_FLOAT32 = np.finfo(np.float32)
_MAX_BYTES = 2**30


def generalized_assignment(
    costs: Any,
    loads: Any,
    capacities: Any,
    *,
    dtype: DType | None = None,
    best_known: float | None = None,
) -> GeneralizedAssignment:
    """Returns the problem of giving each job to one agent, within capacities, at the least cost.

    On the way, solutions may overload agents. They cost more than all others: the device adds a
    fixed penalty, as high as the costs of feasible solutions can differ, and one for each unit of
    overload, higher than what one job can save with another agent. So moving a job always pays if
    it reduces the overload. If a run ends with an overload, `Result.feasible` is False and
    `Result.fun` is infinite.

    Integer costs, and floats that are all integral, make an exact integer instance. To maximize
    profits, negate them.

    Args:
      costs: [m, n] real numbers, of each agent (row) with each job (column), as in the OR-Library.
      loads: [m, n] integers from 0 on, how much of each agent's capacity each job takes.
      capacities: [m] integers from 0 on.
      dtype: `"float32"` to give up exactness if an integer instance is too large for int32.
      best_known: the best-known cost, for `Result.gap`.

    Raises:
      ValueError: for a wrong shape, NaN, infinity, negative or fractional loads and capacities, or
        numbers too large.
      TypeError: for entries that are not real numbers.

    Example:
      >>> import jaxopt_search as js
      >>> problem = generalized_assignment([[1, 2, 3], [4, 4, 4]], [[2, 2, 2], [1, 1, 1]], [4, 9])
      >>> result = js.solve(problem, js.hill_climbing(js.Assign()), 0, num_searches=4)
      >>> result.fun, result.x.tolist()
      (7, [0, 0, 1])
    """
    check_option("dtype", dtype, (None, "int32", "float32"))
    check_best_known(best_known)
    costs, loads = _matrix(costs, "costs"), _matrix(loads, "loads")
    capacities = real_array(plain_array(capacities, "capacities"), "capacities")
    if loads.shape != costs.shape:
        raise ValueError(f"loads has shape {loads.shape}, expected {costs.shape} as costs has")
    if capacities.shape != costs.shape[:1]:
        raise ValueError(f"capacities has shape {capacities.shape}, expected {costs.shape[:1]}")
    loads, capacities = _amounts(loads, "loads"), _amounts(capacities, "capacities")
    is_exact = is_integral(costs)
    if dtype == "int32" and not is_exact:
        raise ValueError("dtype is 'int32', expected None or 'float32' for fractional costs")
    is_exact = is_exact and dtype != "float32"
    costs = costs.astype(np.int64 if is_exact else np.float64)
    _check_loads(loads, capacities)
    return _build(costs, loads, capacities, is_exact, best_known)


def _matrix(values: Any, name: str) -> np.ndarray:
    matrix = real_array(plain_array(values, name), name)
    if matrix.ndim != 2 or not matrix.size:
        raise ValueError(f"{name} has shape {matrix.shape}, expected (agents, jobs)")
    if 4 * matrix.size > _MAX_BYTES:
        raise ValueError(
            f"{name} has shape {matrix.shape}, expected fewer: it takes"
            f" {4 * matrix.size / 2**30:.1f} GiB on each device, and 1 GiB is the limit"
        )
    refuse_first(matrix, ~np.isfinite(matrix), name)
    return matrix


def _amounts(values: np.ndarray, name: str) -> np.ndarray:
    """Returns int64, at least 0."""
    refuse_first(values, ~np.isfinite(values), name)
    wrong = (values < 0) | (values != np.floor(values))
    if wrong.any():
        where = tuple(np.argwhere(wrong)[0].tolist())
        text = ",".join(map(str, where))
        raise ValueError(f"{name}[{text}] is {values[where]}, expected integers from 0 on")
    # Above 2**53, float64 holds no fractions; what does not fit is refused with the sums.
    return np.minimum(values, 2.0**62 if values.dtype.kind == "f" else 2**62).astype(np.int64)


def _check_loads(loads: np.ndarray, capacities: np.ndarray) -> None:
    """Refuses loads if an agent's sum, or the sum of overloads, exceeds int32."""
    total = sum(map(int, loads.max(axis=0)))
    most = max(total, int(loads.sum(axis=1, dtype=object).max()), int(capacities.max()))
    if most > MAX_INT32 // 2:
        raise ValueError(
            f"loads and capacities sum to {most}, expected up to {MAX_INT32 // 2}, for int32;"
            " divide by a constant"
        )


def _build(
    costs: np.ndarray, loads: np.ndarray, capacities: np.ndarray, is_exact: bool, best_known: Any
) -> GeneralizedAssignment:
    (m, n), dtype = costs.shape, jnp.int32 if is_exact else jnp.float32
    low, high = (_total(part(axis=0), is_exact) for part in (costs.min, costs.max))
    largest = int(costs.max()) - int(costs.min()) if is_exact else largest_of(costs)
    spread = max((costs.max(axis=0) - costs.min(axis=0)).max().item(), 0)
    # Float costs may be off by rounding: then what separates them is more than rounding.
    fixed = high - low if is_exact else 2 * (high - low) + (abs(high) + abs(low)) * 2.0**-10
    penalty = spread + 1 if is_exact else 2 * spread + (fixed + abs(high)) * 2.0**-20 or 1.0
    overload = int(loads.max(axis=0).sum())
    most = max(-low, high + fixed + penalty * overload)
    change = high - low + fixed + penalty * overload
    limit = MAX_INT32 if is_exact else float(_FLOAT32.max) / 8
    if max(most, change, largest) >= limit:
        hint = "; use dtype='float32' for inexact costs" if is_exact else "; multiply by a constant"
        raise ValueError(
            f"costs from {low:.6g} to {high:.6g} and penalties for an overload of up to {overload}"
            f" reach {max(most, change):.6g}, expected below {limit:.6g}{hint}"
        )
    refuse_orphans()
    cost = functools.partial(_cost_on_host, costs, loads, capacities, (fixed, penalty))
    host = Original(
        cost=cost,
        check=functools.partial(vector.check_vector, np.full(n, m, np.int32)),
        remaining=functools.partial(_remaining, loads, capacities),
        max_feasible=high if is_exact else high + (fixed - (high - low)) / 2,
        best_known=best_known,
    )
    return GeneralizedAssignment(
        costs=on_device(costs.T, dtype),
        loads=on_device(loads.T, jnp.int32),
        capacities=on_device(capacities, jnp.int32),
        fixed_penalty=on_device(fixed, dtype),
        penalty=on_device(penalty, dtype),
        domain_sizes=vector.uniform_domains(n, m),
        n=n,
        num_agents=m,
        host=host,
    )


def _total(values: np.ndarray, is_exact: bool) -> int | float:
    return sum(map(int, values)) if is_exact else values.sum().item()


def _overload(loads: np.ndarray, capacities: np.ndarray, solution: np.ndarray) -> int:
    job = np.arange(loads.shape[1])
    used = np.bincount(solution, loads[solution, job], len(capacities)).astype(np.int64)
    return int(np.maximum(used - capacities, 0).sum())


def _remaining(loads: np.ndarray, capacities: np.ndarray, solution: np.ndarray) -> str:
    overload = _overload(loads, capacities, np.asarray(solution))
    return f"an overload of {overload} remains" if overload else ""


def _cost_on_host(
    costs: np.ndarray,
    loads: np.ndarray,
    capacities: np.ndarray,
    penalties: tuple[Any, Any],
    solution: np.ndarray,
) -> int | float:
    solution, (fixed, penalty) = np.asarray(solution), penalties
    overload = _overload(loads, capacities, solution)
    total = costs[solution, np.arange(costs.shape[1])].sum().item()
    return total + (fixed + penalty * overload if overload else 0)
