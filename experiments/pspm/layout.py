"""How tables of figures are put together, ours and the paper's in brackets, and the notes below."""

from collections.abc import Callable, Sequence
from statistics import correlation, fmean
from typing import Any, NamedTuple

from experiments import common
from experiments.pspm.measures import Figure, Records, error, mean_of
from experiments.pspm.runs import SCHEMES


class Row(NamedTuple):
    """An instance, or a number of moves, with our runs and the paper's figures."""

    label: str
    records: Records
    paper: Any


class Column(NamedTuple):
    """A figure, how we get it from our runs, and where the paper has it."""

    header: str
    digits: int
    ours: Figure
    paper: Callable[[Any], float | None] = lambda row: None


def fit(rows: list[Row], scheme: str) -> list[str]:
    """Returns how errors go with the paper's of PSSM, from three instances on."""
    pairs = [(error(scheme)(row.records), row.paper.pssm[1]) for row in rows if row.paper]
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


def section(
    above: Sequence[str],
    rows: list[Row],
    columns: list[Column],
    below: Sequence[str],
    markdown: bool,
    first: str = "instance",
    has_average: bool = True,
) -> str:
    """Returns a table between paragraphs, without columns of which we have no figure; or nothing.

    In Markdown blank lines part the paragraphs, or they would flow.
    """
    columns = [c for c in columns if any(c.ours(row.records) is not None for row in rows)]
    if not columns:
        return ""
    values = [
        [(c.ours(row.records), None if row.paper is None else c.paper(row.paper)) for c in columns]
        for row in rows
    ]
    labels = [row.label for row in rows]
    if has_average and len(rows) > 1:
        labels.append("average")
        by_column = (zip(*pairs, strict=True) for pairs in zip(*values, strict=True))
        values.append([(mean_of(ours), mean_of(papers)) for ours, papers in by_column])
    digits = [column.digits for column in columns]
    body = [[label, *map(_cell, own, digits)] for label, own in zip(labels, values, strict=True)]
    header = [first, *(column.header for column in columns)]
    table = common.table(header, body, markdown=markdown)
    return ("\n\n" if markdown else "\n").join([*above, table, *below])


def rows_of(records: Records, kind: str, paper: dict[str, Any]) -> list[Row]:
    """Returns the instances with runs of this kind, the paper's first and in its order."""
    names = {record["instance"] for record in records if record["settings"]["kind"] == kind}
    order = [name for name in paper if name in names] + sorted(names - set(paper))
    return [
        Row(name, [r for r in records if r["instance"] == name], paper.get(name)) for name in order
    ]


def _cell(pair: tuple[float | None, float | None], digits: int) -> str:
    ours, paper = pair
    text = common.number(ours, digits)
    return text if paper is None else f"{text} ({paper:.{digits}f})"


def run_notes(rows: Sequence[Row], kind: str = "quality") -> list[str]:
    """Returns on what, how many at a time, and how often each scheme was run."""
    own = [r for row in rows for r in row.records if r["settings"]["kind"] == kind]
    schemes = common.grouped(own, lambda record: record["settings"]["scheme"]["name"])
    lines = []
    for scheme in filter(schemes.get, SCHEMES):
        seeds = len({record["seed"] for record in schemes[scheme]})
        own = [record["settings"] for record in schemes[scheme]]
        batch = max(settings["batch"] for settings in own)
        devices = sorted({f"{s['num_devices']} x {s['device_kind']}" for s in own})
        runs = "1 run" if seeds == 1 else f"{seeds} runs"
        line = f"{scheme}: {runs} per instance on {', '.join(devices)}"
        if batch > 1:
            what = "speed is moves/s" if kind == "quality" else "times are those"
            line += f", {batch} side by side: its {what} of the whole batch"
        lines.append(line)
    return lines
