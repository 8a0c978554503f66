"""Tables of `__main__` that the paper does not have, from its records.

They raise ValueError if islands are of several kinds that a table does not show.
"""

import math
from collections.abc import Sequence
from statistics import mean, stdev

import jaxopt_search as js
from experiments import common
from experiments.islands import records as kept
from experiments.islands.paper import FLOW, POPULATION, TABLE_1


def by_devices(records: kept.Records, *, markdown: bool = False) -> str:
    """Returns times of islands by the number of devices that share them."""
    kept.check_kind(records, *kept.KIND)
    rows = []
    counts = sorted({int(r["settings"]["on"]) for r in records if r["settings"]["on"].isdigit()})
    for name in kept.names_in(records):
        own = kept.settings_on(records, name, *map(str, counts))
        alone = kept.fit_of(kept.times_of(records, name, islands=1, restarts=True, on="all"))
        for islands, count in sorted({(s["islands"], int(s["on"])) for s in own}):
            times = kept.times_of(records, name, islands=islands, on=str(count))
            fewest = islands * counts[0] // count
            shared = kept.times_of(records, name, islands=islands, on=str(counts[0]))
            as_many = kept.times_of(records, name, islands=fewest, on=str(counts[0]))
            predicted = "-"
            if alone:
                few, many = (kept.mean_of_first(alone, number) for number in (fewest, islands))
                predicted = f"{few / many:.3g}"
            row = [name, str(islands), str(count), kept.num_found(times), kept.mean_time(times)]
            row += [kept.ratio(shared, times), kept.ratio(as_many, times), predicted]
            rows.append([*row, _winners_alike(records, name, islands, counts[0], count)])
    header = "instance | p | devices | found | T s | gain, as many in all | as many on each"
    return common.table(f"{header} | by M(p) | same winner", rows, markdown=markdown)


def _winners_alike(records: kept.Records, name: str, islands: int, *counts: int) -> str:
    """Returns how many runs end alike on both numbers of devices."""
    ends = [
        {
            run["seed"]: (run["island"], run["generations"], run["best_cost"])
            for run in kept.runs_of(records, name, islands=islands, on=str(count))
        }
        for count in counts
    ]
    both = ends[0].keys() & ends[1].keys()
    return f"{sum(ends[0][seed] == ends[1][seed] for seed in both)}/{len(both)}"


def by_variant(records: kept.Records, *, markdown: bool = False) -> str:
    """Returns times of islands that differ from Table II's in one thing.

    Where a file has its matrices as equation 1 does, there is nothing to exchange.
    """
    rows = []
    for name in kept.names_in(records):
        islands = max(s["islands"] for s in kept.settings_on(records, name, "all"))
        usual = {"encoding": "paper", "population": POPULATION, "mutation": 1.0, "local_steps": 0}
        usual = kept.OF_OLD | usual | {"islands": islands, "restarts": True, "on": "all"}
        base = _generations(kept.runs_of(records, name, **usual))
        for what, changes in kept.VARIANTS.items():
            runs = kept.runs_of(records, name, **(usual | changes))
            if not runs or ("encoding" in changes and FLOW.get(name) == 1):
                continue
            times, made = kept.times_in(runs), _generations(runs)
            figures = [kept.mean_time(times), *_mean_and_error(made), kept.ratio(made, base)]
            rows.append([name, what, kept.num_found(times), *figures])
    header = "instance | islands | found | T s | generations | +- | times as many"
    return common.table(header, rows, markdown=markdown)


def _generations(runs: kept.Records) -> list[float]:
    """Returns how many generations runs took; infinitely many where one ended at its limit."""
    return [run["generations"] if run["reached"] else math.inf for run in runs]


def _mean_and_error(made: Sequence[float]) -> tuple[str, str]:
    """Returns the mean and its standard error; dashes unless all are finite."""
    if not made or not math.isfinite(mean(made)):
        return "-", "-"
    return f"{mean(made):.0f}", f"{stdev(made) / len(made) ** 0.5:.0f}" if len(made) > 1 else "-"


def by_distribution(records: kept.Records, *, markdown: bool = False) -> str:
    """Returns how well distributions fit the times of one island: the largest distances."""
    kept.check_kind(records, *kept.KIND)
    rows = []
    for name in kept.names_in(records):
        times = kept.times_of(records, name, islands=1, restarts=True, on="all")
        if kept.fit_of(times) is None:
            continue
        fits = [js.run_times.fit(times, family) for family in _FAMILIES]
        rows.append([name, str(len(times)), *(f"{fit.misfit:.3f}" for fit in fits)])
    return common.table(("instance", "runs", *_FAMILIES), rows, markdown=markdown)


_FAMILIES: tuple[js.run_times.Family, ...] = ("gamma", "normal", "exponential", "lognormal")


def by_encoding(records: kept.Records, *, markdown: bool = False) -> str:
    """Returns how many generations one island takes by the encoding, where there are two."""
    rows = []
    kept.check_kind(records, *(part for part in kept.KIND if part != "encoding"))
    for name in kept.names_in(records):
        if FLOW.get(name) == 1:
            continue
        both = [
            _generations(
                kept.runs_of(records, name, islands=1, restarts=True, on="all", encoding=each)
            )
            for each in ("paper", "file")
        ]
        cells = [cell for made in both for cell in (str(len(made)), *_mean_and_error(made))]
        rows.append([name, *cells, kept.ratio(*both)])
    header = "instance | runs | generations | +- | as filed: runs | generations | +- | ratio"
    return common.table(header, rows, markdown=markdown)


def by_rate(records: kept.Records, *, markdown: bool = False) -> str:
    """Returns how many of the runs of one island without restarts find it, by rate of mutation."""
    rows = []
    kept.check_kind(records, *(part for part in kept.KIND if part != "mutation"))
    rates = sorted({record["settings"]["mutation"] for record in records})
    for name in kept.names_in(records):
        row, paper = [name], TABLE_1.get(name)
        for rate in rates:
            runs = kept.runs_of(records, name, islands=1, restarts=False, on="all", mutation=rate)
            done = [run["generations"] for run in runs if run["reached"]]
            row += [f"{len(done)}/{len(runs)}", f"{mean(done):.0f}" if done else "-"]
        rows.append([*row, f"{paper.without}/30" if paper else "-"])
    ours = [what for rate in rates for what in (f"rate {rate}: found", "generations")]
    return common.table(("instance", *ours, "paper, rate 0.1"), rows, markdown=markdown)
