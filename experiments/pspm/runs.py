"""Runs of the PSPM experiment: several at a time, timed, and written as records."""

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np

import jaxopt_search as js
from experiments import common, one_core
from experiments.pspm import compiled
from jaxopt_search.datasets.instances import TSPInstance
from jaxopt_search.engine import outcome, starting
from jaxopt_search.engine.split import DeviceSplit
from jaxopt_search.engine.state import RunState, make_rules
from jaxopt_search.searches import schedules
from jaxopt_search.types import Exchange

CHUNK_TEMPERATURES = 10
"""How much is run between two looks at the best tours; 1% of the paper's cooling."""


KINDS = ("quality", "throughput", "convergence")
"""Complete searches (Tables 2 and 4); until below a threshold, and for a time (Table 3)."""


class Scheme(NamedTuple):
    """How many searches and moves there are, and whether the best solution is broadcast."""

    name: str
    searches: int
    moves: int
    exchanges: bool


SCHEMES = {
    scheme.name: scheme
    for scheme in (
        Scheme("sspm", searches=1, moves=12, exchanges=False),
        Scheme("pssm", searches=12, moves=1, exchanges=True),
        Scheme("pspm", searches=98, moves=12, exchanges=True),
        Scheme("single", searches=1, moves=1, exchanges=False),
        Scheme("core sspm", searches=1, moves=12, exchanges=False),
        Scheme("core single", searches=1, moves=1, exchanges=False),
        Scheme("core strict", searches=1, moves=1, exchanges=False),
    )
}
"""Those of the paper first. Those of a core are compiled for one (`compiled.py`), one run after the
other; the strict one never accepts an equal cost."""
OF_THE_PAPER = ("sspm", "pssm", "pspm")


class Cooling(NamedTuple):
    """The parameters of Table 1; counts of temperatures, and sweeps of n steps at each."""

    start: float = 10_000.0
    end: float = 0.1
    alpha: float = 0.99
    sweeps: int = 10
    exchange_every: int = 100

    @property
    def num_temperatures(self) -> int:
        return schedules.num_temperatures(self.start, self.end, self.alpha)

    def steps(self, n: int) -> int:
        """Returns the steps of a complete search on n cities."""
        return self.num_temperatures * self.sweeps * n


COLD = Cooling(start=1e-3, end=1e-8)
"""As many temperatures as in the paper, all so low that nothing worse is ever accepted."""


class Limit(NamedTuple):
    """When a batch ends.

    Attributes:
      max_steps: of each search, of all its coolings together; None for no limit.
      max_seconds: of searching; None for no limit.
      threshold: ends once every run has a tour shorter than this; None for none.
    """

    max_steps: int | None = None
    max_seconds: float | None = None
    threshold: int | None = None


class Batch(NamedTuple):
    """Runs of one scheme on one instance that are made side by side.

    Attributes:
      kind: one of `KINDS`.
      seeds: one for each run of the batch; the first one seeds the batch.
    """

    instance: TSPInstance
    scheme: Scheme
    cooling: Cooling
    kind: str
    limit: Limit
    seeds: tuple[int, ...]
    devices: tuple[jax.Device, ...]

    @property
    def num_searches(self) -> int:
        return len(self.seeds) * self.scheme.searches

    @property
    def is_on_core(self) -> bool:
        return self.scheme.name.startswith("core")

    def settings(self) -> dict[str, Any]:
        """Returns what tells this run from others of the same instance and seed."""
        return {
            "kind": self.kind,
            "scheme": self.scheme._asdict(),
            "cooling": self.cooling._asdict(),
            "limit": self.limit._asdict(),
            "keep_best": "light",
            "batch": 1 if self.is_on_core else len(self.seeds),
            "device_kind": "core" if self.is_on_core else self.devices[0].device_kind,
            "num_devices": 1 if self.is_on_core else len(self.devices),
        }


class Point(NamedTuple):
    """The state of a batch: seconds and steps so far, and [R] the best cost of each run."""

    seconds: float
    steps: int
    costs: np.ndarray


def trace(job: Batch) -> Iterator[Point]:
    """Yields the state of a batch after each chunk, cooling after cooling, without an end.

    Runs are groups of consecutive searches that exchange nothing with other groups. The costs are
    recomputed on the host from the best tours.
    """
    problem, advance = _prepared(job)
    chunk = CHUNK_TEMPERATURES * job.cooling.sweeps * problem.n
    total = job.cooling.steps(problem.n)
    seconds, steps, best = 0.0, 0, np.full(len(job.seeds), np.iinfo(np.int64).max)
    for restart in itertools.count():
        state = start(job, problem, restart)
        for begin in range(0, total, chunk):
            length = min(chunk, total - begin)
            state, took = common.timed(advance, state, length)
            seconds, steps = seconds + took, steps + length
            best = np.minimum(best, best_of_runs(job, problem, state))
            yield Point(seconds, steps, best)


def start(job: Batch, problem: js.TSP, restart: int = 0) -> RunState:
    """Returns random tours for the searches of a batch, on the job's devices.

    Each kind of run has keys of its own: with those that gave the threshold, SSPM could not get
    below it before its second cooling.
    """
    key = jax.random.fold_in(jax.random.key(job.seeds[0]), KINDS.index(job.kind))
    key = jax.random.fold_in(key, restart)
    state = starting.init(key, problem, annealing(job), num_searches=job.num_searches)
    return DeviceSplit(job.devices).split(state)


