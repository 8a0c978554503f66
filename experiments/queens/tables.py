"""The tables and figures of `script.py`, from its records."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import median
from typing import Any, TypeAlias

from experiments import common
from jaxopt_search.problems.queens import attacks
from jaxopt_search.problems.queens.attacks import host

Records: TypeAlias = Sequence[dict[str, Any]]

_NAMES = ("numba", "numba_histogram", *attacks.SCHEMES, "deltas")
_NOTHING = {"numba": "numba_nothing", "numba_histogram": "numba_nothing"}
"""What a step is compared with that evaluates by a scheme; where not "nothing"."""
ON_ONE_CORE = ("numba", "numba_histogram", "numba_nothing", "serial")


def _of(records: Records, kind: str, **settings: Any) -> Records:
    """Returns the records of a kind with these settings."""
    return [
        r
        for r in records
        if r["settings"]["kind"] == kind
        and all(r["settings"].get(name) == value for name, value in settings.items())
    ]


def _seconds(records: Records, n: int) -> float:
    """Returns the median over seeds, or NaN where nothing was measured."""
    times = [r["seconds"] for r in records if r["n"] == n and r["seconds"] is not None]
    return median(times) if times else math.nan


def _sizes(records: Iterable[dict[str, Any]]) -> list[int]:
    return sorted({record["n"] for record in records})


def _shown(value: float, form: str = ".3g") -> str:
    return "-" if math.isnan(value) else f"{value:{form}}"


def _plain(records: Records, scheme: str) -> Records:
    """Returns single evaluations of random placements with the scheme's own settings."""
    options = ("num_threads", "threshold")
    own = _of(records, "evaluate", scheme=scheme, placement="random", batch=1)
    return [r for r in own if not any(name in r["settings"] for name in options)]


def _runs_on(records: Records) -> str:
    """Returns where records of one scheme were made, as a cell."""
    places = {_place(record) for record in records}
    return ", ".join(sorted(places))


def _place(record: dict[str, Any]) -> str:
    if (scheme := record["settings"].get("scheme")) in ON_ONE_CORE:
        return "1 core"
    if scheme in host.HOST:
        return f"{record['cores']} cores" if "cores" in record else "threads"
    return record["env"]["devices"]


def _by_scheme(
    records: dict[str, Records],
    cell: Callable[[str, int], float],
    markdown: bool,
    form: str = ".3g",
) -> str:
    """Returns a line for each scheme: where it ran, and a number for each size."""
    sizes = _sizes(record for own in records.values() for record in own)
    rows = [
        [name, _runs_on(own), *(_shown(cell(name, n), form) for n in sizes)]
        for name, own in records.items()
    ]
    return common.table(("scheme", "runs on", *map(str, sizes)), rows, markdown=markdown)


def _times_of(groups: dict[str, Records], name: str, n: int) -> float:
    return _seconds(groups.get(name, ()), n)


def figure_1(records: Records, *, markdown: bool = False) -> str:
    """Returns the share, in percent, of a step of annealing that evaluation takes."""
    own = _in_full(records)
    return _by_scheme(own, lambda name, n: 100 * _share(records, name, n), markdown, ".1f")


def _in_full(records: Records) -> dict[str, Records]:
    """Returns the records of annealing with evaluation in full by scheme."""
    return {name: own for name, own in _annealed(records).items() if name != "deltas"}


def _share(records: Records, name: str, n: int) -> float:
    nothing = _of(records, "anneal", scheme=_NOTHING.get(name, "nothing"))
    return 1 - _seconds(nothing, n) / _seconds(_of(records, "anneal", scheme=name), n)


def figure_2(records: Records, *, markdown: bool = False) -> str:
    """Returns speed-ups of schemes on threads over the compiled loop, by the number of threads."""
    counts, rows = _counts(records), []
    for name, n, times in _by_threads(records):
        base = _times_of(_schemes(records), "numba", n)
        ups = [_shown(base / times[count]) for count in counts]
        rows.append([str(n), name, _shown(1e3 * base), *ups])
    header = ("n", "scheme", "numba: ms", *(f"x {count}" for count in counts))
    return common.table(header, rows, markdown=markdown)


