"""Many instances at once, of any sizes: each is searched by searches of its own, on all devices.

They are one pytree of arrays with a leading axis, with room for the largest (`padding`), and so are
their searches. What is done with each is a `Kind`: `Tours` are annealed and recombine,
`Assignments` are found by tabu searches that recombine.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxopt_search.backends import Implementation, random
from jaxopt_search.checks import MAX_INT32, check_count, check_permutation, int32
from jaxopt_search.crossovers.edge_assembly import EdgeAssembly
from jaxopt_search.driver import checkpoints
from jaxopt_search.driver.checkpoints import Identity, Snapshot
from jaxopt_search.driver.options import RunOptions
from jaxopt_search.driver.results import Recorder, Report
from jaxopt_search.engine import loop, memory, outcome, starting, stepping
from jaxopt_search.engine.devices import is_cpu
from jaxopt_search.engine.fingerprints import environment, fingerprint
from jaxopt_search.engine.split import pmapped
from jaxopt_search.engine.state import RunState, make_rules
from jaxopt_search.exchanges import Recombine, recombine
from jaxopt_search.interrupts import held_back
from jaxopt_search.neighborhoods import SwapTable
from jaxopt_search.neighborhoods.two_opt import TwoOpt
from jaxopt_search.problems import padding
from jaxopt_search.problems.host import ON_DEVICE
from jaxopt_search.problems.qap.construction import constructed_assignment
from jaxopt_search.problems.qap.problem import QAP
from jaxopt_search.problems.tsp import build, paths, traced
from jaxopt_search.problems.tsp.curves import tours_through
from jaxopt_search.problems.tsp.problem import TSP, Ends
from jaxopt_search.results import StackedResult, Status
from jaxopt_search.searches import TabuSearch, tabu_search
from jaxopt_search.solvers import scales
from jaxopt_search.solvers.anneal import Ingredients, Pace, Pacer, Recipe, cooling_search, pacer_of
from jaxopt_search.types import Exchange, Problem, Search, Solution

_AT_ONCE = 2**26  # numbers in memory
_BLOCK_ON_CPU = 64  # instances
_ANY_PACE = Pace(0, 0.0, 0.0, MAX_INT32)
_TRIVIAL = 3  # cities, of which all tours have the same length


class Tours(NamedTuple):
    """Tours of up to `capacity` cities, by a recipe: a `Kind`."""

    recipe: Recipe
    capacity: int

    @property
    def num_searches(self) -> int:
        """Searches of each instance."""
        return self.recipe.num_searches

    @property
    def numbers_each(self) -> int:
        """About how many numbers it takes to start the searches of an instance."""
        return self.capacity**2

    def begin(
        self, key: random.Key, instance: tuple[jax.Array, jax.Array]
    ) -> tuple[TSP, Ingredients, jax.Array | None]:
        """Returns the problem, the ingredients of its searches, and starts, unless random.

        Args:
          instance: [capacity, 2] float32, behind the cities the first one again; or distances,
            [capacity * capacity] float32, row by row of the cities. And how many there are.
        """
        points, num_cities = instance
        is_matrix = points.ndim == 1
        problem = traced.of_arrays(points, num_cities)
        scale, tree = scales.near_distance_on_device(problem), scales.tree_edge_on_device(problem)
        hottest = self.recipe.hottest * jnp.where(tree > 0, tree, scale)
        near = traced.neighbors(problem, self.recipe.num_candidates, "spread")
        ingredients = Ingredients(
            cooling_search(self.recipe, TwoOpt(candidates=near)),
            (hottest, self.recipe.coldest * scale),
            EdgeAssembly(candidates=near),
        )
        if is_matrix or self.recipe.starts == "random":
            return problem, ingredients, None
        return problem, ingredients, tours_through(points, key, self.num_searches, num_cities)

    def at_pace(self, ingredients: Ingredients, pace: Pace) -> tuple[Search, Exchange | None]:
        """Returns the search and the exchange, at a pace."""
        return ingredients.at_pace(self.recipe, pace)


class Assignments(NamedTuple):
    """Assignments of up to `capacity` facilities, by tabu search: a `Kind`, members as `Tours`."""

    num_searches: int
    capacity: int

    @property
    def numbers_each(self) -> int:
        return self.num_searches * self.capacity**2

    def begin(
        self, key: random.Key, instance: tuple[QAP, jax.Array]
    ) -> tuple[QAP, None, jax.Array]:
        problem, start = instance
        return problem, None, start[None]

    def at_pace(self, ingredients: None, pace: Pace) -> tuple[TabuSearch, Recombine]:
        rule = dataclasses.replace(recombine(every=1), every=int32(pace.every))
        return tabu_search(SwapTable()), rule


Kind: TypeAlias = Tours | Assignments
"""How instances are searched; programs are compiled once for kinds that are equal."""


class Stack(NamedTuple):
    """B instances of one kind.

    Attributes:
      kind: how they are searched.
      instances: as the kind begins with, leaves [B, ...], on the host.
      sizes: entries of a solution of each.
      own: maps the number of an instance and its solution on the device to the user's.
      in_full: maps costs on the device, [B], to the user's.
      costs: maps a solution of each instance to their exact costs.
      pacer: sets the pace of all.
      is_trivial: whether all solutions of each cost the same.
      moves_per_step: that one search of each instance price together; None for as many as the
        search says of each.
    """

    kind: Kind
    instances: Any
    sizes: Sequence[int]
    own: Callable[[int, np.ndarray], np.ndarray]
    in_full: Callable[[np.ndarray], np.ndarray]
    costs: Callable[[Sequence[np.ndarray]], list[int | float]]
    pacer: Pacer
    is_trivial: bool
    moves_per_step: int | None = None


def _together(solutions: list[np.ndarray]) -> Any:
    """Returns a solution of each instance, [B, n], or as a list if their sizes differ."""
    are_alike = len(set(map(len, solutions))) == 1
    return np.stack(solutions) if are_alike else solutions


def _shapes_of(stack: Stack, notes: dict[str, Any]) -> tuple[RunState, Any]:
    """Returns the states that a checkpoint keeps, leaves [B, ...], and the best solutions."""
    numbers = np.arange(len(stack.sizes), dtype=np.uint32)
    start = functools.partial(start_all, kind=stack.kind)
    runs = jax.eval_shape(start, random.as_key(0), numbers, stack.instances)
    return runs.state, _together([np.empty(size, np.int32) for size in stack.sizes])


class _Run(NamedTuple):
    """An instance on the device, the ingredients of its searches, and their states."""

    problem: Problem
    ingredients: Any
    state: RunState


class StackedRun:
    """The runs of all instances, made in the same chunks: a `chunks.Chunked`.

    On a CPU they are made in blocks, so that any number of instances shares few programs.

    Attributes:
      blocks: of runs, leaves [D, block, ...] each.
      step: steps made by each search.
      choice: how steps are run.
      observers: keep the history.

    Args:
      note: as `Team.same_call` yields it.
    """

    def __init__(
        self, stack: Stack, options: RunOptions, key: Any, note: Callable[..., None]
    ) -> None:
        self.stack, self.options = stack, options
        self.timer, self._team = options.timer, options.team
        self.what = f"num_searches={stack.kind.num_searches}"
        how = repr((stack.kind, stack.pacer.pace))
        self._identity = Identity(fingerprint(stack.instances), fingerprint(how))
        self._saved: Snapshot | None = None
        if options.resume is not None:
            shapes_of = functools.partial(_shapes_of, stack)
            self._saved = checkpoints.read(options.resume, self._identity, shapes_of)
        self._key = random.as_key(key)
        note(self._identity, fingerprint(self._key), options.show_progress)  # all make reports
        self.history = Recorder(options.history_size)
        self.observers = (self.history.note,)
        self.step, self._made = 0, 0

    def begin(self) -> None:
        stack, devices = self.stack, self.options.devices
        size = len(stack.sizes)
        block = -(-size // len(devices))
        if is_cpu(devices[0]):
            block = min(4 ** math.ceil(math.log(block, 4)), _BLOCK_ON_CPU)
        # Copies of the last instance fill the blocks up; their keys are others.
        shape = -(-size // (len(devices) * block)), len(devices), block
        numbers = np.arange(math.prod(shape))
        self._rows: list[np.ndarray] = list(numbers.reshape(shape))
        keys, instances = map(self._split, (numbers.astype(np.uint32), stack.instances))
        start = pmapped(devices, start_all, (None, 0, 0), kind=stack.kind)
        pairs = zip(keys, instances, strict=True)
        self.blocks = [start(self._key, *own) for own in pairs]
        one = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[2:], x.dtype), self.blocks[0])
        search, _ = jax.eval_shape(stack.kind.at_pace, one.ingredients, _ANY_PACE)
        num_moves = stack.moves_per_step
        if num_moves is None:
            num_moves = size * search.evaluations_per_step(one.problem)
        self._moves: int = num_moves
        self.choice = stepping.choose("auto", self._team.own[0], one.problem, search)
        how = {"kind": stack.kind, "implementation": self.choice.implementation}
        self._are_real = self._split(numbers < size)
        self._advance = pmapped(devices, advance_all, (0, 0, None, None), **how)
        if self._saved is not None:
            self._recall(self._saved)

    def _split(self, tree: Any) -> list[Any]:
        """Returns leaves [B, ...] as this process's devices get them: blocks [D, block, ...]."""

        def block(rows: np.ndarray) -> Any:
            own = rows[self._team.rows]
            return jax.tree.map(lambda leaf: leaf[np.minimum(own, len(leaf) - 1)], tree)

        return [block(rows) for rows in self._rows]

    def _joined(self, blocks: list[Any]) -> Any:
        """Returns leaves [B, ...], NumPy's, from the leaves on the devices."""

        def join(*leaves: np.ndarray) -> np.ndarray:
            whole = np.concatenate([leaf.reshape(-1, *leaf.shape[2:]) for leaf in leaves])
            return whole[: len(self.stack.sizes)]

        return jax.tree.map(join, *map(self._team.gathered, blocks))

    def advance(self, num_steps: int) -> None:
        pace, own = self.stack.pacer.pace, zip(self.blocks, self._are_real, strict=True)
        blocks = jax.block_until_ready([self._advance(*one, pace, num_steps) for one in own])
        with held_back():  # a checkpoint has all of it
            self.blocks, self.step, self._made = blocks, self.step + num_steps, num_steps

    def look(self) -> object:
        """Looks at the clock only: whether a run ends is no matter of its costs."""
        self.stack.pacer.note(self.step, self.timer.seconds)

    def status(self, limit: Status) -> Status:
        return limit

    def report(self, status: Status) -> Report:
        """As of a single run, with the mean of the lowest costs."""
        mean = float(self.costs().min(axis=1).mean())
        accepted = self._joined([runs.state.info.accepted for runs in self.blocks]).mean().item()
        acceptance, none = accepted / max(self._made, 1), np.zeros(0)
        seconds = self.timer.seconds
        return Report(
            self.step, seconds, mean, none, None, acceptance, status, lambda: (none, none)
        )

    def costs(self) -> np.ndarray:
        """Returns the best cost of each search of each instance, [B, S], as the device counts."""
        columns = self._joined([runs.state.searches.best_cost for runs in self.blocks]).T
        return np.stack(list(map(self.stack.in_full, columns)), axis=1)

    def next_steps(self, made: int, seconds: float) -> int:
        pacer = self.stack.pacer
        wanted = self.timer.next_steps(self.step, made, seconds, every=pacer.pace.every)
        return min(wanted, pacer.steps_left(self.step) or wanted)

    def identity(self) -> Identity:
        return self._identity

    def snapshot(self) -> Snapshot:
        found = self.best()
        notes = {
            "step": self.step,
            "num_searches": self.stack.kind.num_searches,
            "seconds": self.timer.seconds,
            "pace": self.stack.pacer.notes(),
            "fun": self.stack.costs(found),
            "history": self.history.notes(),
            "env": environment(self._team.devices),
        }
        states = self._joined([runs.state for runs in self.blocks])
        return Snapshot(states, _together(found), notes)

    def _recall(self, saved: Snapshot) -> None:
        """Continues from a checkpoint."""
        where = jax.tree.map(lambda leaf: leaf.sharding, self.blocks[0].state)
        states = jax.tree.map(np.asarray, saved.state)
        self.blocks = [
            runs._replace(state=jax.device_put(state, where))
            for runs, state in zip(self.blocks, self._split(states), strict=True)
        ]
        with checkpoints.notes_read():
            self.step = check_count("step", saved.notes["step"], 0, None)
            self.timer.before = checkpoints.seconds_of(saved.notes)
            each = zip(saved.best, self.stack.sizes, strict=True)
            best = [check_permutation(one, "its best solution", size) for one, size in each]
            for noted, cost in zip(saved.notes["fun"], self.stack.costs(best), strict=True):
                checkpoints.check_cost(noted, cost)
            self.stack.pacer.recall(saved.notes["pace"])
            self.history.recall(saved.notes["history"])

    def result(self, status: Status) -> StackedResult:
        found, stack, timer = self.best(), self.stack, self.timer
        return StackedResult(
            x=_together(found),
            fun=np.array(stack.costs(found)),
            costs=self.costs(),
            history=self.history.lines,
            success=status != Status.INTERRUPTED and (self.step > 0 or stack.is_trivial),
            status=status,
            nit=self.step,
            nfev=self.step * stack.kind.num_searches * self._moves,
            compile_seconds=timer.compile_seconds or 0.0,
            elapsed=timer.elapsed,
            env=environment(self._team.devices) | {"implementation": str(self.choice)},
        )

    def best(self) -> list[np.ndarray]:
        """Returns the best solution of each instance, [n]."""
        best = pmapped(self._team.devices, best_of_all, 0, kind=self.stack.kind)
        found = self._joined(list(map(best, self.blocks)))
        return [self.stack.own(i, solution) for i, solution in enumerate(found)]


