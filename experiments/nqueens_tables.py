"""The tables and figures of `nqueens.py`, from its records."""

import math
from collections.abc import Callable, Iterable, Sequence
from statistics import median
from typing import Any, TypeAlias

from experiments import common
from jaxopt_search import evaluation

Records: TypeAlias = Sequence[dict[str, Any]]

_NAMES = ("numba", *evaluation.SCHEMES)


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


def figure_1(records: Records, *, markdown: bool = False) -> str:
    """Returns the share of a step of annealing that evaluation takes."""
    annealed = _of(records, "anneal")
    schemes = sorted({r["settings"]["scheme"] for r in annealed} - {"deltas"}, key=_NAMES.index)
    rows = []
    for n in _sizes(annealed):
        row, rest = [str(n)], _seconds(_of(annealed, "anneal", scheme="deltas"), n)
        for scheme in schemes:
            step = _seconds(_of(annealed, "anneal", scheme=scheme), n)
            row += [_shown(1e6 * step), _shown(100 * (1 - rest / step), ".1f")]
        rows.append(row)
    header = ("n", *(f"{name}{what}" for name in schemes for what in (" us/step", " %")))
    return common.table(header, rows, markdown=markdown)


def figure_2(records: Records, *, markdown: bool = False) -> str:
    """Returns speed-ups over one thread by the number of threads; the best one is last."""
    threads = [r for r in _of(records, "evaluate", scheme="threads") if _num_threads(r)]
    counts = sorted({_num_threads(r) for r in threads})
    rows = []
    for n in _sizes(threads):
        times = {count: _seconds(_with_threads(threads, count), n) for count in counts}
        best = min(counts, key=lambda count: times[count])
        ups = [_shown(times[1] / times[count]) for count in counts]
        rows.append([str(n), _shown(1e3 * times[1]), *ups, str(best)])
    header = ("n", "one: ms", *(f"{count}" for count in counts), "best")
    return common.table(header, rows, markdown=markdown)


def _num_threads(record: dict[str, Any]) -> int:
    return record["settings"].get("num_threads") or 0


def _with_threads(records: Records, count: int) -> Records:
    return [r for r in records if _num_threads(r) == count]


def figure_4(records: Records, *, markdown: bool = False) -> str:
    """Returns milliseconds of each scheme."""
    return _by_scheme(records, lambda own, base: 1e3 * own, markdown)


def figure_5(records: Records, *, markdown: bool = False) -> str:
    """Returns how many times faster each scheme is than the loop on one core."""
    return _by_scheme(records, lambda own, base: base / own, markdown)


def _by_scheme(records: Records, of: Callable[[float, float], float], markdown: bool) -> str:
    own = {name: _plain(records, name) for name in _NAMES}
    names = [name for name in _NAMES if own[name]]
    rows = []
    for n in _sizes(r for name in names for r in own[name]):
        base = _seconds(own[names[0]], n)
        rows.append([str(n), *(_shown(of(_seconds(own[name], n), base)) for name in names)])
    return common.table(("n", *names), rows, markdown=markdown)


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
    """Returns microseconds per step of annealing and the speed-ups over the serial scheme."""
    annealed = _of(records, "anneal")
    found = {r["settings"]["scheme"] for r in annealed}
    names = [name for name in (*_NAMES, "deltas") if name in found]
    rows = []
    for n in _sizes(annealed):
        times = [_seconds(_of(annealed, "anneal", scheme=name), n) for name in names]
        ups = [times[0] / seconds for seconds in times[1:]]
        rows.append([str(n), *(_shown(1e6 * seconds) for seconds in times), *map(_shown, ups)])
    header = ("n", *(f"{name}: us" for name in names), *(f"x {name}" for name in names[1:]))
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
    3: figure_2,
    4: figure_4,
    5: figure_5,
    6: figure_6,
    7: figure_7,
}
TABLES: dict[str, Callable[..., str]] = {
    "table": table_thresholds,
    "batch": table_batch,
    "solve": table_solve,
    "set": table_set,
    "stream": table_set,
}


def _lines(
    groups: Callable[[Records], dict[str, Records]], ylabel: str
) -> Callable[[Records], Callable[[Any], None]]:
    """Returns what makes a drawing of seconds by size, a line for each group."""

    def of(records: Records) -> Callable[[Any], None]:
        def draw(ax: Any) -> None:
            for name, own in groups(records).items():
                sizes = [n for n in _sizes(own) if not math.isnan(_seconds(own, n))]
                ax.plot(sizes, [_seconds(own, n) for n in sizes], "o-", label=name)
            ax.set(xscale="log", yscale="log", xlabel="queens", ylabel=ylabel)
            ax.legend()

        return draw

    return of


def _schemes(records: Records) -> dict[str, Records]:
    return {name: own for name in _NAMES if (own := _plain(records, name))}


def _annealed(records: Records) -> dict[str, Records]:
    names = (*_NAMES, "deltas")
    return {name: own for name in names if (own := _of(records, "anneal", scheme=name))}


def _threads(records: Records) -> dict[str, Records]:
    own = _of(records, "evaluate", scheme="threads")
    counts = sorted({_num_threads(r) for r in own} - {0})
    return {f"{count} threads": _with_threads(own, count) for count in counts}


def _placements(records: Records) -> dict[str, Records]:
    coarse = _of(records, "evaluate", scheme="coarse", batch=1)
    return {name: _of(coarse, "evaluate", placement=name) for name in ("random", "valid")}


_EVALUATION, _STEP = "seconds per evaluation", "seconds per step"
PLOTS = {
    1: _lines(_annealed, _STEP),
    2: _lines(_threads, _EVALUATION),
    3: _lines(_threads, _EVALUATION),
    4: _lines(_schemes, _EVALUATION),
    5: _lines(_schemes, _EVALUATION),
    6: _lines(_placements, _EVALUATION),
    7: _lines(_annealed, _STEP),
}
