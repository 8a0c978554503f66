"""The loop of a run on the host: chunks of steps, a clock, Ctrl-C, and who is told.

One loop, `drive`, serves all solvers; what differs between them is a `Chunked`.
"""

import contextlib
import math
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from jaxopt_search.checks import MAX_INT32
from jaxopt_search.driver.checkpoints import Identity, Snapshot
from jaxopt_search.engine.processes import ALONE, Team
from jaxopt_search.guards.interrupts import held_back
from jaxopt_search.results import Status

_CHUNK_SECONDS = 0.5
_MIN_CHUNK_SECONDS = 0.01
_CHUNKS_IN_A_LIMIT = 50  # if it is given in seconds, and they do not become too short
_MAX_GROWTH = 8
_FAILED = max(Status) + 1  # what observers have brought about in one of several processes


class Timer:
    """The clock of one call, which starts to count seconds once the first step can be made.

    Attributes:
      max_steps: the limit on steps; None for none.
      max_seconds: the limit on seconds of search; None for none.
      compile_seconds: from the call until the first step could be made; None until then.
      before: seconds of search in earlier calls, which the limit includes.
      team: the processes that go by this clock.
    """

    def __init__(self) -> None:
        self.max_steps: int | None = None
        self.max_seconds: float | None = None
        self.compile_seconds: float | None = None
        self.before = 0.0
        self.team = ALONE
        self._told = 0.0
        self._every = MAX_INT32
        self._called = time.perf_counter()

    def limit(self, max_steps: int | None, max_seconds: float | None) -> None:
        """Sets the limits, once they are checked."""
        self.max_steps, self.max_seconds = max_steps, max_seconds

    def start_search(self) -> None:
        """Takes note that all is compiled."""
        self.compile_seconds = self.elapsed

    def share(self, team: Team) -> None:
        """Has the lead's clock count in all processes, as it stands at the last `tick`."""
        self.team = team
        self.tick()

    def tick(self) -> None:
        """Asks the lead what time it is."""
        if self.team.is_shared:
            self._told = self.team.told(time.perf_counter() - self._called)

    @property
    def elapsed(self) -> float:
        """Seconds since the call."""
        return self._told if self.team.is_shared else time.perf_counter() - self._called

    @property
    def seconds(self) -> float:
        """Seconds of search."""
        if self.compile_seconds is None:
            return self.before
        return self.before + self.elapsed - self.compile_seconds

    @property
    def is_over(self) -> bool:
        """Whether the seconds are over."""
        return self.max_seconds is not None and self.seconds >= self.max_seconds

    def status(self, step: int) -> Status:
        """Returns which limit is reached after `step` steps; `RUNNING` if none is."""
        if self.max_steps is not None and step >= self.max_steps:
            return Status.MAX_STEPS
        return Status.MAX_SECONDS if self.is_over else Status.RUNNING

    def next_steps(
        self, step: int, made: int, took: float, first: int = 1, every: int = MAX_INT32
    ) -> int:
        """Returns the steps of the next chunk, at least 1, if no limit is reached.

        An exchange may take as long as thousands of steps, and the last chunk may have had none: so
        the next one has one, or at most twice as many as the last one.

        Args:
          step: steps so far.
          made: steps of the last chunk, 0 if there was none.
          took: its seconds.
          first: steps of the first chunk; of 1, as steps may be slow.
          every: steps between exchanges in the next chunk.
        """
        left_seconds = math.inf if self.max_seconds is None else self.max_seconds - self.seconds
        share = (self.max_seconds or math.inf) / _CHUNKS_IN_A_LIMIT
        wanted = min(_CHUNK_SECONDS, max(share, _MIN_CHUNK_SECONDS), left_seconds)
        size = steps_for(wanted, made, took) if made else first
        num_exchanges, self._every = made // self._every, every
        size = min(size, every * max(1, 2 * num_exchanges))
        left_steps = MAX_INT32 if self.max_steps is None else self.max_steps - step
        return max(1, min(size, left_steps, MAX_INT32))


def steps_for(wanted: float, num_steps: int, seconds: float) -> int:
    """Returns how many steps take about `wanted` seconds if `num_steps` took `seconds`.

    Not many times more than those, which may have been too few to tell.
    """
    return max(1, int(num_steps * min(wanted / max(seconds, 1e-9), _MAX_GROWTH)))


