"""`jaxopt-search`: its arguments, which command runs, what it tells, and how it ends.

The arguments are one table, by which they are read and passed on; whether numbers are in range is
up to the functions that get them. What takes time to import is imported by the commands, after the
arguments have been read.
"""

import argparse
import contextlib
import importlib
import os
import pathlib
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from jaxopt_search import __version__
from jaxopt_search.interrupts import held_back

PROGRAM = "jaxopt-search"

_ABOUT = """\
examples:
  jaxopt-search solve berlin52.tsp --seconds 5 --out tour.txt --plot tour.png
  jaxopt-search queens 200 --count 100 --out placements.npy"""
_ABOUT_SOLVE = """\
FILE is .tsp or .atsp (TSPLIB), .dat (QAPLIB), .csv or .npy, or - for a CSV from standard input.
CSV and NPY: n x 2 are coordinates, n x n distances, 2n x n flows above distances (a QAP). Where a
header names x and y, these columns of a CSV are read and no others.

examples:
  jaxopt-search solve cities.csv --seconds 10 --out tour.tour --plot tour.png
  jaxopt-search solve tai30a.dat --target 1850000 --seconds 60 --json
  jaxopt-search solve pr2392.tsp --seconds 36000 --checkpoint night.npz --resume
  jaxopt-search solve pr2392.tsp --coordinator host0:7000 --processes 2 --process 0

exit status: 0 success, 1 none (such as a target that is missed), 2 bad input, 130 Ctrl-C, with the
best so far"""
_ABOUT_QUEENS = """\
examples:
  jaxopt-search queens 8 --plot board.png
  jaxopt-search queens 1000 --count 100 --seconds 20 --out placements.npy --json
  jaxopt-search queens 200 --count 1000000 --seconds 36000 --checkpoint night.npz --resume"""
_ABOUT_LABELS = """\
Cities are uniform in the unit square, or those of a file. A line: x y x y ... output i j ... i,
from 1; .npz the arrays points, [number, cities, 2], and tours, [number, cities] from 0.

examples:
  jaxopt-search labels --cities 50 --number 1000 --out tsp50.txt
  jaxopt-search labels --cities 100 --number 1000000 --out tsp100.txt --resume
  jaxopt-search labels --points clusters.npy --out clusters.npz

exit status: 0 success, 2 bad input, 130 Ctrl-C, with what is written so far"""
_ABOUT_DOCTOR = "exit status: 0 if all is well, 1 if not, with the reasons on standard error"


def number(text: str) -> int | float:
    """Returns the number that a text is; an integer with all its digits."""
    return int(text) if text.lstrip("+-").isdecimal() else float(text)


def columns(text: str) -> tuple[str, ...]:
    """Returns the names of columns, which are separated by commas."""
    return tuple(part.strip() for part in text.split(","))


def which(text: str) -> int | str:
    """Returns a number, or a word: of devices how many or which, of cities which or any."""
    return int(text) if text.isdecimal() else text


_METAVARS = {int: "N", number: "X", columns: "X,Y", which: "WHICH", pathlib.Path: "PATH"}
_KINDS = "tsp", "qap", "matrix"
_METRICS = "EUCLID", "HAVERSINE", "EUC_2D", "CEIL_2D", "ATT", "GEO", "MAN_2D", "MAX_2D"

# Each with its name in the namespace, its type, its default, and its help.
_OF_SOLVE = [
    ("--target", "target", number, None, "end at a cost of at most X"),
    ("--kind", "kind", _KINDS, None, "what the numbers are; matrix: distances of a TSP"),
    ("--columns", "columns", columns, None, "names of the coordinates, or numbers from 1"),
    ("--metric", "metric", _METRICS, None, "by which coordinates give distances"),
    ("--start", "start", int, None, "city that a tour or path begins at, from 0"),
    ("--end", "end", which, None, "for a path: the city that it ends at, from 0, or free"),
    ("--dtype", "dtype", ("int32", "float32"), None, "float32 for integers that are too large"),
    ("--forbidden", "forbidden", ("inf",), None, "read inf, NA and empty cells as no such edge"),
    ("--out", "out", pathlib.Path, None, ".txt, .csv, .npy, .tour (TSPLIB) or .sln (QAPLIB)"),
]
_OF_QUEENS = [
    ("--count", "count", int, 1, "different placements (default: 1)"),
    ("--out", "out", pathlib.Path, None, ".txt or .csv (a placement a line) or .npy"),
]
_OF_LABELS = [
    ("--cities", "cities", int, None, "of each instance (default: 100)"),
    ("--number", "number", int, None, "instances (default: 1000, or all of --points)"),
    ("--points", "points", pathlib.Path, None, "instances: .npy, or a file such as --out"),
    ("--out", "out", pathlib.Path, None, "the file: .npz, or else lines of text"),
    ("--at-once", "at_once", int, None, "instances (default: 8192 on a GPU, 256 on CPUs)"),
    ("--steps", "max_steps", int, None, "looks at a city (default: 2000 for each city)"),
    ("--resume", "resume", bool, False, "behind what the file holds, if it is there"),
]
_OF_RUNS = [
    ("--seconds", "max_seconds", number, None, "of search (default: 10 without --steps)"),
    ("--steps", "max_steps", int, None, "most steps of each search"),
    ("--seed", "key", int, 0, "default: 0"),
    ("--searches", "num_searches", int, None, "searches side by side"),
    ("--devices", "devices", which, "all", "all, a number or a platform (default: all)"),
    ("--checkpoint", "checkpoint", pathlib.Path, None, ".npz, to continue from"),
    ("--checkpoint-every", "checkpoint_every", number, 60, "seconds (default: 60)"),
    ("--resume", "resume", bool, False, "from the checkpoint, if it is there"),
]
_OF_BOTH = [
    ("--coordinator", "coordinator", str, None, "HOST:PORT of one run in several processes; auto"),
    ("--processes", "processes", int, None, "how many share the run"),
    ("--process", "process", int, None, "number of this one, from 0"),
    ("--wait", "wait", int, 60, "seconds with processes that do not answer (default: 60)"),
    ("--plot", "plot", pathlib.Path, None, ".png, .svg or .pdf"),
    ("--json", "json", bool, False, "print one JSON object"),
    ("--progress", "progress", bool, False, "on standard error, always"),
    ("--quiet", "quiet", bool, False, "neither summary nor progress"),
    ("--no-cache", "no_cache", bool, False, "keep no compiled programs"),
]
_SHOWN = "progress", "quiet", "no_cache"
OPTIONS = tuple(name for _, name, *_ in _OF_RUNS)
"""Those flags that solvers take, by the solvers' names."""
OF_TOURS = "start", "end", "forbidden"
"""Those that only `solve_tsp` takes."""


