"""The loop of a run on the host: chunks of steps, Ctrl-C, checkpoints, and who is told.

One loop, `drive`, serves all solvers; what differs between them is a `Chunked`.
"""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from jaxopt_search.driver import progress
from jaxopt_search.driver.checkpoints import Identity, Snapshot
from jaxopt_search.driver.options import RunOptions
from jaxopt_search.engine.memory import memory_errors_explained
from jaxopt_search.interrupts import held_back, noted, sigterm_as_ctrl_c
from jaxopt_search.results import Status

_FAILED = max(Status) + 1  # what observers have brought about in one of several processes


class Chunked(Protocol):
    """A run as `drive` sees it."""

    step: int
    """Steps of each search at the last look."""

    @property
    def observers(self) -> Sequence[Callable[[Any], Any]]:
        """Who is called with each report; True ends the run."""
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

    def result(self, status: Status) -> Any:
        """Returns the result of the run, which has ended."""
        ...


def drive(options: RunOptions, what: str, begin: Callable[[Callable[[int], None]], Chunked]) -> Any:
    """Makes chunks of a run until it ends, keeps it, however it ends, and returns its result.

    Ctrl-C ends it after the first chunk; before, there is nothing to return, and it is raised. In
    one of several processes it ends the run in all of them, as a callback does. A result takes all
    processes that share the run: until it is there, SIGTERM ends none of them alone where there is
    a checkpoint, and a first Ctrl-C none at all.

    Who has ended the run by Ctrl-C does not wait for the last checkpoint after another Ctrl-C. Else
    the first one comes too late to end the run, and the second one ends the writing.

    Args:
      options: whose timer starts to count seconds of search after the first chunk.
      what: asks for memory, in errors: `"num_searches=8"`.
      begin: returns the run, ready for its first chunk; it is given what notes the bytes needed.
    """
    keeper, team = options.keeper, options.team
    options.timer.share(team)
    with contextlib.ExitStack() as stack:
        note_needed = stack.enter_context(memory_errors_explained(what))
        if keeper is not None:
            stack.enter_context(sigterm_as_ctrl_c())
        is_interrupted = stack.enter_context(noted()) if team.is_shared else bool
        stack.enter_context(team.losses_explained())
        show = stack.enter_context(progress.shown(options.show_progress, options.timer))
        run = begin(note_needed)
        observers = run.observers if show is None else [*run.observers, show]
        if keeper is None:
            status = _drive(run, options, observers, is_interrupted)
        else:
            run.identity()  # what has none is refused before a search
            try:
                status = _drive(run, options, observers, is_interrupted)
            except BaseException as error:
                wait = contextlib.nullcontext() if isinstance(error, KeyboardInterrupt) else noted()
                if not team.is_shared:  # one process alone has not what all have
                    with contextlib.suppress(Exception), wait:
                        keeper.write(run.identity(), run.snapshot)
                raise
            with contextlib.nullcontext() if status == Status.INTERRUPTED else noted():
                keeper.write(run.identity(), run.snapshot)
        if show is not None and status == Status.INTERRUPTED:
            show(run.report(status))
        return run.result(status)


def _drive(
    run: Chunked,
    options: RunOptions,
    observers: Sequence[Callable[[Any], Any]],
    is_interrupted: Callable[[], bool],
) -> Status:
    """Makes chunks of a run until it ends, and returns why it did; keeps it after each but one.

    While the first chunk compiles, Ctrl-C is held back.

    Args:
      observers: are called with each report; True ends the run.
      is_interrupted: of one of several processes, tells whether a Ctrl-C has come to it.

    Raises:
      RuntimeError: if another process has failed.
    """
    timer, team, keeper = options.timer, options.team, options.keeper
    status, num_steps = Status.RUNNING, 0
    try:
        while status == Status.RUNNING:
            is_first, began = timer.compile_seconds is None, timer.elapsed
            with held_back() if is_first else contextlib.nullcontext():
                run.advance(num_steps)
                timer.tick()
                seconds = timer.elapsed - began
                run.look()
                timer.tick()  # a look compiles, the first time
            if is_first:
                timer.start_search()
            status = run.status(timer.status(run.step))
            report = run.report(status) if observers else None
            try:
                answers = [is_true(observe(report)) for observe in observers]  # all are asked
            except Exception:
                with contextlib.suppress(Exception):
                    team.highest(_FAILED)
                raise
            wish = Status.CALLBACK if any(answers) else Status.RUNNING
            wish = team.highest(Status.INTERRUPTED if is_interrupted() else wish)
            if wish == _FAILED:
                raise RuntimeError("a callback has failed in another process; its error says why")
            status = Status(wish) if status == Status.RUNNING else status
            if keeper is not None and status == Status.RUNNING and keeper.is_due:
                keeper.write(run.identity(), run.snapshot)
            num_steps = run.next_steps(num_steps, seconds)
    except KeyboardInterrupt:
        if timer.compile_seconds is None or team.is_shared:
            raise
        if status == Status.RUNNING:
            status = Status.INTERRUPTED
    return status


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
