"""The loop of a run on the host: chunks of steps, Ctrl-C, checkpoints, progress, and who is told.

One loop, `drive`, serves all solvers; what differs between them is a `Chunked`.
"""

import contextlib
import importlib
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TextIO

import numpy as np

from jaxopt_search.driver.checkpoints import Identity, Snapshot
from jaxopt_search.driver.options import RunOptions, Timer
from jaxopt_search.engine.memory import memory_errors_explained
from jaxopt_search.interrupts import held_back, noted, sigterm_as_ctrl_c
from jaxopt_search.results import Status

_FAILED = max(Status) + 1  # an observer has failed in one of several processes
_SECONDS_BETWEEN_LINES = 5.0
_SIZE = 79, 24  # columns and rows of a terminal that does not say how many it has
_BAR, _COUNTER = "{percentage:3.0f}%|{bar}| {remaining} left  {desc}", "{desc}"


class Chunked(Protocol):
    """A run as `drive` sees it."""

    options: RunOptions
    """Their timer starts to count seconds of search after the first chunk."""
    what: str
    """What asks for memory, in errors: `"num_searches=8"`."""
    step: int
    """Steps of each search at the last look."""

    @property
    def observers(self) -> Sequence[Callable[[Any], Any]]:
        """Who is called with each report; True ends the run."""
        ...

    def begin(self) -> None:
        """Makes it ready for its first chunk, and compiles; Ctrl-C waits for it."""
        ...

    def advance(self, num_steps: int) -> None:
        """Makes a chunk of steps. The first one has none: it compiles."""
        ...

    def look(self) -> object:
        """Looks at the outcome of the chunk."""
        ...

    def status(self, limit: Status) -> Status:
        """Returns whether the run ends here, and why.

        Args:
          limit: which limit of steps or seconds is reached; `RUNNING` if none is.
        """
        ...

    def report(self, status: Status) -> Any:
        """Returns the report for the observers."""
        ...

    def next_steps(self, made: int, seconds: float) -> int:
        """Returns the steps of the next chunk, after one of `made` steps in `seconds`."""
        ...

    def identity(self) -> Identity:
        """Returns the fingerprints that a run must share to continue this one."""
        ...

    def snapshot(self) -> Snapshot:
        """Returns the snapshot from which a run can continue; also when interrupted."""
        ...

    def result(self, status: Status) -> Any:
        """Returns the result of the run, which has ended."""
        ...


def drive(run: Chunked) -> Any:
    """Makes chunks of a run until it ends, keeps it, however it ends, and returns its result.

    While the run begins and its first chunk compiles, Ctrl-C is held back. It ends the run after
    that chunk; before, there is nothing to return, and it is raised. In one of several processes it
    ends the run in all of them, as a callback does. A result takes all processes that share the
    run: until it is there, SIGTERM ends none of them alone where there is a checkpoint, and a first
    Ctrl-C none at all.

    After a run that Ctrl-C has ended, another Ctrl-C ends the writing of the last checkpoint. After
    other runs, it takes two.

    Raises:
      ValueError: if another process is to make another run.
      RuntimeError: if another process has failed.
    """
    options = run.options
    timer, team, keeper = options.timer, options.team, options.keeper
    timer.tick()
    with contextlib.ExitStack() as stack:
        stack.enter_context(memory_errors_explained(run.what))
        if keeper is not None:
            stack.enter_context(sigterm_as_ctrl_c())
        is_interrupted: Callable[[], bool] = bool
        if team.is_shared:
            is_interrupted = stack.enter_context(noted())
            stack.enter_context(team.losses_explained())
        show = stack.enter_context(shown(timer)) if options.show_progress else None
        with held_back():
            run.begin()
        observers = run.observers if show is None else [*run.observers, show]
        if keeper is not None:
            run.identity()  # what has none is refused before a search
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
                    raise RuntimeError(
                        "a callback has failed in another process; its error says why"
                    )
                status = Status(wish) if status == Status.RUNNING else status
                if keeper is not None and status == Status.RUNNING and keeper.is_due:
                    keeper.write(run.identity(), run.snapshot)
                num_steps = run.next_steps(num_steps, seconds)
        except BaseException as error:
            is_ctrl_c = isinstance(error, KeyboardInterrupt)
            if not is_ctrl_c or timer.compile_seconds is None or team.is_shared:
                if keeper is not None and not team.is_shared:  # one alone has not what all have
                    wait = contextlib.nullcontext() if is_ctrl_c else noted()
                    with contextlib.suppress(Exception), wait:
                        keeper.write(run.identity(), run.snapshot)
                raise
            status = Status.INTERRUPTED if status == Status.RUNNING else status
        if keeper is not None:
            with contextlib.nullcontext() if status == Status.INTERRUPTED else noted():
                keeper.write(run.identity(), run.snapshot)
        if show is not None and status == Status.INTERRUPTED:
            show(run.report(status))
        return run.result(status)


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


