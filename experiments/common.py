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
from typing import Any, NamedTuple, TypeVar

import jax

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

_ROOT = pathlib.Path(__file__).resolve().parents[1]
_NEIGHBOR_DATA = _ROOT.parent / "shared" / "data"
_SECONDS_BETWEEN_LINES = 10.0


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


def parser(name: str, text: str | None, *experiments: str) -> argparse.ArgumentParser:
    """Returns the flags that `run_script` reads: where records go, and how they are shown.

    Args:
      name: of the script below `experiments`.
      text: what `--help` says about it.
      experiments: those whose records the script writes and shows.
    """
    flags = argparse.ArgumentParser(
        prog=f"experiments.{name}",
        description=text,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    flags.set_defaults(experiments=experiments)
    add = flags.add_argument
    add("--out", metavar="FILE", help="file of JSON lines to add to")
    shown = "only show what is in such files, separated by commas"
    add("--report", metavar="FILES", type=flag_types.words, help=shown)
    add("--markdown", action="store_true", help="tables for a web page")
    return flags


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


def timed(call: Callable[..., Any], *args: Any, **options: Any) -> tuple[Any, float]:
    """Returns what a call returns, once a device has made it, and the seconds until then."""
    began = time.perf_counter()
    result = jax.block_until_ready(call(*args, **options))
    return result, time.perf_counter() - began


def grouped(
    records: Iterable[dict[str, Any]], key: Callable[[dict[str, Any]], Any]
) -> dict[Any, list[dict[str, Any]]]:
    """Returns records by what `key` makes of them, in the order in which they came."""
    groups: dict[Any, list[dict[str, Any]]] = {}
    for record in records:
        groups.setdefault(key(record), []).append(record)
    return groups


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


def shown(value: float, form: str = ".3g") -> str:
    """Returns a number as text, or a dash for infinity and NaN."""
    return f"{value:{form}}" if math.isfinite(value) else "-"


class Progress:
    """A line on standard error, now and then, about a long experiment: runs done, seconds used."""

    def __init__(self, total: int):
        self._total, self._done = total, 0
        self._start, self._shown_at = time.monotonic(), -math.inf

    def skip(self, num_runs: int) -> None:
        """Counts runs that were in the file already."""
        self._done += num_runs

    def step(self, text: str) -> None:
        """Counts a run that was made, and shows where the experiment stands."""
        self._done += 1
        now, is_last = time.monotonic(), self._done >= self._total
        if is_last or now - self._shown_at >= _SECONDS_BETWEEN_LINES:
            line = f"{self._done}/{self._total} runs, {now - self._start:.0f} s: {text}"
            print(line, file=sys.stderr, flush=True)
            self._shown_at = now


class Job(NamedTuple):
    """Runs that are to be made, which differ in their seed only.

    Attributes:
      settings: with the instance and the seed, what tells a run from others; as in its record.
      text: what is shown when one is made.
      make: maps the seeds of those that are missing to their records, each given once it is there.
    """

    settings: dict[str, Any]
    instance: str
    seeds: Sequence[int]
    text: str
    make: Callable[[Sequence[int]], Iterable[dict[str, Any]]]


def make_missing(jobs: Iterable[Job], runs: Runs, total: int | None = None) -> list[dict[str, Any]]:
    """Makes the runs that are not in the file yet; returns the records of all.

    Args:
      jobs: may be a generator, which then sees in `runs` what the jobs before have made.
      total: how many runs a generator has.
    """
    if total is None:
        jobs = list(jobs)
        total = sum(len(job.seeds) for job in jobs)
    progress, wanted = Progress(total), []
    for job in jobs:
        own = [(job.settings, job.instance, seed) for seed in job.seeds]
        missing = [seed for *run, seed in own if not runs.has(*run, seed)]
        progress.skip(len(own) - len(missing))
        for record in job.make(missing) if missing else ():
            runs.add(record)
            progress.step(job.text)
        wanted += own
    return runs.those(wanted)


def run_script(
    flags: argparse.ArgumentParser,
    arguments: Sequence[str] | None,
    plan: Callable[[argparse.Namespace], Any],
    show: Callable[[list[dict[str, Any]], argparse.Namespace], str],
    execute: Callable[[Any, Runs], list[dict[str, Any]]] = make_missing,
) -> int:
    """Runs a script that has the flags of `parser`, and returns its exit status.

    What a person got wrong, a file that cannot be read or written, or a missing package ends it
    with one line.

    Args:
      plan: returns what the arguments ask for.
      show: returns what is printed of the records, those of `--report` or of the plan.
      execute: makes the runs of a plan that are not in a file yet, and returns the records of all.

    Returns:
      0, or 130 after Ctrl-C.
    """
    args = flags.parse_args(arguments)
    try:
        if args.report:
            records = read_all(args.report, args.experiments)
        else:
            use_cpu_cores()
            runs = Runs(args.out, args.experiments)  # looks at the file before anything runs
            records = execute(plan(args), runs)
        print(show(records, args))
    except KeyboardInterrupt:
        print("\ninterrupted" + (f"; the same command continues from {args.out}" * bool(args.out)))
        return 130
    except (ValueError, OSError, ImportError) as error:
        flags.error(str(error))
    return 0


def save_plot(
    path: str | os.PathLike,
    draw: Callable[[Any], Any],
    size: tuple[float, float] = (6.4, 4.8),
) -> None:
    """Writes a picture, or says on one line why not.

    Args:
      path: of the PNG file; its folder is made.
      draw: draws on the axes that it is given.
      size: width and height in inches.
    """
    try:
        axes = plotting.detached_axes(size)
        draw(axes)
        pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
        axes.figure.savefig(path)
    except (ImportError, OSError, ValueError) as error:
        print(f"no plot {path}: {error}")
    else:
        print(f"plot written: {path}")


def _load(kind: type[Instance], name: str, folder: pathlib.Path | None) -> Instance:
    instance = datasets.load(name, data_dir=folder)
    if not isinstance(instance, kind):
        raise ValueError(f"{name} is a {type(instance).__name__}, expected a {kind.__name__}")
    return instance
