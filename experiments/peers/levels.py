"""How far costs are above the best known, and when a run came this near."""

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Any


def gap(cost: int, best_known: int) -> float:
    """Returns how far `cost` is above the best known, as a share of its size.

    Example:
      >>> gap(101, 100), gap(-99, -100), gap(0, 0), gap(3, 0)
      (0.01, 0.01, 0.0, inf)
    """
    if best_known == 0:
        return 0.0 if cost == 0 else math.inf
    return (cost - best_known) / abs(best_known)


def finite(value: float) -> float | None:
    """Returns a number as JSON has it: None for infinity."""
    return value if math.isfinite(value) else None


def with_best_known(instances: Iterable[Any]) -> list[Any]:
    """Returns the instances with a best known cost, and says which have none."""
    instances = list(instances)
    for instance in instances:
        if instance.best_known is None:
            print(f"{instance.name} is left out: no best known cost is on record")
    return [instance for instance in instances if instance.best_known is not None]


def improvements(trace: Sequence[tuple[float, int]]) -> list[tuple[float, int]]:
    """Returns the points of a course at which the best cost fell."""
    kept: list[tuple[float, int]] = []
    for seconds, cost in trace:
        if not kept or cost < kept[-1][1]:
            kept.append((seconds, cost))
    return kept


def time_to_level(trace: Sequence[tuple[float, int]], best_known: int, level: float) -> float:
    """Returns the first time at which the gap was at most `level`, infinity if it never was.

    Example:
      >>> time_to_level([(0.5, 120), (2.0, 101)], best_known=100, level=0.01)
      2.0
    """
    return min((s for s, cost in trace if gap(cost, best_known) <= level), default=math.inf)


def median_time(times: Sequence[float]) -> str:
    """Returns the median of times, a dash for infinity, and how many are finite unless all are.

    Example:
      >>> median_time([0.5, 0.25, 1.0]), median_time([0.5, 0.25, math.inf])
      ('0.500', '0.500 (2/3)')
    """
    num_finite = sum(map(math.isfinite, times))
    median = statistics.median(times)
    text = f"{median:.3f}" if math.isfinite(median) else "-"
    return text if num_finite in (0, len(times)) else f"{text} ({num_finite}/{len(times)})"
