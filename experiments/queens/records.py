"""Which records belong together, and the figures that tables share."""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from statistics import median
from typing import Any, TypeAlias

from jaxopt_search.problems.queens import attacks

Records: TypeAlias = Sequence[dict[str, Any]]

NAMES = ("numba", "numba_histogram", *attacks.SCHEMES, "deltas")

_NOTHING = {"numba": "numba_nothing", "numba_histogram": "numba_nothing"}
"""What a step is compared with that evaluates by a scheme; where not "nothing"."""

ON_ONE_CORE = ("numba", "numba_histogram", "numba_nothing", "serial")


def of_kind(records: Records, kind: str, **settings: Any) -> Records:
    """Returns the records of a kind with these settings."""
    return [
        r
        for r in records
        if r["settings"]["kind"] == kind
        and all(r["settings"].get(name) == value for name, value in settings.items())
    ]


def seconds_at(records: Records, n: int) -> float:
    """Returns the median over seeds, or NaN where nothing was measured."""
    times = [r["seconds"] for r in records if r["n"] == n and r["seconds"] is not None]
    return median(times) if times else math.nan


def sizes_in(records: Iterable[dict[str, Any]]) -> list[int]:
    return sorted({record["n"] for record in records})


def plain(records: Records, scheme: str) -> Records:
    """Returns single evaluations of random placements with the scheme's own settings."""
    options = ("num_threads", "threshold")
    own = of_kind(records, "evaluate", scheme=scheme, placement="random", batch=1)
    return [r for r in own if not any(name in r["settings"] for name in options)]


def time_of(groups: dict[str, Records], name: str, n: int) -> float:
    return seconds_at(groups.get(name, ()), n)


def in_full(records: Records) -> dict[str, Records]:
    """Returns the records of annealing with evaluation in full by scheme."""
    return {name: own for name, own in annealed(records).items() if name != "deltas"}


def share(records: Records, name: str, n: int) -> float:
    nothing = of_kind(records, "anneal", scheme=_NOTHING.get(name, "nothing"))
    return 1 - seconds_at(nothing, n) / seconds_at(of_kind(records, "anneal", scheme=name), n)


def by_threads(records: Records) -> Iterator[tuple[str, int, dict[int, float]]]:
    """Yields schemes on threads, sizes, and seconds by the number of threads."""
    counts = thread_counts(records)
    for name in attacks.ON_HOST:
        groups = {k: of_kind(records, "evaluate", scheme=name, num_threads=k) for k in counts}
        for n in sizes_in(itertools.chain(*groups.values())):
            yield name, n, {count: seconds_at(own, n) for count, own in groups.items()}


def thread_counts(records: Records) -> list[int]:
    return sorted({count for r in records if (count := r["settings"].get("num_threads"))})


def best_count(times: dict[int, float]) -> int:
    return min(times, key=lambda count: math.inf if math.isnan(times[count]) else times[count])


def speedup(groups: dict[str, Records], name: str, n: int) -> float:
    return time_of(groups, "numba", n) / time_of(groups, name, n)


def schemes(records: Records) -> dict[str, Records]:
    return {name: own for name in NAMES if (own := plain(records, name))}


def annealed(records: Records) -> dict[str, Records]:
    return {name: own for name in NAMES if (own := of_kind(records, "anneal", scheme=name))}


def placements(records: Records) -> dict[str, Records]:
    coarse = of_kind(records, "evaluate", scheme="coarse", batch=1)
    return {name: of_kind(coarse, "evaluate", placement=name) for name in ("random", "valid")}
