"""The tables and figures of `script.py`, from its records.

Table 2 has lines for each kind of islands; the others raise ValueError if there are several.
"""

import math
from collections.abc import Callable, Sequence
from statistics import mean, stdev
from typing import Any, TypeAlias

import numpy as np

import jaxopt_search as js
from experiments import common
from experiments.islands.paper import POPULATION, TABLE_1, TABLE_2, TABLE_3

Records: TypeAlias = Sequence[dict[str, Any]]


_KIND = {
    "encoding": "encoding",
    "population": "individuals",
    "mutation": "mutation",
    "local_steps": "local steps",
    "crossover": "crossover",
    "keep_best": "keeps best",
    "exchange": "exchange",
}
"""What tells islands of one kind from others, and how tables call it."""
_OF_OLD = {"encoding": "file", "crossover": "pmx", "keep_best": False, "exchange": "none"}
"""The settings of records that say nothing of these."""

VARIANTS: dict[str, dict[str, Any]] = {
    "as in Table II": {},
    "mutation 0.1": {"mutation": 0.1},
    "OX": {"crossover": "ox"},
    "keeps its best": {"keep_best": True},
    "ring": {"exchange": "ring"},
    "shuffle": {"exchange": "shuffle"},
    "matrices exchanged": {"encoding": "file"},
}
"""The lines of Table 5: what is not as in Table II."""


def completed(records: Records) -> Records:
    """Returns records with all the settings that there are."""
    return [record | {"settings": _OF_OLD | record["settings"]} for record in records]


def runs_of(records: Records, instance: str, **settings: Any) -> Records:
    """Returns the records of runs with these settings."""
    return [
        record
        for record in records
        if record["instance"] == instance
        and all(record["settings"][name] == value for name, value in settings.items())
    ]


def times_of(records: Records, instance: str, **settings: Any) -> list[float]:
    """Returns the times of runs with these settings; infinite where a run ended at its limit."""
    return _times(runs_of(records, instance, **settings))


def _times(runs: Records) -> list[float]:
    return [run["seconds"] if run["reached"] else math.inf for run in runs]


def _names(records: Records) -> list[str]:
    return list(dict.fromkeys(record["instance"] for record in records))


def _settings(records: Records, instance: str, *on: str) -> list[dict[str, Any]]:
    """Returns the settings of the runs on an instance and on these devices."""
    own = (record["settings"] for record in records if record["instance"] == instance)
    return [settings for settings in own if settings["on"] in on]


def _check_kind(records: Records, *parts: str) -> None:
    """Raises ValueError if islands differ in these settings, which a table does not show."""
    kinds = {tuple(record["settings"][part] for part in parts) for record in records}
    if len(kinds) > 1:
        names = ", ".join(parts)
        raise ValueError(f"islands of several kinds ({names}): {sorted(kinds)}, expected one")


def _mean(times: Sequence[float]) -> str:
    return f"{mean(times):.3g}" if times and all(map(math.isfinite, times)) else "-"


def table_1(records: Records, *, markdown: bool = False) -> str:
    """Returns successes and times of one island, without and with starting anew."""
    records = completed(records)
    _check_kind(records, *_KIND)
    rows = []
    for name in _names(records):
        row, paper = [name], TABLE_1.get(name)
        for restarts in (False, True):
            times = times_of(records, name, islands=1, restarts=restarts)
            done = [time for time in times if math.isfinite(time)]
            extremes = [f"{each(done):.3g}" if done else "-" for each in (min, max)]
            row += [f"{len(done)}/{len(times)}", _mean(done), *extremes]
        row += [str(paper.without), str(paper.with_), f"{paper.seconds}"] if paper else ["-"] * 3
        rows.append(row)
    kinds = [f"{kind}{what}" for kind in ("", "anew: ") for what in ("found", "T s", "min", "max")]
    header = ("instance", *kinds, "paper: found", "anew", "T s")
    return common.table(header, rows, markdown=markdown)


_PAPER = ("paper: T s", "gain", "M(p)")


