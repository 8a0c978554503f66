"""The tables and the figure of the PSPM experiment, from its records, beside the paper's."""

import json
import math
from collections.abc import Callable, Sequence
from operator import attrgetter
from statistics import correlation, fmean
from typing import Any, NamedTuple

from experiments import common
from experiments.pspm.paper import TABLE_2, TABLE_3, TABLE_4

Records = list[dict[str, Any]]

INSTANCES = tuple(TABLE_2)
_MOVES = {"sspm": 12, "pssm": 1, "pspm": 12}
_MORE_MOVES = {"single": 1, "core sspm": 12, "core single": 1, "core strict": 1}
_PAPER_NOTE = (
    "In brackets the paper's: PSPM on a Tesla C2050, SSPM and PSSM on 12 Xeon X5650 cores."
)
_QUOTIENT_NOTE = (
    "Quotients of speeds are ours of schemes on one and the same device, where narrow ones leave"
    " most of a GPU idle; the paper's of its GPU and its 12 cores."
)


class Row(NamedTuple):
    """An instance, or a number of moves, with our runs and the paper's figures."""

    label: str
    records: Records
    paper: Any


class Column(NamedTuple):
    """A figure, how we get it from our runs, and where the paper has it."""

    header: str
    digits: int
    ours: Callable[[Records], float | None]
    paper: Callable[[Any], float | None] = lambda row: None


def sses(num_moves: float, seconds: float) -> float:
    """Returns the moves looked at per second, equation 4."""
    return num_moves / seconds


def sec(cost: float, optimum: float | None) -> float | None:
    """Returns the solution error in percent, equation 5; None without an optimum."""
    return None if optimum is None else 100 * (cost - optimum) / optimum


def tc(seconds: Sequence[float], num_reached: int) -> float:
    """Returns solutions per second, equation 7: the inverse of the mean time to the threshold.

    Where runs ended without reaching it, this counts their time but not them; it is then the
    maximum-likelihood rate of exponential times.
    """
    return num_reached / sum(seconds)


def select(records: Records, kind: str, scheme: str, moves: int | None = None) -> Records:
    """Returns the runs of a scheme on one instance, one for each seed.

    Where the file holds several kinds of device, limits or exchanges, those of the last run count;
    of several runs of one seed, the last.

    Args:
      moves: moves per search; None for those of the scheme in the paper's Tables 2 and 3.
    """
    moves = (_MOVES | _MORE_MOVES)[scheme] if moves is None else moves
    found = []
    for record in records:
        settings = record["settings"]
        own = (settings["kind"], settings["scheme"]["name"], settings["scheme"]["moves"])
        if own == (kind, scheme, moves):
            found.append(record)
    last = {
        record["seed"]: record
        for record in found
        if all(
            record["settings"][name] == found[-1]["settings"][name]
            for name in ("limit", "device_kind", "scheme")
        )
    }
    return list(last.values())


def report(
    records: Records, *, tables: Sequence[int | str] | None = None, markdown: bool = False
) -> str:
    """Returns the tables for which there are records, a set of them for each cooling.

    Args:
      tables: keys of `TABLES`; None for all.
    """
    groups: dict[str, Records] = {}
    for record in records:
        groups.setdefault(_cooling(record), []).append(record)
    wanted = tuple(TABLES) if tables is None else tables
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
    rows = _rows(records, "quality", TABLE_2)
    columns = []
    for scheme in _MOVES:
        columns += [
            Column(f"{scheme} SSES", 1, _speed(scheme), lambda row, s=scheme: getattr(row, s)[0]),
            Column(f"{scheme} SEC", 2, _error(scheme), lambda row, s=scheme: getattr(row, s)[1]),
        ]
    for scheme in ("sspm", "pssm"):
        speedup = _quotient(_speed("pspm"), _speed(scheme))
        columns.append(Column(f"pspm/{scheme}", 1, speedup, attrgetter(f"speedup_over_{scheme}")))
    if not (body := _render(rows, columns, markdown)):
        return ""
    title = "\nTable 2. SSES in 1e6 moves/s, compilation left out; SEC in percent."
    notes = _run_notes([record for row in rows for record in row.records], "quality")
    order = [*_order(rows), *_fit(rows, "pssm")]
    return _lines([title, _PAPER_NOTE, _QUOTIENT_NOTE, body, *notes, *order], markdown)


