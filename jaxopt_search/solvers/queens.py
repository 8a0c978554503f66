# pyright: reportUnknownMemberType=false
"""N-Queens: sets of different valid placements, found again and again: `solve_nqueens`.

Placements are found by searches side by side. At fixed distances those that stand at a valid
placement are found out: it is taken down, and they restart, as do those that have tried for long.
From many queens on, placements are repaired one after the other, each from a start of its own.
"""

import abc
import functools
import itertools
import math
import os
import pathlib
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxopt_search import contracts
from jaxopt_search.backends import random
from jaxopt_search.checks import MAX_INT32, check_count, check_option
from jaxopt_search.driver import checkpoints
from jaxopt_search.driver.checkpoints import Identity, Snapshot
from jaxopt_search.driver.chunks import drive
from jaxopt_search.driver.options import RunOptions, resolve
from jaxopt_search.driver.results import MESSAGES
from jaxopt_search.engine import devices, memory, starting, stepping
from jaxopt_search.engine.compile import Program, compile_all, jit
from jaxopt_search.engine.devices import Devices, host_driver
from jaxopt_search.engine.fingerprints import environment, fingerprint
from jaxopt_search.engine.split import AXES, DeviceSplit
from jaxopt_search.engine.state import RunState, choose, make_rules
from jaxopt_search.interrupts import held_back
from jaxopt_search.neighborhoods.queen_swap import QueenSwap
from jaxopt_search.problems import padding
from jaxopt_search.problems.queens import symmetry
from jaxopt_search.problems.queens.problem import NQueens, greedy_placement, nqueens
from jaxopt_search.problems.queens.symmetry import Distinct
from jaxopt_search.results import QueensResult, Status
from jaxopt_search.searches.min_conflicts import min_conflicts
from jaxopt_search.searches.queens_repair import Repair, begun, continued

_MANY = 10_000
"""Queens from which placements are repaired, one after the other."""
_BYTES = 64  # of a queen, of 100 that were measured while it is repaired
# How many placements there are (Sloane's A000170) and how many classes under symmetry (A002562).
ALL = (1, 0, 0, 2, 10, 4, 40, 92, 352, 724, 2680, 14200, 73712, 365596, 2279184, 14772512)
CLASSES = (1, 0, 0, 1, 2, 1, 6, 12, 46, 92, 341, 1787, 9233, 45752, 285053, 1846955)
_CHECKED_AT_ONCE = 256
"""Placements of a checkpoint."""
_PLACED_AT_ONCE = 2 * 10**8
"""Queens of all searches together."""
_MORE = 8
"""From one number of searches to the next: of few, so that few programs are compiled."""
_MAX_LOOKS = 16
"""A search that has found nothing by this many looks restarts."""
_MAX_ROUNDS = 10_000
_PER_DOUBLING = 8
"""Sizes of problems that are repaired: rounds take longer the more room there is."""


@host_driver
def solve_nqueens(
    n: int,
    num_solutions: int = 1,
    key: Any = 0,
    *,
    distinct: Distinct = "raw",
    max_seconds: float | None = None,
    max_steps: int | None = None,
    num_searches: int | None = None,
    checkpoint: str | os.PathLike | None = None,
    checkpoint_every: float = checkpoints.DEFAULT_SECONDS,
    resume: str | os.PathLike | bool | None = None,
    devices: Devices = "all",
    show_progress: bool = False,
) -> QueensResult:
    """Returns a set of different valid placements of n queens.

    Below 10,000 queens they are found by `min_conflicts`, from there on by `repair`, each from a
    start of its own, random or greedy. On the same devices the set depends on the key only, unless
    `max_seconds` cuts it short. Ctrl-C during the search ends it with what was found.

    Args:
      n: queens.
      num_solutions: placements asked for.
      key: an integer seed or a `jax.random.key`.
      distinct: which placements count as different: `"raw"`, all that are not equal; `"symmetry"`,
        those that no turn and no mirroring of the board makes equal.
      max_seconds: seconds of search, as in `solve`: what is compiled before comes on top; 10 if no
        limit is given.
      max_steps: steps of each search, or rounds of repair of each placement.
      num_searches: searches side by side; None for a number that suits the devices.
      checkpoint, checkpoint_every, resume: as in `solve`, with the placements found so far. A run
        that resumes has as many searches as before; more placements or steps may be wanted.
      devices: as in `solve`; by default all.
      show_progress: as in `solve`.

    Raises:
      ValueError: if an argument is out of range.
      CheckpointError, OSError: as `solve`.
      MemoryError: if the searches do not fit into memory, or a device runs out of it.

    Example:
      >>> result = solve_nqueens(8, num_solutions=12, distinct="symmetry")
      >>> result.solutions.shape, result.success
      ((12, 8), True)
    """
    options = resolve(
        max_steps=max_steps,
        max_seconds=max_seconds,
        devices=devices,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
        resume=resume,
        show_progress=show_progress,
    )
    with memory.memory_errors_explained(f"n={n}"), options.team.same_call() as note:
        problem, num_solutions = nqueens(n), check_count("num_solutions", num_solutions)
        check_option("distinct", distinct, ("raw", "symmetry"))
        if num_searches is not None:
            num_searches = check_count("num_searches", num_searches)
        words, finds = random.as_key(key), PlacementSet(num_solutions, distinct, problem.n)
        note(n, num_solutions, fingerprint(words), distinct, num_searches)
        if problem.n >= _MANY:
            least, device = _BYTES * problem.n, options.team.own[0]
            memory.check_bytes(least, f"n is {n}", device, " at least", "fewer queens")
            run = Repairs(problem, words, finds, options)
        else:
            run = Searches(problem, words, finds, options, num_searches)
    return drive(run)