def annealing(job: Batch) -> js.LocalSearch:
    """Returns the search of the paper, sections 3.3 and 4.1."""
    per_temperature = job.cooling.sweeps * job.instance.n
    schedule = js.geometric(job.cooling.start, job.cooling.alpha, per_temperature)
    return js.simulated_annealing(
        js.Relocate(), schedule, moves_per_search=job.scheme.moves, keep_best="light"
    )


def exchange(job: Batch) -> Exchange | None:
    """Returns the broadcast within each run of the batch; None for a scheme without."""
    if not job.scheme.exchanges:
        return None
    every = job.cooling.exchange_every * job.cooling.sweeps * job.instance.n
    return js.broadcast_best(every=every, group_size=job.scheme.searches)


def best_of_runs(job: Batch, problem: js.TSP, state: RunState) -> np.ndarray:
    """Returns [R] int64, the exact cost of the best tour of each run.

    Raises:
      RuntimeError: if the device had another cost, which is a bug.
    """
    joined = DeviceSplit(job.devices).join(state, job.num_searches)
    tours, costs = jax.device_get(outcome.all_best(problem, annealing(job), joined))
    winners = costs.reshape(len(job.seeds), -1).argmin(axis=1)
    winners += job.scheme.searches * np.arange(len(job.seeds))
    exact = np.array([problem.host.cost(tours[winner]) for winner in winners])
    if not np.array_equal(exact, costs[winners].astype(np.int64) * problem.host.unit):
        raise RuntimeError(f"costs {costs[winners]} from the device are not the exact {exact}")
    return exact


def make(job: Batch) -> list[dict[str, Any]]:
    """Makes the runs of a job and returns their records."""
    if job.is_on_core:
        return [_on_core(job, seed) for seed in job.seeds]
    compile_seconds = _compile(job)
    ends: list[Point | None] = [None] * len(job.seeds)
    for point in trace(job):
        for run, cost in enumerate(point.costs):
            is_below = job.limit.threshold is not None and cost < job.limit.threshold
            if is_below and ends[run] is None:
                ends[run] = point
        if _is_over(job.limit, point, ends):
            break
    return [
        _record(job, run, end or point, end is not None, compile_seconds)
        for run, end in enumerate(ends)
    ]


def _on_core(job: Batch, seed: int) -> dict[str, Any]:
    """Returns the record of a complete search compiled for one core."""
    anneal, compile_seconds = _compiled()
    cooling, moves, n = job.cooling, job.scheme.moves, job.instance.n
    distance = job.instance.distances().astype(np.int32)
    tour, words = compiled.start(n, moves, seed)
    numbers = cooling.start, cooling.alpha, cooling.num_temperatures
    refused = 0 if job.scheme.name == "core strict" else compiled.ANY
    how = numbers, cooling.sweeps * n, moves, refused
    _, seconds = common.timed(anneal, distance, tour, words, *how)
    cost = job.instance.tour_length(tour)
    point = Point(seconds, cooling.steps(n), np.array([cost]))
    alone = job._replace(seeds=(seed,), devices=tuple(jax.devices("cpu")[:1]))
    return _record(alone, 0, point, False, compile_seconds)


@functools.cache
def _compiled() -> tuple[Any, float]:
    """Returns the annealing of a core, and the seconds it took to compile."""
    anneal = one_core.compiled(compiled.build)
    tour, words = compiled.start(5, 2, 0)
    numbers = (1.0, 0.5, 1), 1, 2, compiled.ANY
    return anneal, common.timed(anneal, np.ones((5, 5), np.int32), tour, words, *numbers)[1]


def _is_over(limit: Limit, point: Point, ends: list[Point | None]) -> bool:
    return (
        (limit.max_steps is not None and point.steps >= limit.max_steps)
        or (limit.max_seconds is not None and point.seconds >= limit.max_seconds)
        or (limit.threshold is not None and None not in ends)
    )


def _record(
    job: Batch, run: int, point: Point, is_reached: bool, compile_seconds: float
) -> dict[str, Any]:
    moves = point.steps * job.scheme.searches * job.scheme.moves
    cost, best_known = int(point.costs[run]), job.instance.best_known
    return common.record(
        "pspm",
        job.instance.name,
        job.seeds[run],
        job.settings(),
        job.devices,
        n=job.instance.n,
        batch_seed=job.seeds[0],
        cost=cost,
        best_known=best_known,
        sec=None if best_known is None else 100 * (cost - best_known) / best_known,
        reached=is_reached if job.limit.threshold is not None else None,
        steps=point.steps,
        moves=moves,
        seconds=point.seconds,
        sses=moves * len(job.seeds) / point.seconds,
        compile_seconds=compile_seconds,
    )


def _prepared(job: Batch) -> tuple[js.TSP, Callable[[RunState, int], RunState]]:
    problem = js.tsp_from_instance(job.instance)
    split, search, rule = DeviceSplit(job.devices), annealing(job), exchange(job)
    # Nothing is tested for, so the stop test only has to be rare.
    check_every = CHUNK_TEMPERATURES * job.cooling.sweeps * problem.n

    def advance(state: RunState, num_steps: int) -> RunState:
        dtype = state.best_cost.dtype
        rules = make_rules(search, dtype, exchange=rule, check_every=check_every)
        return split.steps(problem, search, state, num_steps, rules)()

    return problem, advance


def _compile(job: Batch) -> float:
    """Returns the seconds it takes to compile everything that `trace` calls."""

    def once() -> np.ndarray:
        problem, advance = _prepared(job)
        return best_of_runs(job, problem, advance(start(job, problem), 0))

    return common.timed(once)[1]
