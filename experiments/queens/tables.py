"""The tables and figures of `__main__`, from its records."""

import math
from collections.abc import Callable, Iterable
from statistics import median
from typing import Any

from experiments import common
from experiments.queens import records as kept
from jaxopt_search.problems.queens import attacks


def _runs_on(records: kept.Records) -> str:
    """Returns where records of one scheme were made, as a cell."""
    return ", ".join(sorted(set(map(_place, records))))


def _place(record: dict[str, Any]) -> str:
    if (scheme := record["settings"].get("scheme")) in kept.ON_ONE_CORE:
        return "1 core"
    if scheme in attacks.ON_HOST:
        return f"{record['cores']} cores" if "cores" in record else "threads"
    return record["env"]["devices"]


def _by_scheme(
    records: dict[str, kept.Records],
    cell: Callable[[str, int], float],
    markdown: bool,
    form: str = ".3g",
) -> str:
    """Returns a line for each scheme: where it ran, and a number for each size."""
    sizes = kept.sizes_in(record for own in records.values() for record in own)
    rows = [
        [name, _runs_on(own), *(common.shown(cell(name, n), form) for n in sizes)]
        for name, own in records.items()
    ]
    return common.table(("scheme", "runs on", *map(str, sizes)), rows, markdown=markdown)


def figure_1(records: kept.Records, *, markdown: bool = False) -> str:
    """Returns the share, in percent, of a step of annealing that evaluation takes."""
    own = kept.in_full(records)
    return _by_scheme(own, lambda name, n: 100 * kept.share(records, name, n), markdown, ".1f")


def figure_2(records: kept.Records, *, markdown: bool = False) -> str:
    """Returns speed-ups of schemes on threads over the compiled loop, by the number of threads."""
    counts, rows = kept.thread_counts(records), []
    for name, n, times in kept.by_threads(records):
        base = kept.time_of(kept.schemes(records), "numba", n)
        ups = [common.shown(base / times[count]) for count in counts]
        rows.append([str(n), name, common.shown(1e3 * base), *ups])
    header = ("n", "scheme", "numba: ms", *(f"x {count}" for count in counts))
    return common.table(header, rows, markdown=markdown)


def figure_3(records: kept.Records, *, markdown: bool = False) -> str:
    """Returns the best number of threads, its time, and its speed-up over the compiled loop."""
    rows = []
    for name, n, times in kept.by_threads(records):
        best, base = kept.best_count(times), kept.time_of(kept.schemes(records), "numba", n)
        own = 1e3 * times[best], times[1] / times[best], base / times[best]
        rows.append([str(n), name, str(best), *map(common.shown, own)])
    header = ("n", "scheme", "best number", "ms", "x one thread", "x numba")
    return common.table(header, rows, markdown=markdown)


def figure_4(records: kept.Records, *, markdown: bool = False) -> str:
    """Returns milliseconds of each scheme."""
    own = kept.schemes(records)
    return _by_scheme(own, lambda name, n: 1e3 * kept.time_of(own, name, n), markdown)


def figure_5(records: kept.Records, *, markdown: bool = False) -> str:
    """Returns how many times faster each scheme is than the compiled loop on one core."""
    own = kept.schemes(records)
    return _by_scheme(own, lambda name, n: kept.speedup(own, name, n), markdown)


def figure_6(records: kept.Records, *, markdown: bool = False) -> str:
    """Returns milliseconds on random and on valid placements, and by how much they differ."""
    rows = []
    random, valid = kept.placements(records).values()
    for n in kept.sizes_in(valid):
        own, other = kept.seconds_at(random, n), kept.seconds_at(valid, n)
        pairs = n * (n - 1) / 2 / own
        change = 100 * (own / other - 1)
        rows.append([str(n), *map(common.shown, (1e3 * own, 1e3 * other, change, pairs))])
    header = ("n", "random: ms", "valid: ms", "difference %", "pairs/s")
    return common.table(header, rows, markdown=markdown)


def figure_7(records: kept.Records, *, markdown: bool = False) -> str:
    """Returns microseconds per step of annealing, and speed-ups over the compiled loop."""
    own = kept.annealed(records)
    sizes = kept.sizes_in(record for group in own.values() for record in group)
    rows = []
    for name, group in own.items():
        times = (1e6 * kept.time_of(own, name, n) for n in sizes)
        ups = (kept.speedup(own, name, n) for n in sizes)
        rows.append([name, _runs_on(group), *map(common.shown, (*times, *ups))])
    header = ("scheme", "runs on", *(f"{n}: us" for n in sizes), *(f"x at {n}" for n in sizes))
    return common.table(header, rows, markdown=markdown)