def figure_3(records: Records, *, markdown: bool = False) -> str:
    """Returns the best number of threads, its time, and its speed-up over the compiled loop."""
    rows = []
    for name, n, times in _by_threads(records):
        best, base = _best(times), _times_of(_schemes(records), "numba", n)
        own = 1e3 * times[best], times[1] / times[best], base / times[best]
        rows.append([str(n), name, str(best), *map(_shown, own)])
    header = ("n", "scheme", "best number", "ms", "x one thread", "x numba")
    return common.table(header, rows, markdown=markdown)


def _by_threads(records: Records) -> Iterator[tuple[str, int, dict[int, float]]]:
    """Yields schemes on threads, sizes, and seconds by the number of threads."""
    counts = _counts(records)
    for name in host.HOST:
        own = [r for r in _of(records, "evaluate", scheme=name) if _num_threads(r)]
        for n in _sizes(own):
            yield name, n, {count: _seconds(_with_threads(own, count), n) for count in counts}


def _counts(records: Records) -> list[int]:
    return sorted({_num_threads(r) for r in _of(records, "evaluate")} - {0})


def _best(times: dict[int, float]) -> int:
    return min(times, key=lambda count: math.inf if math.isnan(times[count]) else times[count])


def _num_threads(record: dict[str, Any]) -> int:
    return record["settings"].get("num_threads") or 0


def _with_threads(records: Records, count: int) -> Records:
    return [r for r in records if _num_threads(r) == count]


def figure_4(records: Records, *, markdown: bool = False) -> str:
    """Returns milliseconds of each scheme."""
    own = _schemes(records)
    return _by_scheme(own, lambda name, n: 1e3 * _times_of(own, name, n), markdown)


def figure_5(records: Records, *, markdown: bool = False) -> str:
    """Returns how many times faster each scheme is than the compiled loop on one core."""
    own = _schemes(records)
    return _by_scheme(own, lambda name, n: _speedup(own, name, n), markdown)


def _speedup(groups: dict[str, Records], name: str, n: int) -> float:
    return _times_of(groups, "numba", n) / _times_of(groups, name, n)


def figure_6(records: Records, *, markdown: bool = False) -> str:
    """Returns milliseconds on random and on valid placements, and by how much they differ."""
    rows = []
    coarse = _of(records, "evaluate", scheme="coarse", batch=1)
    random, valid = (_of(coarse, "evaluate", placement=name) for name in ("random", "valid"))
    for n in _sizes(valid):
        own, other = _seconds(random, n), _seconds(valid, n)
        pairs = n * (n - 1) / 2 / own
        change = 100 * (own / other - 1)
        rows.append([str(n), *map(_shown, (1e3 * own, 1e3 * other, change, pairs))])
    header = ("n", "random: ms", "valid: ms", "difference %", "pairs/s")
    return common.table(header, rows, markdown=markdown)


def figure_7(records: Records, *, markdown: bool = False) -> str:
    """Returns microseconds per step of annealing, and speed-ups over the compiled loop."""
    own = _annealed(records)
    sizes = _sizes(record for group in own.values() for record in group)
    rows = []
    for name, group in own.items():
        times = (1e6 * _times_of(own, name, n) for n in sizes)
        ups = (_speedup(own, name, n) for n in sizes)
        rows.append([name, _runs_on(group), *map(_shown, (*times, *ups))])
    header = ("scheme", "runs on", *(f"{n}: us" for n in sizes), *(f"x at {n}" for n in sizes))
    return common.table(header, rows, markdown=markdown)