def start_all(key: random.Key, numbers: jax.Array, instances: Any, *, kind: Any) -> Any:
    """Returns the runs of a device's instances, leaves [B, ...], before the first step."""

    def start(each: Any) -> _Run:
        number, instance = each
        own = random.instance_key(key, number)
        problem, ingredients, starts = kind.begin(own, instance)
        search, _ = kind.at_pace(ingredients, _ANY_PACE)
        state = starting.fresh(own, problem, search, starts, kind.num_searches)
        return _Run(problem, ingredients, state)

    batch = min(max(1, _AT_ONCE // kind.numbers_each), len(numbers))
    return lax.map(start, (numbers, instances), batch_size=batch)


def advance_all(
    runs: Any,
    are_real: jax.Array,
    pace: Pace,
    num_steps: jax.Array,
    *,
    kind: Any,
    implementation: Implementation,
) -> Any:
    """Returns the runs of a device, leaves [B, ...], after this many steps of each search.

    Args:
      are_real: [B] bool; one after the other, the others stay as they are.
    """

    def advance(run: _Run, exchanges: bool = True) -> _Run:
        problem, ingredients, state = run
        search, exchange = kind.at_pace(ingredients, pace)
        dtype = state.device_best.dtype
        rules = make_rules(search, dtype, exchange=exchange if exchanges else None)
        state = loop.advance_by(
            problem, search, state, num_steps, rules, implementation=implementation
        )
        return run._replace(state=state)

    if implementation != "cuda":
        # One after the other: side by side by `vmap`, XLA of JAX 0.11.2 does not end to compile.
        def advance_real(each: tuple[_Run, jax.Array]) -> _Run:
            run, is_real = each
            return lax.cond(is_real, advance, lambda run: run, run)

        return lax.map(advance_real, (runs, are_real))
    apart = jax.vmap(functools.partial(advance, exchanges=False))
    if kind.num_searches == 1:  # there is nobody to learn from
        return apart(runs)
    # Under `vmap` an exchange is made, if for nothing, wherever there may be one.
    return lax.cond(jnp.asarray(pace.every < MAX_INT32), jax.vmap(advance), apart, runs)


def best_of_all(runs: Any, *, kind: Any) -> Solution:
    """Returns the best solution of each run of a device, leaves [B, ...]."""

    def best(run: _Run) -> Solution:
        search, _ = kind.at_pace(run.ingredients, _ANY_PACE)
        return outcome.best(run.problem, search, run.state)[0]

    return jax.vmap(best)(runs)


def stack_of_tours(
    points: list[np.ndarray], start: Any, recipe: Recipe, options: RunOptions
) -> Stack:
    """Returns B instances, of each of which searches of its own find a short tour.

    Args:
      points: of each instance, [n, 2] float64, checked; Euclidean distances.
      start: the city that each tour begins at; None for any.
      recipe: of the annealing.
    """
    begin = Ends(paths.check_city("start", start, min(map(len, points))), is_path=False)
    sizes = list(map(len, points))
    most = max(sizes)
    if most <= _TRIVIAL:
        options.timer.max_steps = 0
    num_tours, room = len(points) * recipe.num_searches, padding.capacity_for(most)
    memory.check_tours(room, num_tours, recipe.num_searches, options.devices)
    return Stack(
        kind=Tours(recipe, room),
        instances=cities_of(points, room),
        sizes=sizes,
        own=lambda i, tour: begin(tour[: sizes[i]]),
        in_full=lambda lengths: lengths.astype(np.float64),
        costs=functools.partial(_lengths, points),
        pacer=pacer_of(recipe, most, options.timer),
        is_trivial=most <= _TRIVIAL,
    )


def stack_of_paths(
    points: list[np.ndarray], start: Any, end: Any, recipe: Recipe, options: RunOptions
) -> Stack:
    """Returns B instances like `stack_of_tours`, but of paths, which take matrices; see `paths`."""
    closed = [build.tsp_from_coords(each, storage="matrix") for each in points]
    problems = [paths.with_ends(problem, start, end) for problem in closed]
    matrices = list(map(build.matrix_in_full, closed))
    sizes = [problem.capacity for problem in problems]
    room = padding.capacity_for(max(sizes))
    num_tours = len(points) * (recipe.num_searches + room)
    memory.check_tours(room, num_tours, recipe.num_searches, options.devices)
    each = [padding.with_room(problem.matrix, room**2) for problem in problems]
    return Stack(
        kind=Tours(recipe, room),
        instances=(np.stack(each), np.array(sizes, np.int32)),
        sizes=list(map(len, points)),
        own=lambda i, tour: problems[i].host.own(tour[: sizes[i]]),
        in_full=functools.partial(_in_full, problems),
        costs=lambda found: list(map(paths.length, matrices, found)),
        pacer=pacer_of(recipe, max(sizes), options.timer),
        is_trivial=max(sizes) <= _TRIVIAL,
    )


def _lengths(points: Sequence[np.ndarray], tours: Sequence[np.ndarray]) -> list[float]:
    """Returns the lengths of closed tours."""
    pairs = zip(points, tours, strict=True)
    return [np.hypot(*(at[tour] - at[np.roll(tour, -1)]).T).sum().item() for at, tour in pairs]


def _in_full(problems: Sequence[TSP | QAP], costs: np.ndarray) -> np.ndarray:
    pairs = zip(problems, costs.tolist(), strict=True)
    return np.array([problem.host.in_full(cost) for problem, cost in pairs])


def cities_of(points: Sequence[np.ndarray], room: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns places as the devices get them."""
    places = np.empty((len(points), room, 2), np.float32)
    for place, own in zip(places, points, strict=True):
        place[: len(own)] = own - build.middle(own)
        place[len(own) :] = place[0]
    return places, np.array(list(map(len, points)), np.int32)


def stack_of_assignments(
    problems: list[QAP], num_searches: int, capacity: int, every: int, options: RunOptions
) -> Stack:
    """Returns B instances, of each of which searches of its own find a good assignment.

    Args:
      problems: all of one dtype, with nothing fixed and no room for more.
      num_searches: of each instance.
      capacity: the facilities that there is room for.
      every: steps between recombinations.
    """
    sizes = [problem.capacity for problem in problems]
    kind = Assignments(num_searches, capacity)
    memory.check_tours(kind.numbers_each, len(problems), num_searches, options.devices)
    return Stack(
        kind=kind,
        instances=matrices_of(problems, capacity),
        sizes=sizes,
        own=lambda i, assignment: assignment[: sizes[i]],
        in_full=functools.partial(_in_full, problems),
        costs=lambda found: [one.host.cost(x) for one, x in zip(problems, found, strict=True)],
        pacer=Pacer(Pace(0, 1.0, 0.0, every)),
        moves_per_step=sum(math.comb(n, 2) for n in sizes),
        is_trivial=max(sizes) == 1,
    )


def matrices_of(problems: list[QAP], capacity: int) -> tuple[QAP, np.ndarray]:
    """Returns instances as the devices get them, and a start of each, [B, capacity]."""

    def with_room(problem: QAP) -> tuple[QAP, np.ndarray]:
        # NumPy's, until a device gets them.
        flow: Any = padding.with_room(problem.flow, capacity**2)
        distance: Any = padding.with_room(problem.distance, capacity**2)
        padded = QAP(
            flow=flow,
            distance=distance,
            offset=problem.offset,
            num_entries=np.int32(problem.capacity),  # pyright: ignore[reportArgumentType]
            capacity=capacity,
            is_symmetric=all(one.is_symmetric for one in problems),
            host=ON_DEVICE,
        )
        return padded, padding.filled(constructed_assignment(problem), capacity)

    return jax.tree.map(lambda *leaves: np.stack(leaves), *map(with_room, problems))