def table_2(records: Records, *, markdown: bool = False) -> str:
    """Returns times by the number of islands, and what those of one island predict."""
    records, rows = completed(records), []
    values = {part: {record["settings"][part] for record in records} for part in _KIND}
    shown = [part for part in _KIND if len(values[part]) > 1]
    for name in _names(records):
        own = _settings(records, name, "all")
        kinds = sorted({tuple(s[part] for part in _KIND) for s in own if s["restarts"]})
        for kind in kinds:
            settings = dict(zip(_KIND, kind, strict=True)) | {"on": "all", "restarts": True}
            alone = runs_of(records, name, islands=1, **settings)
            numbers = {s["islands"] for s in own if s.items() >= settings.items()}
            for islands in sorted(numbers):
                runs = runs_of(records, name, islands=islands, **settings)
                rows.append(
                    [
                        name,
                        *(str(settings[part]) for part in shown),
                        str(islands),
                        *_times_row(runs, alone, islands),
                        *_paper_row(name, islands),
                    ]
                )
    header = ("instance", *(_KIND[part] for part in shown), "p", "found", "T s", "deviation")
    ours = ("gain", "M(p)", "T - M(p)", "generations", "gain in generations")
    return common.table((*header, *ours, *_PAPER), rows, markdown=markdown)


def _times_row(runs: Records, runs_alone: Records, islands: int) -> list[str]:
    times, alone = _times(runs), _times(runs_alone)
    fitted = _fit(alone)
    is_done = all(map(math.isfinite, times))
    predicted = fitted.mean(islands) if fitted else math.nan
    return [
        f"{sum(map(math.isfinite, times))}/{len(times)}",
        _mean_or_bound(runs, "seconds"),
        f"{stdev(times):.3g}" if is_done and len(times) > 1 else "-",
        _gain(runs, runs_alone, "seconds"),
        f"{predicted:.3g}" if fitted else "-",
        f"{mean(times) - predicted:.3g}" if fitted and is_done else "-",
        _mean_or_bound(runs, "generations", ".0f"),
        _gain(runs, runs_alone, "generations"),
    ]


def _mean_or_bound(runs: Records, what: str, digits: str = ".3g") -> str:
    """Returns a mean; what it is above where a few runs were cut off, a dash where more were."""
    sign = _sign(runs)
    return "-" if sign == "-" else f"{sign}{mean(run[what] for run in runs):{digits}}"


def _gain(runs: Records, alone: Records, what: str) -> str:
    if _sign(runs) or _sign(alone) == "-":
        return "-"
    return f"{_sign(alone)}{mean(r[what] for r in alone) / mean(r[what] for r in runs):.3g}"


def _sign(runs: Records) -> str:
    """Returns what stands before a mean: ">" if up to a tenth of the runs were cut off."""
    num_cut = sum(not run["reached"] for run in runs)
    return "-" if num_cut > len(runs) / 10 or not runs else ">" if num_cut else ""


def _fit(times: Sequence[float]) -> js.run_times.Fit | None:
    return js.run_times.fit(times) if len({t for t in times if math.isfinite(t)}) > 1 else None


def _paper_row(name: str, islands: int) -> list[str]:
    paper = TABLE_2.get(name)
    if paper is None or islands not in (1, 30, 60):
        return ["-"] * 3
    seconds, predicted = {
        1: (paper.one, None),
        30: (paper.thirty, paper.predicted_thirty),
        60: (paper.sixty, paper.predicted_sixty),
    }[islands]
    return [
        f"{seconds}",
        f"{paper.one / seconds:.3g}",
        "-" if predicted is None else f"{predicted}",
    ]


def table_3(records: Records, *, markdown: bool = False) -> str:
    """Returns times of islands beside those of one population on one core."""
    records = completed(records)
    _check_kind(records, *(part for part in _KIND if part != "population"))
    rows = []
    for name in _names(records):
        islands = max((s["islands"] for s in _settings(records, name, "all")), default=0)
        all_ = times_of(records, name, on="all", islands=islands, restarts=True)
        sizes = sorted({POPULATION, *(s["population"] for s in _settings(records, name, "core"))})
        alone = {size: _times_on_a_core(records, name, size) for size in sizes}
        tuned = min(alone, key=lambda size: mean(alone[size] or [math.inf]))
        paper = TABLE_3.get(name)
        rows.append(
            [
                name,
                _mean(all_),
                _mean(alone[tuned]),
                str(tuned),
                _mean(alone[POPULATION]),
                *(_ratio(alone[size], all_) for size in (tuned, POPULATION)),
                *([f"{paper.tuned}", str(paper.size), f"{paper.same}"] if paper else ["-"] * 3),
                _ratio([TABLE_2[name].sixty], all_) if name in TABLE_2 else "-",
            ]
        )
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


