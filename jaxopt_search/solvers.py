"""One call from data to a good solution, with settings chosen from the instance."""

import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxopt_search import exchange, parallel, schedules
from jaxopt_search.driver import Snapshot, solve
from jaxopt_search.neighborhoods import Relocate
from jaxopt_search.problems.tsp import TSP
from jaxopt_search.problems.tsp_input import as_tsp
from jaxopt_search.searches import simulated_annealing
from jaxopt_search.types import Result, Status

# Temperatures in units of the mean distance from a city to its three nearest ones.
_HOTTEST, _COLDEST = 4.0, 0.1
_NUM_TEMPERATURES = 400
_NUM_EXCHANGES = 5
_NUM_CHUNKS = 100
_SEARCHES_PER_CPU, _SEARCHES_PER_ACCELERATOR = 16, 1024
_TRIAL_STEPS = 2000  # within which the trial is cooled; it goes on cold
_TRIAL_SHARE = 0.05  # of the time limit
_SAFETY = 0.95
_SAMPLED_CITIES = 256
_DEFAULT_SECONDS = 10.0


def solve_tsp(
    data: Any,
    key: Any = 0,
    *,
    max_seconds: float | None = None,
    max_steps: int | None = None,
    target: float | None = None,
    num_searches: int | None = None,
    moves_per_search: int = 12,
    devices: parallel.Devices = "all",
    show_progress: bool = False,
) -> Result:
    """Returns a short tour: PSPM annealing by relocations, cooled once over the whole run.

    With `max_seconds` only, a short trial measures how many steps fit in, so the result depends on
    the speed of the machine; with `max_steps`, it does not.

    Args:
      data: [n, 2] coordinates (Euclidean), an [n, n] matrix of distances, a `TSPInstance` as read
        by `datasets`, or a `TSP`.
      key: an integer seed or a `jax.random.key`.
      max_seconds: wall-clock limit, compilation included; 10 if no limit is given.
      max_steps: steps of each search.
      target: end once a tour is at most this long.
      num_searches: searches side by side; None for a number that suits the devices.
      moves_per_search: moves priced per search and step.
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
    start = time.perf_counter()
    problem = as_tsp(data)
    found = parallel.find_devices(devices)
    if num_searches is None:
        is_cpu = found[0].platform == "cpu"
        num_searches = len(found) * (_SEARCHES_PER_CPU if is_cpu else _SEARCHES_PER_ACCELERATOR)
    scale = _near_distance(problem)

    def anneal(cooled_within: int, **options: Any) -> Result:
        alpha = (_COLDEST / _HOTTEST) ** (1 / _NUM_TEMPERATURES)
        per_temperature = max(1, cooled_within // _NUM_TEMPERATURES)
        schedule = schedules.geometric(_HOTTEST * scale, alpha, per_temperature)
        return solve(
            problem,
            simulated_annealing(Relocate(), schedule, moves_per_search=moves_per_search),
            key,
            num_searches=num_searches,
            target=target,
            exchange=exchange.broadcast_best(every=max(1, cooled_within // _NUM_EXCHANGES)),
            devices=found,
            **options,
        )

    if max_steps is not None:
        return anneal(
            max_steps,
            max_steps=max_steps,
            max_seconds=max_seconds,
            chunk_steps=max(1, max_steps // _NUM_CHUNKS),
            show_progress=show_progress,
        )
    max_seconds = _DEFAULT_SECONDS if max_seconds is None else max_seconds
    clock = _Stopwatch(_TRIAL_SHARE * max_seconds)
    trial = anneal(_TRIAL_STEPS, max_seconds=max_seconds, callback=clock)
    left = max_seconds - (time.perf_counter() - start)
    if trial.status != Status.CALLBACK or left <= 0:
        return trial
    steps = max(_TRIAL_STEPS, int(_SAFETY * clock.rate * left))
    result = anneal(
        steps,
        max_steps=steps,
        max_seconds=left,
        chunk_steps=max(1, steps // _NUM_CHUNKS),
        show_progress=show_progress,
    )
    return min(result, trial, key=lambda each: each.fun)


class _Stopwatch:
    """A callback that ends a run after some seconds of steps and keeps the last chunk's speed."""

    def __init__(self, seconds: float):
        self.seconds, self.rate = seconds, 0.0
        self.first: Snapshot | None = None
        self.last: Snapshot | None = None

    def __call__(self, snapshot: Snapshot) -> bool:
        before, self.last = self.last, snapshot
        if before is None or self.first is None:
            self.first = snapshot
            return False
        self.rate = (snapshot.step - before.step) / (snapshot.seconds - before.seconds)
        return snapshot.seconds - self.first.seconds >= self.seconds


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
