"""An island: its population, and the best solution that it has had."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxopt_search.backends import memory
from jaxopt_search.backends.memory import load, store
from jaxopt_search.crossovers import Island
from jaxopt_search.types import Cost, null_delta


class GeneticState(NamedTuple):
    """The state of one island.

    Attributes:
      population: [P, n] int32, a solution each.
      tables: what `Operators.tables` returns of it.
      costs: [P] of the population.
      best: [n] int32, the best solution of all since the start.
      best_cost: [] its cost.
      children, child_costs: [P, n] int32 and [P], working space.
    """

    population: jax.Array
    tables: Any
    costs: jax.Array
    best: jax.Array
    best_cost: Cost
    children: jax.Array
    child_costs: jax.Array


def buffers(state: GeneticState) -> Island:
    """Returns the buffers that operators work on."""
    return Island(state.population, state.tables, state.children, state.best)


def lanes(state: GeneticState) -> tuple[jax.Array, jax.Array]:
    """Returns the numbers of lanes, and their individuals: in excess, the last one; portable."""
    size = state.costs.shape[0]
    lane = memory.lanes(size)
    return lane, jnp.minimum(lane, size - 1)


def costs_of_all(state: GeneticState) -> jax.Array:
    """Returns the cost of each lane's individual, the highest there is in excess; portable."""
    lane, individual = lanes(state)
    costs = load(state.costs, individual)
    return jnp.where(lane < state.costs.shape[0], costs, null_delta(costs.dtype))


def remember_best(state: GeneticState) -> GeneticState:
    """Returns the state in which the best individual is the best of all, if it is; portable."""
    costs, (lane, _) = costs_of_all(state), lanes(state)
    lowest = jnp.min(costs)
    is_better = lowest < state.best_cost

    def write(buffers: tuple[Any, Any], where: jax.Array) -> tuple[Any, Any]:
        (best, population), (n,) = buffers, state.best.shape
        row = jnp.min(jnp.where(costs == lowest, lane, state.costs.shape[0] - 1))
        position = memory.lanes(n)
        index = jnp.minimum(position, n - 1)
        value = load(population, (row, index))
        return store(best, index, value, where & (position < n)), population

    best, population = memory.when(is_better, write, (state.best, state.population))
    best_cost = jnp.where(is_better, lowest, state.best_cost)
    return state._replace(best=best, population=population, best_cost=best_cost)
