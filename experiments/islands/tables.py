"""The paper's Tables I to III, ours and the paper's, from the records of `__main__`.

Table 2 has lines for each kind of islands; the others raise ValueError if there are several.
"""

import math
from collections.abc import Sequence
from statistics import mean, stdev

from experiments import common
from experiments.islands import records as kept
from experiments.islands.paper import POPULATION, TABLE_1, TABLE_2, TABLE_3


def table_1(records: kept.Records, *, markdown: bool = False) -> str:
    """Returns successes and times of one island, without and with restarts."""
    kept.check_kind(records, *kept.KIND)
    rows = []
    for name in kept.names_in(records):
        row, paper = [name], TABLE_1.get(name)
        for restarts in (False, True):
            times = kept.times_of(records, name, islands=1, restarts=restarts)
            done = [time for time in times if math.isfinite(time)]
            extremes = [f"{each(done):.3g}" if done else "-" for each in (min, max)]
            row += [kept.num_found(times), kept.mean_time(done), *extremes]
        row += [str(paper.without), str(paper.with_), f"{paper.seconds}"] if paper else ["-"] * 3
        rows.append(row)
    kinds = [f"{kind}{what}" for kind in ("", "anew: ") for what in ("found", "T s", "min", "max")]
    header = ("instance", *kinds, "paper: found", "anew", "T s")
    return common.table(header, rows, markdown=markdown)


def table_2(records: kept.Records, *, markdown: bool = False) -> str:
    """Returns times by the number of islands, and what the times of one island predict."""
    rows = []
    values = {part: {record["settings"][part] for record in records} for part in kept.KIND}
    shown = [part for part in kept.KIND if len(values[part]) > 1]
    for name in kept.names_in(records):
        own = [s for s in kept.settings_on(records, name, "all") if s["restarts"]]
        for kind in sorted({tuple(s[part] for part in kept.KIND) for s in own}):
            settings = dict(zip(kept.KIND, kind, strict=True)) | {"on": "all", "restarts": True}
            alone = kept.runs_of(records, name, islands=1, **settings)
            for islands in sorted({s["islands"] for s in own if s.items() >= settings.items()}):
                runs = kept.runs_of(records, name, islands=islands, **settings)
                cells = [name, *(str(settings[part]) for part in shown), str(islands)]
                rows.append([*cells, *_times_row(runs, alone, islands), *_paper_row(name, islands)])
    ours = "p | found | T s | deviation | gain | M(p) | T - M(p) | generations"
    header = " | ".join(["instance", *(kept.KIND[part] for part in shown), ours])
    papers = "paper: T s | gain | M(p)"
    return common.table(f"{header} | gain in generations | {papers}", rows, markdown=markdown)


def _times_row(runs: kept.Records, runs_alone: kept.Records, islands: int) -> list[str]:
    times, alone = kept.times_in(runs), kept.times_in(runs_alone)
    fitted = kept.fit_of(alone)
    is_done = all(map(math.isfinite, times))
    predicted = kept.mean_of_first(fitted, islands) if fitted else math.nan
    return [
        kept.num_found(times),
        _mean_or_bound(runs, "seconds"),
        f"{stdev(times):.3g}" if is_done and len(times) > 1 else "-",
        _gain(runs, runs_alone, "seconds"),
        f"{predicted:.3g}" if fitted else "-",
        f"{mean(times) - predicted:.3g}" if fitted and is_done else "-",
        _mean_or_bound(runs, "generations", ".0f"),
        _gain(runs, runs_alone, "generations"),
    ]


def _mean_or_bound(runs: kept.Records, what: str, digits: str = ".3g") -> str:
    """Returns a mean; what it is above where a few runs were cut off, a dash where more were."""
    sign = _sign(runs)
    return "-" if sign == "-" else f"{sign}{mean(run[what] for run in runs):{digits}}"


def _gain(runs: kept.Records, alone: kept.Records, what: str) -> str:
    if _sign(runs) or _sign(alone) == "-":
        return "-"
    return f"{_sign(alone)}{mean(r[what] for r in alone) / mean(r[what] for r in runs):.3g}"


def _sign(runs: kept.Records) -> str:
    """Returns what stands before a mean: ">" if up to a tenth of the runs were cut off."""
    num_cut = sum(not run["reached"] for run in runs)
    return "-" if num_cut > len(runs) / 10 or not runs else ">" if num_cut else ""


def _paper_row(name: str, islands: int) -> list[str]:
    paper = TABLE_2.get(name)
    if paper is None or islands not in (1, 30, 60):
        return ["-"] * 3
    seconds, predicted = {
        1: (paper.one, "-"),
        30: (paper.thirty, paper.predicted_thirty),
        60: (paper.sixty, paper.predicted_sixty),
    }[islands]
    return [f"{seconds}", f"{paper.one / seconds:.3g}", f"{predicted}"]


def table_3(records: kept.Records, *, markdown: bool = False) -> str:
    """Returns times of islands and of one population on one core."""
    kept.check_kind(records, *(part for part in kept.KIND if part != "population"))
    rows = []
    for name in kept.names_in(records):
        islands = max((s["islands"] for s in kept.settings_on(records, name, "all")), default=0)
        all_ = kept.times_of(records, name, on="all", islands=islands, restarts=True)
        sizes = sorted(
            {POPULATION, *(s["population"] for s in kept.settings_on(records, name, "core"))}
        )
        alone = {size: _times_on_a_core(records, name, size) for size in sizes}
        tuned = min(alone, key=lambda size: mean(alone[size] or [math.inf]))
        paper = TABLE_3.get(name)
        row = [name, kept.mean_time(all_), kept.mean_time(alone[tuned]), str(tuned)]
        row += [kept.mean_time(alone[POPULATION])]
        row += [kept.ratio(alone[size], all_) for size in (tuned, POPULATION)]
        row += [f"{paper.tuned}", str(paper.size), f"{paper.same}"] if paper else ["-"] * 3
        rows.append([*row, kept.ratio([TABLE_2[name].sixty], all_) if paper else "-"])
    ours = ("islands T s", "core T s", "size", "core 128 T s", "x core", "x core 128")
    header = ("instance", *ours, "paper: core T s", "size", "core 128 T s", "x its 60 islands")
    if len(rows) > 1:
        rows.append(["mean", *(_mean_of_ratios(rows, column, header) for column in range(1, 11))])
    return common.table(header, rows, markdown=markdown)


def _mean_of_ratios(rows: Sequence[Sequence[str]], column: int, header: Sequence[str]) -> str:
    known = [row[column] for row in rows if row[column] != "-"]
    if not header[column].startswith("x ") or not known:
        return ""
    return f"{mean(map(float, known)):.3g}"


def _times_on_a_core(records: kept.Records, name: str, size: int) -> list[float]:
    """Returns how long the runs of one population take where a generation takes as on a core."""
    runs = kept.runs_of(records, name, islands=1, population=size, restarts=True)
    short = [run for run in runs if run["settings"]["on"] == "core"]
    if not short:
        return []
    each = mean(run["seconds"] / run["generations"] for run in short)
    long = [run for run in runs if run["settings"]["on"] in ("all", "cores")]
    return [each * run["generations"] if run["reached"] else math.inf for run in long]
