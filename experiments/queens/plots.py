"""The plots of `__main__`, from its records."""

import functools
import math
from typing import Any

from experiments.queens import records as kept

_FASTER, _SECONDS = "times faster than the compiled loop", "seconds per evaluation"
_AXES = {
    1: ("queens", "evaluation, % of a step", "log", "linear"),
    2: ("threads", _FASTER, "linear", "log"),
    3: ("queens", "threads; speed-up", "log", "linear"),
    4: ("queens", _SECONDS, "log", "log"),
    5: ("queens", _FASTER, "log", "log"),
    6: ("queens", _SECONDS, "log", "log"),
    7: ("queens", "seconds per step", "log", "log"),
}
"""Labels and scales of both axes of each figure."""


def draw(figure: int, records: kept.Records, ax: Any) -> None:
    """Draws a figure: a line for each name."""
    drawn = _lines(figure, records)
    for name, points in drawn.items():
        known = [point for point in points if not math.isnan(point[1])]
        ax.plot([x for x, _ in known], [y for _, y in known], "o-", label=name)
    xlabel, ylabel, xscale, yscale = _AXES[figure]
    ax.set(xlabel=xlabel, ylabel=ylabel, xscale=xscale, yscale=yscale)
    if drawn:
        ax.legend()


def _lines(figure: int, records: kept.Records) -> dict[str, list[tuple[float, float]]]:
    """Returns the points of each line."""
    groups = {1: kept.in_full, 6: kept.placements, 7: kept.annealed}.get(figure, kept.schemes)
    own = groups(records)
    if figure in (2, 3):
        threads = [(n, times) for name, n, times in kept.by_threads(records) if name == "threads"]
        best = [(n, times, kept.best_count(times)) for n, times in threads]
        if figure == 3:
            return {
                "best number of threads": [(n, count) for n, _, count in best],
                "speed-up over one thread": [(n, times[1] / times[k]) for n, times, k in best],
            }
        base = functools.partial(kept.time_of, own, "numba")
        return {f"{n} queens": [(k, base(n) / times[k]) for k in times] for n, times in threads}
    value = functools.partial(kept.speedup if figure == 5 else kept.time_of, own)
    if figure == 1:
        value = lambda name, n: 100 * kept.share(records, name, n)  # noqa: E731
    return {
        name: [(n, value(name, n)) for n in kept.sizes_in(group)] for name, group in own.items()
    }
