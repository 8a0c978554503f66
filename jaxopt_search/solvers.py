"""One call from data to a good solution, with settings chosen from the instance."""

import dataclasses
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxopt_search import exchange, parallel
from jaxopt_search.checks import MAX_INT32
from jaxopt_search.driver import Snapshot, Steer, solve
from jaxopt_search.neighborhoods import DeltaSwap, Relocate, two_opt
from jaxopt_search.problems.qap import QAP
from jaxopt_search.problems.qap_input import as_qap
from jaxopt_search.problems.tsp import TSP
from jaxopt_search.problems.tsp_input import as_tsp
from jaxopt_search.schedules import geometric
from jaxopt_search.searches import simulated_annealing
from jaxopt_search.types import Exchange, Result, Search

_NUM_CHUNKS = 100
_NUM_EXCHANGES = 100
_NUM_CANDIDATES = 12
_SAFETY = 0.98  # of the time limit, in which the temperature reaches its lowest
_SAMPLED_CITIES = _SAMPLED_SWAPS = 256
_DEFAULT_SECONDS = 10.0


class _Recipe(NamedTuple):
    """Settings of an annealing.

    Temperatures are in units of a typical change: for the TSP the mean distance to the three
    nearest cities, for the QAP the mean absolute delta of a random swap.
    """

    hottest: float
    coldest: float
    moves_per_search: int
    searches_per_cpu: int
    searches_per_accelerator: int

    def searches(self, platform: str) -> int:
        """Returns how many searches suit a device."""
        return self.searches_per_cpu if platform == "cpu" else self.searches_per_accelerator


_SYMMETRIC_TSP = _Recipe(1.0, 0.03, 8, 16, 2112)
_ASYMMETRIC_TSP = _Recipe(4.0, 0.1, 12, 16, 1024)
_QAP = _Recipe(0.5, 0.01, 8, 16, 2112)


def solve_tsp(
    data: Any,
    key: Any = 0,
    *,
    max_seconds: float | None = None,
    max_steps: int | None = None,
    target: float | None = None,
    num_searches: int | None = None,
    moves_per_search: int | None = None,
    devices: parallel.Devices = "all",
    show_progress: bool = False,
) -> Result:
    """Returns a short tour: population annealing by 2-opt and Or-opt, cooled once over the run.

    Temperatures follow from the instance. With `max_seconds` only, cooling keeps pace with the
    clock, so the result depends on the speed of the machine; with `max_steps`, it does not. An
    asymmetric instance is annealed by relocations.

    Args:
      data: [n, 2] coordinates (Euclidean), an [n, n] matrix of distances, a `TSPInstance` as read
        by `datasets`, or a `TSP`.
      key: an integer seed or a `jax.random.key`.
      max_seconds: wall-clock limit, compilation included; 10 if no limit is given.
      max_steps: steps of each search.
      target: end once a tour is at most this long.
      num_searches: searches side by side; None for a number that suits the devices.
      moves_per_search: moves priced per search and step; None for the number that was measured to
        serve best.
      devices: as in `solve`; by default all.
      show_progress: whether to write lines on standard error.

    Raises:
      ValueError, TypeError: as `tsp`, `tsp_from_coords` and `solve`.

    Example:
      >>> import jaxopt_search as js
      >>> corners = [[0, 0], [2, 2], [0, 2], [2, 0], [1, 3]]
      >>> round(js.solve_tsp(corners, max_steps=500).fun, 3)
      8.828
    """
    problem = as_tsp(data)
    if problem.is_symmetric:
        kind = "nearest" if problem.host.coords is None else "quadrant"
        neighborhood = two_opt(problem, num_candidates=_NUM_CANDIDATES, candidates=kind)
        recipe = _SYMMETRIC_TSP
    else:
        recipe, neighborhood = _ASYMMETRIC_TSP, Relocate()
    return _anneal(
        problem,
        _Annealing(recipe, neighborhood, _near_distance(problem), moves_per_search),
        key,
        max_seconds=max_seconds,
        max_steps=max_steps,
        target=target,
        num_searches=num_searches,
        devices=devices,
        show_progress=show_progress,
    )


def solve_qap(
    flow: Any,
    distance: Any = None,
    key: Any = 0,
    *,
    max_seconds: float | None = None,
    max_steps: int | None = None,
    target: float | None = None,
    num_searches: int | None = None,
    moves_per_search: int | None = None,
    devices: parallel.Devices = "all",
    show_progress: bool = False,
) -> Result:
    """Returns a good assignment: population annealing by swaps, cooled once over the run.

    The sum of `flow[i, j] * distance[p[i], p[j]]` over all i and j is minimized, as by SciPy's
    `quadratic_assignment`.

    Args:
      flow: [n, n] from facility to facility; or a `QAPInstance` as read by `datasets`, or a `QAP`,
        without `distance`.
      distance: [n, n] from location to location.

    The other arguments are those of `solve_tsp`.

    Raises:
      ValueError, TypeError: as `qap` and `solve`.

    Example:
      >>> import jaxopt_search as js
      >>> flow, distance = [[0, 5, 2], [5, 0, 3], [2, 3, 0]], [[0, 8, 15], [8, 0, 13], [15, 13, 0]]
      >>> js.solve_qap(flow, distance, max_steps=50).fun
      218
    """
    problem = as_qap(flow, distance)
    return _anneal(
        problem,
        _Annealing(_QAP, DeltaSwap(), _swap_change(problem), moves_per_search),
        key,
        max_seconds=max_seconds,
        max_steps=max_steps,
        target=target,
        num_searches=num_searches,
        devices=devices,
        show_progress=show_progress,
    )


