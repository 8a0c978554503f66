"""The laws of problems."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxopt_search import contracts
from jaxopt_search.backends import memory, rows
from jaxopt_search.backends.costs import cost_of, no_nan
from jaxopt_search.neighborhoods.vectors import Assign, SwapValues
from jaxopt_search.testing import comparing
from jaxopt_search.testing.comparing import Solutions
from jaxopt_search.testing.neighborhoods import check_neighborhood


def check_problem(
    problem: Any,
    *,
    num_solutions: int = 32,
    seed: int = 0,
    is_solution: Any = None,
    implementations: bool = True,
    tolerance: float = 1e-5,
) -> None:
    """Checks the laws of `types.Problem`, and of `types.VectorProblem` where it is one.

    - `init` and `cost` return what they should, the same with and without `jit` and `vmap`.
    - Random starts, and solutions that are perturbed, are in their space; starts differ, unless
      all have the same cost.
    - What the host keeps of a library's instance gives the same costs, and so does `device_cost`,
      where there is one, in its units.
    - `row_costs` agrees with `cost`. Where all solutions cost the same, `is_trivial` may say so.
    - With the hooks of a `VectorProblem`: `assign_delta`, `swap_values_delta` and `scan` are the
      change of the cost, and `assigned` makes the tally that `tally` makes of the new vector, or
      leaves it as it was. These are the laws of `Assign` and `SwapValues`.

    Args:
      problem: a small instance.
      num_solutions, seed: of the random starts.
      is_solution, tolerance: as in `check_neighborhood`.
      implementations: whether to compare how searches run that use the hooks.

    Raises:
      AssertionError: with the law and the solution.
      TypeError, ValueError: if it is no problem.

    Example:
      >>> import jaxopt_search as js
      >>> js.testing.check_problem(js.max_cut(1, edges=[[0, 1], [1, 2]]), implementations=False)
    """
    contracts.check_parts(problem)
    starts = jax.device_get(comparing.starts_of(problem, num_solutions, seed))
    known = comparing.look_at(problem, starts, None, tolerance, is_solution)
    name = type(problem).__name__
    known.check_space(starts, lambda i: f"{name}.init: start {i}")
    costs = _check_costs(problem, name, known, starts, seed, tolerance)
    _check_perturbed(problem, name, known, starts, seed)
    _check_row_costs(problem, name, known, starts, costs)
    if problem.has_hooks:
        sizes = np.asarray(problem.domain_sizes)
        options = {"has_all_moves": False, "seed": seed, "tolerance": tolerance}
        options["implementations"] = implementations
        if (sizes > 1).any():
            check_neighborhood(Assign(), problem, **options)
        if (sizes > 1).sum() > 1:
            check_neighborhood(SwapValues(), problem, **options)


def _check_costs(
    problem: Any, name: str, known: Solutions, starts: Any, seed: int, tolerance: float
) -> np.ndarray:
    """Checks that starts and costs do not depend on how they are computed; returns the costs."""

    def price(solutions: Any) -> jax.Array:
        return jax.vmap(lambda one: cost_of(problem, one))(solutions)

    costs = np.asarray(jax.jit(price)(starts))
    key = comparing.start_keys(1, seed)[0]
    first, start = comparing.of_first(starts), problem.init(key)
    comparing.require_leaves(
        comparing.same_leaves(jax.tree.map(np.asarray, start), first),
        lambda leaf: f"{name}.init: of one key, it returns another {leaf or 'start'} without jit",
    )
    alone = np.asarray(cost_of(problem, jax.tree.map(jnp.asarray, first)))
    known.check_costs(alone, costs[0], lambda: f"{name}.cost: without jit, of {first}, it")
    own = no_nan(jax.jit(jax.vmap(problem.cost))(starts))
    expected = np.asarray(problem.cost_in_full(jnp.asarray(costs)))
    is_rounded = jnp.issubdtype(own.dtype, jnp.floating)
    as_own = known._replace(tolerance=tolerance if is_rounded else None)
    as_own.check_costs(own, expected, lambda i: f"{name}.cost: by device_cost, start {i}: it")
    original = problem.host
    if original is not None:
        in_full = original.all_in_full(costs)
        exact = [
            original.cost(jax.tree.map(lambda leaf, i=i: leaf[i], starts))
            for i in range(len(costs))
        ]
        known.check_costs(in_full, exact, lambda i: f"{name}.cost: by the host, start {i}: it")
    if problem.is_trivial and (costs != costs[0]).any():
        raise AssertionError(
            f"{name}.is_trivial holds, but costs are {costs.min()} to {costs.max()}"
        )
    if (costs != costs[0]).any() and len(set(known.as_set(starts))) == 1:
        raise AssertionError(f"{name}.init: {len(costs)} keys give the same start")
    return costs


def _check_perturbed(problem: Any, name: str, known: Solutions, starts: Any, seed: int) -> None:
    def perturb(solutions: Any) -> Any:
        keys = comparing.start_keys(len(jax.tree.leaves(starts)[0]), seed + 1)
        return jax.vmap(lambda key, one: problem.perturb(key, one))(keys, solutions)

    found = jax.device_get(jax.jit(perturb)(starts))
    known.check_space(found, lambda i: f"{name}.perturb: of start {i} it")


def _check_row_costs(
    problem: Any, name: str, known: Solutions, starts: Any, costs: np.ndarray
) -> None:
    row_costs = problem.row_costs
    if row_costs is None:
        return

    def price(table: jax.Array) -> jax.Array:
        def of_block(block: rows.Block, found: jax.Array) -> jax.Array:
            return memory.store(found, block.rows, row_costs(block, table), block.is_row)

        shape = table.shape[0], table.shape[1]
        return rows.by_rows(shape, of_block, jnp.zeros(costs.shape, costs.dtype))

    found = np.asarray(jax.jit(price)(starts))
    known.check_costs(found, costs, lambda i: f"{name}.row_costs: of row {i} it")
