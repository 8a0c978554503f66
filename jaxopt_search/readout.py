"""What there is to see of a run: its best solutions, its first finisher."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxopt_search import exchange, steps
from jaxopt_search.loop import RunState
from jaxopt_search.steps import Steps
from jaxopt_search.types import Cost, Problem, Search, Solution


class Readout(NamedTuple):
    """What the host looks at after each chunk of steps.

    Attributes:
      solution: the best of all searches.
      cost: [] of it.
      step: made by each search.
      status: [] int32.
      hit: as `first_hit` returns it.
      accepted: [S] int32 moves in this chunk.
    """

    solution: Solution
    cost: Cost
    step: Steps
    status: jax.Array
    hit: tuple[Steps, jax.Array]
    accepted: jax.Array


@jax.jit
def look(problem: Problem, search: Search, state: RunState) -> Readout:
    """Returns what the host looks at, to be fetched at once."""
    return Readout(
        *best(problem, search, state),
        step=state.step,
        status=state.status,
        hit=first_hit(state),
        accepted=state.info.accepted,
    )


@jax.jit
def best(problem: Problem, search: Search, state: RunState) -> tuple[Solution, Cost]:
    """Returns the best solution of all searches and its cost; the lowest index of equals."""
    costs = exchange.best_costs(search, state.searches, state.index)
    winner = jnp.argmin(costs)
    winning = jax.tree.map(lambda leaf: leaf[winner], state.searches)
    return search.best(problem, winning), costs[winner]


@jax.jit
def all_best(problem: Problem, search: Search, state: RunState) -> tuple[Solution, jax.Array]:
    """Returns the best solution of each search, leaves [S, ...], and their costs [S]."""
    solutions = jax.vmap(search.best, in_axes=(None, 0))(problem, state.searches)
    return solutions, exchange.best_costs(search, state.searches, state.index)


@jax.jit
def first_hit(state: RunState) -> tuple[Steps, jax.Array]:
    """Returns the first finisher: after how many steps, and which search by global index.

    Of several searches that met the target at the same step, the one of the lowest index. If none
    did, the count is `steps.never` and the index is -1.
    """
    hit = jax.tree.map(
        lambda count, never: jnp.where(state.index >= 0, count, never),
        state.hit,
        steps.never(state.index.shape),
    )
    winner = steps.first(hit)
    count = Steps(hit.high[winner], hit.low[winner])
    return count, jnp.where(steps.is_never(count), -1, state.index[winner])
