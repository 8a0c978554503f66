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
from experiments.fang.runs import WAYS, Limits, Setting

_TABLES = {1: TABLE_1, 2: TABLE_2}


def jobs_from_arguments(args: argparse.Namespace) -> list[Job]:
    """Returns what to run.

    Raises:
      ValueError: if there are no such rows or devices.
    """
    rows = list(_TABLES[args.table])
    if wrong := [number for number in args.rows or () if number > len(rows)]:
        raise ValueError(f"rows has {wrong[0]}, expected numbers up to {len(rows)}")
    plan = []
    for way in _ways(args):
        if way == "compiled" and args.floats:
            raise ValueError("ways has 'compiled', for which floats are no choice")
        for number in args.devices if way != "compiled" else [1]:
            runs.devices_of(way, number)
            plan += [
                Setting(*rows[place - 1], way, number, args.floats)
                for place in args.rows or range(1, len(rows) + 1)
            ]
    limits = Limits(args.executions, args.seconds)
    return [runs.job(setting, limits) for setting in plan]


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
    add, number = flags.add_argument, flag_types.positive
    limit = "after which no further execution of a row begins, but for the first three"
    add("--table", type=int, choices=tuple(_TABLES), default=1)
    add("--rows", type=flag_types.integers, help="of the table, from 1 on")
    add("--ways", type=flag_types.some_of(*WAYS), help=f"some of {', '.join(WAYS)}")
    add("--devices", type=flag_types.integers, default=[1], help="how many; of a CPU, cores")
    add("--floats", action="store_true", help="add distances up as float32: the same results")
    add("--executions", type=number, default=100, help="of a row, at most")
    add("--seconds", type=flag_types.limit, default=2.0, help=limit)
    return common.run_script(flags, arguments, jobs_from_arguments, show)


if __name__ == "__main__":
    sys.exit(main())
