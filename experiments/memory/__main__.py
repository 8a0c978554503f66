"""See `experiments.memory`."""

import argparse
import functools
import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from experiments import common, flag_types
from experiments.common import Job
from experiments.memory.cases import CASES

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_DEFAULT_CASES = ["tsp100-coordinates-annealing-two_opt", "qap30-tabu"]
_SETTINGS = {
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    "MALLOC_MMAP_THRESHOLD_": "65536",  # what is freed is then the system's at once
}
_MIB = 2**20
_ALLOWANCE = 16 * _MIB

Records = list[dict[str, Any]]


def jobs_from_arguments(args: argparse.Namespace) -> list[Job]:
    """Returns the cases to be measured.

    Raises:
      ValueError: if a word begins the name of none.
    """
    words = [""] if args.cases == ["all"] else args.cases
    for word in words:
        if not any(name.startswith(word) for name in CASES):
            raise ValueError(f"{word!r} begins no case of {', '.join(CASES)}")
    names = [name for name in CASES if name.startswith(tuple(words))]
    return [Job({"case": name}, name, 0, name, functools.partial(measure, name)) for name in names]


def measure(name: str) -> dict[str, Any]:
    """Returns the record of a case, measured in a new process.

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
        raise ChildProcessError(f"{name}: a process ended with {done.returncode}: {last}")
    known = {"experiment": "memory", "instance": name, "seed": 0, "settings": {"case": name}}
    return known | json.loads(done.stdout.splitlines()[-1]) | {"date": common.now()}


def off_by(record: dict[str, Any]) -> float:
    """Returns by what share of the measured bytes the estimate is off, beyond the allowance."""
    difference = record["estimate"] - record["measured"]
    beyond = max(abs(difference) - _ALLOWANCE, 0)
    return (beyond if difference > 0 else -beyond) / record["measured"]


def report(records: Records, *, markdown: bool) -> str:
    """Returns a table for each kind of device."""
    sections: dict[str, Records] = {}
    for record in records:
        sections.setdefault(record["env"]["devices"], []).append(record)
    header = "case | searches | ran | most in | estimate MiB | measured MiB | off by"
    parts = []
    for devices, own in sections.items():
        near = sum(not record["failed"] and abs(off_by(record)) <= 0.2 for record in own)
        allowance = f"beyond an allowance of {_ALLOWANCE // _MIB} MiB"
        parts.append(f"{devices}; within 20 %, {allowance}: {near} of {len(own)}")
        parts.append(common.table(header, map(_row, own), markdown=markdown))
    return "\n\n".join(parts)


def _row(record: dict[str, Any]) -> list[str]:
    ran = "no memory" if record["failed"] else record["implementation"].partition(" ")[0]
    sizes = [f"{record[name] / _MIB:,.0f}" for name in ("estimate", "measured")]
    off = "-" if record["failed"] else f"{off_by(record):+.0%}"
    searches = f"{record['num_searches']:,}"
    return [record["instance"], searches, ran, record["parts"]["when"], *sizes, off]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the script and returns its exit status."""
    flags = argparse.ArgumentParser(
        prog="experiments.memory",
        description="What runs take of a device's memory, estimated and measured.",
    )
    flags.add_argument(
        "--cases",
        type=flag_types.words,
        default=_DEFAULT_CASES,
        help=f"beginnings of {', '.join(CASES)}; or all (default: {','.join(_DEFAULT_CASES)})",
    )
    common.add_record_arguments(flags, "memory")
    return common.run_script(
        flags,
        arguments,
        jobs_from_arguments,
        lambda records, args: report(records, markdown=args.markdown),
    )


if __name__ == "__main__":
    sys.exit(main())
