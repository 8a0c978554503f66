"""Tables of `script.py` that the paper does not have, from its records.

They raise ValueError if islands are of several kinds that a table does not show.
"""

import math
from statistics import mean, stdev

import jaxopt_search as js
from experiments import common
from experiments.islands.paper import FLOW, POPULATION, TABLE_1
from experiments.islands.records import (
    KIND,
    OF_OLD,
    VARIANTS,
    Records,
    check_kind,
    completed,
    fit_of,
    mean_time,
    names_in,
    ratio,
    runs_of,
    settings_on,
    times_in,
    times_of,
)


def table_4(records: Records, *, markdown: bool = False) -> str:
    """Returns times of islands by the number of devices that share them."""
    records = completed(records)
    check_kind(records, *KIND)
    rows = []
    counts = sorted({int(r["settings"]["on"]) for r in records if r["settings"]["on"].isdigit()})
    for name in names_in(records):
        own = settings_on(records, name, *map(str, counts))
        alone = fit_of(times_of(records, name, islands=1, restarts=True, on="all"))
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
                    mean_time(times),
                    ratio(shared, times),
                    ratio(as_many, times),
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
    """Returns times of islands that differ from Table II's in one thing.

    Where a file has its matrices as equation 1 does, there is nothing to exchange.
    """
    records, rows = completed(records), []
    for name in names_in(records):
        islands = max(s["islands"] for s in settings_on(records, name, "all"))
        usual = {"encoding": "paper", "population": POPULATION, "mutation": 1.0, "local_steps": 0}
        usual = OF_OLD | usual | {"islands": islands, "restarts": True, "on": "all"}
        base = runs_of(records, name, **usual)
        for what, changes in VARIANTS.items():
            runs = runs_of(records, name, **(usual | changes))
            if not runs or ("encoding" in changes and FLOW.get(name) == 1):
                continue
            times, made = times_in(runs), [run["generations"] for run in runs]
            is_done = all(map(math.isfinite, times))
            has_both = is_done and base and all(run["reached"] for run in base)
            by = mean(made) / mean(run["generations"] for run in base) if has_both else math.nan
            found = f"{sum(map(math.isfinite, times))}/{len(times)}"
            generations = f"{mean(made):.0f}" if is_done else "-"
            error = f"{stdev(made) / len(made) ** 0.5:.0f}" if is_done and len(made) > 1 else "-"
            times_as_many = f"{by:.3g}" if has_both else "-"
            rows.append([name, what, found, mean_time(times), generations, error, times_as_many])
    header = ("instance", "islands", "found", "T s", "generations", "+-", "times as many")
    return common.table(header, rows, markdown=markdown)


def table_6(records: Records, *, markdown: bool = False) -> str:
    """Returns how well distributions fit the times of one island: the largest distances."""
    records = completed(records)
    check_kind(records, *KIND)
    rows = []
    for name in names_in(records):
        times = times_of(records, name, islands=1, restarts=True, on="all")
        if fit_of(times) is None:
            continue
        fits = [js.run_times.fit(times, family) for family in _FAMILIES]
        rows.append([name, str(len(times)), *(f"{fit.misfit:.3f}" for fit in fits)])
    return common.table(("instance", "runs", *_FAMILIES), rows, markdown=markdown)


_FAMILIES: tuple[js.run_times.Family, ...] = ("gamma", "normal", "exponential", "lognormal")


def table_7(records: Records, *, markdown: bool = False) -> str:
    """Returns how many generations one island takes by the encoding, where there are two."""
    records, rows = completed(records), []
    check_kind(records, *(part for part in KIND if part != "encoding"))
    for name in names_in(records):
        if FLOW.get(name) == 1:
            continue
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
    check_kind(records, *(part for part in KIND if part != "mutation"))
    rates = sorted({record["settings"]["mutation"] for record in records})
    for name in names_in(records):
        row, paper = [name], TABLE_1.get(name)
        for rate in rates:
            runs = runs_of(records, name, islands=1, restarts=False, on="all", mutation=rate)
            done = [run["generations"] for run in runs if run["reached"]]
            row += [f"{len(done)}/{len(runs)}", f"{mean(done):.0f}" if done else "-"]
        rows.append([*row, f"{paper.without}/30" if paper else "-"])
    ours = [what for rate in rates for what in (f"rate {rate}: found", "generations")]
    return common.table(("instance", *ours, "paper, rate 0.1"), rows, markdown=markdown)
