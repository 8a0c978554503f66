"""Many instances at once, of any sizes: each is searched by searches of its own, on all devices.

All stand in arrays with room for the largest (`padding`). What is done with each is a `Kind`:
`Tours` are annealed and recombine, `Assignments` are found by tabu searches that recombine.
"""

import dataclasses
import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxopt_search.backends import Choice, Implementation, random
from jaxopt_search.checks import MAX_INT32, check_count, check_permutation, int32
from jaxopt_search.crossovers.edge_assembly import EdgeAssembly
from jaxopt_search.driver import checkpoints, chunks, environment
from jaxopt_search.driver.checkpoints import Identity, Snapshot
from jaxopt_search.driver.options import RunOptions
from jaxopt_search.driver.results import Report
from jaxopt_search.engine import loop, memory, outcome, starting, stepping
from jaxopt_search.engine.devices import split_leaf
from jaxopt_search.engine.fingerprints import fingerprint
from jaxopt_search.engine.split import pmapped
from jaxopt_search.engine.state import RunState, make_rules
from jaxopt_search.exchanges import Recombine, recombine
from jaxopt_search.interrupts import held_back
from jaxopt_search.neighborhoods import SwapTable
from jaxopt_search.neighborhoods.two_opt import from_candidates
from jaxopt_search.problems import padding
from jaxopt_search.problems.bounds import tour_unit
from jaxopt_search.problems.host import ON_DEVICE
from jaxopt_search.problems.qap.construction import constructed_assignment
from jaxopt_search.problems.qap.problem import QAP
from jaxopt_search.problems.tsp import candidates, traced
from jaxopt_search.problems.tsp.build import diameters, drawn_near, middle
from jaxopt_search.problems.tsp.curves import tours_through
from jaxopt_search.problems.tsp.problem import TSP
from jaxopt_search.results import StackedResult, Status
from jaxopt_search.searches import SimulatedAnnealing, TabuSearch, tabu_search
from jaxopt_search.solvers import scales
from jaxopt_search.solvers.recipes import Ingredients, Pace, Pacer, Recipe, pacer_of
from jaxopt_search.types import Exchange, Problem, Search, Solution

_AT_ONCE = 2**26  # numbers in memory
_ANY_PACE = Pace(0, 0.0, 0.0, MAX_INT32)
_TRIVIAL = 3  # cities, of which all tours have the same length


class Kind(Protocol):
    """How instances of a kind are searched; programs are compiled once for kinds that are equal.

    All but `num_searches` is traced. An instance is what the devices get, a pytree of arrays; its
    parts are what the devices make of it, the pytree that its search and exchange are built from.
    """

    @property
    def num_searches(self) -> int:
        """Searches of each instance."""
        ...

    @property
    def numbers_each(self) -> int:
        """About how many numbers it takes to start the searches of an instance."""
        ...

    def parts(self, instance: Any) -> tuple[Any, Any]:
        """Returns the problem, and the parts."""
        ...

    def starts(self, key: random.Key, problem: Any, instance: Any) -> Solution | None:
        """Returns start solutions of the first or all searches; the others start at random."""
        ...

    def search_and_exchange(self, problem: Any, parts: Any, pace: Pace) -> tuple[Search, Exchange]:
        """Returns what the searches do, at a pace."""
        ...


class Stack(NamedTuple):
    """B instances of one kind.

    Attributes:
      kind: how they are searched.
      instances: leaves [B, ...], on the host.
      sizes: entries of a solution of each.
      own: maps the number of an instance and its solution on the device to the user's.
      in_full: maps costs on the device, [B], to the user's.
      cost: maps the number of an instance and its solution to the exact cost.
      pacer: sets the pace of all.
      moves_per_step: that one search of each instance price together.
      is_trivial: whether all solutions of each cost the same.
    """

    kind: Kind
    instances: Any
    sizes: Sequence[int]
    own: Callable[[int, np.ndarray], np.ndarray]
    in_full: Callable[[np.ndarray], np.ndarray]
    cost: Callable[[int, np.ndarray], int | float]
    pacer: Pacer
    moves_per_step: int
    is_trivial: bool

    def costs(self, solutions: list[np.ndarray]) -> list[int | float]:
        """Returns the exact cost of a solution of each instance."""
        return [self.cost(i, solution) for i, solution in enumerate(solutions)]


