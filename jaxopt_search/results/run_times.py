"""The statistics of run times: how long runs take, and how much sooner the first of p is done.

Runs are independent, and all end when the first one finds what it looks for ("first finisher").
Sources: Tsutsui, Fujimoto, "An analytical study of GPU computation for solving QAPs by parallel
evolutionary computation with independent run", 2010, for G(p, t) and M(p); Hoos, Stuetzle,
"Evaluating Las Vegas algorithms: pitfalls and remedies", 1998, for run-time distributions.

SciPy does the fitting; JAX requires it, too.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from jaxopt_search.checks import check_count, check_number, check_option, imported, real_array

__all__ = ["Family", "Fit", "Prediction", "fit", "mean_of_first", "shares_done"]

Family: TypeAlias = Literal["gamma", "normal", "exponential", "lognormal"]
"""The distributions that `fit` knows."""

_SHORTEST, _LONGEST = 1e-100, 1e100  # between which squares and moments are finite
# In SciPy: the name, and those of the parameters, which are positive, as the normal's mean is.
_FAMILIES = {
    "gamma": ("gamma", "a", "scale"),
    "normal": ("norm", "loc", "scale"),
    "exponential": ("expon", "scale"),
    "lognormal": ("lognorm", "s", "scale"),
}


class Prediction(NamedTuple):
    """What p independent runs side by side are expected to take, in the units of the run times.

    Attributes:
      runs: p.
      mean: M(p), of the time until the first one is done.
      median: of that time.
      slow: the time by which 90% of such sets of runs are done.
      gain: M(1) / M(p).
    """

    runs: int
    mean: float
    median: float
    slow: float
    gain: float


@dataclasses.dataclass(frozen=True)
class Fit:
    """A distribution of the time of one run. Build it with `fit`.

    Attributes:
      family: its name.
      distribution: from `scipy.stats`, with its parameters.
      misfit: the largest distance between it and the shares of runs that were done by a time
        (Kolmogorov and Smirnov).
    """

    family: str
    distribution: Any
    misfit: float

    def share_done(self, time: Any, runs: int = 1) -> Any:
        """Returns G(p, t) = 1 - (1 - F(t))^p: the chance that one of `runs` is done by `time`."""
        runs = check_count("runs", runs)
        return -np.expm1(runs * self.distribution.logsf(real_array(time, "time")))

    def time_by(self, share: float, runs: int = 1) -> float:
        """Returns the time by which one of `runs` is done with the chance `share`."""
        _check_share("share", share)
        runs = check_count("runs", runs)
        return float(self.distribution.isf(math.exp(math.log1p(-share) / runs)))

    def mean(self, runs: int = 1) -> float:
        """Returns M(p), the mean time until one of `runs` is done."""
        runs = check_count("runs", runs)
        # Equation 5 of the paper, over the chance 1 - G(p, t) in place of t.
        value, _ = _scipy("integrate").quad(
            lambda chance: self.distribution.isf(chance ** (1 / runs)), 0, 1, limit=200
        )
        return float(value)

    def runs_for(self, time: float, share: float = 0.9) -> int:
        """Returns how many runs are needed for one to be done by `time` with the chance `share`.

        Raises:
          ValueError: if no number is enough.
        """
        _check_share("share", share)
        check_number("time", time)
        left = float(self.distribution.logsf(float(time)))
        runs = math.log1p(-share) / left if left < 0 else math.inf
        if math.isinf(runs):
            raise ValueError(f"time is {time!r}, by which no run is ever done")
        return max(1, math.ceil(runs - 1e-9))

    def predict(self, runs: Sequence[int]) -> list[Prediction]:
        """Returns a prediction for each number of runs, as if they shared no hardware."""
        alone, found = self.mean(), list[Prediction]()
        for number in runs:
            mean = self.mean(number)
            median, slow = self.time_by(0.5, number), self.time_by(0.9, number)
            found.append(Prediction(number, mean, median, slow, gain=alone / mean))
        return found


def fit(times: Any, family: Family = "gamma") -> Fit:
    """Returns the distribution of a family that fits the times of runs best.

    By least squares, on the shares of runs that were done by each time, as in the paper.

    Args:
      times: [N] in any unit, such as seconds or steps, 1e-100 to 1e100. Infinity stands for a run
        that was not done when the slowest of the others was.
      family: of two parameters, but the exponential has one; times start at 0, except the normal's.

    Raises:
      ValueError: if fewer than two different times are finite, one is out of range, or no
        distribution of the family comes near them.
      ImportError: if SciPy is missing.

    Example:
      >>> from jaxopt_search import run_times
      >>> found = run_times.fit([1.0, 2.0, 2.5, 4.0, 7.0], "exponential")
      >>> round(found.mean(), 1), round(found.mean(runs=10), 2)
      (3.9, 0.39)
    """
    check_option("family", family, tuple(_FAMILIES))
    times = np.sort(real_array(times, "times").astype(np.float64).ravel())
    done = times[~np.isposinf(times)]
    outside = done[~((done >= _SHORTEST) & (done <= _LONGEST))]
    if len(outside):
        raise ValueError(
            f"times hold {outside[0]}, expected numbers from {_SHORTEST:g} to {_LONGEST:g}"
        )
    if len(np.unique(done)) < 2:
        raise ValueError(f"times hold {done}, expected at least two different ones that are finite")
    name, *parameters = _FAMILIES[family]
    make = getattr(_scipy("stats"), name)
    shares = shares_done(len(done), len(times))

    def at(logs: np.ndarray) -> Any:
        return make(**dict(zip(parameters, np.exp(logs), strict=True)))

    with np.errstate(all="ignore"):  # NaN is looked for at the end
        start, least_squares = np.log(_by_moments(family, done)), _scipy("optimize").least_squares
        found = least_squares(lambda logs: at(logs).cdf(done) - shares, start)
        distribution = at(found.x)
        after, expected = (np.arange(len(done)) + 1) / len(times), distribution.cdf(done)
        apart = np.maximum(after - expected, expected - (after - 1 / len(times)))
        misfit = float(apart.max())
    if math.isnan(misfit):
        raise ValueError(
            f"times are {done[0]:g} to {done[-1]:g}, which no {family} distribution comes near"
        )
    return Fit(family, distribution, misfit)


def mean_of_first(times: Any, runs: int) -> float:
    """Returns M(p) with no family assumed: the mean of the shortest of `runs` of the times.

    They are drawn with equal chances, and may be drawn again. Infinite if all may be infinite.

    Args:
      times: [N], one at least, from 0 up; infinity for runs that were not done.
      runs: p; more than a fifth of N say little.

    Raises:
      ValueError: if there is no time, or one is below 0 or NaN.

    Example:
      >>> times = [1.0, 2.0, 2.5, 4.0, 7.0]
      >>> round(mean_of_first(times, 1), 2), round(mean_of_first(times, 2), 2)
      (3.3, 2.18)
    """
    times = np.sort(real_array(times, "times").astype(np.float64).ravel())
    if not len(times) or not (times >= 0).all():
        wrong = f"hold {times[~(times >= 0)][0]}" if len(times) else "are empty"
        raise ValueError(f"times {wrong}, expected one number or more from 0 up")
    runs = check_count("runs", runs)
    if math.isinf(times[-1]):
        return math.inf
    longer = (1 - np.arange(len(times) + 1) / len(times)) ** runs
    return float(times @ -np.diff(longer))


def shares_done(number: int, total: int) -> np.ndarray:
    """Returns the shares of runs that are done by the time of each of the first `number`, [number].

    In the middle of the step that the distribution of `total` times makes there.

    Example:
      >>> shares_done(2, 4).tolist()
      [0.125, 0.375]
    """
    number = check_count("number", number, 0)
    total = check_count("total", total, max(number, 1))
    return (np.arange(number) + 0.5) / total


def _by_moments(family: Family, done: np.ndarray) -> Any:
    """Returns parameters from which to improve."""
    mean, deviation, logs = done.mean(), done.std(), np.log(done)
    return {
        "gamma": ((mean / deviation) ** 2, deviation**2 / mean),
        "normal": (mean, deviation),
        "exponential": (mean,),
        "lognormal": (logs.std(), math.exp(logs.mean())),
    }[family]


def _scipy(name: str) -> Any:
    """Returns a part of SciPy, imported here since that takes longer than JAX."""
    return imported(f"scipy.{name}", "run times need SciPy")


def _check_share(name: str, share: float) -> None:
    if not 0 < check_number(name, share) < 1:
        raise ValueError(f"{name} is {share}, expected a chance above 0 and below 1")