class _Parser(argparse.ArgumentParser):
    """Tells of a wrong argument in one line."""

    def error(self, message: str) -> NoReturn:
        """Ends the program."""
        self.exit(2, f"{PROGRAM}: {' '.join(message.split())} (see {self.prog} --help)\n")


def parser() -> argparse.ArgumentParser:
    """Returns the commands with their flags."""
    layout: dict[str, Any] = {
        "formatter_class": argparse.RawDescriptionHelpFormatter,
        "allow_abbrev": False,
    }
    about = "Solves combinatorial problems by local search in JAX."
    found = _Parser(prog=PROGRAM, description=about, epilog=_ABOUT, **layout)
    found.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    commands = found.add_subparsers(dest="command", metavar="COMMAND", required=True)
    runs, of_labels = _OF_RUNS + _OF_BOTH, ("key", "num_searches", "devices", *_SHOWN)
    labels = _OF_LABELS + [flag for flag in runs if flag[1] in of_labels]
    for name, about, more, given, flags in (
        ("solve", "Solves a TSP or a QAP that is in a file.", _ABOUT_SOLVE, "file", _OF_SOLVE),
        ("queens", "Places queens that do not attack.", _ABOUT_QUEENS, "n", _OF_QUEENS),
        ("labels", "Writes many small TSPs with good tours to a file.", _ABOUT_LABELS, "", labels),
        ("doctor", "Tells what runs here: versions, devices, the cache.", _ABOUT_DOCTOR, "", []),
    ):
        command = commands.add_parser(name, help=about, description=about, epilog=more, **layout)
        if given:
            command.add_argument(given, metavar=given.upper(), type=int if given == "n" else str)
        for flag, dest, kind, default, text in flags + (runs if given else []):
            takes: dict[str, Any] = {"type": kind, "metavar": _METAVARS.get(kind, "WORD")}
            if kind is bool:
                takes = {"action": "store_true"}
            elif isinstance(kind, tuple):
                takes = {"choices": kind}
            command.add_argument(flag, dest=dest, default=default, help=text, **takes)
    return found


SUCCESS, NO_SUCCESS, USAGE, INTERRUPTED = 0, 1, 2, 130
"""Exit statuses: done; ran without success; bad arguments or input; Ctrl-C, as shells have it."""


def say(message: str) -> None:
    """Writes one line on standard error."""
    with contextlib.suppress(OSError, ValueError, AttributeError):  # closed, or none at all
        sys.stderr.write(f"{PROGRAM}: {' '.join(message.split())}\n")


def tell(*lines: str) -> None:
    """Writes lines on standard output, and flushes it.

    Raises:
      SystemExit: if it cannot be written to: a full disk, or a reader that has left.
    """
    try:
        print("".join(f"{line}\n" for line in lines), end="", flush=True)
    except OSError as error:
        with contextlib.suppress(OSError, ValueError):  # or Python would try again at its end
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            say(f"standard output: {reason_of(error)}")
        raise SystemExit(NO_SUCCESS) from None


def reason_of(error: Exception) -> str:
    """Returns the text of an error; of one of the system, the path and the reason."""
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error) or type(error).__name__
    reason = f"{error.strerror[:1].lower()}{error.strerror[1:]}"
    return reason if error.filename is None else f"{error.filename}: {reason}"


def status_of(result: Any, num_failed: int = 0) -> int:
    """Returns the exit status for a result of the library, and files that were not written."""
    if result.status.name == "INTERRUPTED":
        return INTERRUPTED
    return SUCCESS if result.success and not num_failed else NO_SUCCESS


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit status; whatever goes wrong in it is one line.

    Args:
      arguments: without the program's name; None for the arguments of the process.

    Raises:
      SystemExit: after `--help` and `--version`, with status 2 if an argument is wrong, and with
        status 1 if standard output cannot be written to.
    """
    try:
        args = parser().parse_args(arguments)
    finally:
        tell()  # flushes the text of `--help`
    try:
        name = "solve" if args.command == "queens" else args.command
        with held_back():  # libraries that are being imported make other errors of Ctrl-C
            command = importlib.import_module(f"jaxopt_search.command.{name}")
        return command.run(args)
    except KeyboardInterrupt:
        say("interrupted before there was anything to keep")
        status = INTERRUPTED
    except (MemoryError, RuntimeError) as error:
        say(reason_of(error))
        status = NO_SUCCESS
    except (ValueError, TypeError, ImportError, OSError) as error:
        say(reason_of(error))
        status = USAGE
    if getattr(args, "coordinator", None) is not None:
        sys.stderr.flush()
        os._exit(status)  # the other processes may be gone, and JAX would wait for them
    return status
