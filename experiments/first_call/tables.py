"""The tables of `__main__`, from its records."""

import argparse
import statistics
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from experiments import common
from experiments.first_call.runs import STATES

Records = list[dict[str, Any]]


def report(records: Records, args: argparse.Namespace) -> str:
    """Returns two tables for each limit and machine."""
    where = itemgetter("machine", "seconds")
    sections = common.grouped(records, lambda record: where(record["settings"]))
    return "\n\n".join(_section(own, args.markdown) for own in sections.values())


def _section(records: Records, markdown: bool) -> str:
    there = {record["settings"]["state"] for record in records}
    states = [state for state in STATES if state in there]
    rows: dict[str, dict[str, Records]] = {}
    for record in records:
        row = rows.setdefault(record["settings"]["case"], {state: [] for state in states})
        row[record["settings"]["state"]].append(record)
    over, times = [["case"], *([name] for name in rows)], [["case"], *([name] for name in rows)]
    for state in states:
        own, label = [row[state] for row in rows.values()], state.replace("_", " ")
        _add(over, f"{label} +s", [_median(each, "overhead") for each in own])
        _add(over, "gap", map(_gap, own))
        steps = [_median(each, "first_step_seconds") for each in own]
        _add(times, f"{label}: first step s", steps)
    for state in ("cold", "cached"):  # in which a process makes the one call only
        if state in states:
            _add(times, f"{state}: process +s", [_whole(row[state]) for row in rows.values()])
    imports, devices = (_median(records, f"{name}_seconds") for name in ("import", "device"))
    return "\n\n".join(
        [
            _title(records, sorted({len(row[s]) for row in rows.values() for s in states} - {0})),
            "Seconds of the call beyond its limit, and gap (of N-Queens, runs that found a"
            " placement):",
            common.table(over[0], over[1:], markdown=markdown),
            "Seconds from the call to the first step, and of whole processes beyond the limit:",
            common.table(times[0], times[1:], markdown=markdown),
            f"In the process: {imports} s to import jax and jaxopt_search, and {devices} s to start"
            " the device.",
        ]
    )


def _add(table: list[list[str]], header: str, cells: Any) -> None:
    """Adds a column."""
    for row, cell in zip(table, [header, *cells], strict=True):
        row.append(cell)


def _title(records: Records, num_seeds: Sequence[int]) -> str:
    settings = records[0]["settings"]
    ran = sorted({record["implementation"] for record in records})
    return (
        f"max_seconds={settings['seconds']:g}; {', '.join([settings['machine'], *ran])};"
        f" medians; seeds: {' to '.join(map(str, num_seeds))}"
    )


def _gap(records: Records) -> str:
    if records and records[0]["best_known"] == 0:
        return f"{sum(record['cost'] == 0 for record in records)}/{len(records)}"
    gaps = [record["gap"] for record in records if record["gap"] is not None]
    return f"{statistics.median(gaps):.2%}" if gaps else "-"


def _whole(records: Records) -> str:
    beyond = [r | {"+": r["process_seconds"] - r["settings"]["seconds"]} for r in records]
    return _median(beyond, "+")


def _median(records: Records, field: str) -> str:
    values = [record[field] for record in records if record[field] is not None]
    return f"{statistics.median(values):.2f}" if values else "-"
