"""Where a run stands, on standard error: a bar, one line that is rewritten, or plain lines."""

import contextlib
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol, TextIO, TypeAlias

from jaxopt_search.driver.chunks import Timer
from jaxopt_search.results import Status

_SECONDS_BETWEEN_LINES = 5.0
_COLUMNS, _ROWS = 79, 24  # of a terminal that does not say how many it has
_BAR, _COUNTER = "{percentage:3.0f}%|{bar}| {remaining} left  {desc}", "{desc}"

Describe: TypeAlias = Callable[[Any], str]


def describe(report: Any) -> str:
    """Returns one line on where a run of `solve` stands."""
    best = f"{report.fun:.6g}" if isinstance(report.fun, float) else str(report.fun)
    gap = "" if report.gap is None else f"  gap {report.gap:.3%}"
    return (
        f"step {report.step}  {report.seconds:.1f} s  best {best}{gap}"
        f"  acceptance {report.acceptance:.3f}"
    )


class Phase(NamedTuple):
    """What a run does before its search, to be shown."""

    text: str
    seconds: float
    status: Status = Status.RUNNING


class _View(Protocol):
    """A place where reports are shown."""

    def show(self, report: Any) -> None: ...
    def close(self) -> None: ...


class Reporter:
    """Shows where a run stands: each `Phase`, and each `Report` or what has `step` and `status`.

    With tqdm (the extra `progress`), terminals and notebooks have a bar, which shows how much of
    `max_seconds` is used or, where that is not limited, of `max_steps`; with no limit, one line.
    Without tqdm, a terminal has one line that is rewritten. Elsewhere (a file, a pipe) plain lines
    are written every few seconds, without control characters.

    It raises nothing, so that no run is lost because of it: after its first failure, such as a
    closed stream, it warns once and shows nothing more.

    Args:
      stream: where to write; None for standard error, or the notebook.
      describe: makes a line of a report.
      timer: with the limits of the run; None if it has none.
    """

    def __init__(
        self,
        stream: TextIO | None = None,
        describe: Describe = describe,
        timer: Timer | None = None,
    ):
        self._stream, self._describe, self._timer = stream, describe, timer
        self._view: _View | None = None
        self._has_failed = False

    def __call__(self, report: Any) -> None:
        with self._safely():
            if not self._has_failed:
                self._view = self._view or self._open()
                self._view.show(report)
                if report.status != Status.RUNNING:
                    self._view.close()

    def close(self) -> None:
        """Ends the bar or the line of a run that ended without a last report."""
        with self._safely():
            if self._view is not None and not self._has_failed:
                self._view.close()

    def _open(self) -> _View:
        in_notebook = self._stream is None and "ipykernel" in sys.modules
        out = sys.stderr if self._stream is None else self._stream
        if in_notebook or out.isatty():
            limits = Timer() if self._timer is None else self._timer
            total = limits.max_seconds or limits.max_steps
            bar = tqdm_bar(None if in_notebook else out, total, _BAR if total else _COUNTER)
            if bar is not None:
                return _Bar(bar, self._describe, in_seconds=bool(limits.max_seconds))
        return _Lines(out, self._describe)

    @contextlib.contextmanager
    def _safely(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self._has_failed = True
            with contextlib.suppress(Exception):  # warnings may be errors, or have no place to go
                warnings.warn(f"no progress is shown any more: {error!r}", stacklevel=4)


@contextlib.contextmanager
def shown(
    is_wanted: bool, timer: Timer, describe: Describe = describe
) -> Iterator[list[Callable[[Any], None]]]:
    """Gives what shows a run, if that is wanted: a list of one `Reporter`, which says "compiling".

    Its bar or line is ended however the run ends. Of several processes only the lead shows a run.
    """
    if is_wanted and not timer.team.is_lead:
        yield [_ignore]  # reports may need all processes
        return
    reporters = [Reporter(describe=describe, timer=timer)] if is_wanted else []
    for show in reporters:
        show(Phase("compiling", timer.elapsed))
    try:
        yield [*reporters]
    finally:
        for show in reporters:
            show.close()


def _ignore(report: Any) -> None:
    """Does nothing with a report."""


def tqdm_bar(stream: TextIO | None, total: float | None, bar_format: str) -> Any:
    """Returns a bar of tqdm on a terminal, or in the notebook if `stream` is None.

    None if there is no tqdm.
    """
    try:
        if stream is None:
            from tqdm.auto import tqdm
        else:
            from tqdm import tqdm
    except ImportError:
        return None
    options = {} if stream is None else {"file": stream, **_size(stream)}
    return tqdm(total=total, bar_format=bar_format, miniters=0, **options)


def _size(stream: TextIO) -> dict[str, Any]:
    """Returns the options of tqdm for the size of a terminal, which some do not tell."""
    try:
        is_known = os.get_terminal_size(stream.fileno()).columns > 0
    except (OSError, ValueError):
        is_known = False
    return {"dynamic_ncols": True} if is_known else {"ncols": _COLUMNS, "nrows": _ROWS}


def _text(report: Any, describe: Describe) -> str:
    if isinstance(report, Phase):
        return f"{report.text} ({report.seconds:.1f} s so far)"
    return describe(report)


class _Bar:
    """A bar of tqdm, which counts seconds of search or steps."""

    def __init__(self, bar: Any, describe: Describe, in_seconds: bool):
        self._bar, self._describe, self._in_seconds = bar, describe, in_seconds
        self._is_searching = False

    def show(self, report: Any) -> None:
        try:
            self._move(report)
        except Exception:
            self._bar.disable = True  # or it would try again when it is deleted
            raise

    def _move(self, report: Any) -> None:
        is_phase = isinstance(report, Phase)
        self._bar.set_description_str(_text(report, self._describe), refresh=is_phase)
        if is_phase:
            return
        done = report.seconds if self._in_seconds else report.step
        if not self._is_searching:  # its clock starts here, and so do the steps of this run
            self._is_searching = True
            self._bar.unpause()
            self._bar.initial = done
        is_last = report.status not in (Status.RUNNING, Status.INTERRUPTED)
        most = done if self._bar.total is None else self._bar.total
        self._bar.update((most if is_last else min(done, most)) - self._bar.n)

    def close(self) -> None:
        self._bar.close()


class _Lines:
    """One line that is rewritten on a terminal, plain lines now and then elsewhere."""

    def __init__(self, out: TextIO, describe: Describe):
        self._out, self._describe = out, describe
        self._is_terminal, self._is_open = out.isatty(), False
        self._shown_at = -float("inf")

    def show(self, report: Any) -> None:
        now, is_phase = time.monotonic(), isinstance(report, Phase)
        text = _text(report, self._describe)
        is_due = is_phase or now - self._shown_at >= _SECONDS_BETWEEN_LINES
        if self._is_terminal:
            self._out.write(f"\r{text:<{_COLUMNS}}")
            self._is_open = True
        elif is_due or report.status != Status.RUNNING:
            self._out.write(text + "\n")
            self._shown_at = self._shown_at if is_phase else now
        self._out.flush()

    def close(self) -> None:
        if self._is_open:
            self._out.write("\n")
            self._out.flush()
        self._is_open = False