def dtype_of(n: int) -> Any:
    """Returns the dtype in which placements of n queens are kept."""
    return np.int16 if n < 2**15 else np.int32


class PlacementSet:
    """The placements found so far: those that are wanted, and others found with the last one.

    Attributes:
      num_found: all of them, also those found again.
    """

    def __init__(self, wanted: int, distinct: Distinct, n: int):
        self.distinct: Distinct = distinct
        self.wanted, self.n = wanted, n
        self.num_found = 0
        self._seen = dict[int, None]()  # the numbers of the placements
        self._parts = [np.empty((0, n), dtype_of(n))]  # the placements as they came
        known = ALL if distinct == "raw" else CLASSES
        self.total = known[n - 1] if n <= len(known) else None

    def add(self, queens: np.ndarray, words: np.ndarray) -> None:
        """Takes down placements [B, n] with their fingerprints [B, 2]."""
        new = list[int]()
        for place, number in enumerate(symmetry.as_numbers(words).tolist()):
            if number not in self._seen:
                self._seen[number] = None
                new.append(place)
        self.num_found += len(queens)
        self._parts.append(queens[new].astype(dtype_of(self.n)))

    @property
    def counts(self) -> tuple[int, int]:
        """How many different ones there are by now, and how many were found."""
        return len(self._seen), self.num_found

    @property
    def solutions(self) -> np.ndarray:
        """The different ones that are wanted, [B, n]."""
        return self._first(self.wanted)

    def _first(self, number: int) -> np.ndarray:
        if len(self._parts) > 1:
            self._parts = [np.concatenate(self._parts)]
        return self._parts[0][:number]

    def kept(self, different: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns the numbers of the first different ones, and these, also if fewer are wanted."""
        numbers = itertools.islice(self._seen, different)
        return np.fromiter(numbers, np.uint64, different), self._first(different)

    def recall(self, numbers: np.ndarray, queens: np.ndarray, num_found: int) -> None:
        """Continues from what `kept` has returned."""
        for first in range(0, len(queens), _CHECKED_AT_ONCE):
            if _attack(queens[first : first + _CHECKED_AT_ONCE]):
                raise ValueError("in one of its placements queens attack")
        self._seen = dict.fromkeys(numbers.tolist())
        self._parts, self.num_found = [queens], num_found

    def status(self) -> Status:
        """Returns `TARGET` if there are as many as are wanted, `EXHAUSTED` if there are no more."""
        size = len(self._seen)
        if size >= self.wanted:
            return Status.TARGET
        return Status.EXHAUSTED if size == self.total else Status.RUNNING


def _attack(queens: np.ndarray) -> bool:
    """Returns whether queens attack in any of the placements [B, n], or are off the board."""
    n = queens.shape[1]
    if queens.size and not 0 <= queens.min() <= queens.max() < n:
        return True
    row = np.arange(n, dtype=np.int32)
    lines = (np.sort(queens + steps, axis=1) for steps in (0 * row, row, -row))
    return any((one[:, 1:] == one[:, :-1]).any() for one in lines)


class QueensPlan(NamedTuple):
    """How placements are searched for.

    Attributes:
      num_searches: side by side, on each device, if as many placements are wanted.
      least_searches: if few are wanted.
      moves_per_search: priced per step.
      temperature: all the time the same.
      steps: between two looks.
      tries: of `greedy_placement`, by which searches start; 0 for random placements.
    """

    num_searches: int
    least_searches: int
    moves_per_search: int
    temperature: float
    steps: int
    tries: int

    def num_searches_for(self, wanted: int) -> int:
        """Returns the searches on each device that are to find this many placements."""
        number = self.least_searches
        while number < wanted:
            number *= _MORE
        return min(number, self.num_searches)


def plan_of(n: int, platform: str) -> QueensPlan:
    """Returns how placements of n queens are searched for on a device of this platform.

    What is compiled for depends on the capacity only.
    """
    temperature, capacity = 0.4 if n < 16 else 0.1, padding.capacity_for(n)
    if platform == "cpu":
        num_searches = min(max(200_000 // capacity, 16), 1024)
        return QueensPlan(num_searches, 4, 64, temperature, max(32, n * 3 // 10), 16)
    num_searches, moves = min(16_896, _PLACED_AT_ONCE // capacity), 16 if capacity <= 64 else 32
    return QueensPlan(num_searches, 132, moves, temperature, max(32, n * 7 // 10), 0)


@functools.partial(jit, static_argnames=("distinct", "tries"))
def harvested(
    problem: NQueens,
    search: Any,
    state: RunState,
    look: jax.Array,
    *,
    distinct: Distinct,
    tries: int,
) -> tuple[RunState, tuple[jax.Array, jax.Array, jax.Array]]:
    """Returns the searches after those at valid placements, and old ones, have restarted.

    Args:
      state: whose `ancestor`, which searches that exchange nothing leave alone, has their ages: how
        many looks ago each one started.
      look: [] uint32 number of this look.
      tries: as in `QueensPlan`.

    Returns:
      The state, and what is to be taken down: whether each search has found a valid placement, [S],
      their best placements, [S, capacity], and fingerprints of these, [S, 2].
    """

    def start(key: jax.Array) -> jax.Array:
        if not tries:
            return problem.init(key)
        return greedy_placement(key, problem.n, tries, problem.capacity)

    costs = jax.vmap(search.best_cost)(state.searches)
    queens = jax.vmap(search.best, in_axes=(None, 0))(problem, state.searches)
    words = jax.vmap(lambda one: symmetry.fingerprint(one, distinct, problem.num_entries))(queens)
    is_valid, age = (costs == 0) & (state.index >= 0), state.ancestor + 1
    restarts = is_valid | (age >= _MAX_LOOKS)
    keys = jax.vmap(random.start_key, in_axes=(None, 0))(
        random.instance_key(state.key, look), state.index.astype(jnp.uint32)
    )
    fresh = jax.vmap(search.init, in_axes=(None, 0))(problem, jax.vmap(start)(keys))

    searches = choose(restarts, fresh, state.searches)
    narrow = queens.astype(dtype_of(problem.capacity))
    state = state._replace(searches=searches, ancestor=jnp.where(restarts, 0, age))
    return state, (is_valid, narrow, words)


class Standing(NamedTuple):
    """Where a run stands, to be shown.

    Attributes:
      finds: the placements so far.
      step: steps made.
      seconds: of search.
      status: `RUNNING`, or why the run ends.
    """

    finds: PlacementSet
    step: int
    seconds: float
    status: Status

    @property
    def line(self) -> str:
        """It in words."""
        found = f"{min(self.finds.counts[0], self.finds.wanted)} of {self.finds.wanted} placements"
        return f"step {self.step}  {self.seconds:.1f} s  {found}"


class Placements(abc.ABC):
    """A run that collects placements: a `chunks.Chunked`, of which subclasses make the steps.

    Attributes:
      finds: so far.
      implementation: how steps are run.
      made: steps made by each search, those included that are still on their way.
      step: steps after which the searches were last looked at.
    """

    implementation = "xla"
    observers = ()

    def __init__(self, finds: PlacementSet, options: RunOptions):
        self.finds, self.options, self.timer = finds, options, options.timer
        self.what = f"n={finds.n}"
        self.made = self.step = 0
        self._counts = finds.counts  # these are what checkpoints have

    @abc.abstractmethod
    def identity(self) -> Identity: ...

    @abc.abstractmethod
    def look(self) -> object:
        """Takes down the valid placements."""

    @abc.abstractmethod
    def kept(self) -> tuple[Any, dict[str, Any]]:
        """Returns the state that a checkpoint has besides the placements, and notes."""

    def report(self, status: Status) -> Standing:
        return Standing(self.finds, self.made, self.timer.seconds, status)

    def result(self, status: Status) -> QueensResult:
        finds, timer, solutions = self.finds, self.timer, self.finds.solutions
        kind = "placements" if finds.distinct == "raw" else "classes of placements"
        message = f"{len(solutions)} of {finds.wanted} {kind} were found; {MESSAGES[status]}"
        if status == Status.EXHAUSTED:
            message = f"{MESSAGES[status]}: {finds.n} queens have {len(solutions)} valid {kind}"
        return QueensResult(
            solutions=solutions,
            success=len(solutions) == finds.wanted,
            status=status,
            message=message,
            num_found=finds.num_found,
            nit=self.made,
            compile_seconds=timer.compile_seconds or 0.0,
            elapsed=timer.elapsed,
            env=environment(self.options.devices) | {"implementation": self.implementation},
        )

    def snapshot(self) -> Snapshot:
        self.look()
        state, notes = self.kept()
        numbers, queens = self.finds.kept(self._counts[0])
        notes |= {"counts": self._counts, "seconds": self.timer.seconds, "fun": 0}
        return Snapshot((state, numbers), queens, notes)

    def recall(
        self, path: pathlib.Path, shapes_of: Callable[[dict[str, Any]], Any]
    ) -> tuple[Any, dict[str, Any]]:
        """Continues from a checkpoint, and returns its state and its notes, as `kept` does.

        Args:
          shapes_of: maps the notes to the shapes of that state.
        """

        def shapes(notes: dict[str, Any]) -> tuple[Any, Any]:
            size, n = check_count("different", notes["counts"][0], 0, None), self.finds.n
            numbers = jax.ShapeDtypeStruct((size,), np.uint64)
            return (shapes_of(notes), numbers), jax.ShapeDtypeStruct((size, n), dtype_of(n))

        (state, numbers), queens, notes = checkpoints.read(path, self.identity(), shapes)
        with checkpoints.notes_read():
            _, num_found = self._counts = notes["counts"]
            self.finds.recall(numbers, queens, num_found)
            self.timer.before = checkpoints.seconds_of(notes)
        return state, notes


class Searches(Placements):
    """Searches side by side, spread over devices."""

    def __init__(
        self,
        problem: NQueens,
        key: random.Key,
        finds: PlacementSet,
        options: RunOptions,
        num_searches: int | None,
    ):
        super().__init__(finds, options)
        self.split = split = DeviceSplit(options.devices)
        self.problem = split.bring(problem.padded())
        self.plan = plan = plan_of(problem.n, devices.platform_of(split.first))
        moves = plan.moves_per_search
        self.search = min_conflicts(QueenSwap(), plan.temperature, moves_per_search=moves)
        self._choice = stepping.choose("auto", split.first, self.problem, self.search)
        self.implementation = str(self._choice)
        self._harvest: Any = None  # what is not yet taken down
        self._has_started = self._is_last = False
        if options.resume is not None:
            self.state, notes = self.recall(options.resume, self._shape_of)
            with checkpoints.notes_read():
                self.made = self.step = check_count("made", notes["made"], 0, None)
        else:
            if num_searches is None:
                number = len(split.devices)
                each = plan.num_searches_for(-(-finds.wanted // number))
                num_searches = number * devices.for_device(each, split.first)
            shape = self._shape_of({"num_searches": num_searches})
            state = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), shape)
            index, age = np.arange(num_searches, dtype=np.int32), np.int32(_MAX_LOOKS)
            ages = np.full(num_searches, age)  # so that the first look starts all of them
            self.state: Any = state._replace(key=key, index=index, ancestor=ages)
        self._begins = bool((self.state.ancestor == _MAX_LOOKS).all())
        self._num_searches = len(self.state.index)
        self._rules = make_rules(self.search, self.state.device_best.dtype)

    def _shape_of(self, notes: dict[str, Any]) -> RunState:
        """Returns the shapes of the state of searches, of no more than memory holds."""
        number = check_count("num_searches", notes["num_searches"], 1, None)
        parts, queens = (self.problem, self.search), contracts.solution_shape(self.problem)
        starting.check_room(*parts, queens, number, self.split.devices)
        return starting.shape(*parts, number)

    def begin(self) -> None:
        """Compiles, and has the devices hold the searches.

        Raises:
          MemoryError: if they are not free.
        """
        parts, split, state = (self.problem, self.search), self.split, self.state
        programs = dict[str, Program]()
        if split.compiles_ahead:
            programs = split.programs(*parts, state, self._rules, self._choice.implementation)
            programs["look"] = self._look_at(split.shapes(state, *parts), 0)
            compile_all(programs.values())
        needed = memory.estimate(parts, state, split.devices, programs, states_at_a_look=2)
        memory.check_fit(parts, needed, self._num_searches, split.devices)
        with jax.default_device(split.first):
            self.state = split.split(jax.device_put(state))

    def identity(self) -> Identity:
        how = self.finds.distinct, self.plan.steps, self.plan.tries, _MAX_LOOKS
        return Identity(
            fingerprint(np.int32(self.finds.n)), fingerprint(self.search, repr(("searched", how)))
        )

    def kept(self) -> tuple[Any, dict[str, Any]]:
        state = self.split.join(self.state, self._num_searches)
        return jax.device_get(state), {"num_searches": self._num_searches, "made": self.made}

    def advance(self, num_steps: int) -> None:
        """Looks for valid placements, and starts the next steps; compiles, the first time.

        A last look changes no search: a checkpoint is of before it, so that a run with more steps
        has the same looks as if it had never ended.
        """
        if not num_steps:
            state, _ = self._look_at(self.state, 0)()
            if self._begins:
                self.state = state
            jax.block_until_ready(self._advanced(0))
            return
        left = math.inf if self.timer.max_steps is None else self.timer.max_steps - self.made
        with held_back():  # a checkpoint has all of it
            self.step, self._has_started, self._is_last = self.made, True, left <= 0
            number, since = divmod(self.made, self.plan.steps)
            if self._is_last or not since:
                state, self._harvest = self._look_at(self.state, number + 1)()
                if self._is_last:
                    return
                self.state = state
            num_steps = int(min(num_steps - since, left))
            self.state = self._advanced(num_steps)
            self.made += num_steps

    def _look_at(self, state: RunState, number: int) -> Program:
        """Returns the program of a look, of a state or its shapes."""
        own = self.problem, self.search, state, np.uint32(number)
        how = {"distinct": self.finds.distinct, "tries": self.plan.tries}
        return self.split.program(harvested, (None, None, AXES, None), (AXES, 0), *own, **how)

    def _advanced(self, num_steps: int) -> RunState:
        """Returns the state after some steps, which need not be made by then."""
        own, implementation = (self.problem, self.search), self._choice.implementation
        return self.split.steps(*own, self.state, num_steps, self._rules, implementation)()

    def look(self) -> object:
        """Takes down the valid placements, while the next steps are made."""
        if self._harvest is not None:
            is_valid, *found = self._harvest
            is_valid = self.split.team.gathered(is_valid)
            with held_back():  # a checkpoint has all of it
                if is_valid.any():
                    queens, words = self.split.team.gathered(found)
                    self.finds.add(self.problem.host.own(queens[is_valid]), words[is_valid])
                self._counts = self._counts if self._is_last else self.finds.counts
                self._harvest = None

    def status(self, limit: Status) -> Status:
        status = self.finds.status()
        is_limited = status == Status.RUNNING and self._has_started
        return limit if is_limited else status

    def next_steps(self, made: int, seconds: float) -> int:
        return self.plan.steps


class Repairs(Placements):
    """Placements that are repaired one after the other; a step of `made` is a round of a repair.

    Once one was tried, `made` is the most rounds that each may take; `step` is always 0.
    """

    def __init__(self, problem: NQueens, key: random.Key, finds: PlacementSet, options: RunOptions):
        super().__init__(finds, options)
        self._device = options.team.own[0]
        # The limit is one of rounds of each placement; a failure ends the run where it is given.
        self._limit, self.timer.max_steps = self.timer.max_steps, None
        self._max_rounds = _MAX_ROUNDS if self._limit is None else min(self._limit, MAX_INT32)
        self._number, self._has_failed = 0, False
        if options.resume is not None:
            key, notes = self.recall(options.resume, lambda notes: random.as_key(0))
            with checkpoints.notes_read():
                self._number, self._has_failed = int(notes["number"]), bool(notes["has_failed"])
                self.made = self._max_rounds if self._number else 0
        padded = problem.padded(padding.capacity_for(problem.n, _PER_DOUBLING))
        self.problem, self._key = jax.device_put((padded, key), self._device)
        self._repair: Any = None  # of the placement that is begun, or of the last one
        self._rounds, self._is_begun, self._is_over = 0, False, False  # rounds of the last chunk

    def identity(self) -> Identity:
        how = "repaired", self.finds.distinct, self._limit
        return Identity(fingerprint(np.int32(self.finds.n)), fingerprint(repr(how)))

    def kept(self) -> tuple[Any, dict[str, Any]]:
        notes = {"number": self._number, "has_failed": self._has_failed}
        return jax.device_get(self._key), notes

    def begin(self) -> None:
        """Compiles.

        Raises:
          MemoryError: if they are not free.
        """
        queens = jax.ShapeDtypeStruct((self.problem.capacity,), np.int32)
        state = jax.eval_shape(begun, self.problem, queens)
        if DeviceSplit((self._device,)).compiles_ahead:
            own = self._key, self.problem, np.uint32(0), np.bool_(False)
            arguments = *own, devices.shapes(state, devices.only_on(self._device)), np.int32(0)
            program = Program(_repaired, arguments, {"distinct": self.finds.distinct})
            needed = program.temporaries() + memory.num_bytes((arguments, state))
            memory.check_bytes(needed, f"n is {self.finds.n}", self._device, "", "fewer queens")
        zeros = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), state)
        self._repair = jax.device_put(zeros, self._device)

    def advance(self, num_steps: int) -> None:
        """Begins a placement, unless one is begun, and makes this many rounds of it, at least 8."""
        if not num_steps:
            return
        before = int(self._repair.rounds) if self._is_begun else 0
        most = np.int32(min(before + num_steps, self._max_rounds))
        own = self._key, self.problem, np.uint32(self._number), np.bool_(self._is_begun)
        state, words = _repaired(*own, self._repair, most, distinct=self.finds.distinct)
        self._rounds = int(state.rounds) - before
        self._is_over = int(state.num_attacked) == 0 or self._rounds < num_steps
        self._repair, self._words, self._is_begun = state, words, True

    def look(self) -> object:
        """Takes down the placement if it is valid."""
        if self._is_over:
            state = self._repair
            found = jax.device_get((state.placed.queens, state.num_attacked, self._words))
            queens, num_attacked, words = found
            with held_back():  # a checkpoint has all of it
                self._has_failed = bool(num_attacked > 0)
                if not self._has_failed:
                    self.finds.add(self.problem.host.own(queens[None]), words[None])
                self._counts, self._is_begun, self._is_over = self.finds.counts, False, False
                self._number, self.made = self._number + 1, self._max_rounds

    def status(self, limit: Status) -> Status:
        status = self.finds.status()
        if status == Status.RUNNING and self._has_failed and self._limit is not None:
            return Status.MAX_STEPS
        return limit if status == Status.RUNNING else status

    def next_steps(self, made: int, seconds: float) -> int:
        return self.timer.next_steps(0, self._rounds, seconds)


@functools.partial(jit, static_argnames="distinct")
def _repaired(
    key: random.Key,
    problem: NQueens,
    number: jax.Array,
    is_begun: jax.Array,
    state: Repair,
    max_rounds: jax.Array,
    *,
    distinct: Distinct,
) -> tuple[Repair, jax.Array]:
    """Returns a repair after `max_rounds` in all, [] int32, or once it is done; its fingerprint.

    Args:
      key: of the run.
      number: [] uint32 of the placement.
      is_begun: [] bool, whether the state is one of it.
    """
    own = random.instance_key(key, number)

    def begin(_: Repair) -> Repair:
        return begun(problem, problem.init(random.start_key(own, jnp.uint32(0))))

    state = lax.cond(is_begun, lambda state: state, begin, state)
    state = continued(own, problem, state, max_rounds)
    return state, symmetry.fingerprint(state.placed.queens, distinct, problem.num_entries)
