"""One line about a run now and then, on standard error."""

import contextlib
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple, TextIO

from jaxopt_search.results import Status

_SECONDS_BETWEEN_LINES = 5.0


def describe(snapshot: Any) -> str:
    """Returns one line on where a run of `solve` stands."""
    best = f"{snapshot.fun:.6g}" if isinstance(snapshot.fun, float) else str(snapshot.fun)
    gap = "" if snapshot.gap is None else f"  gap {snapshot.gap:.3%}"
    return (
        f"step {snapshot.step}  {snapshot.seconds:.1f} s  best {best}{gap}"
        f"  acceptance {snapshot.acceptance:.3f}"
    )


class Phase(NamedTuple):
    """What a run does before its search, to be shown."""

    text: str
    seconds: float
    status: Status = Status.RUNNING


def reporter(
    stream: TextIO | None = None, describe: Callable[[Any], str] = describe
) -> Callable[[Any], None]:
    """Returns a function that shows where a run stands: a `Report`, or else what has a `status`.

    A `Phase` is shown at once, in words.

    On a terminal one line is rewritten in place, and in a notebook one with tqdm's help where that
    is installed (the extra `progress`). Elsewhere (a file, a pipe) plain lines are written every
    few seconds, without control characters.

    It raises nothing, so that no run is lost for it: from its first failure on, such as at a closed
    stream, it shows nothing any more, and warns once.
    """

    def start() -> Callable[[Any], None]:
        if stream is None and _in_notebook() and (bar := _notebook_bar(describe)) is not None:
            return bar
        return _lines(sys.stderr if stream is None else stream, describe)

    return _until_it_fails(start)


def _until_it_fails(start: Callable[[], Callable[[Any], None]]) -> Callable[[Any], None]:
    """Returns what `start` returns, called for the first snapshot; nothing once it has failed."""
    show: Callable[[Any], None] | None = None
    has_failed = False

    def show_safely(snapshot: Any) -> None:
        nonlocal show, has_failed
        if has_failed:
            return
        try:
            show = show or start()
            show(snapshot)
        except Exception as error:
            has_failed = True
            with contextlib.suppress(Exception):  # warnings may be errors, or have no place to go
                warnings.warn(f"no progress is shown any more: {error!r}", stacklevel=2)

    return show_safely


def _lines(out: TextIO, describe: Callable[[Any], str]) -> Callable[[Any], None]:
    is_terminal = out.isatty()
    shown_at = -float("inf")

    def show(snapshot: Any) -> None:
        nonlocal shown_at
        now, is_last = time.monotonic(), snapshot.status != Status.RUNNING
        text, is_phase = _text(snapshot, describe), isinstance(snapshot, Phase)
        if is_terminal:
            out.write(f"\r{text:<79}" + "\n" * is_last)
        elif is_phase or is_last or now - shown_at >= _SECONDS_BETWEEN_LINES:
            out.write(text + "\n")
            shown_at = shown_at if is_phase else now
        out.flush()

    return show


def _text(snapshot: Any, describe: Callable[[Any], str]) -> str:
    if isinstance(snapshot, Phase):
        return f"{snapshot.text} ({snapshot.seconds:.1f} s so far)"
    return describe(snapshot)


def _in_notebook() -> bool:
    return "ipykernel" in sys.modules


def _notebook_bar(describe: Callable[[Any], str]) -> Callable[[Any], None] | None:
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    bar = tqdm(bar_format="{desc}")

    def show(snapshot: Any) -> None:
        bar.set_description_str(_text(snapshot, describe))
        if snapshot.status != Status.RUNNING:
            bar.close()

    return show
