"""Valid placements of queens that searches find side by side.

At fixed distances the searches that stand at a valid placement are found out: it is taken down, and
they restart, as do those that have tried for long.
"""

import math
import pathlib
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxopt_search.backends import random
from jaxopt_search.backends.counts import Steps
from jaxopt_search.checks import check_count
from jaxopt_search.driver import checkpoints
from jaxopt_search.driver.checkpoints import Identity, Snapshot
from jaxopt_search.driver.options import RunOptions
from jaxopt_search.engine import memory, stepping
from jaxopt_search.engine.compile import Program, compile_all
from jaxopt_search.engine.devices import platform_of, split_leaf
from jaxopt_search.engine.fingerprints import fingerprint
from jaxopt_search.engine.split import DeviceSplit
from jaxopt_search.engine.state import RunState, Since, make_rules
from jaxopt_search.interrupts import held_back
from jaxopt_search.neighborhoods.queen_swap import CountedQueens, QueenSwap
from jaxopt_search.problems.queens.problem import NQueens
from jaxopt_search.results import Status
from jaxopt_search.searches.min_conflicts import MinConflicts, MinConflictsState
from jaxopt_search.solvers import queens_plans, queens_programs
from jaxopt_search.solvers.queens_found import Counts, PlacementSet, Standing, dtype_of
from jaxopt_search.solvers.queens_programs import MAX_LOOKS, Harvest
from jaxopt_search.types import Info


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
        self.plan = queens_plans.plan_of(problem.n, platform_of(self.split.first))
        self.search = queens_plans.search_of(self.plan)
        self._choice = stepping.choose("auto", self.split.first, self.problem, self.search)
        self.implementation, self.made, self.step = str(self._choice), 0, 0
        self._num_looks, self._counts = 0, finds.counts  # these are what checkpoints have
        resumed = options.resume
        begin = self._new(key, num_searches) if resumed is None else self._recalled(resumed)
        self._begin, self._num_searches = begin, len(begin.age)
        self._rules = make_rules(self.search, begin.searches.best_cost.dtype)
        self._harvest_program = self._program_of_a_look(begin.searches)
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
        note_needed(self._compiled_ahead(self._begin.searches))
        with held_back(), jax.default_device(self.split.first):
            state = jax.device_put(self._begin.searches)
        self.state = self.split.split(state)
        self._age = self._own(self._begin.age)

    def _new(self, key: random.Key, num_searches: int | None) -> _KeptSearches:
        """Returns what the searches begin with, all of which the first look starts."""
        devices = self.split.devices
        if num_searches is None:
            each = queens_plans.num_searches_for(self.plan, -(-self.finds.wanted // len(devices)))
            num_searches = each * len(devices)
        state = self._blank(key, num_searches)
        index: Any = np.arange(num_searches, dtype=np.int32)
        state = state._replace(index=index, ancestor=index)
        return _KeptSearches(state, np.full(num_searches, MAX_LOOKS, np.int32), None)

    def _blank(self, key: random.Key, num_searches: int) -> RunState:
        """Returns a state like those to come, of no more searches than memory holds."""
        memory.check_size(np.broadcast_to(0, self.problem.capacity), num_searches)
        state = blank(key, self.problem, self.search, num_searches)
        parts, devices = (self.problem, self.search), self.split.devices
        memory.check_fit(parts, memory.estimate(parts, state, devices), num_searches, devices)
        return state

    def _shapes_of(self, notes: dict[str, Any]) -> tuple[Any, Any]:
        num_searches = check_count("num_searches", notes["num_searches"], 1, None)
        state = self._blank(random.as_key(0), num_searches)
        numbers, queens = self.finds.shapes_of(Counts(*notes["counts"]))
        return _KeptSearches(state, state.index, numbers), queens

    def _recalled(self, path: pathlib.Path) -> _KeptSearches:
        """Continues from a checkpoint, and returns what it has of the searches."""
        state, queens, notes = checkpoints.read(path, self.identity(), self._shapes_of)
        with checkpoints.notes_read():
            self._counts = Counts(*notes["counts"])
            self.finds.recall(state.numbers, queens, self._counts)
            self.made = self.step = check_count("made", notes["made"], 0, None)
            self._num_looks = check_count("num_looks", notes["num_looks"], 0, None)
            self.timer.before = checkpoints.seconds_of(notes)
        return state

    def _own(self, age: np.ndarray) -> Any:
        """Returns the ages of all searches as `split` splits them."""
        number = len(self.split.devices)
        if number == 1:
            return self.split.bring(age)
        own = split_leaf(number, age)[self.split.team.rows]
        return jax.device_put(own, self.state.index.sharding)

    def identity(self) -> Identity:
        how = self.finds.distinct, self.plan.steps, self.plan.tries, MAX_LOOKS
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

    def _program_of_a_look(self, state: RunState) -> Program:
        """Returns the program that looks at states like this one."""
        own = self.problem, self.search
        return queens_programs.harvest(
            self.split, *own, self.split.shapes(state, *own), self.finds.distinct, self.plan.tries
        )

    def _compiled_ahead(self, state: RunState) -> int:
        """Compiles side by side, and returns the bytes that the run takes, if they are free.

        Raises:
          MemoryError: if they are not.
        """
        parts, devices = (self.problem, self.search), self.split.devices
        programs, found = dict[str, Program](), dict[str, int]()
        if self.split.compiles_ahead:
            how = self._rules, self._choice.implementation
            programs = self.split.programs(*parts, state, *how)
            programs["look"] = self._harvest_program
            compile_all(programs.values())
            found = {name: program.temporaries() for name, program in programs.items()}
        needed = memory.estimate(
            parts,
            state,
            devices,
            solution=queens_programs.taken_down(self.problem),
            temporaries=found,
            states_at_a_look=2,
        )
        memory.check_fit(parts, needed, len(state.index), devices)
        return needed.total

    def advance(self, num_steps: int) -> None:
        """Finds out what was found, and starts the next steps; compiles, the first time.

        A last look changes no search: a checkpoint is of before it, so that a run with more steps
        has the same looks as if it had never ended.
        """
        if not num_steps:
            self._start()
            return
        left = math.inf if self.timer.max_steps is None else self.timer.max_steps - self.made
        with held_back():  # a checkpoint has all of it
            self.step, self._has_started, self._is_last = self.made, True, left <= 0
            since = self.made % self.plan.steps
            if self._is_last or not since:
                state, age, self._harvest = self._harvested()
                if self._is_last:
                    return
                self.state, self._age, self._num_looks = state, age, self._num_looks + 1
            num_steps = int(min(num_steps - since, left))
            self.state = self._advanced(num_steps)
            self.made += num_steps

    def _start(self) -> None:
        """Compiles, and starts the searches if they have not started."""
        state, age, _ = self._harvested()
        if not self._num_looks:
            self.state, self._age, self._num_looks = state, age, 1
        jax.block_until_ready(self._advanced(0))

    def _harvested(self) -> Any:
        """Returns the state, the ages, and what there is to take down, after a look."""
        look, program = np.uint32(self._num_looks), self._harvest_program
        own = self.problem, self.search, self.state, self._age
        return program.fn(*own, look, **program.static)

    def _advanced(self, num_steps: int) -> RunState:
        """Returns the state after some steps, which need not be made by then."""
        return self.split.advance(
            self.problem,
            self.search,
            self.state,
            num_steps,
            self._rules,
            self._choice.implementation,
        )

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


def blank(key: random.Key, problem: NQueens, search: MinConflicts, num_searches: int) -> RunState:
    """Returns a state of searches that have not started, all with index 0.

    Nothing is traced or compiled for it, and its arrays take no memory on the host.
    """

    def zeros(dtype: Any, *shape: int) -> Any:
        return np.broadcast_to(np.zeros((), dtype), (num_searches, *shape))

    n, small = problem.capacity, dtype_of(problem.capacity)
    diagonals, cost = zeros(small, 2 * n), zeros(np.int32)
    placed = CountedQueens(zeros(small, n), diagonals, diagonals)
    number: Any = np.int32(0)
    none: Any = np.uint32(0)
    word = zeros(np.uint32)
    return RunState(
        key=key,
        step=Steps(none, none),
        since=Since(number, number, number),
        best_cost=number,
        device_best=number,
        device_tested=number,
        stale=number,
        status=number + np.int32(Status.RUNNING),
        index=cost,
        searches=MinConflictsState(
            placed, cost, QueenSwap().snapshot(placed), cost, zeros(np.int32, search.num_places)
        ),
        ancestor=cost,
        hit=Steps(word, word),
        info=Info(accepted=cost),
    )
