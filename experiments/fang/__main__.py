"""See `experiments.fang`."""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

import jax

from experiments import common, flag_types
from experiments.common import Job
from experiments.fang import runs, tables
from experiments.fang.paper import TABLE_1, TABLE_2
from experiments.fang.runs import WAYS, Limits, Setting

_ROWS = {1: tuple(TABLE_1), 2: tuple(TABLE_2)}


def ways(text: str) -> list[str]:
    """Returns the ways of a list such as `xla,native`."""
    found = flag_types.words(text)
    if wrong := [way for way in found if way not in WAYS]:
        raise argparse.ArgumentTypeError(f"{wrong[0]!r} is not among {', '.join(WAYS)}")
    return found


def jobs_from_arguments(args: argparse.Namespace) -> list[Job]:
    """Returns what to run.

    Raises:
      ValueError: if there are no such rows or devices.
    """
    rows = _ROWS[args.table]
    if wrong := [number for number in args.rows or () if number > len(rows)]:
        raise ValueError(f"rows has {wrong[0]}, expected numbers up to {len(rows)}")
    plan = []
    for way in _ways(args):
        if way == "compiled" and (args.floats or args.ratings != "auto"):
            raise ValueError("ways has 'compiled', for which ratings and floats are no choice")
        for number in args.devices if way != "compiled" else [1]:
            runs.devices_of(way, number)
            plan += [
                Setting(*rows[place - 1], way, number, args.ratings, args.floats)
                for place in args.rows or range(1, len(rows) + 1)
            ]
    return runs.jobs(plan, Limits(args.executions, args.seconds))


def _ways(args: argparse.Namespace) -> list[str]:
    if args.ways:
        return args.ways
    return ["xla", "native"] if jax.default_backend() == "cpu" else ["cuda", "xla", "native"]


def parser() -> argparse.ArgumentParser:
    """Returns the flags of this script."""
    flags = argparse.ArgumentParser(
        prog="experiments.fang", description="Successor states by local heuristics."
    )
    add, number = flags.add_argument, flag_types.positive
    limit = "after which no further execution of a row begins, but for the first three"
    add("--table", type=int, choices=tuple(tables.TABLES), default=1)
    add("--rows", type=flag_types.integers, help="of the table, from 1 on")
    add("--ways", type=ways, help=f"some of {', '.join(WAYS)}")
    add("--devices", type=flag_types.integers, default=[1], help="how many; of a CPU, cores")
    add("--ratings", choices=("auto", "stored", "recomputed"), default="auto")
    add("--floats", action="store_true", help="add distances up as float32: the same results")
    add("--executions", type=number, default=100, help="of a row, at most")
    add("--seconds", type=flag_types.limit, default=2.0, help=limit)
    common.add_record_arguments(flags, "fang")
    return flags


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the script and returns its exit status."""

    def show(records: Sequence[dict[str, Any]], args: argparse.Namespace) -> str:
        return tables.TABLES[args.table](records, markdown=args.markdown, ways=args.ways)

    return common.run_script(parser(), arguments, jobs_from_arguments, show)


if __name__ == "__main__":
    sys.exit(main())
