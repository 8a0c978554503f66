"""The tables of `__main__`, from its records."""

import statistics
from collections.abc import Sequence
from typing import Any

from experiments import common
from experiments.first_call.runs import OURS, STATES

Records = list[dict[str, Any]]

_WHOLE = ("cold", "cached")
"""States in which a process makes the one call only."""


def report(records: Records, *, markdown: bool) -> str:
    """Returns two tables for each limit and machine."""
    sections: dict[tuple[Any, ...], Records] = {}
    for record in records:
        settings = record["settings"]
        key = tuple(settings[name] for name in ("machine", "seconds"))
        sections.setdefault(key, []).append(record)
    return "\n\n".join(_section(own, markdown) for own in sections.values())


def _section(records: Records, markdown: bool) -> str:
    states, rows = _states(records), _rows(records)
    over = [over_and_gap(row, states) for row in rows]
    times = [seconds(row, states) for row in rows]
    return "\n".join(
        [
            _title(records, rows),
            "",
            "Seconds of the call beyond its limit, and gap (of N-Queens, runs that found a"
            " placement):",
            "",
            common.table(_header(states), over, markdown=markdown),
            "",
            "Seconds from the call to the first step, and of whole processes beyond the limit:",
            "",
            common.table(_header_of_seconds(states), times, markdown=markdown),
            *_starts(_ours(records)),
        ]
    )


def _title(records: Records, rows: Sequence["Row"]) -> str:
    settings = records[0]["settings"]
    ran = sorted({record["implementation"] for record in _ours(records)})
    num_seeds = sorted({len(own) for row in rows for own in row.values()})
    return (
        f"max_seconds={settings['seconds']:g}; {', '.join([settings['machine'], *ran])};"
        f" medians; seeds: {' to '.join(map(str, num_seeds))}"
    )


def _ours(records: Records) -> Records:
    return [record for record in records if record["settings"]["solver"] == OURS]


def _states(records: Records) -> list[str]:
    there = {record["settings"]["state"] for record in records}
    return [state for state in STATES if state in there]


Row = dict[str, Records]
"""Records of a solver on a case, by state."""


def _rows(records: Records) -> list[Row]:
    """Returns a row for each solver on each case; the solvers of a case stand together."""
    cases: dict[str, dict[str, Row]] = {}
    for record in records:
        settings = record["settings"]
        solvers = cases.setdefault(settings["case"], {})
        row = solvers.setdefault(f"{settings['solver']} {settings['version']}", {})
        row.setdefault(settings["state"], []).append(record)
    return [row for solvers in cases.values() for row in solvers.values()]


def _header(states: Sequence[str]) -> list[str]:
    labels = [state.replace("_", " ") for state in states]
    return ["case", "solver", *(text for name in labels for text in (f"{name} +s", "gap"))]


def _header_of_seconds(states: Sequence[str]) -> list[str]:
    labels = [f"{state.replace('_', ' ')}: first step s" for state in states]
    wholes = [f"{state}: process +s" for state in states if state in _WHOLE]
    return ["case", "solver", *labels, *wholes]


def over_and_gap(row: Row, states: Sequence[str]) -> list[str]:
    """Returns the line of a solver on a case: by state, overhead and gap."""
    cells = [
        text
        for own in (row.get(state, []) for state in states)
        for text in (_median(own, "overhead"), _gap(own))
    ]
    return [*_names(row), *cells]


def seconds(row: Row, states: Sequence[str]) -> list[str]:
    """Returns the line of a solver on a case: by state, times to the first step, and in all."""
    steps = [_median(row.get(state, []), "first_step_seconds") for state in states]
    wholes = [_whole(row.get(state, [])) for state in states if state in _WHOLE]
    return [*_names(row), *steps, *wholes]


def _names(row: Row) -> tuple[str, str]:
    settings = next(iter(row.values()))[0]["settings"]
    is_ours = settings["solver"] == OURS
    return settings["case"], settings["solver"] + ("" if is_ours else f" {settings['version']}")


def _gap(records: Records) -> str:
    if records and records[0]["best_known"] == 0:
        return f"{sum(record['cost'] == 0 for record in records)}/{len(records)}"
    gaps = [record["gap"] for record in records if record["gap"] is not None]
    return f"{statistics.median(gaps):.2%}" if gaps else "-"


def _whole(records: Records) -> str:
    return _median(
        [r | {"+": r["process_seconds"] - r["settings"]["seconds"]} for r in records], "+"
    )


def _median(records: Records, field: str) -> str:
    values = [record[field] for record in records if record[field] is not None]
    return f"{statistics.median(values):.2f}" if values else "-"


def _starts(ours: Records) -> list[str]:
    if not ours:
        return []
    imports, devices = (_median(ours, f"{name}_seconds") for name in ("import", "device"))
    return [
        "",
        f"In the process: {imports} s to import jax and jaxopt_search, and {devices} s to start the"
        " device.",
    ]