def _times_on_a_core(records: Records, name: str, size: int) -> list[float]:
    """Returns how long the runs of one population take where a generation takes as on a core."""
    own = [
        record
        for record in records
        if record["instance"] == name
        and record["settings"]["islands"] == 1
        and record["settings"]["population"] == size
        and record["settings"]["restarts"]
    ]
    short = [record for record in own if record["settings"]["on"] == "core"]
    if not short:
        return []
    each = mean(record["seconds"] / record["generations"] for record in short)
    return [
        each * record["generations"] if record["reached"] else math.inf
        for record in own
        if record["settings"]["on"] in ("all", "cores")
    ]


def _ratio(times: Sequence[float], by: Sequence[float]) -> str:
    is_known = times and by and math.isfinite(mean(times)) and math.isfinite(mean(by))
    return f"{mean(times) / mean(by):.3g}" if is_known else "-"


def table_4(records: Records, *, markdown: bool = False) -> str:
    """Returns times of islands by the number of devices that share them."""
    records = completed(records)
    _check_kind(records, *_KIND)
    rows = []
    counts = sorted({int(r["settings"]["on"]) for r in records if r["settings"]["on"].isdigit()})
    for name in _names(records):
        own = _settings(records, name, *map(str, counts))
        alone = _fit(times_of(records, name, islands=1, restarts=True, on="all"))
        for islands, count in sorted({(s["islands"], int(s["on"])) for s in own}):
            times = times_of(records, name, islands=islands, on=str(count))
            fewest = islands * counts[0] // count
            shared = times_of(records, name, islands=islands, on=str(counts[0]))
            as_many = times_of(records, name, islands=fewest, on=str(counts[0]))
            predicted = alone.mean(fewest) / alone.mean(islands) if alone else math.nan
            rows.append(
                [
                    name,
                    str(islands),
                    str(count),
                    f"{sum(map(math.isfinite, times))}/{len(times)}",
                    _mean(times),
                    _ratio(shared, times),
                    _ratio(as_many, times),
                    f"{predicted:.3g}" if alone else "-",
                    _winners_alike(records, name, islands, counts[0], count),
                ]
            )
    gains = ("gain, as many in all", "as many on each", "by M(p)")
    header = ("instance", "p", "devices", "found", "T s", *gains, "same winner")
    return common.table(header, rows, markdown=markdown)


def _winners_alike(records: Records, name: str, islands: int, *counts: int) -> str:
    """Returns how many runs end alike on both numbers of devices."""
    ends = [
        {
            record["seed"]: tuple(record[what] for what in ("island", "generations", "best_cost"))
            for record in records
            if record["instance"] == name
            and record["settings"]["islands"] == islands
            and record["settings"]["on"] == str(count)
        }
        for count in counts
    ]
    both = ends[0].keys() & ends[1].keys()
    return f"{sum(ends[0][seed] == ends[1][seed] for seed in both)}/{len(both)}"


def table_5(records: Records, *, markdown: bool = False) -> str:
    """Returns how islands do that differ from those of Table II in one thing."""
    records, rows = completed(records), []
    for name in _names(records):
        islands = max(s["islands"] for s in _settings(records, name, "all"))
        usual = {"encoding": "paper", "population": POPULATION, "mutation": 1.0, "local_steps": 0}
        usual = _OF_OLD | usual | {"islands": islands, "restarts": True, "on": "all"}
        base = runs_of(records, name, **usual)
        for what, changes in VARIANTS.items():
            runs = runs_of(records, name, **(usual | changes))
            if not runs:
                continue
            times, made = _times(runs), [run["generations"] for run in runs]
            is_done = all(map(math.isfinite, times))
            has_both = is_done and base and all(run["reached"] for run in base)
            by = mean(made) / mean(run["generations"] for run in base) if has_both else math.nan
            found = f"{sum(map(math.isfinite, times))}/{len(times)}"
            generations = f"{mean(made):.0f}" if is_done else "-"
            error = f"{stdev(made) / len(made) ** 0.5:.0f}" if is_done and len(made) > 1 else "-"
            times_as_many = f"{by:.3g}" if has_both else "-"
            rows.append([name, what, found, _mean(times), generations, error, times_as_many])
    header = ("instance", "islands", "found", "T s", "generations", "+-", "times as many")
    return common.table(header, rows, markdown=markdown)


