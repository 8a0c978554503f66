"""Runs the first code of README.md in the environment at hand, and compares what it prints.

What depends on the machine and its speed is left out: times, steps, versions, the solution itself.
"""

import contextlib
import io
import pathlib
import re
import sys

_SAME = ("cost", "success", "ended")


def _blocks(text: str) -> list[str]:
    found = re.findall(r"(?:^ {4}.*\n)+", text, flags=re.MULTILINE)
    return [re.sub(r"^ {4}", "", block, flags=re.MULTILINE) for block in found]


def _lines(output: str) -> list[str]:
    return [line for line in output.splitlines() if line.startswith(_SAME)]


def main() -> int:
    """Returns the exit status."""
    text = (pathlib.Path(__file__).resolve().parents[1] / "README.md").read_text(encoding="utf-8")
    blocks = _blocks(text[text.index("## Three lines to a result") :])
    code, expected = blocks[0], _lines(blocks[1])
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
