"""Many TSPs of one size at once: each is annealed by searches that recombine, on all devices."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxopt_search.checks import MAX_INT32
from jaxopt_search.crossovers.edge_assembly import EdgeAssembly
from jaxopt_search.driver import environment, progress
from jaxopt_search.driver.arguments import check_clock
from jaxopt_search.driver.chunks import Timer, drive
from jaxopt_search.engine import loop, outcome, starting, stepping
from jaxopt_search.engine.state import RunState, make_rules
from jaxopt_search.guards import capacity
from jaxopt_search.guards.interrupts import held_back
from jaxopt_search.kernels import Choice, Implementation
from jaxopt_search.neighborhoods.two_opt import from_candidates
from jaxopt_search.portable import random
from jaxopt_search.portable.packed_pairs import Pairs
from jaxopt_search.problems.host import ON_DEVICE
from jaxopt_search.problems.tsp.coordinates import diameters
from jaxopt_search.problems.tsp.curves import tours_through
from jaxopt_search.problems.tsp.problem import TSP
from jaxopt_search.problems.tsp.ranges import float_unit
from jaxopt_search.results import StackedResult, Status
from jaxopt_search.searches import SimulatedAnnealing
from jaxopt_search.searches.schedules import constant
from jaxopt_search.solvers import scales
from jaxopt_search.solvers.cooling import (
    Pace,
    Recipe,
    annealing,
    pacer_of,
    search_and_exchange,
)

_PILOT_STEPS = 100
_AT_ONCE = 2**26  # distances in memory
_TRIVIAL = 3  # cities, of which all tours have the same length


class _Run(NamedTuple):
    """One instance and how its run stands.

    Attributes:
      problem: the instance.
      candidates: [n, K] int32.
      hottest: [] float32 the first temperature.
      coldest: [] float32 the last one.
      state: of the run.
    """

    problem: TSP
    candidates: jax.Array
    hottest: jax.Array
    coldest: jax.Array
    state: RunState


def solve_stacked(
    points: np.ndarray,
    key: Any,
    recipe: Recipe,
    *,
    max_seconds: float | None,
    max_steps: int | None,
    devices: tuple[jax.Device, ...],
    show_progress: bool,
) -> StackedResult:
    """Returns short tours of B instances, each by searches of its own.

    Args:
      points: [B, n, 2] float64, checked; Euclidean distances.
      recipe: of the annealing.
      max_seconds: seconds of search; None for no limit.
      max_steps: steps of each search; None for no limit.
      show_progress: whether to write lines on standard error, with the mean length.
    """
    timer, n = Timer(), points.shape[1]
    timer.limit(*check_clock(0 if n <= _TRIVIAL else max_steps, max_seconds))
    num_tours = len(points) * recipe.num_searches
    capacity.check_tours(n, num_tours, recipe.num_searches, devices)
    observers = [progress.reporter()] if show_progress else []
    for show in observers:
        show(progress.Phase("compiling", timer.elapsed))
    run = _Stack(points, key, recipe, timer, devices)
    status = drive(run, timer, observers)
    if status == Status.INTERRUPTED:
        for show in observers:
            show(run.report(status))
    tours = run.best_tours()
    return StackedResult(
        x=tours,
        fun=_lengths(points, tours),
        success=status != Status.INTERRUPTED and (run.step > 0 or n <= _TRIVIAL),
        status=status,
        nit=run.step,
        nfev=run.step * num_tours * recipe.moves_per_search,
        compile_seconds=timer.compile_seconds or 0.0,
        elapsed=timer.elapsed,
        env=environment.of(devices) | {"implementation": str(run.choice)},
    )


class _MeanReport(NamedTuple):
    """Where all runs stand, as `progress.describe` shows it.

    Attributes:
      step: steps made by each search.
      seconds: of search.
      fun: the mean of the shortest lengths.
      gap: None.
      acceptance: accepted moves per search and step in the last chunk.
      status: `RUNNING`, or why the runs end here.
    """

    step: int
    seconds: float
    fun: float
    gap: None
    acceptance: float
    status: Status


class _Stack:
    """The runs of all instances, made in the same chunks: a `chunks.Chunked`.

    Attributes:
      step: steps made by each search.
      choice: how steps are run.
    """

    def __init__(
        self,
        points: np.ndarray,
        key: Any,
        recipe: Recipe,
        timer: Timer,
        devices: tuple[jax.Device, ...],
    ):
        self.size, self.n, _ = points.shape
        self.recipe, self.timer, self.devices = recipe, timer, devices
        self.pacer = pacer_of(recipe, self.n, timer.max_steps, timer.max_seconds)
        self.step, self.made = 0, 0
        self.choice = _choice(self.n, recipe, devices)
        self.units = units = _units(points)
        own_points, numbers = _split(points / units[:, None, None], len(devices))
        with held_back():
            self.runs = _start(recipe, devices)(random.as_key(key), own_points, numbers)
        self._advance = _advance(recipe, self.choice.implementation, devices)

    def advance(self, num_steps: int) -> None:
        self.runs = jax.block_until_ready(self._advance(self.runs, self.pacer.pace, num_steps))
        self.step, self.made = self.step + num_steps, num_steps

    def look(self) -> object:
        """Does nothing: whether a run ends is no matter of its lengths."""

    def status(self, limit: Status) -> Status:
        return limit

    def report(self, status: Status) -> _MeanReport:
        lengths, accepted = jax.device_get(_lengths_and_accepted(self.runs))
        length = float((lengths.ravel()[: self.size] * self.units).mean())
        acceptance = float(accepted) / max(self.made, 1)
        return _MeanReport(self.step, self.timer.seconds, length, None, acceptance, status)

    def next_steps(self, made: int, seconds: float) -> int:
        self.pacer.note(self.step, self.timer.seconds)
        wanted = self.timer.next_steps(self.step, made, seconds, _PILOT_STEPS)
        return min(wanted, self.pacer.steps_left(self.step) or wanted)

    def best_tours(self) -> np.ndarray:
        """Returns the shortest tour of each instance, [B, n] int32."""
        tours = jax.device_get(_best(self.recipe, self.devices)(self.runs))
        return tours.reshape(-1, self.n)[: self.size]


def _units(points: np.ndarray) -> np.ndarray:
    """Returns what each instance is counted in on the device, [B] float64."""
    largest = diameters(points).tolist()
    return np.array([float_unit(points.shape[1], each) for each in largest], float)


def _split(points: np.ndarray, num_devices: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns coordinates [D, B / D, n, 2] float32 and numbers of instances; the last fills up."""
    padding = -len(points) % num_devices
    filled = np.concatenate([points, np.repeat(points[-1:], padding, axis=0)])
    filled = (filled - filled.min(axis=1, keepdims=True)).astype(np.float32)
    numbers = np.arange(len(filled), dtype=np.uint32)
    return filled.reshape(num_devices, -1, *filled.shape[1:]), numbers.reshape(num_devices, -1)


