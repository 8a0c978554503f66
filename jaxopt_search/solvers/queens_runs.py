# pyright: reportUnknownMemberType=false
"""How placements are found: by searches side by side, or by repairing one after the other.

At fixed distances the searches that stand at a valid placement are found out: it is taken down, and
they restart, as do those that have tried for long. From many queens on, each placement is repaired
from a start of its own.
"""

import functools
import itertools
import math
import pathlib
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxopt_search.backends import random
from jaxopt_search.checks import check_count
from jaxopt_search.driver import checkpoints
from jaxopt_search.driver.checkpoints import Identity, Snapshot
from jaxopt_search.driver.options import RunOptions
from jaxopt_search.engine import devices, memory, starting, stepping
from jaxopt_search.engine.compile import Jitted, Program, compile_all, jit
from jaxopt_search.engine.fingerprints import fingerprint
from jaxopt_search.engine.split import AXES, DeviceSplit, pmapped
from jaxopt_search.engine.state import RunState, make_rules
from jaxopt_search.interrupts import held_back
from jaxopt_search.neighborhoods.queen_swap import QueenSwap
from jaxopt_search.problems import padding
from jaxopt_search.problems.queens import symmetry
from jaxopt_search.problems.queens.problem import NQueens, greedy_placement
from jaxopt_search.problems.queens.symmetry import Distinct
from jaxopt_search.results import Status
from jaxopt_search.searches.min_conflicts import MinConflicts, min_conflicts
from jaxopt_search.searches.queens_repair import Repair, begun, continued

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


def dtype_of(n: int) -> Any:
    """Returns the dtype in which placements of n queens are kept."""
    return np.int16 if n < 2**15 else np.int32


class Standing(NamedTuple):
    """Where a run stands, to be shown.

    Attributes:
      found: different placements, of those that are wanted.
      wanted: placements asked for.
      step: steps made.
      seconds: of search.
      status: `RUNNING`, or why the run ends.
    """

    found: int
    wanted: int
    step: int
    seconds: float
    status: Status


class Counts(NamedTuple):
    """How many placements were found: different ones, and all of them."""

    different: int
    found: int


class PlacementSet:
    """The placements found so far: those that are wanted, and what was found with the last one."""

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
    def counts(self) -> Counts:
        """How many there are by now."""
        return Counts(len(self._seen), self.num_found)

    def first(self, number: int) -> np.ndarray:
        """Returns the first ones, [number, n]."""
        if len(self._parts) > 1:
            self._parts = [np.concatenate(self._parts)]
        return self._parts[0][:number]

    @property
    def solutions(self) -> np.ndarray:
        """The different ones that are wanted, [B, n]."""
        return self.first(self.wanted)

    def kept(self, counts: Counts) -> tuple[np.ndarray, np.ndarray]:
        """Returns the numbers of the first ones, and these, with those beyond what is wanted."""
        numbers = itertools.islice(self._seen, counts.different)
        return np.fromiter(numbers, np.uint64, counts.different), self.first(counts.different)

    def shapes_of(self, counts: Counts) -> tuple[Any, Any]:
        """Returns the shapes of what `kept` returns."""
        size = check_count("different", counts.different, 0, None)
        queens = jax.ShapeDtypeStruct((size, self.n), dtype_of(self.n))
        return jax.ShapeDtypeStruct((size,), np.uint64), queens

    def recall(self, numbers: np.ndarray, queens: np.ndarray, counts: Counts) -> None:
        """Continues from what was kept."""
        for first in range(0, len(queens), _CHECKED_AT_ONCE):
            if _attack(queens[first : first + _CHECKED_AT_ONCE]):
                raise ValueError("in one of its placements queens attack")
        self._seen = dict.fromkeys(numbers.tolist())
        self._parts, self.num_found = [queens], counts.found

    def status(self) -> Status:
        """Returns `TARGET` if there are as many as are wanted, `EXHAUSTED` if there are no more."""
        size = len(self._seen)
        if size >= self.wanted:
            return Status.TARGET
        return Status.EXHAUSTED if size == self.total else Status.RUNNING

    def standing(self, step: int, seconds: float, status: Status) -> Standing:
        """Returns where a run stands that has made `step` steps."""
        return Standing(min(len(self._seen), self.wanted), self.wanted, step, seconds, status)


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

    @property
    def search(self) -> MinConflicts:
        """The search of the plan."""
        return min_conflicts(QueenSwap(), self.temperature, moves_per_search=self.moves_per_search)


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