def table_3(records: Records, markdown: bool = False) -> str:
    """Returns Table 3, time to a threshold and error after equal time."""
    rows = _rows(records, "throughput", TABLE_3)
    late = {scheme: _error(scheme, "convergence") for scheme in _MOVES}
    columns = [
        Column("TC sspm", 2, _throughput("sspm"), attrgetter("tc_sspm")),
        Column("TC pspm", 2, _throughput("pspm"), attrgetter("tc_pspm")),
        Column(
            "speedup",
            1,
            _quotient(_throughput("pspm"), _throughput("sspm")),
            attrgetter("tc_speedup"),
        ),
        *(Column(f"SEC {s}", 1, late[s], attrgetter(f"sec_{s}")) for s in _MOVES),
        *(
            Column(
                f"over {s}",
                1,
                _difference(late[s], late["pspm"]),
                attrgetter(f"improvement_over_{s}"),
            )
            for s in ("sspm", "pssm")
        ),
    ]
    if not (body := _render(rows, columns, markdown)):
        return ""
    title = "\nTable 3. TC in 0.01 solutions/s; SEC in percent after the mean time of PSPM."
    thresholds = [line for row in rows for line in _reached(row)]
    notes = _run_notes([record for row in rows for record in row.records], "throughput")
    return _lines([title, _PAPER_NOTE, body, *thresholds, *notes], markdown)


def table_4(records: Records, markdown: bool = False) -> str:
    """Returns Table 4, the means over the instances for several numbers of moves."""
    rows = []
    for moves, paper in TABLE_4.items():
        own = [r for r in records if r["settings"]["scheme"]["moves"] == moves]
        rows.append(Row(str(moves), own, paper))
    columns = []
    for scheme in ("sspm", "pspm"):
        columns += [
            Column(
                f"{scheme} SSES",
                1,
                _over_instances(_speed, scheme),
                lambda row, s=scheme: getattr(row, s)[0],
            ),
            Column(
                f"{scheme} SEC",
                2,
                _over_instances(_error, scheme),
                lambda row, s=scheme: getattr(row, s)[1],
            ),
        ]
    speedup = _quotient(_over_instances(_speed, "pspm"), _over_instances(_speed, "sspm"))
    columns.append(Column("speedup", 1, speedup, attrgetter("speedup")))
    rows = [row for row in rows if any(column.ours(row.records) for column in columns)]
    if len(rows) < 2:
        return ""
    names = sorted({record["instance"] for record in records})
    title = f"\nTable 4. Means over {', '.join(names)} (paper: 20 instances)."
    body = _render(rows, columns, markdown, first="moves", has_average=False)
    notes = _run_notes([record for row in rows for record in row.records], "quality")
    return _lines([title, _PAPER_NOTE, body, *notes], markdown)


def core_table(records: Records, markdown: bool = False) -> str:
    """Returns the speed and error of PSPM and of one compiled core, and the quotients of speeds."""
    rows = _rows(records, "quality", TABLE_2)
    columns = []
    for scheme in ("core single", "core sspm", "pspm"):
        columns += [
            Column(f"{scheme} SSES", 1, _speed(scheme)),
            Column(f"{scheme} SEC", 2, _error(scheme)),
        ]
    for scheme in ("core single", "core sspm"):
        columns.append(Column(f"pspm/{scheme}", 1, _quotient(_speed("pspm"), _speed(scheme))))
    if not any(_speed("core sspm")(row.records) for row in rows):
        return ""
    title = (
        "\nPSPM over one core. SSES in 1e6 moves/s, compilation left out; SEC in percent. The core"
        f" is one of {_cpus(records)}, with one search of 12 moves (sspm) or of one (single),"
        " compiled by numba."
    )
    notes = _run_notes([record for row in rows for record in row.records], "quality")
    return _lines([title, _render(rows, columns, markdown), *notes], markdown)


def descent_table(records: Records, markdown: bool = False) -> str:
    """Returns the error of one search with one move, the paper's PSSM in brackets."""
    rows = _rows(records, "quality", TABLE_2)
    names = {"single": "nothing worse", "core strict": "nothing equal"}
    columns = [
        Column(text, 2, _error(scheme), lambda row: row.pssm[1]) for scheme, text in names.items()
    ]
    if not (body := _render(rows, columns, markdown)):
        return ""
    title = (
        "\nOne search with one move that accepts nothing worse, and (core strict) nothing equal."
        " SEC in percent; in brackets the paper's of PSSM."
    )
    notes = _run_notes([record for row in rows for record in row.records], "quality")
    fits = [line for scheme in names for line in _fit(rows, scheme)]
    return _lines([title, body, *notes, *fits], markdown)


def exchange_table(records: Records, markdown: bool = False) -> str:
    """Returns the error and the speed of PSPM by the temperatures from broadcast to broadcast."""
    own = [r for r in records if r["settings"]["scheme"]["name"] == "pspm"]
    periods = sorted({_period(record) for record in own}, key=lambda every: every or math.inf)
    rows = _rows(own, "quality", dict.fromkeys(TABLE_2))
    columns = []
    for figure, digits, unit in ((_error, 2, "SEC"), (_speed, 0, "SSES")):
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
    notes = _run_notes([record for row in rows for record in row.records], "quality")
    return _lines([title, _render(rows, columns, markdown), *notes], markdown)


