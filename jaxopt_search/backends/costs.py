# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
"""Costs that a user's own problem may have: infinite, or NaN, which counts as infinite.

Comparisons with NaN are false and differences of infinities are NaN, so each is mended where it
enters. Integer costs pass through unchanged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxopt_search.checks import number

if TYPE_CHECKING:
    from jaxopt_search.types import Cost, Solution


def cost_of(problem: Any, solution: Solution) -> Cost:
    """Returns the cost of a solution as searches count it, with NaN as the worst there is."""
    cost = jnp.asarray(problem.device_cost(solution))
    return no_nan(cost.astype(cost.dtype))  # whose dtype is no longer weak


def null_delta(dtype: Any) -> Any:
    """Returns the delta of a move that changes nothing: above every other, and never accepted.

    Priced at 0, such a move would win whenever all the others are worse, and a search that picks
    the best of several moves would freeze.

    Example:
      >>> int(null_delta("int32")), float(null_delta("float32"))
      (2147483647, inf)
    """
    dtype = jnp.dtype(dtype)
    limit = np.inf if jnp.issubdtype(dtype, jnp.floating) else jnp.iinfo(dtype).max
    return dtype.type(limit)


def no_nan(cost: Any) -> Any:
    """Returns a cost, or costs of any shape, with +inf for NaN."""
    if not jnp.issubdtype(cost.dtype, jnp.floating):
        return cost
    return jnp.where(cost == cost, cost, jnp.asarray(jnp.inf, cost.dtype))


def no_target(dtype: Any) -> Any:
    """Returns the target that no cost of a dtype meets: NaN, or the least integer."""
    is_float = jnp.issubdtype(dtype, jnp.floating)
    return number(np.nan if is_float else jnp.iinfo(dtype).min, dtype)


def meets(cost: Any, target: Any) -> jax.Array:
    """Returns whether costs, of any shape, are at most the target, of their dtype; None for none.

    The least integer stands for no target (`no_target`), even where a cost is as low.
    """
    if target is None:
        return jnp.zeros(cost.shape, bool)
    if jnp.issubdtype(cost.dtype, jnp.floating):
        return cost <= target
    return (cost <= target) & (target != no_target(cost.dtype))


def cost_change(after: Cost, before: Cost) -> Cost:
    """Returns `after - before`; 0 from one infinite cost to another, which are the same."""
    if not jnp.issubdtype(after.dtype, jnp.floating):
        return after - before
    zero, is_same = jnp.zeros_like(after), after == before
    return jnp.where(is_same, zero, after) - jnp.where(is_same, zero, before)
