"""The flags of the script, and what they do."""

import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from experiments import common, flag_types
from experiments.common import Progress, Runs
from experiments.memory.cases import CASES
from experiments.memory.tables import report

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_DEFAULT_CASES = ("tsp100-coordinates-annealing-two_opt", "qap30-tabu")

_SETTINGS = {
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    "MALLOC_MMAP_THRESHOLD_": "65536",  # what is freed is then the system's at once
}

Records = list[dict[str, Any]]


def cases(text: str) -> list[str]:
    """Returns the names of cases in a list such as `qap30-tabu,qubo200`, of which each begins one.

    Raises:
      argparse.ArgumentTypeError: if one begins none.
    """
    if text == "all":
        return list(CASES)
    words = flag_types.words(text)
    for word in words:
        if not any(name.startswith(word) for name in CASES):
            raise argparse.ArgumentTypeError(f"{word!r} begins no case of {', '.join(CASES)}")
    return [name for name in CASES if name.startswith(tuple(words))]


def execute(names: Sequence[str], num_jobs: int, runs: Runs) -> Records:
    """Measures the cases that are not in the file yet; returns the records of all."""
    missing = [name for name in names if not runs.has({"case": name}, name, 0)]
    progress = Progress(len(names))
    progress.skip(len(names) - len(missing))
    with concurrent.futures.ThreadPoolExecutor(num_jobs) as pool:
        pending = {pool.submit(answer, name): name for name in missing}
        for done in concurrent.futures.as_completed(pending):
            name = pending[done]
            try:
                found = done.result()
            except ChildProcessError as error:
                print(f"{name}: {error}", file=sys.stderr)
            else:
                runs.add(record(name, found))
            progress.step(1, name)
    return runs.those([({"case": name}, name, 0) for name in names])


def answer(name: str) -> dict[str, Any]:
    """Returns what a new process measures.

    Raises:
      ChildProcessError: if it fails, with the last line of what it wrote.
    """
    paths = [str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [sys.executable, "-m", "experiments.memory.worker", name],
        env=os.environ | _SETTINGS | {"PYTHONPATH": os.pathsep.join(paths)},
        cwd=_ROOT,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        *_, last = done.stderr.strip().splitlines() or ["it wrote nothing"]
        raise ChildProcessError(f"a measured process ended with {done.returncode}: {last}")
    return json.loads(done.stdout.splitlines()[-1])


def record(name: str, found: dict[str, Any]) -> dict[str, Any]:
    """Returns the record of a case."""
    return {
        "experiment": "memory",
        "instance": name,
        "seed": 0,
        "settings": {"case": name},
        **found,
        "date": common.now(),
    }


def parser() -> argparse.ArgumentParser:
    """Returns the flags of this script."""
    flags = argparse.ArgumentParser(
        prog="experiments.memory",
        description="What runs take of a device's memory, estimated and measured.",
    )
    flags.add_argument(
        "--cases",
        type=cases,
        default=list(_DEFAULT_CASES),
        help=f"beginnings of {', '.join(CASES)}; or all (default: {','.join(_DEFAULT_CASES)})",
    )
    flags.add_argument("--jobs", type=flag_types.positive, default=1, help="processes at once")
    common.add_record_arguments(flags, "memory")
    return flags


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the script and returns its exit status."""
    args = parser().parse_args(arguments)
    if args.report:
        print(report(common.read_all(args.report), markdown=args.markdown))
        return 0
    runs, records = Runs(args.out), Records()
    status = common.until_interrupted(
        lambda: records.extend(execute(args.cases, args.jobs, runs)), args.out
    )
    if records:
        print(report(records, markdown=args.markdown))
    return status


if __name__ == "__main__":
    sys.exit(main())
