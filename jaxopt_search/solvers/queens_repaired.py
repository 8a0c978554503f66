"""Valid placements of many queens, each repaired from a start of its own."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxopt_search.backends import random
from jaxopt_search.driver import checkpoints
from jaxopt_search.driver.checkpoints import Identity, Snapshot
from jaxopt_search.driver.options import RunOptions
from jaxopt_search.engine import memory
from jaxopt_search.engine.compile import Program, compile_all, jit
from jaxopt_search.engine.devices import only_on, shapes
from jaxopt_search.engine.fingerprints import fingerprint
from jaxopt_search.engine.split import DeviceSplit
from jaxopt_search.interrupts import held_back
from jaxopt_search.problems import padding
from jaxopt_search.problems.queens import symmetry
from jaxopt_search.problems.queens.problem import NQueens
from jaxopt_search.problems.queens.symmetry import Distinct
from jaxopt_search.results import Status
from jaxopt_search.searches.queens_repair import Repair, begun, continued
from jaxopt_search.solvers.queens_found import Counts, PlacementSet, Standing

_MAX_ROUNDS = 10_000
_PER_DOUBLING = 8
"""Sizes of problems: rounds take longer the more room there is."""


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

    def __init__(
        self,
        problem: NQueens,
        key: random.Key,
        finds: PlacementSet,
        options: RunOptions,
        max_rounds: int | None,
    ):
        padded = problem.padded(padding.capacity_for(problem.n, _PER_DOUBLING))
        self.problem, self._key = jax.device_put((padded, key), options.team.own[0])
        self.finds, self.timer, self.made = finds, options.timer, 0
        self._max_rounds = _MAX_ROUNDS if max_rounds is None else max_rounds
        self._ends_at_failure = max_rounds is not None
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
        self._key = jax.device_put(state.key, self._key.first.device)
        with checkpoints.notes_read():
            self.finds.recall(state.numbers, queens, Counts(*notes["counts"]))
            self._number, self._has_failed = int(notes["number"]), bool(notes["has_failed"])
            self.made = self._max_rounds if self._number else 0
            self.timer.before = checkpoints.seconds_of(notes)

    def identity(self) -> Identity:
        max_rounds = self._max_rounds if self._ends_at_failure else None
        how = "repaired", self.finds.distinct, max_rounds
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

    def _program(self, state: Any = None) -> Program:
        """Returns the program that begins a repair or, of the state of one, continues it."""
        own = self._key, self.problem, np.uint32(self._number)
        if state is None:
            return Program(_begun, own, {})
        most = np.int32(self._max_rounds)
        return Program(_continued, (*own, state, most), {"distinct": self.finds.distinct})

    def prepare(self, note_needed: Callable[[int], None]) -> None:
        """Compiles.

        Args:
          note_needed: is told how many bytes a repair takes.

        Raises:
          MemoryError: if they are not free.
        """
        begin, device = self._program(), self._key.first.device
        if not DeviceSplit((device,)).compiles_ahead:
            return
        state = jax.eval_shape(_begun.jitted, *begin.arguments)
        state = shapes(state, only_on(device))
        program = self._program(state)
        compile_all([program, begin])
        needed = program.temporaries() + memory.num_bytes((program.arguments, state))
        note_needed(needed)
        memory.check_bytes(needed, f"n is {self.finds.n}", device, "", "fewer queens")

    def advance(self, num_steps: int) -> None:
        """Begins a placement, unless one is begun, and makes this many rounds of it, at least 8."""
        if not num_steps:
            return
        state = self._repair
        if state is None:
            begin = self._program()
            state = begin.fn(*begin.arguments)
        before = int(state.rounds)
        *own, _ = (program := self._program(state)).arguments
        most = np.int32(min(before + num_steps, self._max_rounds))
        state, words = program.fn(*own, most, **program.static)
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
        if status == Status.RUNNING and self._has_failed and self._ends_at_failure:
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