def _alike(records: kept.Records) -> Iterable[kept.Records]:
    """Returns groups of records of one size and the same settings."""
    return common.grouped(records, lambda r: (r["n"], *r["settings"].values())).values()


def table_annealed(records: kept.Records, *, markdown: bool = False) -> str:
    """Returns after how long annealing with full evaluation found valid placements."""
    rows = []
    for own in _alike(kept.of_kind(records, "anneal to the end")):
        settings, wanted = own[0]["settings"], len(own) * own[0]["settings"]["searches"]
        found = sorted(pair for record in own for pair in record["found_after"])
        seconds, steps = zip(*found, strict=True) if found else ((math.nan,), (math.nan,))
        cooling = f"{settings['temperature']:g}"
        if settings["alpha"] < 1:
            cooling += f" x {settings['alpha']:g} every {settings['steps_per_temperature']}"
        step = median(1e6 * record["seconds"] / record["steps"] for record in own)
        row = [str(own[0]["n"]), settings["scheme"], _runs_on(own), cooling]
        row += [str(settings["searches"]), f"{len(found)}/{wanted}"]
        row += map(common.shown, (seconds[0], median(seconds), seconds[-1]))
        rows.append([*row, common.shown(median(steps), ",.0f"), common.shown(step)])
    header = "n | scheme | runs on | temperature | side by side | found | shortest: s | median"
    return common.table(f"{header} | longest | steps | us/step", rows, markdown=markdown)


def table_thresholds(records: kept.Records, *, markdown: bool = False) -> str:
    """Returns milliseconds of `subtasks` by threshold, and of `coarse`."""
    cut = kept.of_kind(records, "evaluate", scheme="subtasks")
    thresholds = sorted({limit for r in cut if (limit := r["settings"].get("threshold"))})
    rows = []
    for n in kept.sizes_in(r for r in cut if r["settings"].get("threshold")):
        times = [
            kept.seconds_at(kept.of_kind(cut, "evaluate", threshold=threshold), n)
            for threshold in thresholds
        ]
        coarse = kept.seconds_at(kept.plain(records, "coarse"), n)
        rows.append([str(n), *(common.shown(1e3 * seconds) for seconds in (coarse, *times))])
    header = ("n", "coarse: ms", *(f"{threshold}" for threshold in thresholds))
    return common.table(header, rows, markdown=markdown)


def table_solve(records: kept.Records, *, markdown: bool = False) -> str:
    """Returns how long annealing takes to a valid placement."""
    solved = kept.of_kind(records, "solve")
    groups = common.grouped(solved, lambda r: (r["n"], r["settings"]["search"]))
    rows = []
    for (n, search), own in sorted(groups.items()):
        times = sorted(r["seconds"] if r["reached"] else math.inf for r in own)
        found = f"{sum(map(math.isfinite, times))}/{len(own)}"
        extremes = [f"{1e3 * seconds:.4g}" for seconds in (times[0], median(times), times[-1])]
        rows.append([str(n), search, found, *extremes, f"{median(r['steps'] for r in own):g}"])
    header = ("n", "search", "found", "shortest: ms", "median", "longest", "steps")
    return common.table(header, rows, markdown=markdown)


def table_set(records: kept.Records, *, markdown: bool = False) -> str:
    """Returns how many different placements a second are found, by the run of median time."""
    rows = []
    for own in _alike(kept.of_kind(records, "set")):
        one = sorted(own, key=lambda record: record["seconds"])[len(own) // 2]
        distinct = one["settings"].get("distinct", "raw")
        row = [str(one["n"]), distinct, str(len(own)), str(one["found"]), str(one["repeated"])]
        row += [f"{one['seconds']:.3g}", f"{one['found'] / one['seconds']:.3g}"]
        rows.append([*row, f"{one['mean_difference']:.4f}"])
    header = "n | distinct | runs | found | not kept | seconds | found/s | mean difference"
    return common.table(header, rows, markdown=markdown)


FIGURES: dict[int, Callable[..., str]] = dict(
    enumerate((figure_1, figure_2, figure_3, figure_4, figure_5, figure_6, figure_7), start=1)
)
TABLES: dict[str, Callable[..., str]] = {
    "table": table_thresholds,
    "anneal": table_annealed,
    "solve": table_solve,
    "set": table_set,
}
