"""Many TSPs at once, of any sizes: each is annealed by searches that recombine, on all devices.

All stand in arrays with room for the largest (`padding`).
"""

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
from jaxopt_search.engine.device_split import split_leaf
from jaxopt_search.engine.state import RunState, make_rules
from jaxopt_search.guards import capacity
from jaxopt_search.guards.interrupts import held_back
from jaxopt_search.kernels import Choice, Implementation
from jaxopt_search.neighborhoods.two_opt import from_candidates
from jaxopt_search.portable import random
from jaxopt_search.portable.packed_pairs import Pairs
from jaxopt_search.problems import padding
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
      candidates: [capacity, K] int32, see `_nearest`.
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
    points: list[np.ndarray],
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
      points: of each instance, [n, 2] float64, checked; Euclidean distances.
      recipe: of the annealing.
      max_seconds: seconds of search; None for no limit.
      max_steps: steps of each search; None for no limit.
      show_progress: whether to write lines on standard error, with the mean length.
    """
    timer, most = Timer(), max(map(len, points))
    timer.limit(*check_clock(0 if most <= _TRIVIAL else max_steps, max_seconds))
    num_tours = len(points) * recipe.num_searches
    capacity.check_tours(padding.capacity_for(most), num_tours, recipe.num_searches, devices)
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
        x=np.stack(tours) if len(set(map(len, points))) == 1 else tours,
        fun=np.array(list(map(_length, points, tours))),
        success=status != Status.INTERRUPTED and (run.step > 0 or most <= _TRIVIAL),
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
        points: list[np.ndarray],
        key: Any,
        recipe: Recipe,
        timer: Timer,
        devices: tuple[jax.Device, ...],
    ):
        self.recipe, self.timer, self.devices = recipe, timer, devices
        self.sizes = list(map(len, points))
        self.pacer = pacer_of(recipe, max(self.sizes), timer.max_steps, timer.max_seconds)
        self.step, self.made = 0, 0
        self.capacity = padding.capacity_for(max(self.sizes))
        self.choice = _choice(self.capacity, recipe, devices)
        self.units = _units(points)
        instances = _split(_padded(points, self.units, self.capacity), len(devices))
        with held_back():
            self.runs = _start(recipe, devices)(random.as_key(key), instances)
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
        length = float((lengths.ravel()[: len(self.sizes)] * self.units).mean())
        acceptance = float(accepted) / max(self.made, 1)
        return _MeanReport(self.step, self.timer.seconds, length, None, acceptance, status)

    def next_steps(self, made: int, seconds: float) -> int:
        self.pacer.note(self.step, self.timer.seconds)
        wanted = self.timer.next_steps(self.step, made, seconds, _PILOT_STEPS)
        return min(wanted, self.pacer.steps_left(self.step) or wanted)

    def best_tours(self) -> list[np.ndarray]:
        """Returns the shortest tour of each instance, [n] int32."""
        tours = jax.device_get(_best(self.recipe, self.devices)(self.runs))
        tours = tours.reshape(-1, self.capacity)
        return [tour[:n] for tour, n in zip(tours, self.sizes, strict=False)]


class _Instances(NamedTuple):
    """Instances as the devices get them.

    Attributes:
      points: [..., capacity, 2] float32; behind the cities stands the first one again.
      num_cities: [...] int32.
      number: [...] uint32, from which the key of each follows.
    """

    points: Any
    num_cities: Any
    number: Any


def _units(points: list[np.ndarray]) -> np.ndarray:
    """Returns what each instance is counted in on the device, [B] float64."""
    return np.array([float_unit(len(each), diameters(each).item()) for each in points], float)


def _padded(points: list[np.ndarray], units: np.ndarray, capacity: int) -> _Instances:
    def place(each: np.ndarray, unit: float) -> np.ndarray:
        own = each / unit
        own = (own - own.min(axis=0)).astype(np.float32)
        return np.concatenate([own, np.repeat(own[:1], capacity - len(own), axis=0)])

    places = np.stack(list(map(place, points, units.tolist())))
    sizes = np.array(list(map(len, points)), np.int32)
    return _Instances(places, sizes, np.arange(len(points), dtype=np.uint32))


def _split(instances: _Instances, num_devices: int) -> _Instances:
    """Returns leaves [D, B / D, ...]; copies of the last one, with other keys, fill them up."""
    split = jax.tree.map(functools.partial(split_leaf, num_devices), instances)
    shape = split.number.shape
    return split._replace(number=np.arange(split.number.size, dtype=np.uint32).reshape(shape))


@functools.cache
def _start(recipe: Recipe, devices: tuple[jax.Device, ...]) -> Any:
    def start_one(key: random.Key, instance: _Instances) -> _Run:
        points, num_cities, number = instance
        problem = _problem(points, num_cities)
        candidates = _nearest(problem, recipe.num_candidates)
        near = scales.near_distance(problem)
        tree = scales.tree_edge(problem)
        hottest = recipe.hottest * jnp.where(tree > 0, tree, near)
        search = _search(recipe, candidates, num_cities)
        own = random.instance_key(key, number)
        starts = None
        if recipe.starts == "constructed":
            starts = tours_through(points, own, recipe.num_searches, num_cities)
        state = starting.fresh(own, problem, search, starts, recipe.num_searches)
        return _Run(problem, candidates, hottest, recipe.coldest * near, state)

    def start(key: random.Key, instances: _Instances) -> _Run:
        number, room, _ = instances.points.shape
        batch = min(max(1, _AT_ONCE // room**2), number)
        return lax.map(functools.partial(start_one, key), instances, batch_size=batch)

    return jax.pmap(start, in_axes=(None, 0), devices=devices)


@functools.cache
def _advance(
    recipe: Recipe, implementation: Implementation, devices: tuple[jax.Device, ...]
) -> Any:
    def advance_one(recombines: bool, run: _Run, pace: Pace, num_steps: jax.Array) -> _Run:
        search, exchange = search_and_exchange(
            recipe,
            from_candidates(run.candidates, run.problem.n),
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
        search = _search(recipe, run.candidates, run.problem.n)
        return outcome.best(run.problem, search, run.state)[0]

    return jax.pmap(jax.vmap(best_one), devices=devices)


@jax.jit
def _lengths_and_accepted(runs: _Run) -> tuple[jax.Array, jax.Array]:
    """Returns the lengths of the best tours [D, B / D], and moves accepted per search."""
    costs = runs.state.searches.best_cost.min(axis=-1)
    return costs, runs.state.info.accepted.astype(jnp.float32).mean()


def _problem(points: jax.Array, num_cities: jax.Array) -> TSP:
    return TSP(
        coords=Pairs(points[:, 0], points[:, 1]),
        num_entries=num_cities,
        capacity=points.shape[0],
        metric="EUCLID",
        is_symmetric=True,
        host=ON_DEVICE,
    )


def _search(recipe: Recipe, candidates: jax.Array, num_cities: jax.Array) -> SimulatedAnnealing:
    """Returns the search of a recipe at whatever temperature."""
    return annealing(recipe, from_candidates(candidates, num_cities), constant(1.0))


def _nearest(problem: TSP, num: int) -> jax.Array:
    """Returns [capacity, K] int32, the nearest cities of each; where there are fewer, the city."""
    cities = lax.iota(jnp.int32, problem.capacity)

    def of(city: jax.Array) -> jax.Array:
        distances = problem.distance(jnp.full_like(cities, city), cities)
        is_other = (cities < problem.n) & (cities != city)
        distances, near = lax.top_k(jnp.where(is_other, -distances, -jnp.inf), num)
        return jnp.where(jnp.isfinite(distances), near, city)

    return jax.vmap(of)(cities).astype(jnp.int32)


def _choice(room: int, recipe: Recipe, devices: tuple[jax.Device, ...]) -> Choice:
    def one(points: jax.Array, num_cities: jax.Array) -> tuple[TSP, SimulatedAnnealing]:
        problem = _problem(points, num_cities)
        return problem, _search(recipe, _nearest(problem, recipe.num_candidates), num_cities)

    points, size = jax.ShapeDtypeStruct((room, 2), jnp.float32), jax.ShapeDtypeStruct((), jnp.int32)
    return stepping.choose("auto", devices[0], *jax.eval_shape(one, points, size))


def _length(points: np.ndarray, tour: np.ndarray) -> float:
    placed = points[tour]
    return np.hypot(*(placed - np.roll(placed, -1, axis=0)).T).sum().item()
