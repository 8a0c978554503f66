"""Tables 2 to 4 from records, with the paper's figures in brackets; `report` has all tables."""

import json
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

from experiments import common
from experiments.pspm.layout import Column, Row, fit, rows_of, run_notes, section
from experiments.pspm.measures import (
    Records,
    difference,
    error,
    over_instances,
    quotient,
    select,
    speed,
    throughput,
)
from experiments.pspm.paper import TABLE_2, TABLE_3, TABLE_4
from experiments.pspm.runs import OF_THE_PAPER
from experiments.pspm.studies import core_table, descent_table, exchange_table

INSTANCES = tuple(TABLE_2)
_PAPER_NOTE = (
    "In brackets the paper's: PSPM on a Tesla C2050, SSPM and PSSM on 12 Xeon X5650 cores."
)
_QUOTIENT_NOTE = (
    "Quotients of speeds are ours of schemes on one and the same device, where narrow ones leave"
    " most of a GPU idle; the paper's of its GPU and its 12 cores."
)


def report(
    records: Records, *, tables: Sequence[int | str] | None = None, markdown: bool = False
) -> str:
    """Returns the tables for which there are records, a set of them for each cooling.

    Args:
      tables: keys of `TABLES`; None for all.
    """
    wanted = tuple(TABLES) if tables is None else tables
    groups = common.grouped(records, lambda record: json.dumps(record["settings"]["cooling"]))
    parts = []
    for cooling, own in groups.items():
        found = [TABLES[name](own, markdown) for name in wanted if name != "exchange"]
        found = [text for text in found if text]
        parts += [f"\nCooling: {cooling}"] if len(groups) > 1 and found else []
        parts += found
    if "exchange" in wanted and (text := exchange_table(records, markdown)):
        parts.append(text)
    return "\n".join(parts) or "no finished runs"


def table_2(records: Records, markdown: bool = False) -> str:
    """Returns Table 2, speed and error of complete searches, and whether PSPM wins."""
    rows = rows_of(records, "quality", TABLE_2)
    columns = [column for s in OF_THE_PAPER for column in _columns(s, lambda figure, s: figure(s))]
    for scheme in ("sspm", "pssm"):
        speedup = quotient(speed("pspm"), speed(scheme))
        columns.append(Column(f"pspm/{scheme}", 1, speedup, attrgetter(f"speedup_over_{scheme}")))
    title = "\nTable 2. SSES in 1e6 moves/s, compilation left out; SEC in percent."
    below = [*run_notes(rows), *_order(rows), *fit(rows, "pssm")]
    return section([title, _PAPER_NOTE, _QUOTIENT_NOTE], rows, columns, below, markdown)


def table_3(records: Records, markdown: bool = False) -> str:
    """Returns Table 3, time to a threshold and error after equal time."""
    rows = rows_of(records, "throughput", TABLE_3)
    late = {scheme: error(scheme, "convergence") for scheme in OF_THE_PAPER}
    speedup = quotient(throughput("pspm"), throughput("sspm"))
    columns = [
        *(Column(f"TC {s}", 2, throughput(s), attrgetter(f"tc_{s}")) for s in ("sspm", "pspm")),
        Column("speedup", 1, speedup, attrgetter("tc_speedup")),
        *(Column(f"SEC {s}", 1, late[s], attrgetter(f"sec_{s}")) for s in OF_THE_PAPER),
    ]
    for scheme in ("sspm", "pssm"):
        over = difference(late[scheme], late["pspm"])
        columns.append(Column(f"over {scheme}", 1, over, attrgetter(f"improvement_over_{scheme}")))
    title = "\nTable 3. TC in 0.01 solutions/s; SEC in percent after the mean time of PSPM."
    below = [*map(_reached, rows), *run_notes(rows, "throughput")]
    return section([title, _PAPER_NOTE], rows, columns, below, markdown)


def table_4(records: Records, markdown: bool = False) -> str:
    """Returns Table 4, the means over the instances for several numbers of moves."""
    rows = []
    for moves, paper in TABLE_4.items():
        own = [r for r in records if r["settings"]["scheme"]["moves"] == moves]
        rows.append(Row(str(moves), own, paper))
    columns = [column for s in ("sspm", "pspm") for column in _columns(s, over_instances)]
    speedup = quotient(over_instances(speed, "pspm"), over_instances(speed, "sspm"))
    columns.append(Column("speedup", 1, speedup, attrgetter("speedup")))
    rows = [row for row in rows if any(column.ours(row.records) for column in columns)]
    if len(rows) < 2:
        return ""
    names = sorted({record["instance"] for record in records})
    title = f"\nTable 4. Means over {', '.join(names)} (paper: 20 instances)."
    how = {"first": "moves", "has_average": False}
    return section([title, _PAPER_NOTE], rows, columns, run_notes(rows), markdown, **how)


TABLES: dict[int | str, Callable[..., str]] = {
    2: table_2,
    3: table_3,
    4: table_4,
    "core": core_table,
    "descent": descent_table,
    "exchange": exchange_table,
}


def _columns(scheme: str, ours: Callable[..., Any]) -> list[Column]:
    """Returns speed and error; `ours` maps a figure and the scheme to how we get it."""
    paper = attrgetter(scheme)
    return [
        Column(f"{scheme} SSES", 1, ours(speed, scheme), lambda row: paper(row)[0]),
        Column(f"{scheme} SEC", 2, ours(error, scheme), lambda row: paper(row)[1]),
    ]


def _reached(row: Row) -> str:
    """Returns how many runs got below the threshold, and the time given for convergence."""
    parts = []
    for scheme in OF_THE_PAPER:
        if found := select(row.records, "throughput", scheme):
            reached = sum(record["reached"] for record in found)
            parts.append(f"{scheme} {reached} of {len(found)}")
            threshold = found[-1]["settings"]["limit"]["threshold"]
    limits = [r["settings"]["limit"]["max_seconds"] for r in row.records]
    seconds = [limit for limit in limits if limit is not None]
    time = f"; time for convergence {seconds[-1]:.2f} s" if seconds else ""
    return f"{row.label}: below {threshold}: {', '.join(parts)}{time}"


def _order(rows: list[Row]) -> list[str]:
    """Returns where PSPM < SSPM < PSSM holds for SEC."""
    holds = {}
    for row in rows:
        pspm, sspm, pssm = (error(scheme)(row.records) for scheme in ("pspm", "sspm", "pssm"))
        if pspm is not None and sspm is not None and pssm is not None:
            holds[row.label] = pspm < sspm < pssm
    if not holds:
        return []
    each = ", ".join(f"{name} {'yes' if is_so else 'no'}" for name, is_so in holds.items())
    return [f"SEC pspm < sspm < pssm: {sum(holds.values())} of {len(holds)} ({each})"]