def _period(record: dict[str, Any]) -> int | None:
    """Returns the temperatures from one exchange to the next; None for no exchange."""
    settings = record["settings"]
    return settings["cooling"]["exchange_every"] if settings["scheme"]["exchanges"] else None


def _with_period(
    every: int | None, figure: Callable[[Records], float | None]
) -> Callable[[Records], float | None]:
    return lambda records: figure([r for r in records if _period(r) == every])


def _fit(rows: list[Row], scheme: str) -> list[str]:
    """Returns how errors go with the paper's of PSSM, from three instances on."""
    pairs = [(_error(scheme)(row.records), row.paper.pssm[1]) for row in rows if row.paper]
    pairs = [(own, paper) for own, paper in pairs if own is not None]
    if len(pairs) < 3:
        return []
    ours, paper = zip(*pairs, strict=True)
    difference = fmean(abs(a - b) for a, b in zip(ours, paper, strict=True))
    return [
        f"{scheme} against the paper's PSSM over {len(ours)} instances: mean {fmean(ours):.1f}"
        f" ({fmean(paper):.1f}), correlation {correlation(ours, paper):.2f},"
        f" mean absolute difference {difference:.1f}"
    ]


def _cpus(records: Records) -> str:
    """Returns the processors of the hosts, as far as records tell."""
    found = dict.fromkeys(record.get("env", {}).get("cpu") for record in records)
    return ", ".join(name for name in found if name) or "the same machine"