def solve_stack(stack: Stack, key: Any, options: RunOptions) -> StackedResult:
    """Returns good solutions of all instances, after the steps or seconds that the timer allows."""
    saved, timer = None, options.timer
    with options.team.same_call() as note:
        identity = identity_of(stack)
        if options.resume is not None:
            shapes_of = functools.partial(_shapes_of, stack)
            saved = checkpoints.read(options.resume, identity, shapes_of)
        note(identity, fingerprint(random.as_key(key)))
        note(options.show_progress)  # reports are made by all
    explained = memory.memory_errors_explained(f"num_searches={stack.kind.num_searches}")
    with explained, chunks.watched(options) as watch:
        runs = _Runs(stack, key, options)
        if saved is not None:
            runs.recall(saved)
        status = chunks.drive(runs, options, watch=watch)
        found = runs.best()
    return StackedResult(
        x=_together(found),
        fun=np.array(stack.costs(found)),
        success=status != Status.INTERRUPTED and (runs.step > 0 or stack.is_trivial),
        status=status,
        nit=runs.step,
        nfev=runs.step * stack.kind.num_searches * stack.moves_per_step,
        compile_seconds=timer.compile_seconds or 0.0,
        elapsed=timer.elapsed,
        env=environment.of(options.devices) | {"implementation": str(runs.choice)},
    )


def _together(solutions: list[Any]) -> Any:
    """Returns a solution of each instance, [B, n], or as a list if their sizes differ."""
    are_alike = len({solution.shape for solution in solutions}) == 1
    return np.stack(solutions) if are_alike else solutions


def identity_of(stack: Stack) -> Identity:
    """Returns the fingerprints of the runs of a stack that have not begun."""
    return Identity(fingerprint(stack.instances), fingerprint(repr((stack.kind, stack.pacer.pace))))


def _shapes_of(stack: Stack, notes: dict[str, Any]) -> tuple[RunState, Any]:
    """Returns the states that a checkpoint keeps, leaves [B, ...], and the best solutions."""
    numbers = np.arange(len(stack.sizes), dtype=np.uint32)
    start = functools.partial(start_all, stack.kind)
    runs = jax.eval_shape(start, random.as_key(0), numbers, stack.instances)
    return runs.state, _together([np.empty(size, np.int32) for size in stack.sizes])


class _Run(NamedTuple):
    """One instance on the device, and how its run stands."""

    problem: Problem
    parts: Any
    state: RunState


class _Runs:
    """The runs of all instances, made in the same chunks: a `chunks.Chunked`.

    Attributes:
      step: steps made by each search.
      choice: how steps are run.
    """

    def __init__(self, stack: Stack, key: Any, options: RunOptions):
        self.stack, self.timer, self._team = stack, options.timer, options.team
        self.devices = devices = options.devices
        self.step, self._made, self._identity = 0, 0, identity_of(stack)
        self.choice = _choice(stack.kind, stack.instances, self._team.own[0])
        split = jax.tree.map(functools.partial(split_leaf, len(devices)), stack.instances)
        size = len(stack.sizes)
        # Copies of the last instance fill the devices up; their keys are others.
        numbers = np.arange(size + -size % len(devices), dtype=np.uint32).reshape(len(devices), -1)
        with held_back():
            own = jax.tree.map(operator.itemgetter(self._team.rows), (numbers, split))
            self.runs = _start(stack.kind, devices)(random.as_key(key), *own)
        self._advance = _advance(stack.kind, self.choice.implementation, devices)

    def advance(self, num_steps: int) -> None:
        pace = self.stack.pacer.pace
        runs = jax.block_until_ready(self._advance(self.runs, pace, num_steps))
        with held_back():  # a checkpoint has all of it
            self.runs, self.step, self._made = runs, self.step + num_steps, num_steps

    def look(self) -> object:
        """Looks at the clock only: whether a run ends is no matter of its costs."""
        self.stack.pacer.note(self.step, self.timer.seconds)

    def status(self, limit: Status) -> Status:
        return limit

    def report(self, status: Status) -> Report:
        """As of a single run, with the mean of the lowest costs."""
        costs, accepted = self._team.gathered(_costs_and_accepted(self.runs))
        mean = float(self.stack.in_full(costs.ravel()[: len(self.stack.sizes)]).mean())
        acceptance = accepted.mean().item() / max(self._made, 1)
        return Report(self.step, self.timer.seconds, mean, np.zeros(0), None, acceptance, status)

    def next_steps(self, made: int, seconds: float) -> int:
        pacer = self.stack.pacer
        wanted = self.timer.next_steps(self.step, made, seconds, every=pacer.pace.every)
        return min(wanted, pacer.steps_left(self.step) or wanted)

    def identity(self) -> Identity:
        return self._identity

    def snapshot(self) -> Snapshot:
        size, found = len(self.stack.sizes), self.best()
        state = jax.tree.map(
            lambda leaf: leaf.reshape(-1, *leaf.shape[2:])[:size],
            self._team.gathered(self.runs.state),
        )
        notes = {
            "step": self.step,
            "seconds": self.timer.seconds,
            "pace": self.stack.pacer.notes(),
            "fun": self.stack.costs(found),
            "env": environment.of(self.devices),
        }
        return Snapshot(state, _together(found), notes)

    def recall(self, saved: Snapshot) -> None:
        """Continues from a checkpoint."""
        split = jax.tree.map(functools.partial(split_leaf, len(self.devices)), saved.state)
        split = jax.tree.map(operator.itemgetter(self._team.rows), split)
        own = jax.tree.map(lambda leaf: leaf.sharding, self.runs.state)
        self.runs = self.runs._replace(state=jax.device_put(split, own))
        with checkpoints.notes_read():
            self.step = check_count("step", saved.notes["step"], 0, None)
            self.timer.before = checkpoints.seconds_of(saved.notes)
            each = zip(saved.best, self.stack.sizes, strict=True)
            best = [check_permutation(one, size, "its best solution") for one, size in each]
            for noted, cost in zip(saved.notes["fun"], self.stack.costs(best), strict=True):
                checkpoints.check_cost(noted, cost)
            self.stack.pacer.recall(saved.notes["pace"])

    def best(self) -> list[np.ndarray]:
        """Returns the best solution of each instance, [n]."""
        found = self._team.gathered(_best(self.stack.kind, self.devices)(self.runs))
        found = found.reshape(-1, found.shape[-1])
        return [self.stack.own(i, found[i]) for i in range(len(self.stack.sizes))]


