"""Quadratic unconstrained binary optimization (QUBO), with the maximum cut of a graph as a case.

Kochenberger et al., "The unconstrained binary quadratic programming problem: a survey", Journal of
Combinatorial Optimization 28 (2014). Flips are priced in O(1) from what each variable would add if
it were 1, which a flip changes in O(degree): Glover and Hao, "Efficient evaluations for solving
large 0-1 unconstrained quadratic optimisation problems", International Journal of Metaheuristics 1
(2010). `build` builds instances.
"""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxopt_search.backends import floats, tables
from jaxopt_search.backends.memory import load
from jaxopt_search.problems.finite import vector
from jaxopt_search.problems.finite.qubo.couplings import Couplings
from jaxopt_search.problems.host import SAME, Original, Units
from jaxopt_search.pytrees import pytree
from jaxopt_search.types import Scan, VectorProblem


class Fields(NamedTuple):
    """What makes moves of a QUBO cheap.

    Attributes:
      fields: [n] int32 or float32, what each variable adds to the cost if it is 1 and the others
        stay as they are.
    """

    fields: Any


@functools.partial(
    pytree,
    data_fields=("linear", "couplings", "domain_sizes"),
    meta_fields=("n", "device_units", "host"),
)
@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class QUBO(VectorProblem):
    """A QUBO instance on the device. Build it with `qubo` or `max_cut`.

    A solution is [n] int32 of zeros and ones. Its cost is the sum of the linear terms of the ones
    and of the couplings of each pair of ones.

    Attributes:
      linear: [n] int32 or float32.
      couplings: of pairs of variables, of this dtype: a matrix or lists of neighbors.
      domain_sizes: [n] int32, all 2.
      n: the number of variables.
      device_units: how `device_cost` counts.
      host: the instance as it was given.
    """

    linear: jax.Array = dataclasses.field(repr=False)
    couplings: Couplings = dataclasses.field(repr=False)
    domain_sizes: jax.Array = dataclasses.field(repr=False)
    n: int
    device_units: Units = SAME
    host: Original = dataclasses.field(repr=False)

    space = "vector"
    max_domain = 2

    def init(self, key: jax.Array) -> jax.Array:
        """Returns a random solution, [n] int32: each variable is 0 or 1 with equal chances."""
        return vector.random_vector(key, self.domain_sizes)

    def perturb(self, key: jax.Array, solution: jax.Array) -> jax.Array:
        """Returns a solution near `solution`: a few random variables have random values."""
        return vector.perturbed(key, solution, self.domain_sizes)

    def cost(self, solution: jax.Array) -> jax.Array:
        """Returns the sum of the terms of all variables and pairs that are 1.

        [] int32 or float32; float32 where neither holds all costs, see `host.Units`.
        """
        return self.device_units.in_full(self.device_cost(solution))

    def device_cost(self, solution: jax.Array) -> jax.Array:
        """Returns the cost in the device's units; mostly the same as `cost`.

        O(n * n), or O(n * max_degree) with lists of neighbors. Integers may wrap on the way; the
        result is exact.

        Returns:
          [] int32 or float32.
        """
        added = self.linear + self.couplings.sums(solution, below=True)
        return floats.total(jnp.where(solution == 1, added, jnp.zeros_like(added)))

    def tally(self, solution: jax.Array) -> Fields:
        """Returns the fields of all variables."""
        return Fields(self.linear + self.couplings.sums(solution))

    def assign_delta(
        self, solution: Any, tally: Fields, variable: jax.Array, value: jax.Array
    ) -> jax.Array:
        """Returns the change in cost if a variable gets a value, O(1); portable, elementwise."""
        field = load(tally.fields, variable)
        return _step(load(solution, variable), value, field.dtype) * field

    def swap_values_delta(
        self, solution: Any, tally: Fields, first: jax.Array, second: jax.Array
    ) -> jax.Array:
        """Returns the change in cost if two variables exchange their values; portable, elementwise.

        O(1), or O(log(max_degree)) with lists of neighbors.
        """
        a, b = load(solution, first), load(solution, second)
        gained, lost = load(tally.fields, first), load(tally.fields, second)
        coupling = self.couplings.between(first, second)
        # Of the field of the one that becomes 1, the coupling to the one that was 1 goes.
        change = _step(a, b, gained.dtype) * (gained - lost) - coupling
        return jnp.where(a == b, jnp.zeros_like(change), change)

    def assigned(
        self,
        solution: Any,
        tally: Fields,
        variable: jax.Array,
        value: jax.Array,
        where: jax.Array,
    ) -> Fields:
        """Returns the fields after an assignment, if `where` holds; O(degree), portable."""
        step = _step(load(solution, variable), value, self.couplings.dtype)
        return Fields(self.couplings.add_row(tally.fields, variable, step, where))

    def scan(self, solution: Any, tally: Fields) -> Scan:
        """Returns how all flips are priced in one pass."""

        def of_variable(variable: jax.Array) -> tuple[jax.Array, jax.Array]:
            fields = tables.in_rows(tally.fields, variable)
            return tables.in_rows(solution, variable), fields

        def delta(place: Any, entries: tuple[jax.Array, ...]) -> jax.Array:
            own, field = place.here
            return _step(own, place.column, field.dtype) * field

        return Scan((), of_variable, lambda value: None, delta)


def _step(before: jax.Array, after: jax.Array, dtype: Any) -> jax.Array:
    """Returns by how much a variable grows: -1, 0 or 1."""
    return (after - before).astype(dtype)
