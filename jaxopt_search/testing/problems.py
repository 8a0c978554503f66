"""The laws of problems."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxopt_search import contracts
from jaxopt_search.backends import memory, rows
from jaxopt_search.backends.costs import cost_of, no_nan
from jaxopt_search.neighborhoods.vectors import Assign, SwapValues
from jaxopt_search.testing import comparing
from jaxopt_search.testing.comparing import Laws
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
    known = comparing.look_at(problem, starts, tolerance, is_solution=is_solution)
    name = type(problem).__name__
    laws = Laws(name, known, ("start",))
    laws.in_space(starts, "init: it")

    @jax.jit
    def look(problem: Any, solutions: Any) -> Any:
        keys = comparing.start_keys(num_solutions, seed + 1)
        return (
            jax.vmap(functools.partial(cost_of, problem))(solutions),
            no_nan(jax.vmap(problem.cost)(solutions)),
            jax.vmap(problem.perturb)(keys, solutions),
            None if problem.row_costs is None else _row_costs(problem, solutions),
        )

    costs, own, near, by_rows = jax.device_get(look(problem, starts))
    first = comparing.part_of(starts, 0)
    without_jit = problem.init(comparing.start_keys(1, seed)[0])
    one = Laws(name, known, (), {"start": first})
    one.same(without_jit, first, "init: without jit it returns another one")
    alone = cost_of(problem, jax.tree.map(jnp.asarray, first))
    one.costs(alone, costs[0], "cost without jit is another one")
    in_full = problem.cost_in_full(jnp.asarray(costs))
    is_rounded = jnp.issubdtype(own.dtype, jnp.floating)
    as_own = known._replace(tolerance=tolerance if is_rounded else None)
    Laws(name, as_own, ("start",)).costs(own, in_full, "cost is not what device_cost stands for")
    if problem.host is not None:
        numbers = range(num_solutions)
        on_host = [problem.host.cost(comparing.part_of(starts, i)) for i in numbers]
        laws.costs(problem.host.all_in_full(costs), on_host, "cost is not the host's")
    differ = bool((costs != costs[0]).any())
    if problem.is_trivial and differ:
        span = f"{costs.min()} to {costs.max()}"
        raise AssertionError(f"{name}.is_trivial holds, but costs are {span}")
    if differ and len(set(known.as_set(starts))) == 1:
        raise AssertionError(f"{name}.init: {num_solutions} keys give the same start")
    laws.in_space(near, "perturb: it")
    if by_rows is not None:
        laws.costs(by_rows, costs, "row_costs are not the costs of the rows")
    if problem.has_hooks:
        options: dict[str, Any] = {"tolerance": tolerance, "implementations": implementations}
        num_moving = int((np.asarray(problem.domain_sizes) > 1).sum())
        for least, moves in ((1, Assign()), (2, SwapValues())):
            if num_moving >= least:
                check_neighborhood(moves, problem, has_all_moves=False, seed=seed, **options)


def _row_costs(problem: Any, table: jax.Array) -> jax.Array:
    """Returns the costs of the solutions in the rows of a table, by `row_costs`."""

    def of_block(block: rows.Block, found: jax.Array) -> jax.Array:
        costs = problem.row_costs(block, table)
        return memory.store(found, block.rows, costs, block.is_row)

    dtype = jax.eval_shape(functools.partial(cost_of, problem), table[0]).dtype
    size, n = table.shape
    return rows.by_rows((size, n), of_block, jnp.zeros(size, dtype))
