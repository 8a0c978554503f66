"""Changes the code on purpose, one fault at a time, and sees whether the tests notice.

    python tests/mutants.py --list
    python tests/mutants.py --only 'exchange*'

Each entry of `mutants.toml` is a mutant: a text of one file, what comes in its place, and the tests
that have to fail. It is made in a copy of the repository, never here. Run it on demand, it is not
part of CI; there `test_mutants.py` checks that the list still fits the code.
"""

import argparse
import contextlib
import fnmatch
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[1]
LIST = pathlib.Path(__file__).with_name("mutants.toml")

KILLED, SURVIVED, NO_RESULT = "killed", "SURVIVED", "NO RESULT"
_LEFT_OUT = shutil.ignore_patterns(".*", "__pycache__", "build", "dist")


class Mutant(NamedTuple):
    """A fault to make.

    Attributes:
      name: of the list.
      file: relative to the repository.
      old: a text that occurs once in the file.
      new: what comes in its place.
      tests: pytest's names of the tests that have to notice, at least one of them.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


class Outcome(NamedTuple):
    """What became of a mutant: `KILLED`, `SURVIVED` or `NO_RESULT`, by which test or why."""

    verdict: str
    reason: str
    seconds: float


def load(path: pathlib.Path = LIST) -> list[Mutant]:
    """Returns the mutants of a list."""
    entries = tomllib.loads(path.read_text(encoding="utf-8"))["mutant"]
    return [Mutant(**entry | {"tests": tuple(entry["tests"])}) for entry in entries]


def changed(mutant: Mutant, content: str) -> str:
    """Returns the content of the mutant's file with the fault in it.

    Raises:
      ValueError: if the old text does not occur exactly once.
    """
    if (times := content.count(mutant.old)) != 1:
        raise ValueError(f"does not apply: {mutant.file} has {times} times {mutant.old!r}")
    return content.replace(mutant.old, mutant.new)


def outcome(tree: pathlib.Path, mutant: Mutant, timeout: float) -> Outcome:
    """Makes the mutant in `tree`, runs its tests there, and takes the fault out again."""
    path, start = tree / mutant.file, time.monotonic()
    original = path.read_text(encoding="utf-8")
    try:
        path.write_text(changed(mutant, original), encoding="utf-8")
        status, output = run_tests(tree, mutant.tests, timeout)
    except ValueError as error:
        return Outcome(NO_RESULT, str(error), 0.0)
    except subprocess.TimeoutExpired:
        return Outcome(NO_RESULT, f"no end in {timeout:.0f} s", timeout)
    finally:
        path.write_text(original, encoding="utf-8")
    failed = re.search(r"^FAILED (?:\S+::)?([^\s\[]+)", output, re.MULTILINE)
    last_line = output.strip().rpartition("\n")[2]
    verdict = {0: SURVIVED, 1: KILLED}.get(status, NO_RESULT)
    if verdict == SURVIVED and "skipped" in last_line:
        verdict = NO_RESULT
    reason = failed[1] if failed else last_line
    return Outcome(verdict, reason, time.monotonic() - start)


def run_tests(tree: pathlib.Path, tests: Sequence[str], timeout: float) -> tuple[int, str]:
    """Returns the exit status of pytest in `tree`, up to the first failure, and what it printed."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    # A file of unchanged size and second would be taken from Python's cache.
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(tree)}
    done = subprocess.run(
        command, cwd=tree, env=env, timeout=timeout, text=True, capture_output=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


@contextlib.contextmanager
def copy_of(root: pathlib.Path) -> Iterator[pathlib.Path]:
    """Gives a copy of the repository, with the instance files next to it, if there are any."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = pathlib.Path(folder) / "tree"
        shutil.copytree(root, tree, ignore=_LEFT_OUT)
        if (shared := root.parent / "shared").is_dir():
            (tree.parent / "shared").symlink_to(shared, target_is_directory=True)
        yield tree


def main(argv: Sequence[str] | None = None) -> int:
    """Returns 0 if all mutants were killed, 1 if not, and 2 if the tests fail without them."""
    flags = argparse.ArgumentParser(prog="mutants.py", description=__doc__.split("\n")[0])
    flags.add_argument("--list", action="store_true", help="only show the mutants and their tests")
    flags.add_argument(
        "--only", metavar="NAME", action="append", help="these; * stands for any text"
    )
    flags.add_argument(
        "--no-clean", action="store_true", help="do not run the tests unchanged first"
    )
    flags.add_argument("--timeout", type=float, default=600, metavar="SECONDS", help="per mutant")
    args = flags.parse_args(argv)

    wanted = args.only or ["*"]
    mutants = [m for m in load() if any(fnmatch.fnmatch(m.name, name) for name in wanted)]
    if not mutants:
        flags.error(f"no mutant is called {' or '.join(wanted)}")
    width = max(len(mutant.name) for mutant in mutants)
    if args.list:
        for mutant in mutants:
            print(f"{mutant.name:<{width}}  {mutant.file}  {' '.join(mutant.tests)}")
        return 0
    with copy_of(ROOT) as tree:
        if not args.no_clean:
            tests = sorted({test for mutant in mutants for test in mutant.tests})
            status, output = run_tests(tree, tests, args.timeout * len(mutants))
            print(f"without a fault: {output.strip().rpartition(chr(10))[2]}", flush=True)
            if status != 0:
                print(output)
                return 2
        num_killed = 0
        for mutant in mutants:
            verdict, reason, seconds = outcome(tree, mutant, args.timeout)
            num_killed += verdict == KILLED
            print(f"{mutant.name:<{width}}  {verdict:<9}  {seconds:4.0f} s  {reason}", flush=True)
    print(f"{num_killed} of {len(mutants)} killed")
    return 0 if num_killed == len(mutants) else 1


if __name__ == "__main__":
    sys.exit(main())
