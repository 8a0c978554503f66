"""Runs the first code of README.md in the environment at hand, and compares what it prints.

What depends on the machine and its speed is left out: times, steps, versions, the solution itself.
"""

import contextlib
import io
import sys

from pages import blocks

_SAME = ("cost", "success", "ended")


def _lines(output: str) -> list[str]:
    return [line for line in output.splitlines() if line.startswith(_SAME)]


def main() -> int:
    """Returns the exit status."""
    code, output, *_ = blocks("README.md", after="## Four lines to a result")
    expected = _lines(output)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})
    found = _lines(printed.getvalue())
    print(printed.getvalue())
    if found != expected or len(expected) != len(_SAME):
        print(f"README.md shows {expected}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