def table_annealed(records: Records, *, markdown: bool = False) -> str:
    """Returns after how long annealing with full evaluation found valid placements."""
    groups: dict[Any, list[dict[str, Any]]] = {}
    for record in _of(records, "anneal to the end"):
        groups.setdefault((record["n"], *record["settings"].values()), []).append(record)
    rows = []
    for own in groups.values():
        settings, wanted = own[0]["settings"], len(own) * own[0]["settings"]["searches"]
        found = sorted(pair for record in own for pair in record["found_after"])
        seconds, steps = zip(*found, strict=True) if found else ((math.nan,), (math.nan,))
        cooling = f"{settings['temperature']:g}"
        if settings["alpha"] < 1:
            cooling += f" x {settings['alpha']:g} every {settings['steps_per_temperature']}"
        step = median(1e6 * record["seconds"] / record["steps"] for record in own)
        rows.append(
            [
                *(str(own[0]["n"]), settings["scheme"], _runs_on(own), cooling),
                *(str(settings["searches"]), f"{len(found)}/{wanted}"),
                *map(_shown, (seconds[0], median(seconds), seconds[-1])),
                *(_shown(median(steps), ",.0f"), _shown(step)),
            ]
        )
    found = ("found", "shortest: s", "median", "longest", "steps", "us/step")
    header = ("n", "scheme", "runs on", "temperature", "side by side", *found)
    return common.table(header, rows, markdown=markdown)


def table_thresholds(records: Records, *, markdown: bool = False) -> str:
    """Returns milliseconds of `subtasks` by threshold, beside those of `coarse`."""
    cut = [r for r in _of(records, "evaluate", scheme="subtasks") if r["settings"].get("threshold")]
    thresholds = sorted({r["settings"]["threshold"] for r in cut})
    rows = []
    for n in _sizes(cut):
        times = [_seconds(_of(cut, "evaluate", threshold=threshold), n) for threshold in thresholds]
        coarse = _seconds(_plain(records, "coarse"), n)
        rows.append([str(n), *(_shown(1e3 * seconds) for seconds in (coarse, *times))])
    header = ("n", "coarse: ms", *(f"{threshold}" for threshold in thresholds))
    return common.table(header, rows, markdown=markdown)


def table_batch(records: Records, *, markdown: bool = False) -> str:
    """Returns microseconds per placement of evaluations in batches."""
    rows = [
        [str(r["n"]), r["settings"]["scheme"], str(r["settings"]["batch"]), f"{1e6 * s:.4g}"]
        for r in _of(records, "evaluate")
        if (s := r["seconds"]) and r["settings"]["batch"] > 1
    ]
    return common.table(("n", "scheme", "placements", "us each"), rows, markdown=markdown)


def table_solve(records: Records, *, markdown: bool = False) -> str:
    """Returns how long annealing takes to a valid placement."""
    solved = _of(records, "solve")
    rows = []
    for n in _sizes(solved):
        for search in sorted({r["settings"]["search"] for r in solved}):
            own = [r for r in _of(solved, "solve", search=search) if r["n"] == n]
            if not own:
                continue
            times = sorted(r["seconds"] if r["reached"] else math.inf for r in own)
            found = f"{sum(map(math.isfinite, times))}/{len(own)}"
            extremes = [f"{1e3 * seconds:.4g}" for seconds in (times[0], median(times), times[-1])]
            steps = f"{median(r['steps'] for r in own):g}"
            rows.append([str(n), search, found, *extremes, steps])
    header = ("n", "search", "found", "shortest: ms", "median", "longest", "steps")
    return common.table(header, rows, markdown=markdown)


