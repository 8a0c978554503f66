"""What the experiment scripts share: flags, instances, tables, progress.

A script writes one JSON line per run as soon as the run is finished. A script that was interrupted
is started again with the same arguments and the same file, and makes the runs that are missing.
`record_files` has the files.
"""

import argparse
import datetime
import functools
import math
import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TextIO, TypeVar

import jaxopt_search as js
from experiments import flag_types
from experiments.record_files import Runs, read_all
from experiments.record_files import append as append
from experiments.record_files import read as read
from jaxopt_search import datasets
from jaxopt_search.checks import num_cores as num_cores
from jaxopt_search.command.starts import use_cpu_cores as use_cpu_cores
from jaxopt_search.datasets.instances import QAPInstance, TSPInstance
from jaxopt_search.datasets.registry import DATA_VARIABLE
from jaxopt_search.engine.fingerprints import environment
from jaxopt_search.results import plotting

Result = TypeVar("Result", js.Result, js.QueensResult, js.StackedResult)
Instance = TypeVar("Instance", TSPInstance, QAPInstance)

_KINDS = {QAPInstance: "quadratic assignment problem", TSPInstance: "TSP instance"}
_ROOT = pathlib.Path(__file__).resolve().parents[1]
_NEIGHBOR_DATA = _ROOT.parent / "shared" / "data"
_SECONDS_BETWEEN_LINES = 10.0


def until_interrupted(work: Callable[[], Any], out: str | None) -> int:
    """Does `work` and returns the script's exit status: 0, 1 if a file fails, or 130 after Ctrl-C.

    Args:
      out: the file from which the same command continues, or None.
    """
    try:
        work()
    except KeyboardInterrupt:
        print("\ninterrupted" + (f"; the same command continues from {out}" if out else ""))
        return 130
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def unless_interrupted(result: Result) -> Result:
    """Returns the result of a call of the library.

    Raises:
      KeyboardInterrupt: if Ctrl-C has ended the call early.
    """
    if result.status == js.Status.INTERRUPTED:
        raise KeyboardInterrupt
    return result


def record(
    experiment: str,
    instance: str,
    seed: int,
    settings: dict[str, Any],
    devices: Sequence[Any],
    **measured: Any,
) -> dict[str, Any]:
    """Returns the record of a run: what it was, what was measured, and where."""
    known = {"experiment": experiment, "instance": instance, "seed": seed, "settings": settings}
    return known | measured | provenance(devices)


def provenance(devices: Sequence[Any]) -> dict[str, Any]:
    """Returns what every record ends with: versions, devices and the date.

    Args:
      devices: the `jax.Device`s that the run used.
    """
    return {"env": environment(tuple(devices)) | {"jaxopt_search": version()}, "date": now()}


@functools.cache
def version() -> str:
    """Returns the version of the library, with the commit of the checkout where git knows it."""
    try:
        git = ["git", "rev-parse", "--short=12", "HEAD"]
        commit = subprocess.check_output(git, cwd=_ROOT, stderr=subprocess.DEVNULL, text=True)
    except (OSError, subprocess.CalledProcessError):
        return js.__version__
    return f"{js.__version__}+g{commit.strip()}"


