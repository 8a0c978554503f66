"""Many instances at once, of any sizes: each is searched by searches of its own, on all devices.

All stand in arrays with room for the largest (`padding`). What is done with each is a `Kind`.
"""

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxopt_search.backends import Choice, Implementation, random
from jaxopt_search.checks import MAX_INT32, check_count, check_permutation
from jaxopt_search.driver import checkpoints, chunks, environment
from jaxopt_search.driver.checkpoints import Identity, Snapshot
from jaxopt_search.driver.options import RunOptions
from jaxopt_search.engine import loop, memory, outcome, starting, stepping
from jaxopt_search.engine.devices import split_leaf
from jaxopt_search.engine.fingerprints import fingerprint
from jaxopt_search.engine.split import pmapped
from jaxopt_search.engine.state import RunState, make_rules
from jaxopt_search.interrupts import held_back
from jaxopt_search.results import StackedResult, Status
from jaxopt_search.solvers.cooling import Pace, Pacer
from jaxopt_search.types import Exchange, Problem, Search, Solution

_AT_ONCE = 2**26  # numbers in memory
_ANY_PACE = Pace(0, 0.0, 0.0, MAX_INT32)


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


class _MeanReport(NamedTuple):
    """Where all runs stand, as `progress.describe` shows it.

    Attributes:
      step: steps made by each search.
      seconds: of search.
      fun: the mean of the lowest costs.
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

    def report(self, status: Status) -> _MeanReport:
        costs, accepted = self._team.gathered(_costs_and_accepted(self.runs))
        mean = float(self.stack.in_full(costs.ravel()[: len(self.stack.sizes)]).mean())
        acceptance = accepted.mean().item() / max(self._made, 1)
        return _MeanReport(self.step, self.timer.seconds, mean, None, acceptance, status)

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
        state = loop.advance_by(implementation, problem, search, state, num_steps, rules)
        return run._replace(state=state)

    def advance(exchanges: bool, runs: _Run, pace: Pace, num_steps: jax.Array) -> _Run:
        one = functools.partial(advance_one, exchanges)
        if implementation == "triton":
            return jax.vmap(one, (0, None, None))(runs, pace, num_steps)
        # One after the other: side by side by `vmap`, XLA of JAX 0.11.2 does not end to compile.
        return lax.map(lambda run: one(run, pace, num_steps), runs)

    # Under `vmap` an exchange is made, if for nothing, wherever there may be one.
    exchanges = jnp.asarray(pace.every < MAX_INT32)
    ways = (functools.partial(advance, which) for which in (True, False))
    return lax.cond(exchanges, *ways, runs, pace, num_steps)


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
