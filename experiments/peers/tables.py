"""The table of `__main__`, from its records."""

import statistics
from collections.abc import Sequence
from typing import Any

from experiments import common
from experiments.peers.levels import gap, median_time, time_to_level

LEVELS = (0.01, 0.001, 0.0)


def row(records: Sequence[dict[str, Any]], levels: Sequence[float]) -> list[str]:
    """Returns the line of a solver on an instance, from its records of all seeds."""
    one, best_known = records[0], records[0]["best_known"]
    settings, compiling, seeds = one["settings"], None, {}
    for record in records:
        if record["settings"]["call"] == "first":
            compiling = record["seconds"]
        else:
            seeds.setdefault(record["seed"], []).append(record)
    times = [
        [min(time_to_level(r["trace"], best_known, level) for r in runs) for runs in seeds.values()]
        for level in levels
    ]
    ends = [min(r["cost"] for r in runs) for runs in seeds.values()]
    gaps = statistics.median(gap(end, best_known) for end in ends)
    return [
        one["instance"],
        f"{settings['solver']} {settings['version']}",
        settings["runs_on"],
        *map(median_time, times),
        f"{gaps:.2%}" if best_known else f"{statistics.median(ends):g}",
        common.number(compiling, 1),
    ]


def table(records: Sequence[dict[str, Any]], *, markdown: bool) -> str:
    """Returns a line for each solver on each instance, in the order in which the records came."""
    groups = common.grouped(records, lambda r: (r["instance"], r["settings"]["solver"]))
    levels = LEVELS if any(record["best_known"] for record in records) else LEVELS[-1:]
    header = (
        "instance",
        "solver",
        "runs on",
        *(f"s to {100 * level:g}%" if level else "s to best known" for level in levels),
        "gap" if levels == LEVELS else "cost",
        "first call +s",
    )
    lines = [row(group, levels) for group in groups.values()]
    return common.table(header, lines, markdown=markdown)
