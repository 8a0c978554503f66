"""Where a run stands, on standard error: a bar of tqdm, or plain lines."""

import contextlib
import importlib
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, TextIO

from jaxopt_search.driver.options import Timer
from jaxopt_search.results import Status

_SECONDS_BETWEEN_LINES = 5.0
_SIZE = 79, 24  # columns and rows of a terminal that does not say how many it has
_BAR, _COUNTER = "{percentage:3.0f}%|{bar}| {remaining} left  {desc}", "{desc}"


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
def shown(is_wanted: bool, timer: Timer) -> Iterator[Callable[[Any], None] | None]:
    """Gives the observer that shows a run, or None; before, it says that programs compile.

    Its bar is ended however the run ends. Of several processes only the lead shows a run.
    """
    if not is_wanted:
        yield None
    elif not timer.team.is_lead:
        yield lambda report: None  # reports may need all processes
    else:
        reporter = Reporter(timer=timer)
        reporter.note_compiling()
        try:
            yield reporter
        finally:
            reporter.close()
