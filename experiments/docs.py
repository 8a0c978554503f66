"""Writes the tables of documents again, from kept records.

    python -m experiments.docs
    python -m experiments.docs docs/islands.md --check

A table stands between two comments, of which the first has the command that prints it:

    <!-- table: python -m experiments.pspm --table 2 --report FILE --markdown -->
    <!-- end -->

Commands run in the repository's root. A table whose records are not all there is left as it is.
"""

import argparse
import contextlib
import importlib
import io
import pathlib
import re
import shlex
import sys
from collections.abc import Sequence

ROOT = pathlib.Path(__file__).resolve().parents[1]
_BLOCK = re.compile(r"(<!-- table: (.*?) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
_COMMAND = "python -m experiments.SCRIPT ... --report FILE"


def renewed(text: str) -> str:
    """Returns a document with its tables written again.

    Raises:
      ValueError: if a command is not one that reads records, or fails.
    """

    def block(match: re.Match[str]) -> str:
        start, command, old, end = match.groups()
        table = _output(" ".join(command.split()))
        return start + (old if table is None else f"\n{table}\n\n") + end

    return _BLOCK.sub(block, text)


def _output(command: str) -> str | None:
    """Returns what a command prints, or None if it reads a file that is not there."""
    words = shlex.split(command)
    if words[:2] != ["python", "-m"] or not words[2].startswith("experiments."):
        raise ValueError(f"the command is {command!r}, expected {_COMMAND}")
    if "--report" not in words[:-1]:
        raise ValueError(f"the command {command!r} makes runs, expected {_COMMAND}")
    files = words[words.index("--report") + 1].split(",")
    if missing := [name for name in files if not pathlib.Path(name).exists()]:
        print(f"left as it is, without {', '.join(missing)}: {command}")
        return None
    printed = io.StringIO()
    script = importlib.import_module(words[2])
    if hasattr(script, "__path__"):
        script = importlib.import_module(f"{words[2]}.__main__")
    try:
        with contextlib.redirect_stdout(printed):
            status = script.main(words[3:])
    except SystemExit as error:
        status = error.code
    if status:
        raise ValueError(f"the command {command!r} ended with {status}")
    return printed.getvalue().rstrip()


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the script and returns its exit status: 1 if `--check` finds a table that differs."""
    flags = argparse.ArgumentParser(
        prog="experiments.docs", description="Tables of documents, from kept records."
    )
    flags.add_argument("files", nargs="*", type=pathlib.Path, help="default: docs/*.md")
    flags.add_argument("--check", action="store_true", help="only tell which documents differ")
    args = flags.parse_args(arguments)
    paths = [path.resolve() for path in args.files] or sorted((ROOT / "docs").glob("*.md"))

    status = 0
    for path in paths:
        text = path.read_text(encoding="utf-8")
        try:
            with contextlib.chdir(ROOT):
                made = renewed(text)
        except (ValueError, ImportError) as error:
            flags.error(f"{path.name}: {error}")
        if made != text:
            print(f"{path.name}: {'differs from its records' if args.check else 'tables written'}")
            status = int(args.check)
            if not args.check:
                path.write_text(made, encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main())
