"""Runs the code of README.md and of the first pages, and compares what they say that it prints.

All of it runs by steps, so it prints the same each time, apart from times.
"""

import contextlib
import io
import re
import sys
from itertools import pairwise

from pages import blocks

PAGES = ("README.md", "docs/index.md", "docs/assigning.md", "docs/your_data.md")


def _told(code: str, following: str) -> list[str]:
    """Returns the lines that code prints, told in comments behind it or else in the next block."""
    comments = re.findall(r"^print\(.*\) +# (.+)$", code, re.MULTILINE)
    return comments or [line for line in following.splitlines() if line != "..."]


def _not_printed(page: str) -> tuple[int, list[str]]:
    """Returns how many lines a page tells, and those of them that its code does not print."""
    names, told, missing = {}, 0, []
    for code, following in pairwise([*blocks(page), ""]):
        if "print(" not in code:
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, names)
        lines = _told(code, "" if "print(" in following else following)
        told += len(lines)
        missing += [line for line in lines if line not in printed.getvalue().splitlines()]
    return told, missing


def main() -> int:
    """Returns the exit status."""
    found = {page: _not_printed(page) for page in PAGES}
    for page, (told, missing) in found.items():
        print(f"{page}: {told} lines are told; not printed: {missing}")
    return int(any(missing or not told for told, missing in found.values()))


if __name__ == "__main__":
    sys.exit(main())
