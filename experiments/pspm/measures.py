"""What the paper measures: speed, error and throughput, of records.

A figure is a function of records, which returns None where none of them tell it.
"""

import functools
from collections.abc import Callable, Sequence
from operator import itemgetter
from statistics import fmean
from typing import Any

from experiments import common
from experiments.pspm.runs import SCHEMES

Records = list[dict[str, Any]]
Figure = Callable[[Records], float | None]


def select(records: Records, kind: str, scheme: str, moves: int | None = None) -> Records:
    """Returns the runs of a scheme on one instance, one for each seed.

    Where the file holds several kinds of device, limits or exchanges, only runs like the last one
    count; of several runs of one seed, the last.

    Args:
      moves: moves per search; None for the scheme's own.
    """
    moves = SCHEMES[scheme].moves if moves is None else moves
    found = [
        record
        for record in records
        if record["settings"]["kind"] == kind
        and record["settings"]["scheme"].items() >= {"name": scheme, "moves": moves}.items()
    ]
    last = {
        record["seed"]: record
        for record in found
        if all(
            record["settings"][name] == found[-1]["settings"][name]
            for name in ("limit", "device_kind", "scheme")
        )
    }
    return list(last.values())


def mean_of(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def speed(scheme: str, moves: int | None = None) -> Figure:
    own = functools.partial(select, kind="quality", scheme=scheme, moves=moves)
    return lambda records: mean_of([record["sses"] / 1e6 for record in own(records)])


def error(scheme: str, kind: str = "quality", moves: int | None = None) -> Figure:
    return lambda records: mean_of([r["sec"] for r in select(records, kind, scheme, moves)])


def throughput(scheme: str) -> Figure:
    """Returns the mean of 0.01 solutions per second, equation 7: the inverse of the mean time.

    Where runs ended without reaching the threshold, this counts their time but not them; it is then
    the maximum-likelihood rate of exponential times.
    """

    def mean(records: Records) -> float | None:
        found = select(records, "throughput", scheme)
        reached, seconds = (
            sum(record[name] for record in found) for name in ("reached", "seconds")
        )
        return 100 * reached / seconds if found else None

    return mean


def over_instances(figure: Callable[..., Any], scheme: str) -> Figure:
    """Returns the mean over instances of a figure of runs that all have as many moves."""

    def mean(records: Records) -> float | None:
        by_instance = common.grouped(records, itemgetter("instance"))
        moves = records[0]["settings"]["scheme"]["moves"] if records else None
        return mean_of([figure(scheme, moves=moves)(own) for own in by_instance.values()])

    return mean


def quotient(above: Figure, below: Figure) -> Figure:
    def of(records: Records) -> float | None:
        a, b = above(records), below(records)
        return a / b if a is not None and b else None

    return of


def difference(left: Figure, right: Figure) -> Figure:
    def of(records: Records) -> float | None:
        a, b = left(records), right(records)
        return None if a is None or b is None else a - b

    return of
