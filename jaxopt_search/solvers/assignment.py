"""One call from costs, loads and capacities to who does what: `solve_assignment`."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxopt_search.backends import floats, random
from jaxopt_search.checks import float32
from jaxopt_search.driver.chunks import drive
from jaxopt_search.driver.options import DEFAULT_SECONDS, Timer, resolve
from jaxopt_search.engine.devices import host_driver, is_cpu
from jaxopt_search.neighborhoods import AssignOrSwap
from jaxopt_search.problems.finite.generalized_assignment import (
    GeneralizedAssignment,
    generalized_assignment,
)
from jaxopt_search.problems.matrix_input import on_device, refuse_options
from jaxopt_search.pytrees import pytree
from jaxopt_search.results import Result
from jaxopt_search.searches.acceptance import Scheduled, Trial
from jaxopt_search.searches.annealing import local_search
from jaxopt_search.searches.schedules import as_schedule
from jaxopt_search.solvers.anneal import Ingredients, Recipe, chosen, plan_annealing
from jaxopt_search.types import Cost

# Temperatures are in units of a job's mean load times what a unit of load is worth.
_ON_CPU = Recipe(
    hottest=0.3, coldest=0.003, num_searches=2, moves_per_search=16, resample_every=None
)
_ON_GPU = _ON_CPU._replace(num_searches=1056, moves_per_search=32)
_AGENTS = 5  # that a job is offered to
_LEAST_PRICE = 1.01  # of what a unit of capacity is worth
# The share by which the price rises for each move priced per job: of n jobs 1 / (10 n). It is more
# in a short run, in which the price has to rise several times, but there at most 2**-9.
_SLOWNESS, _RISES, _MOST_RISE = 10, 32, 2.0**-9
_STEPS_PER_SECOND = 10**6  # about


@host_driver
def solve_assignment(
    costs: Any,
    loads: Any = None,
    capacities: Any = None,
    key: Any = 0,
    *,
    max_seconds: float | None = None,
    target: float | None = None,
    num_searches: int | None = None,
    initial: Any = None,
    **options: Any,
) -> Result:
    """Returns which agent does each job, within capacities, at a low cost: generalized assignment.

    Annealing by `AssignOrSwap`, in turns of agents that are overloaded and not: a unit of overload
    has a price, which rises in each search while an agent is overloaded, and then falls to a little
    more than what capacity is worth (strategic oscillation: Glover, "Heuristics for integer
    programming using surrogate constraints", 1977). That follows from Lagrange multipliers on the
    host, and tells the temperatures, too, and the agents to which a job is offered.

    Args:
      costs: [m, n] real numbers, of each agent (row) with each job (column); or a problem that
        `generalized_assignment` returns, and nothing else. To maximize profits, negate them.
      loads: [m, n] integers from 0 on, or decimals of up to 6 digits, such as hours: how much of
        each agent's capacity each job takes; or [n], the same of all.
      capacities: [m] numbers from 0 on.
      key: an integer seed or a `jax.random.key`.
      max_seconds: seconds of search, as in `solve`; 10 if no limit is given.
      target: end once a cost is at most this.
      num_searches: searches side by side; None for a number that suits the devices.
      initial: start solutions, as in `solve`.
      options: `max_steps`, `devices`, by default all, `callback`, `checkpoint`, `checkpoint_every`,
        `resume`, `history_size` and `show_progress`, as in `anneal`.

    Returns:
      A `Result`; `x` is [n] int32, the agent of each job. If no search has found an assignment
      within all capacities, `feasible` is False and `fun` is infinite.

    Raises:
      ValueError, TypeError: as `generalized_assignment` and `solve`.

    Example:
      >>> result = solve_assignment([[1, 2, 3], [4, 4, 4]], [2, 1, 1], [3, 9], max_steps=100)
      >>> result.x.tolist(), result.fun, result.feasible
      ([0, 0, 1], 7, True)
    """
    problem = costs
    if isinstance(costs, GeneralizedAssignment):
        refuse_options("a problem", loads=loads, capacities=capacities)
    else:
        for name, value in {"loads": loads, "capacities": capacities}.items():
            if value is None:
                raise ValueError(f"{name} is None, expected numbers, as costs is no problem")
        if np.ndim(loads) == 1:
            loads = np.broadcast_to(loads, (np.size(capacities), len(loads)))
        problem = generalized_assignment(costs, loads, capacities)
    resolved = resolve(**options, max_seconds=max_seconds, default_seconds=DEFAULT_SECONDS)
    with resolved.team.same_call():
        recipe = _ON_CPU if is_cpu(resolved.devices[0]) else _ON_GPU
        recipe = chosen(recipe, num_searches, resolved.devices)
        parts = _ingredients(problem, recipe, resolved.timer)
        run = plan_annealing(problem, recipe, parts, resolved, key, initial, target)
    return drive(run)


@pytree
@dataclasses.dataclass(frozen=True, kw_only=True)
class _Priced(Scheduled):
    """Metropolis by the costs of jobs and a price for overload, which each search adapts.

    The problem's own penalty says how a change in cost splits into these; that whoever overloads
    nobody costs less only tells which solutions are the best.

    Attributes:
      fixed, penalty, max_feasible: as of the problem.
      least: [] float32, the least price of a unit of overload.
      dearer: [] float32, by what the price is multiplied in a step.
    """

    fixed: jax.Array
    penalty: jax.Array
    max_feasible: jax.Array
    least: jax.Array
    dearer: jax.Array
    num_words = 1

    def start(self, cost: Cost) -> jax.Array:
        return self.least

    def passes(self, trial: Trial) -> jax.Array:
        before, after = (
            jnp.where(cost > self.max_feasible, self.fixed, jnp.zeros_like(self.fixed))
            for cost in (trial.cost, trial.cost + trial.delta)
        )
        change = trial.delta - (after - before)
        # The costs of two jobs change by less than half the penalty: no rounding matters.
        share = change.astype(jnp.float32) / self.penalty.astype(jnp.float32)
        units = jnp.floor(share + 0.5)
        cost = change - floats.product(self.penalty, units.astype(change.dtype))
        energy = cost.astype(jnp.float32) + floats.product(trial.history, units)
        return energy <= trial.control * random.exponential(trial.words[0])

    def after(self, history: jax.Array, cost: Cost) -> jax.Array:
        # An overload that the problem's own penalty does not end is one that no move lessens.
        dearer = history * self.dearer
        rises = (cost > self.max_feasible) & (dearer < self.penalty.astype(jnp.float32))
        return jnp.where(rises, dearer, self.least)


def _ingredients(problem: GeneralizedAssignment, recipe: Recipe, timer: Timer) -> Ingredients:
    prices, (costs, loads, capacities) = problem.prices()[0], problem.on_host()
    (m, n), load = costs.shape, max(float(loads.mean()), 1e-9)
    price = prices.mean() or (costs.max() - costs.min()) / (100 * load) or 1.0
    dear = costs + prices[:, None] * loads
    dear -= dear.min(axis=0)
    dear[loads > capacities[:, None]] = np.inf  # who cannot do a job takes nobody's place
    few = min(m, _AGENTS)
    variables = np.argsort(dear, axis=1, kind="stable")[:, : -(-n * few // m)]
    # Who has room for all jobs, such as one that stands for leaving them undone, is offered each.
    (roomy,) = np.nonzero(loads.sum(axis=1) <= capacities)
    if roomy.size:
        dear[roomy[dear[roomy].argmin(axis=0)], np.arange(n)] = -np.inf
    lists = np.argsort(dear.T, axis=1, kind="stable")[:, :few], variables
    dtype, steps = problem.penalty.dtype, timer.max_steps
    if steps is None:
        assert timer.max_seconds is not None
        steps = _STEPS_PER_SECOND * timer.max_seconds
    moves = recipe.moves_per_search / n  # per job, in a step
    rise = moves * max(1 / (_SLOWNESS * n), min(_RISES / (moves * max(steps, 1)), _MOST_RISE))
    rule = _Priced(
        schedule=as_schedule(1.0),
        fixed=problem.fixed_penalty,
        penalty=problem.penalty,
        max_feasible=on_device(problem.host.max_feasible, dtype),
        least=float32(_LEAST_PRICE * price),
        dearer=float32(1 + rise),
    )
    values, variables = (on_device(part, jnp.int32) for part in lists)
    neighborhood = AssignOrSwap(values=values, variables=variables)
    temperatures = recipe.hottest * price * load, recipe.coldest * price * load
    num_moves = recipe.moves_per_search
    search = local_search(neighborhood, rule, moves_per_search=num_moves, choose="first")
    return Ingredients(search, temperatures)