class Chunked(Protocol):
    """A run as `drive` sees it."""

    @property
    def step(self) -> int:
        """Steps of each search at the last look."""
        ...

    def advance(self, num_steps: int) -> None:
        """Makes a chunk of steps. The first one has none: it compiles."""
        ...

    def look(self) -> object:
        """Looks at what the chunk has brought."""
        ...

    def status(self, limit: Status) -> Status:
        """Returns whether the run ends here, and why.

        Args:
          limit: which limit of steps or seconds is reached; `RUNNING` if none is.
        """
        ...

    def report(self, status: Status) -> Any:
        """Returns what observers are told of the chunk."""
        ...

    def next_steps(self, made: int, seconds: float) -> int:
        """Returns the steps of the next chunk, after one of `made` steps in `seconds`."""
        ...

    def identity(self) -> Identity:
        """Returns fingerprints of what a run has to be given to continue this one."""
        ...

    def snapshot(self) -> Snapshot:
        """Returns what a checkpoint keeps, from which the run continues; also when interrupted."""
        ...


def never() -> bool:
    """Returns False."""
    return False


def drive(
    run: Chunked,
    timer: Timer,
    observers: Sequence[Callable[[Any], Any]] = (),
    is_interrupted: Callable[[], bool] = never,
    keep: Callable[[], object] | None = None,
) -> Status:
    """Makes chunks of a run until it ends, and returns why it did.

    Ctrl-C ends it after the first chunk; before, there is nothing to return, and it is raised. In
    one of several processes it ends the run in all of them, as a callback does.

    Args:
      timer: starts to count seconds of search after the first chunk.
      observers: are called with each report; True ends the run.
      is_interrupted: of one of several processes, whether a Ctrl-C has come to it.
      keep: is called after each chunk but the last one, if all processes continue.
    """
    status, num_steps = Status.RUNNING, 0
    try:
        while status == Status.RUNNING:
            seconds = _make_chunk(run, timer, num_steps)
            status = run.status(timer.status(run.step))
            report = run.report(status) if observers else None
            wish = _wish(timer.team, observers, report)
            wish = Status.INTERRUPTED if is_interrupted() else wish
            status = _agreed(timer.team, status, wish)
            if keep is not None and status == Status.RUNNING:
                keep()
            num_steps = run.next_steps(num_steps, seconds)
    except KeyboardInterrupt:
        if timer.compile_seconds is None or timer.team.is_shared:
            raise
        if status == Status.RUNNING:
            status = Status.INTERRUPTED
    return status


def _wish(team: Team, observers: Sequence[Callable[[Any], Any]], report: Any) -> Status:
    """Returns whether observers of this process want the run to end; all of them are asked."""
    try:
        answers = [is_true(observe(report)) for observe in observers]
    except Exception:
        with contextlib.suppress(Exception):
            team.highest(_FAILED)
        raise
    return Status.CALLBACK if any(answers) else Status.RUNNING


def _agreed(team: Team, status: Status, wish: Status) -> Status:
    """Returns how a run stands after what all processes want.

    Raises:
      RuntimeError: if another one has failed.
    """
    highest = team.highest(wish)
    if highest == _FAILED:
        raise RuntimeError("a callback has failed in another process; its error says why")
    return Status(highest) if status == Status.RUNNING else status


def _make_chunk(run: Chunked, timer: Timer, num_steps: int) -> float:
    """Returns the seconds that a chunk takes; while the first one compiles, Ctrl-C is held back."""
    is_first, began = timer.compile_seconds is None, timer.elapsed
    with held_back() if is_first else contextlib.nullcontext():
        run.advance(num_steps)
        timer.tick()
        seconds = timer.elapsed - began
        run.look()
        timer.tick()  # a look compiles, the first time
    if is_first:
        timer.start_search()
    return seconds


def is_true(answer: Any) -> bool:
    """Returns whether a callback asks to stop: by True, also of NumPy or JAX.

    Raises:
      TypeError: for anything but True, False and None.
    """
    is_array = str(getattr(answer, "dtype", "")) == "bool" and np.shape(answer) == ()
    if answer is None or isinstance(answer, bool) or is_array:
        return bool(answer)
    raise TypeError(
        f"callback returned a {type(answer).__name__}, expected True, False or None; or a Steer, in"
        " solve"
    )
