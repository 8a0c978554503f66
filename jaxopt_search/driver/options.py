"""What a call asks of its run, whatever is searched: checked and resolved once, at the door."""

import dataclasses
import math
import pathlib
import time
from collections.abc import Callable
from typing import Any

from jaxopt_search.checks import MAX_INT32, MAX_STEPS, check_count, check_number
from jaxopt_search.driver import checkpoints
from jaxopt_search.engine.devices import ALONE, Devices, Team, find_devices
from jaxopt_search.files import archive_path
from jaxopt_search.results import Status

DEFAULT_SECONDS = 10.0
"""Of the one-liners, where no limit is given."""
_CHUNK_SECONDS = 0.5
_MIN_CHUNK_SECONDS = 0.01
_CHUNKS_IN_A_LIMIT = 50  # if it is given in seconds, and they do not become too short
_MAX_GROWTH = 8
_FASTER = 1.25  # times as many steps in a second


class Timer:
    """The clock of one call and its limits; it counts seconds once the first step can be made.

    Attributes:
      max_steps: the limit on steps; None for none.
      max_seconds: the limit on seconds of search; None for none.
      compile_seconds: from the call until the first step could be made; None until then.
      before: seconds of search in earlier calls, which the limit includes.
      team: the processes that go by this clock.
    """

    def __init__(self, max_steps: int | None = None, max_seconds: float | None = None) -> None:
        self.max_steps, self.max_seconds = max_steps, max_seconds
        self.compile_seconds: float | None = None
        self.before = 0.0
        self.team = ALONE
        self._told = 0.0
        self._every = MAX_INT32
        # Of chunks so far: the most steps in a second, how many make a longer one worth trying, and
        # the shortest in seconds.
        self._rate, self._tried, self._shortest = 0.0, 1, math.inf
        self._called = time.perf_counter()

    def start_search(self) -> None:
        """Takes note that all is compiled."""
        self.compile_seconds = self.elapsed

    def tick(self) -> None:
        """Asks the lead for its time: where processes share a run, only its clock counts."""
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

    def status(self, step: int) -> Status:
        """Returns which limit is reached after `step` steps; `RUNNING` if none is."""
        if self.max_steps is not None and step >= self.max_steps:
            return Status.MAX_STEPS
        is_over = self.max_seconds is not None and self.seconds >= self.max_seconds
        return Status.MAX_SECONDS if is_over else Status.RUNNING

    def next_steps(
        self, step: int, made: int, took: float, first: int = 1, every: int = MAX_INT32
    ) -> int:
        """Returns the steps of the next chunk, at least 1, if no limit is reached.

        A chunk of many instances may take most of its time for itself: chunks get longer as long as
        that makes steps a quarter faster. An exchange may take as long as thousands of steps,
        and the last chunk may have had none: so the next one has one, or at most twice as many as
        the last one.

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
        if made:
            self._shortest, rate = min(self._shortest, took), made / max(took, 1e-9)
            if rate > _FASTER * self._rate:
                self._rate, self._tried = rate, _MAX_GROWTH * made
            if size <= made:
                longest = min(left_seconds / 4, max(_CHUNK_SECONDS, 10 * self._shortest))
                most = min(_MAX_GROWTH * made, int(rate * min(longest, 1e9)))
                size = max(size, min(self._tried, most))
        num_exchanges, self._every = made // self._every, every
        size = min(size, every * max(1, 2 * num_exchanges))
        left_steps = MAX_INT32 if self.max_steps is None else self.max_steps - step
        return max(1, min(size, left_steps, MAX_INT32))


def steps_for(wanted: float, num_steps: int, seconds: float) -> int:
    """Returns how many steps take about `wanted` seconds if `num_steps` took `seconds`.

    Not many times more than those, which may have been too few to tell.
    """
    return max(1, int(num_steps * min(wanted / max(seconds, 1e-9), _MAX_GROWTH)))


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What a call asks of its run, resolved.

    Attributes:
      timer: the clock, which started at the call, with the limits of steps and seconds.
      team: the devices, and the processes that share them.
      keeper: what writes checkpoints; None if none are wanted.
      resume: the checkpoint to continue from, which is there; None for none.
      callback: as in `solve`.
      history_size: lines of history.
      show_progress: as in `solve`.
    """

    timer: Timer
    team: Team = ALONE
    keeper: checkpoints.Keeper | None = None
    resume: pathlib.Path | None = None
    callback: Callable[[Any], Any] | None = None
    history_size: int = 1000
    show_progress: bool = False

    @property
    def devices(self) -> tuple[Any, ...]:
        """The devices of all processes that share the run."""
        return self.team.devices


def resolve(
    *,
    devices: Devices = "all",
    max_steps: Any = None,
    max_seconds: Any = None,
    checkpoint: Any = None,
    checkpoint_every: Any = checkpoints.DEFAULT_SECONDS,
    resume: Any = None,
    show_progress: bool = False,
    callback: Any = None,
    history_size: Any = 1000,
    default_seconds: float | None = DEFAULT_SECONDS,
) -> RunOptions:
    """Returns the options of a call, arguments as in `solve`.

    To be asked once in a call: there may be a new file since.

    Args:
      default_seconds: the limit where none is given.

    Raises:
      ValueError, TypeError, OSError: if one is out of range, or no checkpoint can be written; in
        all processes that share the run.
    """
    timer = Timer()  # before devices are started
    timer.team = team = Team(find_devices(devices))
    with team.same_call() as note:
        if max_steps is max_seconds is None:
            max_seconds = default_seconds
        if max_steps is not None:
            timer.max_steps = check_count("max_steps", max_steps, 0, MAX_STEPS)
        if max_seconds is not None:
            timer.max_seconds = check_number("max_seconds", max_seconds, 0)
        if callback is not None and not callable(callback):
            kind = type(callback).__name__
            raise TypeError(f"callback is a {kind}, expected a function or None")
        history_size = check_count("history_size", history_size, 2, None)
        path, keeper = None, None
        if resume is True:
            if checkpoint is None:
                raise ValueError("resume is True without a checkpoint, expected a path")
            path = archive_path(checkpoint, "checkpoint")
            path = path if path.exists() else None
        elif resume is not None and resume is not False:
            path = archive_path(resume, "resume")
        if checkpoint is not None:
            keeper = checkpoints.Keeper(checkpoint, checkpoint_every, path, team)
        note(timer.max_steps, timer.max_seconds, resume is True, path is None)
        note(keeper is None, callback is None)
    return RunOptions(
        timer=timer,
        team=team,
        keeper=keeper,
        resume=path,
        callback=callback,
        history_size=history_size,
        show_progress=show_progress,
    )
