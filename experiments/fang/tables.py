"""Tables of what `runs` has recorded."""

import math
from collections.abc import Sequence
from statistics import median, stdev
from typing import Any

from experiments import common
from experiments.fang.paper import CORES, Row, Time
from experiments.fang.runs import WAYS, Setting

Records = Sequence[dict[str, Any]]

_ON_CORES = ("native", "compiled")


def report(records: Records, paper: dict[Row, dict[str, Time]], *, markdown: bool = False) -> str:
    """Returns our times of the rows of a table of the paper next to its own machines' times.

    Where rows differ in their load, also how many times those with a load of 1.
    """
    by_setting = {Setting.of(r): r for r in records}
    kinds = sorted({setting[4:] for setting in by_setting}, key=_order)
    machines = list(next(iter(paper.values())))
    has_loads = len({row.load for row in paper}) > 1
    rows = []
    for kind in kinds:
        own = {s.row: record for s, record in by_setting.items() if s[4:] == kind}
        ratios = []
        for row, times in paper.items():
            if row not in own:
                continue
            ratios.append(_ratios(own[row], times))
            rows.append(
                [
                    *map(str, row[not has_loads :]),
                    *_ours(own[row]),
                    *([_times_as_load_1(row, own)] if has_loads else []),
                    *(f"{time.median:.2f} ± {time.deviation:.2f}" for time in times.values()),
                    *([_paper_as_load_1(row, paper)] if has_loads else []),
                    *map(common.shown, ratios[-1]),
                ]
            )
        if len(ratios) == len(paper):
            lowest = [common.shown(min(column)) for column in zip(*ratios, strict=True)]
            blank = [""] * (len(rows[-1]) - len(lowest) - 1)
            rows.append(["lowest", *blank, *lowest])
    loads = ["x load 1"] if has_loads else []
    header = (
        *("load", "states", "variables", "possibilities")[not has_loads :],
        *("runs as", "n", "first call s", "ms", "in a program", "ns/possibility", *loads),
        *(f"paper: {name}" if name == machines[0] else name for name in machines),
        *loads,
        *("x 1080 Ti", "x i9 7940X", "x i9 per core"),
    )
    return common.table(header, rows, markdown=markdown)


def _order(kind: tuple[Any, ...]) -> tuple[Any, ...]:
    way, *others = kind
    return WAYS.index(way), *others


def _ours(record: dict[str, Any]) -> list[str]:
    setting = Setting.of(record)
    milliseconds = [1e3 * seconds for seconds in record["seconds"]]
    in_a_program = [1e3 * seconds for seconds in record["seconds_in_a_program"]]
    deviation = stdev(milliseconds) if len(milliseconds) > 1 else 0.0
    number = setting.states * setting.variables * setting.possibilities
    return [
        f"{setting.way} floats" if setting.in_floats else setting.way,
        str(len(milliseconds)),
        f"{record['compile_seconds']:.1f}",
        f"{median(milliseconds):.4g} ± {deviation:.2g}",
        f"{median(in_a_program):.3g}" if in_a_program else "-",
        f"{1e6 * median(in_a_program or milliseconds) / number:.3g}",
    ]


def _times_as_load_1(row: Row, own: dict[Row, dict[str, Any]]) -> str:
    base = own.get(row._replace(load=1))
    return f"{median(own[row]['seconds']) / median(base['seconds']):.2f}" if base else "-"


def _paper_as_load_1(row: Row, paper: dict[Row, dict[str, Time]]) -> str:
    medians = (paper[r]["1080 Ti"].median for r in (row, row._replace(load=1)))
    return f"{next(medians) / next(medians):.2f}"


def _ratios(record: dict[str, Any], paper: dict[str, Time]) -> tuple[float, ...]:
    """Returns how many times faster than the 1080 Ti, than the i9, and per core than the i9.

    The last one is infinite for what ran on no core.
    """
    setting, ours = Setting.of(record), 1e3 * median(record["seconds"])
    whole = paper["i9 7940X"].median / ours
    per_core = whole * CORES["i9 7940X"]
    return paper["1080 Ti"].median / ours, whole, per_core if setting.way in _ON_CORES else math.inf
