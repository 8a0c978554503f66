"""See `experiments.fang`."""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

import jax

from experiments import common, fang, flag_types
from experiments.common import Job
from experiments.fang import runs, tables
from experiments.fang.paper import TABLE_1, TABLE_2
from experiments.fang.runs import WAYS, Setting

_TABLES = {1: TABLE_1, 2: TABLE_2}


def jobs_from_arguments(args: argparse.Namespace) -> list[Job]:
    """Returns what to run.

    Raises:
      ValueError: if a way has no device.
    """
    if args.floats and "compiled" in _ways(args):
        raise ValueError("ways has 'compiled', for which floats are no choice")
    jobs = []
    for way in _ways(args):
        device = runs.device_of(way)
        for row in _TABLES[args.table]:
            setting = Setting(*row, way, in_floats=args.floats)
            jobs.append(runs.job(setting, device, args.seconds))
    return jobs


def _ways(args: argparse.Namespace) -> list[str]:
    if args.ways:
        return args.ways
    return ["xla", "native"] if jax.default_backend() == "cpu" else ["cuda", "xla", "native"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the script and returns its exit status."""

    def show(records: Sequence[dict[str, Any]], args: argparse.Namespace) -> str:
        own = [r for r in records if r["settings"]["way"] in (args.ways or WAYS)]
        return tables.report(own, _TABLES[args.table], markdown=args.markdown)

    flags = common.parser("fang", fang.__doc__, "fang")
    add = flags.add_argument
    limit = "after which no further execution of a row begins, but for the first three"
    add("--table", type=int, choices=tuple(_TABLES), default=1)
    add("--ways", type=flag_types.some_of(*WAYS), help=f"some of {', '.join(WAYS)}")
    add("--floats", action="store_true", help="add distances up as float32: the same results")
    add("--seconds", type=flag_types.limit, default=2.0, help=limit)
    return common.run_script(flags, arguments, jobs_from_arguments, show)


if __name__ == "__main__":
    sys.exit(main())
