"""Records of islands: which belong together, and the figures that tables share."""

import functools
import math
from collections.abc import Sequence
from statistics import mean
from typing import Any, TypeAlias

import jaxopt_search as js
from experiments import common

Records: TypeAlias = Sequence[dict[str, Any]]

KIND = {
    "encoding": "encoding",
    "population": "individuals",
    "mutation": "mutation",
    "local_steps": "local steps",
    "crossover": "crossover",
    "keep_best": "keeps best",
    "exchange": "exchange",
}
"""What tells islands of one kind from others, and how tables call it."""

OF_OLD = {"encoding": "file", "crossover": "pmx", "keep_best": False, "exchange": "none"}
"""The settings of records that say nothing of these."""

VARIANTS: dict[str, dict[str, Any]] = {
    "as in Table II": {},
    "mutation 0.1": {"mutation": 0.1},
    "OX": {"crossover": "ox"},
    "keeps its best": {"keep_best": True},
    "ring": {"exchange": "ring"},
    "shuffle": {"exchange": "shuffle"},
    "matrices exchanged": {"encoding": "file"},
}
"""The lines of `--study variants`: what is not as in Table II."""


def completed(records: Records) -> Records:
    """Returns records with all the settings that there are."""
    return [record | {"settings": OF_OLD | record["settings"]} for record in records]


def runs_of(records: Records, instance: str, **settings: Any) -> Records:
    """Returns the records of runs with these settings."""
    return [
        record
        for record in records
        if record["instance"] == instance
        and all(record["settings"][name] == value for name, value in settings.items())
    ]


def times_of(records: Records, instance: str, **settings: Any) -> list[float]:
    """Returns the times of runs with these settings; infinite where a run ended at its limit."""
    return times_in(runs_of(records, instance, **settings))


def times_in(runs: Records) -> list[float]:
    return [run["seconds"] if run["reached"] else math.inf for run in runs]


def names_in(records: Records) -> list[str]:
    return list(dict.fromkeys(record["instance"] for record in records))


def settings_on(records: Records, instance: str, *on: str) -> list[dict[str, Any]]:
    """Returns the settings of the runs on an instance and on these devices."""
    own = (record["settings"] for record in records if record["instance"] == instance)
    return [settings for settings in own if settings["on"] in on]


def check_kind(records: Records, *parts: str) -> None:
    """Raises ValueError if islands differ in these settings, which a table does not show."""
    kinds = {tuple(record["settings"][part] for part in parts) for record in records}
    if len(kinds) > 1:
        names = ", ".join(parts)
        raise ValueError(f"islands of several kinds ({names}): {sorted(kinds)}, expected one")


def num_found(times: Sequence[float]) -> str:
    """Returns how many of the runs found it."""
    return f"{sum(map(math.isfinite, times))}/{len(times)}"


def mean_time(times: Sequence[float]) -> str:
    return common.shown(mean(times) if times else math.nan)


def fit_of(times: Sequence[float]) -> js.run_times.Fit | None:
    """Returns the gamma distribution of times; None unless two of them are finite and differ."""
    finite = {time for time in times if math.isfinite(time)}
    return _fit(tuple(times)) if len(finite) > 1 else None


@functools.cache
def _fit(times: tuple[float, ...]) -> js.run_times.Fit:
    return js.run_times.fit(times)


@functools.cache
def mean_of_first(fit: js.run_times.Fit, runs: int) -> float:
    """Returns M(p), the mean time until one of these runs is done."""
    return fit.mean(runs)


def ratio(times: Sequence[float], by: Sequence[float]) -> str:
    is_known = times and by and math.isfinite(mean(times)) and math.isfinite(mean(by))
    return f"{mean(times) / mean(by):.3g}" if is_known else "-"
