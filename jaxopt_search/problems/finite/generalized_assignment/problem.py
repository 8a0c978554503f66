"""Generalized assignment: jobs to agents of limited capacity, each job to one agent, cheaply.

Ross and Soland, "A branch and bound algorithm for the generalized assignment problem", Mathematical
Programming 8 (1975). As in Yagiura, Ibaraki and Glover, "An ejection chain approach for the
generalized assignment problem", INFORMS Journal on Computing 16 (2004), searches may pass through
assignments that overload agents, at a price.
"""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxopt_search.backends import floats, tables
from jaxopt_search.backends.memory import load, store
from jaxopt_search.problems.finite import vector
from jaxopt_search.problems.host import Original
from jaxopt_search.pytrees import pytree
from jaxopt_search.types import Scan, VectorProblem


class Slacks(NamedTuple):
    """What makes moves cheap.

    Attributes:
      slack: [m] int32, how much of each agent's capacity is left; negative if it is overloaded.
      overload: [] int32, the sum of the loads beyond the capacities.
    """

    slack: Any
    overload: Any


class _Shift(NamedTuple):
    """What changes if jobs go to other agents.

    Attributes:
      cost: int32 or float32.
      overload: int32.
    """

    cost: jax.Array
    overload: jax.Array


@functools.partial(
    pytree,
    data_fields=("costs", "loads", "capacities", "fixed_penalty", "penalty", "domain_sizes"),
    meta_fields=("n", "num_agents", "host"),
)
@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class GeneralizedAssignment(VectorProblem):
    """An instance on the device. Build it with `generalized_assignment`.

    A solution is [n] int32: the agent of each job. Its cost is the sum of the costs of the jobs
    with their agents and, if an agent is overloaded, `fixed_penalty` and `penalty` for each unit of
    load beyond the capacities.

    Attributes:
      costs: [n, m] int32 or float32, of each job with each agent.
      loads: [n, m] int32, at least 0.
      capacities: [m] int32.
      fixed_penalty: [] int32 or float32, so high that all feasible solutions cost less than others.
      penalty: [] of this dtype, more than one job can save with another agent.
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
    n: int
    num_agents: int
    host: Original = dataclasses.field(repr=False)

    space = "vector"

    @property
    def max_domain(self) -> int:
        """m, the number of agents."""
        return self.num_agents

    @property
    def is_trivial(self) -> bool:
        """Whether there is only one solution."""
        return self.num_agents == 1

    def init(self, key: jax.Array) -> jax.Array:
        """Returns a random solution, [n] int32, which may overload agents."""
        return vector.random_vector(key, self.domain_sizes)

    def perturb(self, key: jax.Array, solution: jax.Array) -> jax.Array:
        """Returns a solution near `solution`: a few random jobs have random agents."""
        return vector.perturbed(key, solution, self.domain_sizes)

    def cost(self, solution: jax.Array) -> jax.Array:
        """Returns the costs of all jobs and the penalty for overload, [] int32 or float32; O(n)."""
        job = jnp.arange(self.n, dtype=jnp.int32)
        costs = floats.total(load(self.costs, (job, solution)))
        return costs + self._penalty(self.tally(solution).overload)

    def tally(self, solution: jax.Array) -> Slacks:
        """Returns what is left of all capacities; O(n m)."""
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
        change = self._delta(tally, _Shift(cost, after - _over(at_a) - _over(at_b)))
        return jnp.where(a == b, jnp.zeros_like(change), change)

    def assigned(
        self,
        solution: Any,
        tally: Slacks,
        variable: jax.Array,
        value: jax.Array,
        where: jax.Array,
    ) -> Slacks:
        """Returns what is left after a job went to an agent, if `where` holds; O(1), portable."""
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

    def _of_job(self, tally: Slacks, job: jax.Array, own: jax.Array) -> _Shift:
        """Returns what changes if a job leaves its agent."""
        slack = load(tally.slack, own)
        overload = _over(slack + load(self.loads, (job, own))) - _over(slack)
        return _Shift(-load(self.costs, (job, own)), overload)

    def _delta(self, tally: Slacks, shift: _Shift) -> jax.Array:
        after = tally.overload + shift.overload
        return shift.cost + (self._penalty(after) - self._penalty(tally.overload))

    def _penalty(self, overload: jax.Array) -> jax.Array:
        """Returns what an overload costs."""
        fixed = jnp.where(overload > 0, self.fixed_penalty, jnp.zeros_like(self.fixed_penalty))
        return fixed + floats.product(self.penalty, overload.astype(self.penalty.dtype))


def _over(slack: jax.Array) -> jax.Array:
    """Returns the overload where this much is left."""
    return jnp.maximum(-slack, jnp.zeros_like(slack))


def _moved(left: _Shift, slack: jax.Array, cost: jax.Array, taken: jax.Array) -> _Shift:
    """Returns what changes if a job, having `left` an agent, goes to another who has `slack`."""
    return _Shift(left.cost + cost, left.overload + (_over(slack - taken) - _over(slack)))