@functools.cache
def _start(kind: Kind, devices: tuple[jax.Device, ...]) -> Any:
    return pmapped(devices, functools.partial(start_all, kind), (None, 0, 0))


def start_all(kind: Kind, key: random.Key, numbers: jax.Array, instances: Any) -> Any:
    """Returns the runs of a device's instances, leaves [B, ...], before the first step."""

    def start_one(number: jax.Array, instance: Any) -> _Run:
        problem, parts = kind.parts(instance)
        search, _ = kind.search_and_exchange(problem, parts, _ANY_PACE)
        own = random.instance_key(key, number)
        starts = kind.starts(own, problem, instance)
        state = starting.fresh(own, problem, search, starts, kind.num_searches)
        return _Run(problem, parts, state)

    batch = min(max(1, _AT_ONCE // kind.numbers_each), len(numbers))
    return lax.map(lambda each: start_one(*each), (numbers, instances), batch_size=batch)


@functools.cache
def _advance(kind: Kind, implementation: Implementation, devices: tuple[jax.Device, ...]) -> Any:
    fn = functools.partial(advance_all, kind, implementation)
    return pmapped(devices, fn, (0, None, None))


def advance_all(
    kind: Kind, implementation: Implementation, runs: Any, pace: Pace, num_steps: jax.Array
) -> Any:
    """Returns the runs of a device, leaves [B, ...], after so many steps of each search."""

    def advance_one(exchanges: bool, run: _Run, pace: Pace, num_steps: jax.Array) -> _Run:
        problem, parts, state = run
        search, exchange = kind.search_and_exchange(problem, parts, pace)
        dtype = state.device_best.dtype
        rules = make_rules(search, dtype, exchange=exchange if exchanges else None)
        state = loop.advance_by(
            problem, search, state, num_steps, rules, implementation=implementation
        )
        return run._replace(state=state)

    def advance(exchanges: bool, runs: _Run, pace: Pace, num_steps: jax.Array) -> _Run:
        one = functools.partial(advance_one, exchanges)
        if implementation == "triton":
            return jax.vmap(one, (0, None, None))(runs, pace, num_steps)
        # One after the other: side by side by `vmap`, XLA of JAX 0.11.2 does not end to compile.
        return lax.map(lambda run: one(run, pace, num_steps), runs)

    # Under `vmap` an exchange is made, if for nothing, wherever there may be one.
    exchanging = functools.partial(advance, True)
    apart = functools.partial(advance, False)
    return lax.cond(jnp.asarray(pace.every < MAX_INT32), exchanging, apart, runs, pace, num_steps)


@functools.cache
def _best(kind: Kind, devices: tuple[jax.Device, ...]) -> Any:
    def best_one(run: _Run) -> Solution:
        search, _ = kind.search_and_exchange(run.problem, run.parts, _ANY_PACE)
        return outcome.best(run.problem, search, run.state)[0]

    return pmapped(devices, jax.vmap(best_one), 0)


@jax.jit
def _costs_and_accepted(runs: _Run) -> tuple[jax.Array, jax.Array]:
    """Returns the lowest costs [D, B / D], and moves accepted per search, [D]."""
    costs, accepted = runs.state.searches.best_cost.min(axis=-1), runs.state.info.accepted
    return costs, accepted.astype(jnp.float32).mean(axis=(1, 2))


def _choice(kind: Kind, instances: Any, device: jax.Device) -> Choice:
    def one(instance: Any) -> tuple[Problem, Search]:
        problem, parts = kind.parts(instance)
        return problem, kind.search_and_exchange(problem, parts, _ANY_PACE)[0]

    shapes = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), instances)
    return stepping.choose("auto", device, *jax.eval_shape(one, shapes))


