"""The tables of `--study`, which the paper does not have."""

import math
from typing import Any

from experiments.pspm.layout import Column, fit, rows_of, run_notes, section
from experiments.pspm.measures import Figure, Records, error, quotient, speed
from experiments.pspm.paper import TABLE_2


def core_table(records: Records, markdown: bool = False) -> str:
    """Returns the speed and error of PSPM and of one compiled core, and the quotients of speeds."""
    rows = rows_of(records, "quality", TABLE_2)
    columns = []
    for scheme in ("core single", "core sspm", "pspm"):
        columns += [
            Column(f"{scheme} SSES", 1, speed(scheme)),
            Column(f"{scheme} SEC", 2, error(scheme)),
        ]
    for scheme in ("core single", "core sspm"):
        columns.append(Column(f"pspm/{scheme}", 1, quotient(speed("pspm"), speed(scheme))))
    if not any(speed("core sspm")(row.records) for row in rows):
        return ""
    title = (
        "\nPSPM over one core. SSES in 1e6 moves/s, compilation left out; SEC in percent. The core"
        f" is one of {_cpus(records)}, with one search of 12 moves (sspm) or of one (single),"
        " compiled by numba."
    )
    return section([title], rows, columns, run_notes(rows), markdown)


def descent_table(records: Records, markdown: bool = False) -> str:
    """Returns the error of one search with one move, the paper's PSSM in brackets."""
    rows = rows_of(records, "quality", TABLE_2)
    names = {"single": "nothing worse", "core strict": "nothing equal"}
    columns = [
        Column(text, 2, error(scheme), lambda row: row.pssm[1]) for scheme, text in names.items()
    ]
    title = (
        "\nOne search with one move that accepts nothing worse, and (core strict) nothing equal."
        " SEC in percent; in brackets the paper's of PSSM."
    )
    below = [*run_notes(rows), *(line for scheme in names for line in fit(rows, scheme))]
    return section([title], rows, columns, below, markdown)


def exchange_table(records: Records, markdown: bool = False) -> str:
    """Returns the error and the speed of PSPM by the temperatures from broadcast to broadcast."""
    own = [r for r in records if r["settings"]["scheme"]["name"] == "pspm"]
    periods = sorted({_period(record) for record in own}, key=lambda every: every or math.inf)
    rows = rows_of(own, "quality", dict.fromkeys(TABLE_2))
    columns = []
    for figure, digits, unit in ((error, 2, "SEC"), (speed, 0, "SSES")):
        columns += [
            Column(f"{every or 'never'} {unit}", digits, _with_period(every, figure("pspm")))
            for every in periods
        ]
    if len(periods) < 2:
        return ""
    title = (
        "\nPSPM by the number of temperatures from one broadcast of the best to the next."
        " SEC in percent; SSES in 1e6 moves/s."
    )
    return section([title], rows, columns, run_notes(rows), markdown)


def _period(record: dict[str, Any]) -> int | None:
    """Returns the temperatures from one exchange to the next; None for no exchange."""
    settings = record["settings"]
    return settings["cooling"]["exchange_every"] if settings["scheme"]["exchanges"] else None


def _with_period(every: int | None, figure: Figure) -> Figure:
    return lambda records: figure([r for r in records if _period(r) == every])


def _cpus(records: Records) -> str:
    """Returns the processors of the hosts, as far as records tell."""
    found = dict.fromkeys(record.get("env", {}).get("cpu") for record in records)
    return ", ".join(name for name in found if name) or "the same machine"
