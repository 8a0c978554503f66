"""Generalized assignment: jobs to agents of limited capacity, each job to one agent, cheaply.

Ross and Soland, "A branch and bound algorithm for the generalized assignment problem", Mathematical
Programming 8 (1975). As in Yagiura, Ibaraki and Glover, "An ejection chain approach for the
generalized assignment problem", INFORMS Journal on Computing 16 (2004), searches may pass through
assignments that overload agents, at a price.
"""

import dataclasses
import functools
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from jaxopt_search.backends import floats, tables
from jaxopt_search.backends.memory import load, store
from jaxopt_search.checks import MAX_INT32, check_shape, check_vector, real_array
from jaxopt_search.interrupts import refuse_orphans
from jaxopt_search.problems import lower_bounds, matrix_input
from jaxopt_search.problems.bounds import MAX_FLOAT32, largest_of
from jaxopt_search.problems.finite.vector import FiniteProblem
from jaxopt_search.problems.host import Original
from jaxopt_search.pytrees import pytree, static
from jaxopt_search.types import Scan

_DIGITS, _ROUNDING = 6, 1e-13  # of decimals, and what they are off by as floats
_STEPS, _FIRST_STEP, _SHRINK = 300, 0.3, 0.98
"""Of the subgradient method; the first in units of the mean range of costs by the mean load."""


class Slacks(NamedTuple):
    """What makes moves cheap.

    Attributes:
      slack: [m] int32, how much of each agent's capacity is left; negative if it is overloaded.
      overload: [] int32, the sum of the loads beyond the capacities.
    """

    slack: Any
    overload: Any


_Shift: TypeAlias = tuple[jax.Array, jax.Array]
"""By how much the cost and the overload change if jobs go to other agents."""