def stack_of_tours(points: list[np.ndarray], recipe: Recipe, options: RunOptions) -> Stack:
    """Returns B instances, of each of which searches of its own find a short tour.

    They are searched for tours of places: cities at the same place follow one another.

    Args:
      points: of each instance, [n, 2] float64, checked; Euclidean distances.
      recipe: of the annealing.
    """
    first, place = zip(*map(candidates.places, points), strict=True)
    places = [each[rows] for each, rows in zip(points, first, strict=True)]
    near, left_out = zip(*map(drawn_near, places), strict=True)
    sizes, timer = list(map(len, places)), options.timer
    most = max(sizes)
    if most <= _TRIVIAL:
        timer.max_steps = 0
    num_tours, room = len(points) * recipe.num_searches, padding.capacity_for(most)
    memory.check_tours(room, num_tours, recipe.num_searches, options.devices)
    units = np.array([tour_unit(len(each), diameters(each).item()) for each in near], float)
    return Stack(
        kind=Tours(recipe, room),
        instances=cities_of(near, units, room),
        sizes=list(map(len, points)),
        own=lambda i, tour: _through_cities(tour[: sizes[i]], place[i]),
        in_full=lambda lengths: lengths * units + np.array(left_out),
        cost=lambda i, tour: _length(points[i], tour),
        pacer=pacer_of(recipe, most, timer.max_steps, timer.max_seconds),
        moves_per_step=len(points) * recipe.moves_per_search,
        is_trivial=most <= _TRIVIAL,
    )


