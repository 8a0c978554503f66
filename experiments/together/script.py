"""The flags of the script, and its table."""

import argparse
import statistics
from collections.abc import Sequence
from typing import Any

import jaxopt_search as js
from experiments import common, flag_types
from experiments.jobs import Job, make_missing
from experiments.together import runs

_HEADER = ("instance", "on", "moves/s", "reached", "median s", "slowest s", "first")


def report(records: list[dict[str, Any]], *, markdown: bool = False) -> str:
    """Returns the table: a row for each instance and what searched it."""
    keys = dict.fromkeys((one["instance"], one["settings"]["on"]) for one in records)
    rows = []
    for instance, on in keys:
        own = [one for one in records if (one["instance"], one["settings"]["on"]) == (instance, on)]
        rows.append([instance, on, *_figures(own)])
    return common.table(_HEADER, rows, markdown=markdown)


def _figures(records: list[dict[str, Any]]) -> list[str]:
    rates = [one for one in records if one["settings"]["target"] is None]
    raced = [one for one in records if one["settings"]["target"] is not None]
    times = [float("inf") if one["seconds"] is None else one["seconds"] for one in raced]
    figures = [statistics.median(times), max(times)] if times else []
    return [
        f"{sum(rates[0]['moves_per_second']):.3g}" if rates else "-",
        f"{sum(time < float('inf') for time in times)}/{len(times)}",
        *(f"{time:.3f}" if time < float("inf") else "-" for time in figures or [float("inf")] * 2),
        _finishers(raced),
    ]


def _finishers(records: list[dict[str, Any]]) -> str:
    """Returns how often which of several was first, in their order."""
    met = [(one["met"], one["seconds"]) for one in records if one["seconds"] is not None]
    if not met or len(met[0][0]) < 2:
        return "-"
    return " + ".join(str(sum(at[name] == first for at, first in met)) for name in met[0][0])


def jobs_from_arguments(args: argparse.Namespace) -> list[Job]:
    """Returns what to do.

    Raises:
      ValueError, FileNotFoundError: if an instance is not found, or there is but one device.
    """
    qaps = common.find_instances(
        args.qap, args.data, "tai30a", lambda: js.datasets.planted_qap(5, 6, seed=0)
    )
    tsps = common.find_instances(
        args.tsp, args.data, "pcb442", lambda: js.datasets.grid_tsp(20, 20, seed=0)
    )
    return runs.jobs([*qaps, *tsps], args.seconds, args.runs, args.gap)


def parser() -> argparse.ArgumentParser:
    """Returns the flags of this script."""
    flags = argparse.ArgumentParser(
        prog="experiments.together", description="A GPU and the CPU's cores on one problem."
    )
    flags.add_argument("--qap", type=flag_types.words, help="such as tai30a,tai40a")
    flags.add_argument("--tsp", type=flag_types.words, help="such as kroA200,pcb442")
    flags.add_argument("--seconds", type=flag_types.limit, default=2.0, help="limit of each run")
    flags.add_argument("--runs", type=flag_types.positive, default=3, help="to the target")
    flags.add_argument(
        "--gap", type=float, default=0.0, help="of the target to the best known cost, such as 0.001"
    )
    common.add_record_arguments(flags, "together")
    common.add_data_argument(flags)
    return flags


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the script and returns its exit status."""
    flags = parser()
    args = flags.parse_args(arguments)
    records, status = common.measured_or_read(flags, args, jobs_from_arguments, make_missing)
    if records:
        print(report(records, markdown=args.markdown))
    return status
