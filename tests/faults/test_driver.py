"""Starts of runs, hits of other targets, and wrong records."""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from probes import annealing, countdown, edges, line, refuses, small_tsp

import jaxopt_search as js
from jaxopt_search import Status
from jaxopt_search.backends import random
from jaxopt_search.driver import starts as starts_of

PROBLEM = small_tsp()
SEARCH = annealing()


def solve(**options):
    return js.solve(PROBLEM, SEARCH, 0, **{"num_searches": 3, "max_steps": 0} | options)


@pytest.mark.parametrize(
    ("initial", "text"),
    [
        ([0, 1, 2, 3, 4, 5, 6, 6], "initial holds 6 twice"),
        (range(7), "initial has shape (7,), expected (8,)"),
        (np.arange(8.0), "initial has dtype float64, expected integers"),
        (np.array([range(8), range(8), [0] * 8]), "initial[2] holds 0 twice"),
    ],
)
def test_bad_start_is_refused(initial, text):
    """A start that is no permutation is refused, with the entry that makes it none."""
    with refuses(ValueError, text):
        solve(initial=initial)


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.uint64, jnp.int32])
def test_kinds_of_starts(dtype):
    """Permutations of any integer type are taken."""
    checked = PROBLEM.host.check(np.arange(8).astype(dtype), "initial")
    assert checked.dtype == np.int32
    np.testing.assert_array_equal(checked, np.arange(8))


def test_one_start_for_many_searches():
    """The first search starts exactly there and the others close by."""
    tour = np.array([0, 2, 4, 6, 1, 3, 5, 7])
    checked = starts_of.check_starts(PROBLEM, tour, 32, tour)
    starts = starts_of.for_all(PROBLEM, random.as_key(0), checked, 32)
    np.testing.assert_array_equal(starts[0], tour)
    assert (np.sort(starts, axis=1) == np.arange(8)).all()
    for other in np.asarray(starts):
        assert len(edges(other) - edges(tour)) <= 4
    assert len(np.unique(starts, axis=0)) > 4
    result = solve(initial=tour)
    assert PROBLEM.host.cost(result.solutions[0]) == PROBLEM.host.cost(tour)


@pytest.mark.parametrize("nested", [False, True])
def test_one_start_per_search(nested):
    """As many starts as searches are taken as they are, as an array or nested lists."""
    tours = np.stack([np.roll(np.arange(8), shift) for shift in (0, 3)] + [np.arange(8)[::-1]])
    result = solve(initial=tours.tolist() if nested else tours)
    for tour, found in zip(tours, result.solutions, strict=True):
        start = int(np.flatnonzero(tour == found[0])[0])
        np.testing.assert_array_equal(found, np.roll(tour, -start))


def test_hits_of_another_target_are_dropped():
    """A run that continues with a lower target does not succeed by hits of the higher one."""

    def stop(snapshot):
        return snapshot.step >= 15

    options = {"check_every": 100, "chunk_steps": 15}
    part = js.solve(
        line(), countdown(), 0, num_searches=2, target=10, callback=stop, max_steps=50, **options
    )
    assert (part.status, part.first_hit) == (Status.CALLBACK, (10, 0))
    rest = js.solve(line(), countdown(), 0, state=part.state, target=-90, max_steps=200, **options)
    assert (rest.first_hit, rest.success) == ((110, 0), True)
    assert rest.fun <= -90


@pytest.mark.parametrize(
    ("best_known", "gap", "is_better"),
    [(20, -0.4, True), (0, math.inf, False)],
)
def test_best_known_tables_may_be_wrong(best_known, gap, is_better):
    """A cost below the recorded one is reported, and 0 is no divisor."""
    problem = js.tsp(4 * (1 - np.eye(3, dtype=int)), best_known=best_known)
    result = js.solve(problem, SEARCH, 0, max_steps=1)
    assert result.fun == 12
    assert result.gap == gap
    assert ("better than the best known" in result.message) == is_better
