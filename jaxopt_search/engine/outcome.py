# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
"""The outcome of a run so far: its best solutions, its first finisher."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxopt_search.backends import counts, loops
from jaxopt_search.backends.counts import Steps
from jaxopt_search.engine.compile import jit
from jaxopt_search.engine.state import RunState, best_costs, choose, settled
from jaxopt_search.results import Hit, Status
from jaxopt_search.types import Cost, Problem, Search, Solution


class Outcome(NamedTuple):
    """What the host looks at after a chunk of steps.

    Attributes:
      solution: the best of all searches, of NumPy's arrays.
      cost: of it, a number of NumPy's, as the device counts.
      step: made by each search.
      status: as in `RunState`.
      best_search: index of the best of all searches.
      first_hit: the first finisher, or None. Of float costs, which drift, it may be a false one
        unless the status is `TARGET`.
      accepted: moves of all searches in this chunk.
      all_best: the best solution of each search, leaves [S, ...], and their costs [S]; [D, S / D]
        on several devices. They stay there until they are fetched: they are needed at the end only.
    """

    solution: Any
    cost: Any
    step: Any
    status: Any
    best_search: Any
    first_hit: Any
    accepted: Any
    all_best: Any = None


@jit
def packed(problem: Problem, search: Search, state: RunState) -> Outcome:
    """Returns the outcome as arrays on the device; see `read`."""
    solutions, costs = all_best(problem, search, state)
    first = jnp.argmin(costs)
    return Outcome(
        solution=jax.tree.map(lambda leaf: leaf[first], solutions),
        cost=costs[first],
        step=state.step,
        status=state.status,
        best_search=state.index[first],
        first_hit=first_hit(state),
        accepted=jnp.where(state.index >= 0, state.info.accepted, 0).astype(jnp.float32).sum(),
        all_best=(solutions, costs),
    )


def read(fetched: Outcome, all_best: Any) -> Outcome:
    """Returns the outcome from `packed`, of which all but `all_best` is on the host by now."""
    count, winner = fetched.first_hit
    return fetched._replace(
        step=int(fetched.step),
        status=Status(fetched.status.item()),
        best_search=fetched.best_search.item(),
        first_hit=Hit(int(count), winner.item()) if winner >= 0 else None,
        accepted=fetched.accepted.item(),
        all_best=all_best,
    )


def merged(parts: Sequence[Outcome]) -> Outcome:
    """Returns the outcome of a run from the outcomes of its parts, in order of their searches."""
    best_part = parts[int(np.argmin([part.cost for part in parts]))]
    hits = [part.first_hit for part in parts if part.first_hit is not None]
    return best_part._replace(
        first_hit=min(hits, default=None), accepted=sum(part.accepted for part in parts)
    )


@jax.jit
def best(problem: Problem, search: Search, state: RunState) -> tuple[Solution, Cost]:
    """Returns the best solution of all searches and its cost; the lowest index of equals.

    The cost is as `problem.cost` counts; where int32 does not hold all costs, it is rounded to
    float32.

    Example:
      >>> import jaxopt_search as js
      >>> problem = js.tsp([[0, 3, 4, 5], [3, 0, 5, 4], [4, 5, 0, 3], [5, 4, 3, 0]])
      >>> search = js.simulated_annealing(js.Relocate(), 1.0)
      >>> start = js.init(0, problem, search, num_searches=4, solutions=jnp.array([[0, 1, 3, 2]]))
      >>> tour, cost = best(problem, search, start)
      >>> tour.tolist(), int(cost)
      ([0, 1, 3, 2], 14)
    """
    _check_one_run(state)
    with loops.varying_alike(problem, search, state) as (problem, search, state):
        searches = settled(problem, search, state.searches)
        costs = best_costs(search, searches, state.index)
        winner = jnp.argmin(costs)
        winning = jax.tree.map(lambda leaf: leaf[winner], searches)
        return search.best(problem, winning), problem.cost_in_full(costs[winner])


@jax.jit
def all_best(problem: Problem, search: Search, state: RunState) -> tuple[Solution, jax.Array]:
    """Returns the best solution of each search, leaves [S, ...], and their costs [S].

    They are as the device counts.
    """
    searches = settled(problem, search, state.searches)
    solutions = jax.vmap(search.best, in_axes=(None, 0))(problem, searches)
    return solutions, best_costs(search, searches, state.index)


@jax.jit
def first_hit(state: RunState) -> tuple[Steps, jax.Array]:
    """Returns the first finisher: after how many steps, and which search by global index.

    Of several searches that met the target at the same step, the one of the lowest index. If none
    did, the count is `counts.never` and the index is -1.

    Example:
      >>> import jaxopt_search as js
      >>> problem = js.tsp([[0, 3, 4, 5], [3, 0, 5, 4], [4, 5, 0, 3], [5, 4, 3, 0]])
      >>> search, starts = js.simulated_annealing(js.Relocate(), 1.0), jnp.array([[0, 2, 1, 3]] * 4)
      >>> options = {"num_searches": 4, "max_steps": 50, "solutions": starts}
      >>> steps, number = first_hit(js.run(0, problem, search, target=14, **options))
      >>> int(steps), int(number)
      (1, 2)
    """
    _check_one_run(state)
    hit = choose(state.index >= 0, state.hit, counts.never(state.index.shape))
    winner = counts.first(hit)
    count = Steps(hit.high[winner], hit.low[winner])
    return count, jnp.where(counts.is_never(count), -1, state.index[winner])


def _check_one_run(state: RunState) -> None:
    """Refuses the states of several runs, as `vmap` of `run` returns them."""
    if state.index.ndim != 1:
        raise ValueError(
            f"state.index has shape {state.index.shape}, expected (num_searches,); of several runs,"
            " use jax.vmap of this function"
        )
