"""One line about a run now and then, on standard error."""

import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

from jaxopt_search.types import Status

_SECONDS_BETWEEN_LINES = 5.0


def describe(snapshot: Any) -> str:
    """Returns one line on where a run of `solve` stands."""
    best = f"{snapshot.fun:.6g}" if isinstance(snapshot.fun, float) else str(snapshot.fun)
    gap = "" if snapshot.gap is None else f"  gap {snapshot.gap:.3%}"
    return (
        f"step {snapshot.step}  {snapshot.seconds:.1f} s  best {best}{gap}"
        f"  acceptance {snapshot.acceptance:.3f}"
    )


def reporter(
    stream: TextIO | None = None, describe: Callable[[Any], str] = describe
) -> Callable[[Any], None]:
    """Returns a function that shows where a run stands: a `Snapshot`, or else what has a `status`.

    On a terminal one line is rewritten in place, and in a notebook one with tqdm's help where that
    is installed (the extra `progress`). Elsewhere (a file, a pipe) plain lines are written every
    few seconds, without control characters.
    """
    if stream is None and _in_notebook() and (bar := _notebook_bar(describe)) is not None:
        return bar
    out = sys.stderr if stream is None else stream
    is_terminal = out.isatty()
    shown_at = -float("inf")

    def show(snapshot: Any) -> None:
        nonlocal shown_at
        now, is_last = time.monotonic(), snapshot.status != Status.RUNNING
        if is_terminal:
            out.write(f"\r{describe(snapshot):<79}" + "\n" * is_last)
        elif is_last or now - shown_at >= _SECONDS_BETWEEN_LINES:
            out.write(describe(snapshot) + "\n")
            shown_at = now
        out.flush()

    return show


def _in_notebook() -> bool:
    return "ipykernel" in sys.modules


def _notebook_bar(describe: Callable[[Any], str]) -> Callable[[Any], None] | None:
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    bar = tqdm(bar_format="{desc}")

    def show(snapshot: Any) -> None:
        bar.set_description_str(describe(snapshot))
        if snapshot.status != Status.RUNNING:
            bar.close()

    return show