class Harvest(NamedTuple):
    """What is taken down of the searches after a number of steps.

    Attributes:
      is_valid: [S] whether a search has found a valid placement.
      queens: [S, capacity] their best placements.
      words: [S, 2] uint32 fingerprints.
    """

    is_valid: jax.Array
    queens: jax.Array
    words: jax.Array


@functools.partial(jit, static_argnames=("distinct", "tries"))
def harvested(
    problem: NQueens,
    search: Any,
    state: RunState,
    age: jax.Array,
    look: jax.Array,
    *,
    distinct: Distinct,
    tries: int,
) -> tuple[RunState, jax.Array, Harvest]:
    """Returns the searches after those at valid placements, and old ones, have restarted.

    Args:
      age: [S] int32 looks since each search started.
      look: [] uint32 number of this look.
      tries: as in `QueensPlan`.

    Returns:
      The state, the ages, and what was found.
    """

    def start(key: jax.Array) -> jax.Array:
        if not tries:
            return problem.init(key)
        return greedy_placement(key, problem.n, tries, problem.capacity)

    costs = jax.vmap(search.best_cost)(state.searches)
    queens = jax.vmap(search.best, in_axes=(None, 0))(problem, state.searches)
    words = jax.vmap(lambda one: symmetry.fingerprint(one, distinct, problem.num_entries))(queens)
    is_valid, age = (costs == 0) & (state.index >= 0), age + 1
    restarts = is_valid | (age >= _MAX_LOOKS)
    keys = jax.vmap(random.start_key, in_axes=(None, 0))(
        random.instance_key(state.key, look), state.index.astype(jnp.uint32)
    )
    fresh = jax.vmap(search.init, in_axes=(None, 0))(problem, jax.vmap(start)(keys))

    def renewed(new: jax.Array, old: jax.Array) -> jax.Array:
        where = lax.expand_dims(restarts, range(1, new.ndim))
        return jnp.where(where, new, old)

    searches = jax.tree.map(renewed, fresh, state.searches)
    narrow = queens.astype(dtype_of(problem.capacity))
    age = jnp.where(restarts, 0, age)
    return state._replace(searches=searches), age, Harvest(is_valid, narrow, words)


@functools.cache
def _harvested_on(on: tuple[jax.Device, ...], distinct: Distinct, tries: int) -> Jitted:
    """Returns `harvested` of searches that are spread over several devices."""
    harvest = functools.partial(harvested, distinct=distinct, tries=tries)
    return pmapped(on, harvest, (None, None, AXES, 0, None), (AXES, 0, 0))


class _KeptSearches(NamedTuple):
    """What a checkpoint keeps besides the placements.

    Attributes:
      searches: their state.
      age: as in `harvested`.
      numbers: of the placements.
    """

    searches: RunState
    age: Any
    numbers: Any


