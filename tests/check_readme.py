"""Runs the code of README.md in the environment at hand, and compares what it says that it prints.

All of it runs by steps, so it prints the same each time, apart from times.
"""

import contextlib
import io
import re
import sys
from itertools import pairwise

from pages import blocks


def _told(code: str, following: str) -> list[str]:
    """Returns the lines that code prints, told in comments behind it or else in the next block."""
    comments = re.findall(r"^print\(.*\) +# (.+)$", code, re.MULTILINE)
    return comments or [line for line in following.splitlines() if line != "..."]


def main() -> int:
    """Returns the exit status."""
    names, missing = {}, []
    for code, following in pairwise([*blocks("README.md"), ""]):
        if "print(" not in code:
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, names)
        print(printed.getvalue())
        found = printed.getvalue().splitlines()
        missing += [line for line in _told(code, following) if line not in found]
    if missing or not names:
        print(f"README.md shows what is not printed: {missing}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
