"""One line about a run now and then, on standard error."""

import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

from jaxopt_search.types import Status

_SECONDS_BETWEEN_LINES = 5.0


def reporter(stream: TextIO | None = None) -> Callable[[Any], None]:
    """Returns a function that shows a `Snapshot`.

    On a terminal one line is rewritten in place. Elsewhere (a file, a notebook, a pipe) plain
    lines are written every few seconds, without control characters.
    """
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


def describe(snapshot: Any) -> str:
    """Returns one line on where a run stands."""
    best = f"{snapshot.fun:.6g}" if isinstance(snapshot.fun, float) else str(snapshot.fun)
    gap = "" if snapshot.gap is None else f"  gap {snapshot.gap:.3%}"
    return (
        f"step {snapshot.step}  {snapshot.seconds:.1f} s  best {best}{gap}"
        f"  acceptance {snapshot.acceptance:.3f}"
    )