class Searches:
    """A run of searches side by side, spread over devices: a `chunks.Chunked`.

    Attributes:
      implementation: how steps are run.
      made: steps made by each search, those included that are still on their way.
      step: steps after which the searches were last looked at.
    """

    def __init__(
        self,
        problem: NQueens,
        key: random.Key,
        finds: PlacementSet,
        options: RunOptions,
        num_searches: int | None,
    ):
        self.timer, self.split = options.timer, DeviceSplit(options.devices)
        self.problem, self.finds = self.split.bring(problem.padded()), finds
        self.plan = plan_of(problem.n, devices.platform_of(self.split.first))
        self.search = self.plan.search
        self._choice = stepping.choose("auto", self.split.first, self.problem, self.search)
        self.implementation, self.made, self.step = str(self._choice), 0, 0
        self._num_looks, self._counts = 0, finds.counts  # these are what checkpoints have
        if options.resume is None:
            begin = self._new(key, num_searches)
        else:
            begin = self._recall(options.resume)
        self._begin, self._num_searches = begin, len(begin.age)
        self._rules = make_rules(self.search, begin.searches.best_cost.dtype)
        self.state: Any = None
        self._age: Any = None
        self._harvest: Harvest | None = None  # what is not yet taken down
        self._has_started = self._is_last = False

    def prepare(self, note_needed: Callable[[int], None]) -> None:
        """Compiles, and has the devices hold the searches.

        Args:
          note_needed: is told how many bytes the run takes.

        Raises:
          MemoryError: if they are not free.
        """
        begin, parts, split = self._begin, (self.problem, self.search), self.split
        shapes = split.shapes(begin.searches, *parts)
        arguments = *parts, shapes, shapes.index, np.uint32(0)
        how = {"distinct": self.finds.distinct, "tries": self.plan.tries}
        if len(split.devices) == 1:
            self._look_program = Program(harvested, arguments, how)
        else:
            self._look_program = Program(_harvested_on(split.devices, **how), arguments, {})
        programs = dict[str, Program]()
        if split.compiles_ahead:
            implementation = self._choice.implementation
            programs = split.programs(*parts, begin.searches, self._rules, implementation)
            programs["look"] = self._look_program
            compile_all(programs.values())
        queens = jax.ShapeDtypeStruct((self.problem.capacity,), dtype_of(self.problem.capacity))
        needed = memory.estimate(
            parts,
            begin.searches,
            split.devices,
            programs,
            solution=(queens, jax.ShapeDtypeStruct((2,), np.uint32)),
            states_at_a_look=2,
        )
        memory.check_fit(parts, needed, self._num_searches, split.devices)
        note_needed(needed.total)
        with held_back(), jax.default_device(split.first):
            state = jax.device_put(begin.searches)
        self.state = split.split(state)
        if len(split.devices) == 1:
            self._age = split.bring(begin.age)
        else:
            own = devices.split_leaf(len(split.devices), begin.age)[split.team.rows]
            self._age = jax.device_put(own, self.state.index.sharding)

    def _new(self, key: random.Key, num_searches: int | None) -> _KeptSearches:
        """Returns what the searches begin with, all of which the first look starts."""
        if num_searches is None:
            number = len(self.split.devices)
            num_searches = number * self.plan.num_searches_for(-(-self.finds.wanted // number))
        state = self._blank(key, num_searches)
        index: Any = np.arange(num_searches, dtype=np.int32)
        state = state._replace(index=index, ancestor=index)
        return _KeptSearches(state, np.full(num_searches, _MAX_LOOKS, np.int32), None)

    def _blank(self, key: random.Key, num_searches: int) -> RunState:
        """Returns a state of zeros, like those to come, which takes no memory on the host.

        Raises:
          ValueError, MemoryError: if there are more searches than memory holds.
        """
        memory.check_size(np.broadcast_to(0, self.problem.capacity), num_searches)
        shape = starting.shape(self.problem, self.search, num_searches)
        parts, own = (self.problem, self.search), self.split.devices
        memory.check_fit(parts, memory.estimate(parts, shape, own), num_searches, own)
        zeros = jax.tree.map(
            lambda leaf: np.broadcast_to(np.zeros((), leaf.dtype), leaf.shape), shape
        )
        return zeros._replace(key=key)

    def _shapes_of(self, notes: dict[str, Any]) -> tuple[Any, Any]:
        num_searches = check_count("num_searches", notes["num_searches"], 1, None)
        state = self._blank(random.as_key(0), num_searches)
        numbers, queens = self.finds.shapes_of(Counts(*notes["counts"]))
        return _KeptSearches(state, state.index, numbers), queens

    def _recall(self, path: pathlib.Path) -> _KeptSearches:
        """Continues from a checkpoint, and returns what it has of the searches."""
        state, queens, notes = checkpoints.read(path, self.identity(), self._shapes_of)
        with checkpoints.notes_read():
            self._counts = Counts(*notes["counts"])
            self.finds.recall(state.numbers, queens, self._counts)
            self.made = self.step = check_count("made", notes["made"], 0, None)
            self._num_looks = check_count("num_looks", notes["num_looks"], 0, None)
            self.timer.before = checkpoints.seconds_of(notes)
        return state

    def identity(self) -> Identity:
        how = self.finds.distinct, self.plan.steps, self.plan.tries, _MAX_LOOKS
        return Identity(
            fingerprint(np.int32(self.problem.n)), fingerprint(self.search, repr(("searched", how)))
        )

    def snapshot(self) -> Snapshot:
        self.look()
        num = self._num_searches
        state = jax.device_get(self.split.join(self.state, num))
        numbers, queens = self.finds.kept(self._counts)
        notes = {
            "num_searches": num,
            "counts": self._counts,
            "made": self.made,
            "num_looks": self._num_looks,
            "seconds": self.timer.seconds,
            "fun": 0,
        }
        age = self.split.team.gathered(self._age).reshape(-1)[:num]
        return Snapshot(_KeptSearches(state, age, numbers), queens, notes)

    def advance(self, num_steps: int) -> None:
        """Finds out what was found, and starts the next steps; compiles, the first time.

        A last look changes no search: a checkpoint is of before it, so that a run with more steps
        has the same looks as if it had never ended.
        """
        if not num_steps:
            state, age, _ = self._look_at_searches()
            if not self._num_looks:
                self.state, self._age, self._num_looks = state, age, 1
            jax.block_until_ready(self._advanced(0))
            return
        left = math.inf if self.timer.max_steps is None else self.timer.max_steps - self.made
        with held_back():  # a checkpoint has all of it
            self.step, self._has_started, self._is_last = self.made, True, left <= 0
            since = self.made % self.plan.steps
            if self._is_last or not since:
                state, age, self._harvest = self._look_at_searches()
                if self._is_last:
                    return
                self.state, self._age, self._num_looks = state, age, self._num_looks + 1
            num_steps = int(min(num_steps - since, left))
            self.state = self._advanced(num_steps)
            self.made += num_steps

    def _look_at_searches(self) -> Any:
        """Returns the state, the ages, and what there is to take down, after a look."""
        look, program = np.uint32(self._num_looks), self._look_program
        own = self.problem, self.search, self.state, self._age
        return program.fn(*own, look, **program.static)

    def _advanced(self, num_steps: int) -> RunState:
        """Returns the state after some steps, which need not be made by then."""
        how = self._rules, self._choice.implementation
        return self.split.advance(self.problem, self.search, self.state, num_steps, *how)

    def look(self) -> object:
        """Takes down what was found, while the next steps are made."""
        if self._harvest is not None:
            gathered = self.split.team.gathered
            is_valid = gathered(self._harvest.is_valid)
            with held_back():  # a checkpoint has all of it
                if is_valid.any():
                    queens, words = gathered((self._harvest.queens, self._harvest.words))
                    self.finds.add(self.problem.host.own(queens[is_valid]), words[is_valid])
                self._counts = self._counts if self._is_last else self.finds.counts
                self._harvest = None

    def status(self, limit: Status) -> Status:
        status = self.finds.status()
        is_limited = status == Status.RUNNING and self._has_started
        return limit if is_limited else status

    def report(self, status: Status) -> Standing:
        return self.finds.standing(self.made, self.timer.seconds, status)

    def next_steps(self, made: int, seconds: float) -> int:
        return self.plan.steps


class _KeptRepairs(NamedTuple):
    """What a checkpoint keeps besides the placements: the key, and the numbers of placements."""

    key: random.Key
    numbers: Any


class Repairs:
    """A run that repairs one placement after the other: a `chunks.Chunked`, by rounds.

    Attributes:
      implementation: how steps are run.
      made: the most rounds that each placement may take, once one was tried.
      step: always 0: rounds are no steps of the run.
    """

    implementation = "xla"
    step = 0

    def __init__(self, problem: NQueens, key: random.Key, finds: PlacementSet, options: RunOptions):
        self._device = options.team.own[0]
        padded = problem.padded(padding.capacity_for(problem.n, _PER_DOUBLING))
        self.problem, self._key = jax.device_put((padded, key), self._device)
        self.finds, self.timer, self.made = finds, options.timer, 0
        # The limit is one of rounds of each placement; a failure ends the run where it is given.
        self._limit, self.timer.max_steps = self.timer.max_steps, None
        self._max_rounds = _MAX_ROUNDS if self._limit is None else self._limit
        self._number, self._has_failed = 0, False
        self._repair: Repair | None = None  # of the placement that is begun
        self._words: Any = None  # its fingerprint
        self._rounds, self._is_over = 0, False  # of the last chunk; whether it ended the repair
        if options.resume is not None:
            self._recall(checkpoints.read(options.resume, self.identity(), self._shapes_of))

    def _shapes_of(self, notes: dict[str, Any]) -> tuple[Any, Any]:
        numbers, queens = self.finds.shapes_of(Counts(*notes["counts"]))
        return _KeptRepairs(random.as_key(0), numbers), queens

    def _recall(self, saved: Snapshot) -> None:
        state, queens, notes = saved
        self._key = jax.device_put(state.key, self._device)
        with checkpoints.notes_read():
            self.finds.recall(state.numbers, queens, Counts(*notes["counts"]))
            self._number, self._has_failed = int(notes["number"]), bool(notes["has_failed"])
            self.made = self._max_rounds if self._number else 0
            self.timer.before = checkpoints.seconds_of(notes)

    def identity(self) -> Identity:
        how = "repaired", self.finds.distinct, self._limit
        return Identity(fingerprint(np.int32(self.finds.n)), fingerprint(repr(how)))

    def snapshot(self) -> Snapshot:
        counts = self.finds.counts
        numbers, queens = self.finds.kept(counts)
        notes = {
            "counts": counts,
            "number": self._number,
            "has_failed": self._has_failed,
            "seconds": self.timer.seconds,
            "fun": 0,
        }
        return Snapshot(_KeptRepairs(jax.device_get(self._key), numbers), queens, notes)

    @property
    def _own(self) -> tuple[random.Key, NQueens, Any]:
        """What the programs take first, of the placement that is next."""
        return self._key, self.problem, np.uint32(self._number)

    def prepare(self, note_needed: Callable[[int], None]) -> None:
        """Compiles.

        Args:
          note_needed: is told how many bytes a repair takes.

        Raises:
          MemoryError: if they are not free.
        """
        if not DeviceSplit((self._device,)).compiles_ahead:
            return
        state = jax.eval_shape(_begun.jitted, *self._own)
        state = devices.shapes(state, devices.only_on(self._device))
        arguments = *self._own, state, np.int32(self._max_rounds)
        program = Program(_continued, arguments, {"distinct": self.finds.distinct})
        compile_all([program, Program(_begun, self._own, {})])
        needed = program.temporaries() + memory.num_bytes((arguments, state))
        note_needed(needed)
        memory.check_bytes(needed, f"n is {self.finds.n}", self._device, "", "fewer queens")

    def advance(self, num_steps: int) -> None:
        """Begins a placement, unless one is begun, and makes this many rounds of it, at least 8."""
        if not num_steps:
            return
        state = _begun(*self._own) if self._repair is None else self._repair
        before = int(state.rounds)
        most = np.int32(min(before + num_steps, self._max_rounds))
        state, words = _continued(*self._own, state, most, distinct=self.finds.distinct)
        self._rounds = int(state.rounds) - before
        self._is_over = bool(state.num_attacked == 0) or self._rounds < num_steps
        self._repair, self._words = state, words

    def look(self) -> object:
        """Takes down the placement if it is valid."""
        if self._repair is not None and self._is_over:
            queens, num_attacked, words = jax.device_get(
                (self._repair.placed.queens, self._repair.num_attacked, self._words)
            )
            with held_back():  # a checkpoint has all of it
                self._has_failed = bool(num_attacked > 0)
                if not self._has_failed:
                    self.finds.add(self.problem.host.own(queens[None]), words[None])
                self._number, self.made = self._number + 1, self._max_rounds
                self._repair = None

    def status(self, limit: Status) -> Status:
        status = self.finds.status()
        if status == Status.RUNNING and self._has_failed and self._limit is not None:
            return Status.MAX_STEPS
        return limit if status == Status.RUNNING else status

    def report(self, status: Status) -> Standing:
        return self.finds.standing(self.made, self.timer.seconds, status)

    def next_steps(self, made: int, seconds: float) -> int:
        return self.timer.next_steps(0, self._rounds, seconds)


@jit
def _begun(key: random.Key, problem: NQueens, number: jax.Array) -> Repair:
    """Returns the repair of a placement before its first round.

    Args:
      key: of the run.
      number: [] uint32 of the placement.
    """
    own = random.instance_key(key, number)
    return begun(problem, problem.init(random.start_key(own, jnp.uint32(0))))


@functools.partial(jit, static_argnames="distinct")
def _continued(
    key: random.Key,
    problem: NQueens,
    number: jax.Array,
    state: Repair,
    max_rounds: jax.Array,
    *,
    distinct: Distinct,
) -> tuple[Repair, jax.Array]:
    """Returns a repair after `max_rounds` in all, [] int32, or once it is done; its fingerprint."""
    state = continued(random.instance_key(key, number), problem, state, max_rounds)
    return state, symmetry.fingerprint(state.placed.queens, distinct, problem.num_entries)