def _through_cities(tour: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Returns the tour of cities, [n] int32, that passes their places as one of places, [p], does.

    Args:
      place: [n] of each city.
    """
    return np.argsort(np.argsort(tour)[place], kind="stable").astype(np.int32)


class _Cities(NamedTuple):
    """Coordinates as the devices get them.

    Attributes:
      points: [capacity, 2] float32; behind the cities stands the first one again.
      num_cities: [] int32.
    """

    points: Any
    num_cities: Any


class _TourParts(NamedTuple):
    """What an annealing is made of.

    Attributes:
      candidates: [capacity, K] int32, see `traced.neighbors`.
      hottest: [] float32 the first temperature.
      coldest: [] float32 the last one.
    """

    candidates: jax.Array
    hottest: jax.Array
    coldest: jax.Array


class Tours(NamedTuple):
    """Tours of up to `capacity` cities, by a recipe: a `stacked.Kind`."""

    recipe: Recipe
    capacity: int

    @property
    def num_searches(self) -> int:
        return self.recipe.num_searches

    @property
    def numbers_each(self) -> int:
        return self.capacity**2

    def parts(self, instance: _Cities) -> tuple[TSP, _TourParts]:
        problem = traced.of_points(instance.points, instance.num_cities)
        scale, tree = scales.near_distance_on_device(problem), scales.tree_edge_on_device(problem)
        hottest = self.recipe.hottest * jnp.where(tree > 0, tree, scale)
        near = traced.neighbors(problem, self.recipe.num_candidates, "spread")
        return problem, _TourParts(near, hottest, self.recipe.coldest * scale)

    def starts(self, key: random.Key, problem: TSP, instance: _Cities) -> jax.Array | None:
        if self.recipe.starts == "random":
            return None
        return tours_through(instance.points, key, self.num_searches, instance.num_cities)

    def search_and_exchange(
        self, problem: TSP, parts: _TourParts, pace: Pace
    ) -> tuple[SimulatedAnnealing, Exchange]:
        return Ingredients(
            from_candidates(parts.candidates, problem.n),
            (parts.hottest, parts.coldest),
            EdgeAssembly(candidates=parts.candidates),
        ).at_pace(self.recipe, pace)


def cities_of(points: Sequence[np.ndarray], units: np.ndarray, room: int) -> _Cities:
    def place(each: np.ndarray, unit: float) -> np.ndarray:
        own = each / unit
        own = (own - middle(own)).astype(np.float32)
        return np.concatenate([own, np.repeat(own[:1], room - len(own), axis=0)])

    places = np.stack(list(map(place, points, units.tolist())))
    return _Cities(places, np.array(list(map(len, points)), np.int32))


def _length(points: np.ndarray, tour: np.ndarray) -> float:
    placed = points[tour]
    return np.hypot(*(placed - np.roll(placed, -1, axis=0)).T).sum().item()


class TabuRecipe(NamedTuple):
    """Settings of the tabu searches of an instance.

    Attributes:
      num_searches: side by side.
      capacity: the facilities that there is room for.
      every: steps between recombinations.
    """

    num_searches: int
    capacity: int
    every: int


def stack_of_assignments(problems: list[QAP], recipe: TabuRecipe, options: RunOptions) -> Stack:
    """Returns B instances, of each of which searches of its own find a good assignment.

    Args:
      problems: all of one dtype, with nothing fixed and no room for more.
      recipe: of the searches of each.
    """
    sizes = [problem.capacity for problem in problems]
    kind = Assignments(
        recipe.num_searches, recipe.capacity, all(each.is_symmetric for each in problems)
    )
    memory.check_tours(kind.numbers_each, len(problems), kind.num_searches, options.devices)
    return Stack(
        kind=kind,
        instances=matrices_of(problems, recipe.capacity),
        sizes=sizes,
        own=lambda i, assignment: assignment[: sizes[i]],
        in_full=lambda costs: np.array(list(map(_in_full, problems, costs.tolist())), float),
        cost=lambda i, assignment: problems[i].host.cost(assignment),
        pacer=_Steady(Pace(0, 1.0, 0.0, recipe.every)),
        moves_per_step=sum(math.comb(n, 2) for n in sizes),
        is_trivial=max(sizes) == 1,
    )


def _in_full(problem: QAP, cost: int | float) -> int | float:
    return problem.host.in_full(cost)


@dataclasses.dataclass
class _Steady:
    """A pace that never changes: a `cooling.Pacer`."""

    pace: Pace

    def note(self, step: int, seconds: float, acceptance: float = 1.0) -> bool:
        return False

    def steps_left(self, step: int) -> None:
        """Returns None: it is not known to change."""

    def notes(self) -> dict[str, Any]:
        return {}

    def recall(self, notes: dict[str, Any]) -> None:
        """Does nothing."""


class _Matrices(NamedTuple):
    """A QAP as the devices get it; fields as in `QAP`, and a good assignment, [capacity] int32."""

    flow: Any
    distance: Any
    offset: Any
    num_entries: Any
    start: Any


class Assignments(NamedTuple):
    """Assignments of up to `capacity` facilities, by tabu search: a `stacked.Kind`."""

    num_searches: int
    capacity: int
    is_symmetric: bool

    @property
    def numbers_each(self) -> int:
        return self.num_searches * self.capacity**2

    def parts(self, instance: _Matrices) -> tuple[QAP, None]:
        problem = QAP(
            flow=instance.flow,
            distance=instance.distance,
            offset=instance.offset,
            num_entries=instance.num_entries,
            partial=None,
            capacity=self.capacity,
            is_symmetric=self.is_symmetric,
            host=ON_DEVICE,
        )
        return problem, None

    def starts(self, key: random.Key, problem: QAP, instance: _Matrices) -> jax.Array:
        return instance.start[None]

    def search_and_exchange(
        self, problem: QAP, parts: None, pace: Pace
    ) -> tuple[TabuSearch, Recombine]:
        rule = dataclasses.replace(recombine(every=1), every=int32(pace.every))
        return tabu_search(SwapTable()), rule


def matrices_of(problems: list[QAP], room: int) -> _Matrices:
    def one(problem: QAP) -> _Matrices:
        flow, distance = (
            padding.with_room(matrix, room**2) for matrix in (problem.flow, problem.distance)
        )
        start = padding.filled(constructed_assignment(problem), room)
        return _Matrices(flow, distance, problem.offset, np.int32(problem.capacity), start)

    return jax.tree.map(lambda *leaves: np.stack(leaves), *map(one, problems))
