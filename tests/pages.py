"""The code of pages: blocks that are indented by four spaces."""

import pathlib
import re
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[1]


def blocks(page, after=""):
    """Returns the indented blocks of a page, in order.

    Args:
      page: its path from the root.
      after: only those behind this text.
    """
    _, mark, rest = (ROOT / page).read_text(encoding="utf-8").partition(after or "\n")
    assert mark
    found = re.findall(r"(?:^ {4}.*\n|^\n+(?= {4}))+", rest, flags=re.MULTILINE)
    return [textwrap.dedent(block).strip("\n") + "\n" for block in found]
