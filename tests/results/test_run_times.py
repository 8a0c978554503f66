"""Run times: known distributions, parameters found again, and what p runs are worth."""

import math

import numpy as np
import pytest
from probes import refuses
from scipy import stats

from jaxopt_search.results import run_times

TRUE = {
    "gamma": stats.gamma(a=1.7, scale=20.0),
    "normal": stats.norm(loc=50.0, scale=9.0),
    "exponential": stats.expon(scale=30.0),
    "lognormal": stats.lognorm(s=0.8, scale=12.0),
}


@pytest.mark.parametrize("family", TRUE)
def test_parameters_are_found_again(family):
    """From the quantiles of a distribution, which have its shares exactly."""
    times = TRUE[family].ppf(run_times.shares_done(400, 400))
    found, tolerance = run_times.fit(times, family), 1e-6
    for share in (0.1, 0.5, 0.9):
        assert found.time_by(share) == pytest.approx(TRUE[family].ppf(share), rel=tolerance)
    assert found.misfit <= 0.5 / 400 + tolerance


@pytest.mark.parametrize("family", ["gamma", "lognormal"])
def test_runs_that_were_not_done_count(family):
    """With the slowest third cut off, what is known of them keeps the fit from being too fast."""
    times = TRUE[family].ppf(run_times.shares_done(600, 600))
    cut = np.where(np.arange(600) < 400, times, math.inf)
    found = run_times.fit(cut, family)
    assert found.time_by(0.5) == pytest.approx(TRUE[family].ppf(0.5), rel=0.02)
    assert run_times.fit(cut[:400], family).mean() < 0.8 * found.mean()


@pytest.mark.parametrize("family", TRUE)
def test_the_mean_of_the_first_by_simulation(family):
    """Within five standard errors of the mean of 20,000 minima of seven."""
    found = run_times.Fit(family, TRUE[family], 0.0)
    seed = int(np.random.default_rng().integers(2**31))
    draws = TRUE[family].rvs((20_000, 7), random_state=seed).min(axis=1)
    assert abs(draws.mean() - found.mean(7)) < 5 * draws.std() / 20_000**0.5
    share = (draws <= found.mean(7)).mean()
    assert abs(found.share_done(found.mean(7), 7) - share) < 5 * 0.5 / 20_000**0.5


def test_the_mean_of_the_first_of_a_sample():
    """All sets of two of three times, by hand: the shortest 5 of 9 times, then 3, then 1."""
    assert run_times.mean_of_first([3.0, 1.0, 2.0], 1) == pytest.approx(2.0)
    assert run_times.mean_of_first([3.0, 1.0, 2.0], 2) == pytest.approx((5 * 1 + 3 * 2 + 3) / 9)
    assert run_times.mean_of_first([1.0, math.inf], 3) == math.inf
    assert run_times.mean_of_first([1.0] * 9 + [math.inf], 400) == math.inf


@pytest.mark.parametrize("share", [0.5, 0.9, 0.999])
def test_how_many_runs_it_takes(share):
    """The number is enough, and one less is not."""
    found = run_times.Fit("gamma", TRUE["gamma"], 0.0)
    runs = found.runs_for(2.0, share)
    assert found.share_done(2.0, runs) >= share > found.share_done(2.0, runs - 1)
    assert found.runs_for(1e4, share) == 1


def test_predictions():
    """Of exponential times the gain is the number of runs."""
    found = run_times.Fit("exponential", TRUE["exponential"], 0.0)
    for runs, row in zip((1, 8), found.predict([1, 8]), strict=True):
        assert (row.runs, row.gain) == (runs, pytest.approx(runs))
        assert row.median < row.mean < row.slow


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: run_times.fit([]), "at least two different"),
        (lambda: run_times.fit([1.0, 0.0]), "times hold 0.0, expected numbers from 1e-100 to"),
        (lambda: run_times.fit([1.0, 2.0], "weibull"), "family is 'weibull'"),
        (lambda: run_times.fit([1.0, 2.0]).runs_for(1.0, 1.0), "share is 1.0"),
        (lambda: run_times.mean_of_first([1.0], 0), "runs is 0"),
        (lambda: run_times.shares_done(3, 2), "total is 2"),
    ],
)
def test_bad_input_is_named(call, message):
    with refuses(ValueError, message):
        call()


@pytest.mark.parametrize("family", TRUE)
def test_what_is_fitted_is_finite(family):
    """At the ends of the range, and where little is known; and nothing warns."""
    long, short, alike = [1e99, 2e99, 5e99], [1e-99, 2e-99, 5e-99], [1.0, 1 + 1e-15]
    for times in (long, short, alike, [1e-90, 1.0, 1e90], [1.0, 2.0] + [math.inf] * 500):
        found = run_times.fit(times, family)
        assert 0 <= found.misfit <= 1
        assert all(math.isfinite(found.time_by(0.5, runs)) for runs in (1, 30))
