"""Limits out of range, and runs whose end is known by hand."""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from probes import (
    annealing,
    assert_same,
    assert_same_results,
    at_step,
    countdown,
    line,
    refuses,
    small_tsp,
)

import jaxopt_search as js
from jaxopt_search import Status
from jaxopt_search.results import Hit

STARTS = np.array([20, 17, 25], np.int32)  # search 1 reaches t after 17 - t steps, and first


def solve(start=20, floor=-(10**9), dtype=jnp.int32, **options):
    options = {"num_searches": 3, "initial": STARTS.astype(dtype), "check_every": 4} | options
    return js.solve(line(start, dtype), countdown(floor), 0, **options)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "no limit is given, expected max_steps, max_seconds, target or patience"),
        ({"target": "9"}, "target is '9'"),
        ({"max_steps": 1, "check_every": 0}, "check_every is 0"),
        ({"max_steps": 1, "chunk_steps": 0}, "chunk_steps is 0"),
        ({"max_steps": 1, "num_searches": -4}, "num_searches is -4"),
    ],
    ids=str,
)
def test_bad_limits_are_refused(options, text):
    """A limit out of range is refused by name and value."""
    with refuses(ValueError, text):
        js.solve(line(), countdown(), 0, **options)


@pytest.mark.parametrize("chunk_steps", [None, 1, 5, 1000])
@pytest.mark.parametrize("check_every", [1, 4, 7, 1000])
def test_first_hit(check_every, chunk_steps):
    """The first finisher and its step are exact however the run is cut and tested."""
    result = solve(target=8, max_steps=30, check_every=check_every, chunk_steps=chunk_steps)
    assert result.first_hit == Hit(step=9, search=1)
    assert (result.status, result.success) == (Status.TARGET, True)
    assert result.nit == min(math.ceil(9 / check_every) * check_every, 30)
    assert result.nfev == result.nit * 3 * 3
    assert result.fun == 17 - result.nit


@pytest.mark.parametrize("start", [12, 10])
def test_hit_in_the_last_step(start):
    """A target met between the last stop test and max_steps counts, one step later it does not."""
    result = solve(initial=None, start=start, target=2, max_steps=9, check_every=100)
    assert result.success == (start == 10)
    assert result.status == (Status.TARGET if start == 10 else Status.MAX_STEPS)
    assert result.first_hit == (Hit(8, 0) if start == 10 else None)


@pytest.mark.parametrize("patience", [1, 4, 5, 8])
@pytest.mark.parametrize("chunk_steps", [None, 3])
def test_patience(patience, chunk_steps):
    """The run ends at the first stop test after `patience` steps without a better cost."""
    # The best falls from 17 to 10 in 7 steps; the stop test at 8 is the last that sees it fall.
    result = solve(floor=10, patience=patience, chunk_steps=chunk_steps)
    assert (result.nit, result.fun) == (8 + 4 * math.ceil(patience / 4), 10)
    assert (result.status, result.success) == (Status.PATIENCE, True)


@pytest.mark.parametrize("target", [math.inf, 10**30, 17, 17.0, np.float32(18.5), np.int64(17)])
def test_target_met_by_the_start(target):
    """A target that the start meets ends the run before its first step."""
    result = solve(target=target)
    assert (result.nit, result.status, result.success) == (0, Status.TARGET, True)
    assert result.first_hit == Hit(0, 1 if target < 20 else 0)


@pytest.mark.parametrize("dtype", [jnp.int32, jnp.float32])
@pytest.mark.parametrize("target", [-math.inf, -(10**30), 9, 9.999])
def test_target_out_of_reach(target, dtype):
    """A target below the minimum is never met, and that is no error."""
    result = solve(floor=10, target=target, max_steps=40, dtype=dtype)
    assert (result.nit, result.status, result.success) == (40, Status.MAX_STEPS, False)
    assert (result.first_hit, result.fun) == (None, 10)


@pytest.mark.parametrize("target", [None, -math.inf])
def test_no_target_is_met_by_the_least_cost(target):
    """Where a cost is the least integer, which stands for no target on the device."""
    least = -(2**31)
    problem, search = line(least), countdown(least)
    start = js.init(0, problem, search, num_searches=2)
    state = js.advance(problem, search, start, 7, target=target)
    assert (int(state.best_cost), int(state.step)) == (least, 7)
    assert int(state.status) == Status.RUNNING


@pytest.mark.parametrize("chunk_steps", [None, 1, 7])
def test_more_steps_than_32_bits(chunk_steps):
    """Counts continue beyond 2**32, and first hits beyond it are exact."""
    begin = 2**32 - 6
    state = solve(max_steps=0).state
    result = solve(
        state=at_step(state, begin), max_steps=2**32 + 50, target=5, chunk_steps=chunk_steps
    )
    assert result.first_hit == Hit(begin + 12, 1)
    assert (result.nit, result.nfev) == (begin + 12, 12 * 9)
    result = solve(state=at_step(state, begin), max_steps=2**32 + 50, chunk_steps=chunk_steps)
    assert (result.nit, result.fun) == (2**32 + 50, 17 - 56)
    assert result.history[-1].step == 2**32 + 50


def test_chunks_across_the_carry():
    """Words and schedules at 2**31 and 2**32 do not depend on how the run is cut."""
    schedule = js.geometric(50.0, 0.9, steps_per_temperature=2**28)
    problem, search = small_tsp(), annealing(schedule)
    state = js.init(3, problem, search, num_searches=3)
    for begin in (2**31 - 9, 2**32 - 9):
        whole = js.advance(problem, search, at_step(state, begin), 20, check_every=6)
        pieces = at_step(state, begin)
        for length in (1, 7, 0, 3, 9):
            pieces = js.advance(problem, search, pieces, length, check_every=6)
        assert_same(pieces._replace(info=None), whole._replace(info=None))
        assert int(whole.step) == begin + 20
    alias = js.advance(problem, search, at_step(state, 11), 9, check_every=6)
    beyond = js.advance(problem, search, at_step(state, 2**32 + 11), 9, check_every=6)
    assert not np.array_equal(
        alias.searches.representation.successor, beyond.searches.representation.successor
    )


def test_chunks_across_a_refresh():
    """Float costs are refreshed at fixed steps, so chunks change nothing there, either."""
    points = np.random.default_rng(0).random((8, 2))
    problem, search = js.tsp_from_coords(points), annealing(0.2)
    options = {"num_searches": 3, "max_steps": 20_500, "exchange": js.ring(every=700)}
    whole = js.solve(problem, search, 1, **options)
    pieces = js.solve(problem, search, 1, chunk_steps=3_333, **options)
    assert_same_results(pieces, whole)


@pytest.mark.parametrize("history_size", [2, 3, 8, 9])
@pytest.mark.parametrize("max_steps", [5, 40])
def test_history_is_thinned(history_size, max_steps):
    """At most `history_size` lines are kept, the first and the last among them."""
    history = solve(max_steps=max_steps, chunk_steps=1, history_size=history_size).history
    course = [record.step for record in history]
    assert history_size / 2 <= len(history) <= history_size
    assert (course[0], course[-1]) == (0, max_steps)
    assert course == sorted(set(course))
    assert [record.best for record in history] == [17 - step for step in course]
    gaps = set(np.diff(course[:-1]).tolist())
    assert len(gaps) <= 1, f"kept lines are unevenly spaced: {course}"
