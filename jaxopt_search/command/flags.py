"""The arguments of `jaxopt-search`."""

import argparse
import math
import pathlib
from typing import Any, NoReturn

from jaxopt_search import __version__

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
_ABOUT_DOCTOR = """\
examples:
  jaxopt-search doctor
  JAX_PLATFORMS=cpu jaxopt-search doctor

exit status: 0 if all is well, 1 if not, with the reasons on standard error"""


class _Parser(argparse.ArgumentParser):
    """Says in one line what is wrong with an argument."""

    def error(self, message: str) -> NoReturn:
        """Ends the program."""
        self.exit(2, f"{PROGRAM}: {' '.join(message.split())} (see {self.prog} --help)\n")


def parser() -> argparse.ArgumentParser:
    """Returns the commands with their flags."""
    about = _texts("Solves combinatorial problems by local search in JAX.", _ABOUT)
    flags = _Parser(prog=PROGRAM, **about)
    flags.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    commands = flags.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _add_solve(commands)
    _add_queens(commands)
    _add_to(
        commands,
        "doctor",
        "Tells what runs here: versions, devices, implementations, the cache.",
        _ABOUT_DOCTOR,
    )
    return flags


def _add_solve(commands: Any) -> None:
    flags = _add_to(commands, "solve", "Solves a TSP or a QAP that is in a file.", _ABOUT_SOLVE)
    flags.add_argument("file", metavar="FILE")
    flags.add_argument("--target", type=_target, metavar="X", help="end at a cost of at most X")
    flags.add_argument(
        "--kind",
        choices=("tsp", "qap", "matrix"),
        help="what the numbers are where that is not clear; matrix: distances of a TSP",
    )
    flags.add_argument(
        "--columns",
        type=_columns,
        metavar="X,Y",
        help="of a table, those of the coordinates: names of its header, or numbers from 1",
    )
    _add_run(flags, out=".txt, .csv, .npy, .tour (TSPLIB) or .sln (QAPLIB)")


def _add_queens(commands: Any) -> None:
    flags = _add_to(commands, "queens", "Places queens that do not attack.", _ABOUT_QUEENS)
    flags.add_argument("n", metavar="N", type=_count, help="queens")
    flags.add_argument(
        "--count", type=_count, default=1, help="different placements (default: %(default)s)"
    )
    _add_run(flags, out=".txt or .csv (a placement a line) or .npy")


def _add_processes(flags: Any) -> None:
    """Adds what processes on several hosts need to find one another."""
    flags.add_argument(
        "--coordinator",
        metavar="HOST:PORT",
        help="of the first process, for one run in several; auto: as SLURM or MPI say",
    )
    flags.add_argument("--processes", type=_count, metavar="N", help="of the run")
    flags.add_argument("--process", type=_from_zero, metavar="I", help="number of this one, from 0")
    flags.add_argument(
        "--wait",
        type=_count,
        default=60,
        metavar="SECONDS",
        help="with other processes that do not answer (default: %(default)s)",
    )


def _add_run(flags: Any, out: str) -> None:
    """Adds what a search has: limits, where results go, what is shown."""
    flags.add_argument("--seconds", type=_seconds, help="of search (default: 10 without --steps)")
    flags.add_argument("--steps", type=_from_zero, metavar="N", help="most steps of each search")
    flags.add_argument("--seed", type=int, default=0, help="default: %(default)s")
    flags.add_argument("--searches", type=_count, metavar="N", help="searches side by side")
    flags.add_argument(
        "--devices", type=_devices, default="all", help="all, a number or a platform (default: all)"
    )
    _add_processes(flags)
    flags.add_argument(
        "--checkpoint", type=pathlib.Path, metavar="PATH", help=".npz, to continue from"
    )
    flags.add_argument(
        "--checkpoint-every", type=_seconds, default=60.0, metavar="SECONDS", help="default: 60"
    )
    flags.add_argument("--resume", action="store_true", help="from the checkpoint, if it is there")
    flags.add_argument("--out", type=pathlib.Path, metavar="PATH", help=f"solution: {out}")
    flags.add_argument("--plot", type=pathlib.Path, metavar="PATH", help=".png, .svg or .pdf")
    flags.add_argument("--json", action="store_true", help="print one JSON object")
    flags.add_argument("--progress", action="store_true", help="on standard error, always")
    flags.add_argument("--quiet", action="store_true", help="neither summary nor progress")
    flags.add_argument("--no-cache", action="store_true", help="keep no compiled programs")


def _add_to(commands: Any, name: str, description: str, about: str) -> argparse.ArgumentParser:
    return commands.add_parser(name, help=description, **_texts(description, about))


def _texts(description: str, about: str) -> dict[str, Any]:
    return {
        "description": description,
        "epilog": about,
        "formatter_class": argparse.RawDescriptionHelpFormatter,
        "allow_abbrev": False,
    }


def _from_zero(text: str) -> int:
    return _integer(text, 0)


def _count(text: str) -> int:
    return _integer(text, 1)


def _integer(text: str, least: int) -> int:
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if value < least:
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer from {least} up")
    return value


def _seconds(text: str) -> float:
    return _number(text, lambda value: 0 < value < math.inf, "a number of seconds above 0")


def _target(text: str) -> int | float:
    value = _number(text, lambda value: not math.isnan(value), "a number")
    return int(text) if text.lstrip("+-").isdecimal() else value


def _number(text: str, is_good: Any, what: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not is_good(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
    return value


def _columns(text: str) -> tuple[str, str]:
    x, _, y = (part.strip() for part in text.partition(","))
    if not x or not y or "," in y:
        raise argparse.ArgumentTypeError(f"{text!r} are not two columns, such as x,y or 2,3")
    return x, y


def _devices(text: str) -> int | str:
    return int(text) if text.isdecimal() else text