# Where a run stands, on standard error: a bar of tqdm, or plain lines.


class Reporter:
    """Shows where a run stands: each `Report`, or what else has its `line`, `step` and `status`.

    With tqdm (the extra `progress`), terminals and notebooks have a bar, which shows how much of
    `max_seconds` is used or, where that is not limited, of `max_steps`; with no limit, one line.
    Elsewhere (a file, a pipe), and without tqdm, plain lines are written every few seconds.

    It raises nothing, so that no run is lost because of it: after its first failure, such as a
    closed stream, it warns once and shows nothing more.

    Args:
      stream: where to write; None for standard error, or the notebook.
      timer: with the limits of the run; None if it has none.
    """

    def __init__(self, stream: TextIO | None = None, timer: Timer | None = None):
        self._stream = stream
        self._timer = Timer() if timer is None else timer
        self._out: Any = None  # the stream
        self._bar: Any = None
        self._is_searching = self._has_failed = False
        self._shown_at = -float("inf")

    def __call__(self, report: Any) -> None:
        if not self._has_failed:
            with self._safely():
                self._show(report, report.line)

    def note_compiling(self) -> None:
        """Shows that the programs of the run compile."""
        with self._safely():
            self._show(None, f"compiling ({self._timer.elapsed:.1f} s so far)")

    def close(self) -> None:
        """Ends the bar."""
        with self._safely():
            if self._bar is not None and not self._has_failed:
                self._bar.close()

    def _show(self, report: Any, text: str) -> None:
        """Shows a text on a report; None for one before the search."""
        out = self._out if self._out is not None else self._open()
        is_last = report is not None and report.status != Status.RUNNING
        if self._bar is not None:
            self._bar.set_description_str(text, refresh=report is None)
            if report is not None:
                self._move(report)
            if is_last:
                self._bar.close()
            return
        now = time.monotonic()
        if report is None or is_last or now - self._shown_at >= _SECONDS_BETWEEN_LINES:
            out.write(text + "\n")
            out.flush()
            self._shown_at = self._shown_at if report is None else now

    def _open(self) -> TextIO:
        self._out = out = sys.stderr if self._stream is None else self._stream
        in_notebook = self._stream is None and "ipykernel" in sys.modules
        if not in_notebook and not out.isatty():
            return out
        how: dict[str, Any] = {"total": self._timer.max_seconds or self._timer.max_steps}
        how |= {"bar_format": _BAR if how["total"] else _COUNTER, "miniters": 0}
        if not in_notebook:
            columns, rows = shutil.get_terminal_size(_SIZE)
            how |= {"file": out, "ncols": columns, "nrows": rows}
        with contextlib.suppress(ImportError):
            tqdm = importlib.import_module("tqdm.auto" if in_notebook else "tqdm").tqdm
            self._bar = tqdm(**how)
        return out

    def _move(self, report: Any) -> None:
        """Moves the bar to the seconds, or else the steps, of a report."""
        bar, done = self._bar, report.seconds if self._timer.max_seconds else report.step
        if not self._is_searching:  # its clock starts here, and so do the steps of this run
            self._is_searching = True
            bar.unpause()
            bar.initial = done
        has_ended = report.status not in (Status.RUNNING, Status.INTERRUPTED)
        most = done if bar.total is None else bar.total
        bar.update((most if has_ended else min(done, most)) - bar.n)

    @contextlib.contextmanager
    def _safely(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self._has_failed = True
            if self._bar is not None:
                self._bar.disable = True  # or it would try again when it is deleted
            with contextlib.suppress(Exception):  # warnings may be errors, or have no place to go
                warnings.warn(f"no progress is shown any more: {error!r}", stacklevel=4)


@contextlib.contextmanager
def shown(timer: Timer) -> Iterator[Callable[[Any], None]]:
    """Gives the observer that shows a run; before, it says that programs compile.

    Its bar is ended however the run ends. Of several processes only the lead shows a run.
    """
    if not timer.team.is_lead:
        yield lambda report: None  # reports may need all processes
        return
    reporter = Reporter(timer=timer)
    reporter.note_compiling()
    try:
        yield reporter
    finally:
        reporter.close()