def table_set(records: Records, *, markdown: bool = False) -> str:
    """Returns how many different placements a second are found, by the run of median time."""
    groups: dict[Any, Records] = {}
    for record in (*_of(records, "set"), *_of(records, "stream")):
        groups.setdefault((record["n"], *record["settings"].values()), []).append(record)
    rows = []
    for own in groups.values():
        one = sorted(own, key=lambda record: record["seconds"])[len(own) // 2]
        rows.append(
            [
                str(one["n"]),
                one["settings"].get("distinct", "raw, left on the device"),
                str(len(own)),
                str(one["found"]),
                str(one["repeated"]),
                f"{one['seconds']:.3g}",
                f"{one['found'] / one['seconds']:.3g}",
                f"{one['mean_difference']:.4f}",
            ]
        )
    header = ("n", "distinct", "runs", "found", "not kept", "seconds", "found/s", "mean difference")
    return common.table(header, rows, markdown=markdown)


FIGURES: dict[int, Callable[..., str]] = {
    1: figure_1,
    2: figure_2,
    3: figure_3,
    4: figure_4,
    5: figure_5,
    6: figure_6,
    7: figure_7,
}
TABLES: dict[str, Callable[..., str]] = {
    "table": table_thresholds,
    "batch": table_batch,
    "anneal": table_annealed,
    "solve": table_solve,
    "set": table_set,
    "stream": table_set,
}


Lines: TypeAlias = dict[str, list[tuple[float, float]]]


def _drawing(
    lines: Callable[[Records], Lines], xlabel: str, ylabel: str, **axes: Any
) -> Callable[[Records], Callable[[Any], None]]:
    """Returns what makes a drawing: a line for each name in `lines`."""

    def of(records: Records) -> Callable[[Any], None]:
        def draw(ax: Any) -> None:
            drawn = lines(records)
            for name, points in drawn.items():
                known = [point for point in points if not math.isnan(point[1])]
                ax.plot([x for x, _ in known], [y for _, y in known], "o-", label=name)
            ax.set(xlabel=xlabel, ylabel=ylabel, **{"xscale": "log", "yscale": "log"} | axes)
            if drawn:
                ax.legend()

        return draw

    return of


def _lines(groups: dict[str, Records], value: Callable[[str, int], float]) -> Lines:
    """Returns a number by size for each group."""
    return {name: [(n, value(name, n)) for n in _sizes(own)] for name, own in groups.items()}


def _schemes(records: Records) -> dict[str, Records]:
    return {name: own for name in _NAMES if (own := _plain(records, name))}


def _annealed(records: Records) -> dict[str, Records]:
    return {name: own for name in _NAMES if (own := _of(records, "anneal", scheme=name))}


def _placements(records: Records) -> dict[str, Records]:
    coarse = _of(records, "evaluate", scheme="coarse", batch=1)
    return {name: _of(coarse, "evaluate", placement=name) for name in ("random", "valid")}


def _shares(records: Records) -> Lines:
    return _lines(_in_full(records), lambda name, n: 100 * _share(records, name, n))


def _by_count(records: Records) -> Lines:
    """Returns the speed-ups of `threads` by their number for each size."""
    return {
        f"{n} queens": [(count, _times_of(_schemes(records), "numba", n) / times[count])
                        for count in times]
        for name, n, times in _by_threads(records)
        if name == "threads"
    }  # fmt: skip


def _best_counts(records: Records) -> Lines:
    """Returns the best number of threads and the speed-up over one thread by size."""
    own = [(n, times) for name, n, times in _by_threads(records) if name == "threads"]
    return {
        "best number of threads": [(n, _best(times)) for n, times in own],
        "speed-up over one thread": [(n, times[1] / times[_best(times)]) for n, times in own],
    }


def _seconds_of(
    groups: Callable[[Records], dict[str, Records]],
) -> Callable[[Records], Lines]:
    def lines(records: Records) -> Lines:
        own = groups(records)
        return _lines(own, lambda name, n: _times_of(own, name, n))

    return lines


def _speedups(records: Records) -> Lines:
    own = _schemes(records)
    return _lines(own, lambda name, n: _speedup(own, name, n))


_EVALUATION, _STEP = "seconds per evaluation", "seconds per step"
PLOTS = {
    1: _drawing(_shares, "queens", "evaluation, % of a step", yscale="linear"),
    2: _drawing(_by_count, "threads", "times faster than the compiled loop", xscale="linear"),
    3: _drawing(_best_counts, "queens", "threads; speed-up", yscale="linear"),
    4: _drawing(_seconds_of(_schemes), "queens", _EVALUATION),
    5: _drawing(_speedups, "queens", "times faster than the compiled loop"),
    6: _drawing(_seconds_of(_placements), "queens", _EVALUATION),
    7: _drawing(_seconds_of(_annealed), "queens", _STEP),
}