def now() -> str:
    """Returns the date and time of day in ISO format, UTC."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def add_record_arguments(
    parser: argparse.ArgumentParser, *experiments: str, out: str | None = None
) -> None:
    """Adds `--out`, `--report` and `--markdown`: where records go, and how they are shown.

    A file that cannot be written or read, or holds anything but records, ends the script with one
    line, before the first run.

    Args:
      experiments: those whose records the script writes and shows.
      out: the default of `--out`.
    """
    add_out_argument(parser, *experiments, default=out)
    parser.add_argument(
        "--report",
        metavar="FILES",
        type=flag_types.files_to_report(*experiments),
        help="only show what is in such files, separated by commas",
    )
    parser.add_argument("--markdown", action="store_true", help="tables for a web page")


def add_out_argument(
    parser: argparse.ArgumentParser, *experiments: str, default: str | None = None
) -> None:
    """Adds `--out` alone, as `add_record_arguments` does."""
    parser.add_argument(
        "--out",
        metavar="FILE",
        type=flag_types.file_to_add_to(*experiments),
        default=default
        and pathlib.Path(default),  # text would be checked although --report is given
        help="file of JSON lines to add to" + (f" (default: {default})" if default else ""),
    )


def add_data_argument(parser: argparse.ArgumentParser) -> None:
    """Adds `--data`, the folder with instance files."""
    parser.add_argument(
        "--data",
        metavar="DIR",
        help="folder that holds tsplib/NAME.tsp and qaplib/NAME.dat"
        f" (default: {DATA_VARIABLE}, or ../shared/data next to the repository)",
    )


def data_folder(data: str | None) -> pathlib.Path | None:
    """Returns the folder with instance files: as named, from the environment, or next door.

    Raises:
      ValueError: if the named folder does not exist.
    """
    named = data or os.environ.get(DATA_VARIABLE)
    if named:
        if not pathlib.Path(named).is_dir():
            raise ValueError(f"the data folder is {named!r}, expected an existing folder")
        return pathlib.Path(named)
    return _NEIGHBOR_DATA if _NEIGHBOR_DATA.is_dir() else None


def find_instances(
    names: Sequence[str] | None,
    data: str | None,
    default: str,
    generate: Callable[[], Instance],
) -> list[Instance]:
    """Returns known instances by name; without names or files, a generated one, and says so.

    Args:
      names: the requested ones; None for `default`.
      data: the value of `--data`.
      default: the instance to take if the user names none.
      generate: makes the instance that replaces `default` where its file is not found. All have
        to be of its kind.

    Raises:
      ValueError, FileNotFoundError: if a requested instance is not found.
    """
    folder, instance = data_folder(data), generate()
    if names is not None:
        return [_load(type(instance), name, folder) for name in names]
    try:
        return [_load(type(instance), default, folder)]
    except FileNotFoundError:
        print(f"no file of {default} found (see --data): the generated {instance.name} instead")
        return [instance]


def table(
    header: str | Sequence[str], rows: Iterable[Sequence[str]], *, markdown: bool = False
) -> str:
    """Returns a table as text: the first column to the left, the others to the right.

    Example:
      >>> print(table("instance | SEC", [["rd100", "0.14"]]))
      instance   SEC
      rd100     0.14
    """
    header = header.split(" | ") if isinstance(header, str) else header
    cells = [list(header), *(list(row) for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    lines = [
        [row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))]
        for row in cells
    ]
    if not markdown:
        return "\n".join("  ".join(line).rstrip() for line in lines)
    rule = ["-" * widths[0], *("-" * max(width - 1, 1) + ":" for width in widths[1:])]
    return "\n".join("| " + " | ".join(line) + " |" for line in [lines[0], rule, *lines[1:]])


def number(value: float | None, digits: int) -> str:
    """Returns `value` with this many decimals, or a dash for None."""
    return "-" if value is None else f"{value:.{digits}f}"


class Progress:
    """A line on standard error about a long experiment: runs done, and seconds used.

    On a terminal it is rewritten in place; elsewhere it is written now and then.
    """

    def __init__(self, total: int, stream: TextIO | None = None):
        self._out, self._total, self._done = stream or sys.stderr, total, 0
        self._start, self._shown_at = time.monotonic(), -math.inf

    def skip(self, num_runs: int) -> None:
        """Counts runs that were in the file already."""
        self._done += num_runs

    def step(self, num_runs: int, text: str) -> None:
        """Counts runs that were made, and shows where the experiment stands.

        Args:
          num_runs: how many; 0 to show only the text.
          text: what was done or is under way.
        """
        self._done += num_runs
        now, is_last = time.monotonic(), self._done >= self._total
        line = f"{self._done}/{self._total} runs, {now - self._start:.0f} s: {text}"
        if self._out.isatty():
            self._out.write(f"\r{line:<79}" + "\n" * is_last)
        elif is_last or now - self._shown_at >= _SECONDS_BETWEEN_LINES:
            self._out.write(line + "\n")
            self._shown_at = now
        self._out.flush()


class Job(NamedTuple):
    """A run that is to be made.

    Attributes:
      settings: with the instance and the seed, what tells it from others; as in its record.
      text: what is shown when it is made.
      make: makes it and returns its record.
    """

    settings: dict[str, Any]
    instance: str
    seed: int
    text: str
    make: Callable[[], dict[str, Any]]


def make_missing(jobs: Sequence[Job], runs: Runs) -> list[dict[str, Any]]:
    """Makes the runs that are not in the file yet; returns the records of all."""
    progress = Progress(len(jobs))
    for job in jobs:
        if runs.has(job.settings, job.instance, job.seed):
            progress.skip(1)
            continue
        runs.add(job.make())
        progress.step(1, job.text)
    return runs.those([(job.settings, job.instance, job.seed) for job in jobs])


def run_script(
    flags: argparse.ArgumentParser,
    arguments: Sequence[str] | None,
    plan: Callable[[argparse.Namespace], Any],
    show: Callable[[list[dict[str, Any]], argparse.Namespace], str],
    execute: Callable[[Any, Runs], list[dict[str, Any]]] = make_missing,
) -> int:
    """Runs a script that has the flags of `add_record_arguments`, and returns its exit status.

    Args:
      plan: returns what the arguments ask for; a ValueError or FileNotFoundError ends the script.
      show: returns what is printed of the records, those of `--report` or of the plan; a ValueError
        ends the script.
      execute: makes the runs of a plan that are not in a file yet, and returns the records of all.
    """
    args = flags.parse_args(arguments)
    records, status = list[dict[str, Any]](), 0
    try:
        if args.report:
            records = read_all(args.report)
        else:
            use_cpu_cores()
            planned, runs = plan(args), Runs(args.out)
            work = lambda: records.extend(execute(planned, runs))  # noqa: E731
            status = until_interrupted(work, args.out)
        if records:
            print(show(records, args))
    except (ValueError, FileNotFoundError) as error:
        flags.error(str(error))
    return status


def save_plot(
    path: str | os.PathLike, draw: Callable[[Any], Any], size: tuple[float, float]
) -> None:
    """Writes a picture, or says on one line why not.

    Args:
      path: of the PNG file; its folder is made.
      draw: draws on the axes that it is given.
      size: width and height in inches.
    """
    try:
        axes = plotting.detached_axes(size)
    except ImportError as error:
        print(f"no plot {path}: {error}")
        return
    draw(axes)
    try:
        pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
        axes.figure.savefig(path)
    except (OSError, ValueError) as error:  # of a format that there is not
        print(f"no plot {path}: {error}")
        return
    print(f"plot written: {path}")


def _load(kind: type[Instance], name: str, folder: pathlib.Path | None) -> Instance:
    instance = datasets.load(name, data_dir=folder)
    if not isinstance(instance, kind):
        found, expected = (_KINDS[each] for each in (type(instance), kind))
        raise ValueError(f"{name} is a {found}, expected a {expected}")
    return instance