@functools.cache
def _start(recipe: Recipe, devices: tuple[jax.Device, ...]) -> Any:
    def start_one(key: random.Key, points: jax.Array, number: jax.Array) -> _Run:
        problem = _problem(points)
        candidates = _nearest(problem, recipe.num_candidates)
        near = scales.near_distance(problem)
        tree = scales.tree_edge(problem)
        hottest = recipe.hottest * jnp.where(tree > 0, tree, near)
        search = _search(recipe, candidates)
        own = random.instance_key(key, number)
        starts = None
        if recipe.starts == "constructed":
            starts = tours_through(points, own, recipe.num_searches)
        state = starting.fresh(own, problem, search, starts, recipe.num_searches)
        return _Run(problem, candidates, hottest, recipe.coldest * near, state)

    def start(key: random.Key, points: jax.Array, numbers: jax.Array) -> _Run:
        batch = min(max(1, _AT_ONCE // points.shape[1] ** 2), len(numbers))
        own = functools.partial(start_one, key)
        return lax.map(lambda args: own(*args), (points, numbers), batch_size=batch)

    return jax.pmap(start, in_axes=(None, 0, 0), devices=devices)


@functools.cache
def _advance(
    recipe: Recipe, implementation: Implementation, devices: tuple[jax.Device, ...]
) -> Any:
    def advance_one(recombines: bool, run: _Run, pace: Pace, num_steps: jax.Array) -> _Run:
        search, exchange = search_and_exchange(
            recipe,
            from_candidates(run.candidates),
            EdgeAssembly(candidates=run.candidates),
            (run.hottest, run.coldest),
            pace,
        )
        dtype = run.state.best_cost.dtype
        rules = make_rules(search, dtype, exchange=exchange if recombines else None)
        state = loop.advance_by(implementation, run.problem, search, run.state, num_steps, rules)
        return run._replace(state=state)

    def advance_all(recombines: bool, runs: _Run, pace: Pace, num_steps: jax.Array) -> _Run:
        one = functools.partial(advance_one, recombines)
        if implementation == "triton":
            return jax.vmap(one, (0, None, None))(runs, pace, num_steps)
        # One after the other: side by side by `vmap`, XLA of JAX 0.11.2 does not end to compile.
        return lax.map(lambda run: one(run, pace, num_steps), runs)

    def advance(runs: _Run, pace: Pace, num_steps: jax.Array) -> _Run:
        # Under `vmap` an exchange is made, if for nothing, wherever there may be one.
        recombines = jnp.asarray(pace.every < MAX_INT32)
        ways = (functools.partial(advance_all, which) for which in (True, False))
        return lax.cond(recombines, *ways, runs, pace, num_steps)

    return jax.pmap(advance, in_axes=(0, None, None), devices=devices)


@functools.cache
def _best(recipe: Recipe, devices: tuple[jax.Device, ...]) -> Any:
    def best_one(run: _Run) -> jax.Array:
        search = _search(recipe, run.candidates)
        return outcome.best(run.problem, search, run.state)[0]

    return jax.pmap(jax.vmap(best_one), devices=devices)


@jax.jit
def _lengths_and_accepted(runs: _Run) -> tuple[jax.Array, jax.Array]:
    """Returns the lengths of the best tours [D, B / D], and moves accepted per search."""
    costs = runs.state.searches.best_cost.min(axis=-1)
    return costs, runs.state.info.accepted.astype(jnp.float32).mean()


def _problem(points: jax.Array) -> TSP:
    n = points.shape[0]
    coords = Pairs(points[:, 0], points[:, 1])
    return TSP(coords=coords, capacity=n, metric="EUCLID", is_symmetric=True, host=ON_DEVICE)


def _search(recipe: Recipe, candidates: jax.Array) -> SimulatedAnnealing:
    """Returns the search of a recipe at whatever temperature."""
    return annealing(recipe, from_candidates(candidates), constant(1.0))


def _nearest(problem: TSP, num: int) -> jax.Array:
    """Returns [n, K] int32, the nearest cities of each; the only city is its own."""
    n = problem.n
    if n == 1:
        return jnp.zeros((1, 1), jnp.int32)
    cities = lax.iota(jnp.int32, n)

    def of(city: jax.Array) -> jax.Array:
        distances = problem.distance(jnp.full_like(cities, city), cities)
        return lax.top_k(-distances.at[city].set(jnp.inf), min(num, n - 1))[1]

    return jax.vmap(of)(cities).astype(jnp.int32)


def _choice(n: int, recipe: Recipe, devices: tuple[jax.Device, ...]) -> Choice:
    def one(points: jax.Array) -> tuple[TSP, SimulatedAnnealing]:
        problem = _problem(points)
        return problem, _search(recipe, _nearest(problem, recipe.num_candidates))

    shapes = jax.eval_shape(one, jax.ShapeDtypeStruct((n, 2), jnp.float32))
    return stepping.choose("auto", devices[0], *shapes)


def _lengths(points: np.ndarray, tours: np.ndarray) -> np.ndarray:
    placed = np.take_along_axis(points, tours[:, :, None], axis=1)
    return np.hypot(*np.moveaxis(placed - np.roll(placed, -1, axis=1), 2, 0)).sum(axis=1)
