"""The plots of `__main__`, from its records."""

import math
from collections.abc import Callable
from typing import Any, TypeAlias

from experiments.queens import records as kept

Lines: TypeAlias = dict[str, list[tuple[float, float]]]


def _drawing(
    lines: Callable[[kept.Records], Lines], xlabel: str, ylabel: str, **axes: Any
) -> Callable[[kept.Records], Callable[[Any], None]]:
    """Returns what makes a drawing: a line for each name in `lines`."""

    def of(records: kept.Records) -> Callable[[Any], None]:
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


def _lines(groups: dict[str, kept.Records], value: Callable[[str, int], float]) -> Lines:
    """Returns a number by size for each group."""
    return {name: [(n, value(name, n)) for n in kept.sizes_in(own)] for name, own in groups.items()}


def _shares(records: kept.Records) -> Lines:
    return _lines(kept.in_full(records), lambda name, n: 100 * kept.share(records, name, n))


def _by_count(records: kept.Records) -> Lines:
    """Returns the speed-ups of `threads` by their number for each size."""
    return {
        f"{n} queens": [(count, kept.time_of(kept.schemes(records), "numba", n) / times[count])
                        for count in times]
        for name, n, times in kept.by_threads(records)
        if name == "threads"
    }  # fmt: skip


def _best_counts(records: kept.Records) -> Lines:
    """Returns the best number of threads and the speed-up over one thread by size."""
    own = [(n, times) for name, n, times in kept.by_threads(records) if name == "threads"]
    return {
        "best number of threads": [(n, kept.best_count(times)) for n, times in own],
        "speed-up over one thread": [
            (n, times[1] / times[kept.best_count(times)]) for n, times in own
        ],
    }


def _seconds_of(
    groups: Callable[[kept.Records], dict[str, kept.Records]],
) -> Callable[[kept.Records], Lines]:
    def lines(records: kept.Records) -> Lines:
        own = groups(records)
        return _lines(own, lambda name, n: kept.time_of(own, name, n))

    return lines


def _speedups(records: kept.Records) -> Lines:
    own = kept.schemes(records)
    return _lines(own, lambda name, n: kept.speedup(own, name, n))


_EVALUATION, _STEP = "seconds per evaluation", "seconds per step"

PLOTS = {
    1: _drawing(_shares, "queens", "evaluation, % of a step", yscale="linear"),
    2: _drawing(_by_count, "threads", "times faster than the compiled loop", xscale="linear"),
    3: _drawing(_best_counts, "queens", "threads; speed-up", yscale="linear"),
    4: _drawing(_seconds_of(kept.schemes), "queens", _EVALUATION),
    5: _drawing(_speedups, "queens", "times faster than the compiled loop"),
    6: _drawing(_seconds_of(kept.placements), "queens", _EVALUATION),
    7: _drawing(_seconds_of(kept.annealed), "queens", _STEP),
}