def draw(records: Records, ax: Any) -> Any:
    """Draws Figure 4, speed against moves per search, ours and the paper's; returns the axes.

    The paper divides its GPU's speeds by 50 to fit both lines; a logarithmic axis does that here.
    """
    colors = {"sspm": "tab:orange", "pspm": "tab:blue"}
    for scheme, color in colors.items():
        mean = _over_instances(_speed, scheme)
        ours = {
            moves: mean([r for r in records if r["settings"]["scheme"]["moves"] == moves])
            for moves in TABLE_4
        }
        points = [(moves, speed) for moves, speed in ours.items() if speed is not None]
        paper = [(moves, getattr(row, scheme)[0]) for moves, row in TABLE_4.items()]
        if points:
            ax.plot(*zip(*points, strict=True), "o-", color=color, label=f"{scheme.upper()}, ours")
        where = "Tesla C2050" if scheme == "pspm" else "12 Xeon cores"
        label = f"{scheme.upper()}, paper ({where})"
        ax.plot(*zip(*paper, strict=True), "o:", color=color, mfc="white", label=label)
    ax.set_yscale("log")
    ax.set_xticks(list(TABLE_4))
    ax.set_xlabel("moves per search")
    ax.set_ylabel("SSES ($10^6$ moves/s)")
    ax.grid(alpha=0.3)
    ax.legend(frameon=False, ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return ax


TABLES: dict[int | str, Callable[..., str]] = {
    2: table_2,
    3: table_3,
    4: table_4,
    "core": core_table,
    "descent": descent_table,
    "exchange": exchange_table,
}


def _lines(parts: Sequence[str], markdown: bool) -> str:
    """Returns the parts below one another; in Markdown with blank lines, or they would flow."""
    return ("\n\n" if markdown else "\n").join(parts)


def _rows(records: Records, kind: str, paper: dict[str, Any]) -> list[Row]:
    """Returns the instances with runs of this kind, the paper's first and in its order."""
    names = {record["instance"] for record in records if record["settings"]["kind"] == kind}
    order = [name for name in paper if name in names] + sorted(names - set(paper))
    return [
        Row(name, [r for r in records if r["instance"] == name], paper.get(name)) for name in order
    ]


def _render(
    rows: list[Row],
    columns: list[Column],
    markdown: bool,
    first: str = "instance",
    has_average: bool = True,
) -> str:
    """Returns the table, without columns of which we have no figure; empty if of none."""
    columns = [c for c in columns if any(c.ours(row.records) is not None for row in rows)]
    ours = [[column.ours(row.records) for column in columns] for row in rows]
    papers = [
        [None if row.paper is None else column.paper(row.paper) for column in columns]
        for row in rows
    ]
    if not columns:
        return ""
    labels = [row.label for row in rows]
    if has_average and len(rows) > 1:
        labels.append("average")
        ours.append([_mean(column) for column in zip(*ours, strict=True)])
        papers.append([_mean(column) for column in zip(*papers, strict=True)])
    body = [
        [label, *map(_cell, own, paper, (column.digits for column in columns))]
        for label, own, paper in zip(labels, ours, papers, strict=True)
    ]
    return common.table([first, *(column.header for column in columns)], body, markdown=markdown)


def _cell(ours: float | None, paper: float | None, digits: int) -> str:
    text = common.number(ours, digits)
    return text if paper is None else f"{text} ({paper:.{digits}f})"


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _speed(scheme: str, moves: int | None = None) -> Callable[[Records], float | None]:
    def mean(records: Records) -> float | None:
        return _mean([r["sses"] / 1e6 for r in select(records, "quality", scheme, moves)])

    return mean


def _error(
    scheme: str, kind: str = "quality", moves: int | None = None
) -> Callable[[Records], float | None]:
    return lambda records: _mean([r["sec"] for r in select(records, kind, scheme, moves)])


def _throughput(scheme: str) -> Callable[[Records], float | None]:
    def mean(records: Records) -> float | None:
        found = select(records, "throughput", scheme)
        reached = sum(record["reached"] for record in found)
        return 100 * tc([record["seconds"] for record in found], reached) if found else None

    return mean


def _over_instances(figure: Callable[..., Any], scheme: str) -> Callable[[Records], float | None]:
    """Returns the mean over instances of a figure of runs that all have as many moves."""

    def mean(records: Records) -> float | None:
        by_instance: dict[str, Records] = {}
        for record in records:
            by_instance.setdefault(record["instance"], []).append(record)
        moves = records[0]["settings"]["scheme"]["moves"] if records else None
        return _mean([figure(scheme, moves=moves)(own) for own in by_instance.values()])

    return mean


def _quotient(
    above: Callable[[Records], float | None], below: Callable[[Records], float | None]
) -> Callable[[Records], float | None]:
    def quotient(records: Records) -> float | None:
        a, b = above(records), below(records)
        return a / b if a is not None and b else None

    return quotient


def _difference(
    left: Callable[[Records], float | None], right: Callable[[Records], float | None]
) -> Callable[[Records], float | None]:
    def difference(records: Records) -> float | None:
        a, b = left(records), right(records)
        return None if a is None or b is None else a - b

    return difference


def _run_notes(records: Records, kind: str) -> list[str]:
    """Returns on what, how many at a time, and how often each scheme was run."""
    lines = []
    for scheme in _MOVES | _MORE_MOVES:
        own = [
            record["settings"] | {"instance": record["instance"], "seed": record["seed"]}
            for record in records
            if record["settings"]["kind"] == kind and record["settings"]["scheme"]["name"] == scheme
        ]
        if not own:
            continue
        seeds = len({settings["seed"] for settings in own})
        batch = max(settings["batch"] for settings in own)
        devices = sorted({f"{s['num_devices']} x {s['device_kind']}" for s in own})
        runs = "1 run" if seeds == 1 else f"{seeds} runs"
        line = f"{scheme}: {runs} per instance on {', '.join(devices)}"
        if batch > 1:
            what = "speed is moves/s" if kind == "quality" else "times are those"
            line += f", {batch} side by side: its {what} of the whole batch"
        lines.append(line)
    return lines


def _reached(row: Row) -> list[str]:
    """Returns how many runs got below the threshold, and the time given for convergence."""
    parts = []
    for scheme in _MOVES:
        if found := select(row.records, "throughput", scheme):
            reached = sum(record["reached"] for record in found)
            parts.append(f"{scheme} {reached} of {len(found)}")
            threshold = found[-1]["settings"]["limit"]["threshold"]
    limits = [r["settings"]["limit"]["max_seconds"] for r in row.records]
    seconds = [limit for limit in limits if limit is not None]
    time = f"; time for convergence {seconds[-1]:.2f} s" if seconds else ""
    return [f"{row.label}: below {threshold}: {', '.join(parts)}{time}"]


def _order(rows: list[Row]) -> list[str]:
    """Returns where PSPM < SSPM < PSSM holds for SEC."""
    holds = {}
    for row in rows:
        pspm, sspm, pssm = (_error(scheme)(row.records) for scheme in ("pspm", "sspm", "pssm"))
        if pspm is not None and sspm is not None and pssm is not None:
            holds[row.label] = pspm < sspm < pssm
    if not holds:
        return []
    each = ", ".join(f"{name} {'yes' if is_so else 'no'}" for name, is_so in holds.items())
    return [f"SEC pspm < sspm < pssm: {sum(holds.values())} of {len(holds)} ({each})"]


def _cooling(record: dict[str, Any]) -> str:
    return json.dumps(record["settings"]["cooling"])
