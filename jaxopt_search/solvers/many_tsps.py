"""Many instances of one size at once: annealings of each that recombine, on all devices."""

import contextlib
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxopt_search.checks import MAX_INT32
from jaxopt_search.crossovers.edge_assembly import EdgeAssembly
from jaxopt_search.driver import arguments, environment, progress
from jaxopt_search.driver.chunks import Timer
from jaxopt_search.driver.run import Report
from jaxopt_search.engine import loop, outcome, starting, stepping
from jaxopt_search.engine.state import RunState, make_rules
from jaxopt_search.guards import capacity
from jaxopt_search.guards.interrupts import held_back
from jaxopt_search.kernels import Choice, Implementation
from jaxopt_search.neighborhoods.two_opt import from_candidates
from jaxopt_search.portable import random
from jaxopt_search.portable.packed_pairs import Pairs
from jaxopt_search.problems.host import Original
from jaxopt_search.problems.tsp.build import diameters, float_unit
from jaxopt_search.problems.tsp.curves import tours_through
from jaxopt_search.problems.tsp.problem import TSP
from jaxopt_search.searches import SimulatedAnnealing
from jaxopt_search.searches.schedules import constant
from jaxopt_search.solvers import scales
from jaxopt_search.solvers.cooling import (
    Clock,
    Pace,
    Recipe,
    StepCount,
    annealing,
    search_and_exchange,
)
from jaxopt_search.types import StackedResult, Status

_PILOT_STEPS = 100
_AT_ONCE = 2**26  # distances in memory

_HOST = Original(cost=lambda tour: 0.0, check=lambda tour, name: tour)  # never asked


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
    timer, size = Timer(), len(points)
    limits = arguments.check_limits(
        dtype=jnp.float32,
        host=None,
        max_steps=0 if points.shape[1] <= 3 else max_steps,
        max_seconds=max_seconds,
        target=None,
        patience=None,
        check_every=1,
        chunk_steps=None,
    )
    timer.limit(limits.max_steps, limits.max_seconds)
    num_tours, n = size * recipe.num_searches, points.shape[1]
    capacity.check_tours(n, num_tours, recipe.num_searches, devices)
    report = progress.reporter() if show_progress else None
    if report:
        report(progress.Phase("compiling", timer.elapsed))
    choice = _choice(n, recipe, devices)
    units = _units(points)
    own_points, numbers = _split(points / units[:, None, None], len(devices))
    with held_back():
        runs = _start(recipe, devices)(random.as_key(key), own_points, numbers)
    advance = _advance(recipe, choice.implementation, devices)
    if limits.max_steps is not None:
        pacer = StepCount(recipe, points.shape[1], limits.max_steps)
    else:
        assert limits.max_seconds is not None
        pacer = Clock(recipe, limits.max_seconds)
    status, step, chunk = Status.RUNNING, 0, 0
    while status == Status.RUNNING:
        # The first chunk makes no step: it compiles.
        began = timer.elapsed
        try:
            with contextlib.nullcontext() if chunk else held_back():
                runs = jax.block_until_ready(advance(runs, pacer.pace, chunk))
        except KeyboardInterrupt:
            if timer.compile_seconds is None:
                raise
            status, chunk = Status.INTERRUPTED, 0
        if timer.compile_seconds is None:
            timer.start_search()
        step, took = step + chunk, timer.elapsed - began
        status = status or timer.status(step)
        if report:
            lengths, accepted = jax.device_get(_lengths_and_accepted(runs))
            length = float((lengths.ravel()[:size] * units).mean())
            acceptance = float(accepted) / max(chunk, 1)
            report(Report(step, timer.seconds, length, points[0], None, acceptance, status))
        pacer.note(step, timer.seconds)
        chunk = timer.next_steps(step, chunk, took, _PILOT_STEPS)
        chunk = min(chunk, pacer.steps_left(step) or chunk)
    tours = jax.device_get(_best(recipe, devices)(runs)).reshape(-1, points.shape[1])[:size]
    return StackedResult(
        x=tours,
        fun=_lengths(points, tours),
        success=status != Status.INTERRUPTED and (step > 0 or points.shape[1] <= 3),
        status=status,
        nit=step,
        nfev=step * size * recipe.num_searches * recipe.moves_per_search,
        compile_seconds=timer.compile_seconds or 0.0,
        elapsed=timer.elapsed,
        env=environment.of(devices) | {"implementation": str(choice)},
    )


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
        if recipe.starts == "curves":
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
    return TSP(coords=coords, n=n, metric="EUCLID", is_symmetric=True, host=_HOST)


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