@pytree
@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class GeneralizedAssignment(FiniteProblem):
    """An instance on the device. Build it with `generalized_assignment`.

    A solution is [n] int32: the agent of each job. Its cost is the sum of the costs of the jobs
    with their agents and, if an agent is overloaded, `fixed_penalty` and `penalty` for each unit of
    load beyond the capacities.

    Attributes:
      costs: [n, m] int32 or float32, of each job with each agent.
      loads: [n, m] int32, at least 0.
      capacities: [m] int32.
      fixed_penalty: [] int32 or float32, so high that all feasible solutions cost less than others.
      penalty: [] of this dtype, more than two jobs can save with other agents, twice over.
      domain_sizes: [n] int32, m for each job.
      n: the number of jobs.
      num_agents: m.
      host: the instance as it was given.
    """

    costs: jax.Array = dataclasses.field(repr=False)
    loads: jax.Array = dataclasses.field(repr=False)
    capacities: jax.Array = dataclasses.field(repr=False)
    fixed_penalty: jax.Array = dataclasses.field(repr=False)
    penalty: jax.Array = dataclasses.field(repr=False)
    domain_sizes: jax.Array = dataclasses.field(repr=False)
    n: int = static()
    num_agents: int = static()
    host: Original = static(repr=False)

    @property
    def max_domain(self) -> int:
        """m, the number of agents."""
        return self.num_agents

    def device_cost(self, solution: jax.Array) -> jax.Array:
        """Returns the costs of all jobs and the penalty for overload, [] int32 or float32; O(n)."""
        job = jnp.arange(self.n, dtype=jnp.int32)
        costs = floats.total(load(self.costs, (job, solution)))
        return costs + self._penalty(self.tally(solution).overload)

    def tally(self, solution: jax.Array) -> Slacks:
        """Returns the slacks of all capacities; O(n m)."""
        is_here = solution[:, None] == jnp.arange(self.num_agents, dtype=jnp.int32)[None]
        loads = jnp.where(is_here, self.loads, jnp.zeros_like(self.loads))
        slack = self.capacities - jnp.sum(loads, axis=0, dtype=jnp.int32)
        return Slacks(slack, jnp.sum(_over(slack), dtype=jnp.int32))

    def assign_delta(
        self, solution: Any, tally: Slacks, variable: jax.Array, value: jax.Array
    ) -> jax.Array:
        """Returns the change in cost if a job goes to an agent, O(1); portable, elementwise."""
        here = self._of_job(tally, variable, load(solution, variable))
        there = load(tally.slack, value)
        entries = load(self.costs, (variable, value)), load(self.loads, (variable, value))
        change = self._delta(tally, _moved(here, there, *entries))
        return jnp.where(value == load(solution, variable), jnp.zeros_like(change), change)

    def swap_values_delta(
        self, solution: Any, tally: Slacks, first: jax.Array, second: jax.Array
    ) -> jax.Array:
        """Returns the change in cost if two jobs exchange agents, O(1); portable, elementwise."""
        a, b = load(solution, first), load(solution, second)

        def both(table: Any, here: jax.Array, there: jax.Array) -> tuple[jax.Array, jax.Array]:
            return load(table, (here, a)), load(table, (there, b))

        (own, other), (new, old) = both(self.costs, first, second), both(self.costs, second, first)
        cost = new + old - own - other
        (own, other), (new, old) = both(self.loads, first, second), both(self.loads, second, first)
        at_a, at_b = load(tally.slack, a), load(tally.slack, b)
        after = _over(at_a + own - new) + _over(at_b + other - old)
        change = self._delta(tally, (cost, after - _over(at_a) - _over(at_b)))
        return jnp.where(a == b, jnp.zeros_like(change), change)

    def assigned(
        self, solution: Any, tally: Slacks, variable: jax.Array, value: jax.Array, where: jax.Array
    ) -> Slacks:
        """Returns the slacks after a job went to an agent, if `where` holds; O(1), portable."""
        own = load(solution, variable)
        moves = where & (own != value)
        slack, (here, there) = tally.slack, (load(tally.slack, one) for one in (own, value))
        left = here + load(self.loads, (variable, own))
        taken = there - load(self.loads, (variable, value))
        change = _over(left) - _over(here) + _over(taken) - _over(there)
        slack = store(store(slack, own, left, moves), value, taken, moves)
        return Slacks(slack, tally.overload + jnp.where(moves, change, jnp.zeros_like(change)))

    def scan(self, solution: Any, tally: Slacks) -> Scan:
        """Returns how all assignments are priced in one pass."""

        def delta(place: Any, entries: tuple[jax.Array, ...]) -> jax.Array:
            return self._delta(tally, _moved(place.here, place.there, *entries))

        return Scan(
            tables=(self.costs, self.loads),
            of_variable=lambda job: self._of_job(tally, job, tables.in_rows(solution, job)),
            of_value=lambda agent: load(tally.slack, agent),
            delta=delta,
        )

    def on_host(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns costs and loads, [m, n], and capacities, [m], as on the device."""
        costs, loads, capacities = map(np.asarray, (self.costs, self.loads, self.capacities))
        return costs.T, loads.T, capacities

    def prices(self) -> tuple[np.ndarray, float]:
        """Returns what a unit of each capacity is worth, [m] float64, and a bound on all costs.

        They are Lagrange multipliers, by the subgradient method on the host (Fisher, "The
        Lagrangian relaxation method for solving integer programming problems", 1981); O(n m) for
        each of 300 steps. The bound, to be rounded yet, is close to that of the linear program.
        """
        costs, loads, capacities = (part.astype(np.float64) for part in self.on_host())
        job, multipliers = np.arange(self.n), np.zeros(self.num_agents)
        best, bound = multipliers, -np.inf
        step = _FIRST_STEP * np.ptp(costs, axis=0).mean() / max(loads.mean(), 1e-9)
        for _ in range(_STEPS):
            priced = costs + multipliers[:, None] * loads
            agent = priced.argmin(axis=0)
            found = priced[agent, job].sum() - multipliers @ capacities
            if found > bound:
                best, bound = multipliers, found
            used = np.bincount(agent, loads[agent, job], self.num_agents)
            slope = used - capacities
            length = np.linalg.norm(slope) or 1.0
            multipliers = np.maximum(multipliers + step * slope / length, 0)
            step *= _SHRINK
        return best, float(bound)

    def lower_bound(self) -> int | float | None:
        """Returns a cost that no assignment within the capacities is below: see `prices`."""
        return lower_bounds.rounded(self.prices()[1], self.on_host()[0])

    def _of_job(self, tally: Slacks, job: jax.Array, own: jax.Array) -> _Shift:
        """Returns the change if a job leaves its agent."""
        slack = load(tally.slack, own)
        overload = _over(slack + load(self.loads, (job, own))) - _over(slack)
        return -load(self.costs, (job, own)), overload

    def _delta(self, tally: Slacks, shift: _Shift) -> jax.Array:
        cost, overload = shift
        after = self._penalty(tally.overload + overload)
        return cost + (after - self._penalty(tally.overload))

    def _penalty(self, overload: jax.Array) -> jax.Array:
        """Returns the cost of an overload."""
        fixed = jnp.where(overload > 0, self.fixed_penalty, jnp.zeros_like(self.fixed_penalty))
        return fixed + floats.product(self.penalty, overload.astype(self.penalty.dtype))


def _over(slack: jax.Array) -> jax.Array:
    """Returns the overload where this much is left."""
    return jnp.maximum(-slack, jnp.zeros_like(slack))


def _moved(left: _Shift, slack: jax.Array, cost: jax.Array, taken: jax.Array) -> _Shift:
    """Returns the change if a job, having `left` an agent, goes to another who has `slack`."""
    own_cost, overload = left
    return own_cost + cost, overload + (_over(slack - taken) - _over(slack))


def generalized_assignment(
    costs: Any,
    loads: Any,
    capacities: Any,
    *,
    dtype: matrix_input.DType | None = None,
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
      loads: [m, n] integers from 0 on, or decimals of up to 6 digits, such as hours: how much of
        each agent's capacity each job takes.
      capacities: [m] numbers from 0 on.
      dtype: `"float32"` to give up exactness if an integer instance is too large for int32.
      best_known: the best-known cost, for `Result.gap`.

    Raises:
      ValueError: for a wrong shape, NaN, infinity, negative loads and capacities, loads of more
        digits, or numbers too large.
      TypeError: for entries that are not real numbers.

    Example:
      >>> import jaxopt_search as js
      >>> problem = generalized_assignment([[1, 2, 3], [4, 4, 4]], [[2, 2, 2], [1, 1, 1]], [4, 9])
      >>> result = js.solve(problem, js.hill_climbing(js.Assign()), 0, num_searches=4)
      >>> result.fun, result.x.tolist()
      (7, [0, 0, 1])
    """
    costs, loads = _matrix(costs, "costs"), _matrix(loads, "loads")
    capacities = real_array(capacities, "capacities")
    check_shape(loads, "loads", costs.shape, " as costs has")
    check_shape(capacities, "capacities", costs.shape[:1])
    for name, amounts in {"loads": loads, "capacities": capacities}.items():
        matrix_input.refuse_first(amounts, ~np.isfinite(amounts), name)
        if amounts.min() < 0:
            raise ValueError(f"{name} hold {amounts.min()}, expected numbers from 0 on")
    loads, capacities, parts = _whole(loads, capacities)
    is_exact = matrix_input.has_exact_costs(dtype, "costs", costs)
    costs = costs.astype(np.int64 if is_exact else np.float64)
    total = sum(map(int, loads.max(axis=0)))
    most = max(total, int(loads.sum(axis=1, dtype=object).max()))
    if most > MAX_INT32 // 2:
        raise ValueError(
            f"loads sum to {most} parts of 1 / {parts}, expected up to {MAX_INT32 // 2}, for int32;"
            " round them to fewer digits, or divide by a constant"
        )
    capacities = np.minimum(capacities, MAX_INT32 // 2)  # there is room for all either way
    (m, n), dtype = costs.shape, jnp.int32 if is_exact else jnp.float32
    low, high = (_total(part(axis=0), is_exact) for part in (costs.min, costs.max))
    largest = int(costs.max()) - int(costs.min()) if is_exact else largest_of(costs)
    spread = max((costs.max(axis=0) - costs.min(axis=0)).max().item(), 0)
    # Float costs may be off by rounding: then what separates them is more than rounding.
    fixed = high - low if is_exact else 2 * (high - low) + (abs(high) + abs(low)) * 2.0**-10
    penalty = 5 * spread + 1 if is_exact else 5 * spread + (fixed + abs(high)) * 2.0**-20 or 1.0
    overload = int(loads.max(axis=0).sum())
    most = max(-low, high + fixed + penalty * overload)
    change = high - low + fixed + penalty * overload
    limit = MAX_INT32 if is_exact else MAX_FLOAT32 / 8
    if max(most, change, largest) >= limit:
        hint = "use a problem of dtype='float32'" if is_exact else "multiply costs by a constant"
        raise ValueError(
            f"costs from {low:.6g} to {high:.6g} and penalties for an overload of up to {overload}"
            f" reach {max(most, change):.6g}, expected below {limit:.6g}; {hint}"
        )
    refuse_orphans()
    exact = _Exact(costs, loads, capacities, fixed, penalty, parts)
    host = Original(
        cost=exact.cost,
        check=functools.partial(check_vector, np.full(n, m, np.int32)),
        remaining=exact.remaining,
        max_feasible=high if is_exact else high + (fixed - (high - low)) / 2,
        best_known=best_known,
    )
    return GeneralizedAssignment(
        costs=matrix_input.on_device(costs.T, dtype),
        loads=matrix_input.on_device(loads.T, jnp.int32),
        capacities=matrix_input.on_device(capacities, jnp.int32),
        fixed_penalty=matrix_input.on_device(fixed, dtype),
        penalty=matrix_input.on_device(penalty, dtype),
        domain_sizes=matrix_input.on_device(np.full(n, m), jnp.int32),
        n=n,
        num_agents=m,
        host=host,
    )


def _matrix(values: Any, name: str) -> np.ndarray:
    matrix = matrix_input.finite_matrix(values, name)
    if matrix.ndim != 2 or not matrix.size:
        raise ValueError(f"{name} has shape {matrix.shape}, expected (agents, jobs)")
    return matrix


def _whole(loads: np.ndarray, capacities: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Returns loads and capacities as int64, in parts of a unit, and how many parts it has.

    What is left of a capacity beside whole parts takes no load.
    """
    for parts in (10**digits for digits in range(_DIGITS + 1)):
        counted, room = loads * parts, np.floor(capacities * (parts * (1 + _ROUNDING)))
        if (np.abs(counted - np.rint(counted)) <= _ROUNDING * counted).all():
            # What does not fit is refused with the sums.
            whole = (np.minimum(np.rint(each), 2.0**53) for each in (counted, room))
            return *(each.astype(np.int64) for each in whole), parts
    raise ValueError(f"loads have more than {_DIGITS} digits behind the point; round them up")


def _total(values: np.ndarray, is_exact: bool) -> int | float:
    return sum(map(int, values)) if is_exact else values.sum().item()


class _Exact(NamedTuple):
    """Costs of solutions on the host: matrices [m, n], capacities [m], what overload costs.

    Loads are in parts of a unit, of which it has `parts`.
    """

    costs: np.ndarray
    loads: np.ndarray
    capacities: np.ndarray
    fixed: Any
    penalty: Any
    parts: int

    def cost(self, solution: np.ndarray) -> int | float:
        """Returns the cost in full, penalties included."""
        overload = self._overload(solution)
        total = self.costs[solution, np.arange(len(solution))].sum().item()
        return total + (self.fixed + self.penalty * overload if overload else 0)

    def remaining(self, solution: np.ndarray) -> str:
        """Says why a solution is not feasible; "" if it is."""
        overload = self._overload(solution)
        return f"an overload of {overload / self.parts:g} remains" if overload else ""

    def _overload(self, solution: np.ndarray) -> int:
        loads = self.loads[solution, np.arange(len(solution))]
        used = np.bincount(solution, loads, len(self.capacities)).astype(np.int64)
        return int(np.maximum(used - self.capacities, 0).sum())