def table_6(records: Records, *, markdown: bool = False) -> str:
    """Returns how well distributions fit the times of one island: the largest distances."""
    records = completed(records)
    _check_kind(records, *_KIND)
    rows = []
    for name in _names(records):
        times = times_of(records, name, islands=1, restarts=True, on="all")
        if _fit(times) is None:
            continue
        fits = [js.run_times.fit(times, family) for family in _FAMILIES]
        rows.append([name, str(len(times)), *(f"{fit.misfit:.3f}" for fit in fits)])
    return common.table(("instance", "runs", *_FAMILIES), rows, markdown=markdown)


_FAMILIES: tuple[js.run_times.Family, ...] = ("gamma", "normal", "exponential", "lognormal")


def table_7(records: Records, *, markdown: bool = False) -> str:
    """Returns how many generations one island takes by the encoding."""
    records, rows = completed(records), []
    _check_kind(records, *(part for part in _KIND if part != "encoding"))
    for name in _names(records):
        row, means = [name], []
        for encoding in ("paper", "file"):
            runs = runs_of(records, name, islands=1, restarts=True, on="all", encoding=encoding)
            made = [run["generations"] if run["reached"] else math.inf for run in runs]
            is_done = len(made) > 1 and math.isfinite(mean(made))
            means.append(mean(made) if is_done else math.nan)
            error = f"{stdev(made) / len(made) ** 0.5:.0f}" if is_done else "-"
            row += [str(len(made)), f"{means[-1]:.0f}" if is_done else "-", error]
        rows.append([*row, f"{means[0] / means[1]:.3g}" if math.isfinite(sum(means)) else "-"])
    header = (
        "instance",
        "runs",
        "generations",
        "+-",
        "as filed: runs",
        "generations",
        "+-",
        "ratio",
    )
    return common.table(header, rows, markdown=markdown)


def table_8(records: Records, *, markdown: bool = False) -> str:
    """Returns how many of the runs of one island without restarts find it, by rate of mutation."""
    records, rows = completed(records), []
    _check_kind(records, *(part for part in _KIND if part != "mutation"))
    rates = sorted({record["settings"]["mutation"] for record in records})
    for name in _names(records):
        row, paper = [name], TABLE_1.get(name)
        for rate in rates:
            runs = runs_of(records, name, islands=1, restarts=False, on="all", mutation=rate)
            done = [run["generations"] for run in runs if run["reached"]]
            row += [f"{len(done)}/{len(runs)}", f"{mean(done):.0f}" if done else "-"]
        rows.append([*row, f"{paper.without}/30" if paper else "-"])
    ours = [what for rate in rates for what in (f"rate {rate}: found", "generations")]
    return common.table(("instance", *ours, "paper, rate 0.1"), rows, markdown=markdown)


TABLES: dict[int, Callable[..., str]] = {
    1: table_1,
    2: table_2,
    3: table_3,
    4: table_4,
    5: table_5,
    6: table_6,
    7: table_7,
    8: table_8,
}


def draw_figure_5(records: Records) -> Callable[[Any], None]:
    """Returns what draws the times of one island, each and their mean, by instance."""
    records = completed(records)
    _check_kind(records, *_KIND)

    def draw(ax: Any) -> None:
        for place, name in enumerate(_names(records)):
            times = times_of(records, name, islands=1, restarts=True)
            times = [time for time in times if math.isfinite(time)]
            ax.semilogy([place] * len(times), times, "*", color="C0", alpha=0.5)
            if times:
                ax.semilogy([place], [mean(times)], "s", color="black")
        ax.set_xticks(range(len(_names(records))), _names(records), rotation=45)
        ax.set(ylabel="seconds, one island")

    return draw


def draw_figure_6(records: Records) -> Callable[[Any], None]:
    """Returns what draws the share of runs of one island that are done by a time, and its fit."""
    records = completed(records)
    _check_kind(records, *_KIND)

    def draw(ax: Any) -> None:
        for number, name in enumerate(_names(records)):
            times = sorted(times_of(records, name, islands=1, restarts=True))
            done = [time for time in times if math.isfinite(time)]
            color = f"C{number % 10}"
            shares = js.run_times.shares_done(len(done), len(times))
            ax.plot(done, shares, ".", color=color, label=name)
            if (fitted := _fit(times)) is not None:
                along = np.geomspace(done[0] / 2, done[-1] * 2, 200)
                ax.plot(along, fitted.share_done(along), color=color)
        ax.set(xscale="log", xlabel="seconds, one island", ylabel="share done", ylim=(0, 1))
        ax.legend()

    return draw


FIGURES = {5: draw_figure_5, 6: draw_figure_6}