def _anneal(
    problem: Any,
    annealing: "_Annealing",
    key: Any,
    *,
    max_seconds: float | None,
    max_steps: int | None,
    num_searches: int | None,
    devices: parallel.Devices,
    **options: Any,
) -> Result:
    found = parallel.find_devices(devices)
    if num_searches is None:
        num_searches = len(found) * annealing.recipe.searches(found[0].platform)
    if max_steps is None:
        max_seconds = _DEFAULT_SECONDS if max_seconds is None else max_seconds
        options["callback"] = _CoolByTheClock(annealing, max_seconds)
        search, rule = annealing.from_here(0, 0.0, 0.0)
    else:
        options["chunk_steps"] = max(1, max_steps // _NUM_CHUNKS)
        search, rule = annealing.from_here(0, 0.0, 1 / max(max_steps, 1))
    return solve(
        problem,
        search,
        key,
        num_searches=num_searches,
        max_seconds=max_seconds,
        max_steps=max_steps,
        exchange=rule,
        devices=found,
        **options,
    )


class _Annealing:
    """Annealing that cools from the recipe's hottest to its coldest temperature."""

    def __init__(self, recipe: _Recipe, neighborhood: Any, scale: float, moves: int | None):
        self.recipe = recipe
        self.start = recipe.hottest * scale
        self.log2_range = math.log2(recipe.coldest / recipe.hottest)
        self.search = simulated_annealing(
            neighborhood,
            self.start,
            moves_per_search=recipe.moves_per_search if moves is None else moves,
        )

    def from_here(self, step: int, done: float, per_step: float) -> tuple[Search, Exchange]:
        """Returns the search and its exchange from `step` on.

        Args:
          done: the share of the cooling made so far, 0 to 1.
          per_step: the share that each further step makes.
        """
        schedule = geometric(
            self.start * 2 ** (self.log2_range * done),
            alpha=2 ** (self.log2_range * per_step),
            first_step=min(step, MAX_INT32),
        )
        period = 1 / (_NUM_EXCHANGES * per_step) if per_step > 0 else MAX_INT32
        every = int(min(max(period, 1), MAX_INT32))
        search = dataclasses.replace(self.search, schedule=schedule)
        return search, exchange.resample(schedule, every=every)


class _CoolByTheClock:
    """A callback that sets the pace of the cooling after each chunk, to end with the time."""

    def __init__(self, annealing: _Annealing, max_seconds: float):
        self.annealing, self.seconds = annealing, _SAFETY * max_seconds
        self.last: Snapshot | None = None
        self.done, self.per_step = 0.0, 0.0

    def __call__(self, snapshot: Snapshot) -> Steer | None:
        before, self.last = self.last, snapshot
        if before is None or snapshot.step == before.step:
            return None
        made = snapshot.step - before.step
        self.done = min(1.0, self.done + made * self.per_step)
        rate = made / (snapshot.seconds - before.seconds)
        left = max(self.seconds - snapshot.seconds, 0.0)
        self.per_step = (1 - self.done) / max(rate * left, 1.0)
        return Steer(*self.annealing.from_here(snapshot.step, self.done, self.per_step))


def _near_distance(problem: TSP) -> float:
    """Returns the mean distance from some cities to their three nearest, in the device's units.

    Always above 0: where that is not, as with equal places or negative distances, the mean
    absolute distance is taken.
    """
    cities = jnp.arange(problem.n, dtype=jnp.int32)
    some = cities[:: max(1, problem.n // _SAMPLED_CITIES)]
    rows = jax.vmap(lambda city: problem.distance(jnp.full_like(cities, city), cities))(some)
    distances = np.asarray(rows, np.float64)
    distances[np.arange(len(some)), np.asarray(some)] = np.inf
    nearest = np.sort(distances, axis=1)[:, :3]
    scale = nearest[np.isfinite(nearest)].mean() if problem.n > 1 else 1.0
    if scale <= 0:
        scale = np.abs(distances[np.isfinite(distances)]).mean()
    return float(scale) if scale > 0 else 1.0


def _swap_change(problem: QAP) -> float:
    """Returns the mean absolute delta of some random swaps, in the device's units; above 0."""
    generator, n = np.random.default_rng(0), problem.n
    if n < 2:
        return 1.0
    assignments = [generator.permutation(n) for _ in range(_SAMPLED_SWAPS)]
    pairs = [generator.choice(n, 2, replace=False) for _ in range(_SAMPLED_SWAPS)]
    first, second = jnp.asarray(np.array(pairs, np.int32).T)
    deltas = jax.vmap(problem.swap_delta)(jnp.asarray(assignments, jnp.int32), first, second)
    return float(np.abs(np.asarray(deltas, np.float64)).mean()) or 1.0
