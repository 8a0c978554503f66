"""Callbacks: what they may say and see; `driver/test_chunks.py` has Ctrl-C in them."""

import time

import jax.numpy as jnp
import numpy as np
import pytest
from probes import annealing, assert_same_results, countdown, line, small_tsp

import jaxopt_search as js
from jaxopt_search import Status

PROBLEM = small_tsp()
SEARCH = annealing()
OPTIONS = {"num_searches": 3, "chunk_steps": 16, "exchange": js.ring(every=6), "check_every": 8}


def solve(key=0, **options):
    return js.solve(PROBLEM, SEARCH, key, **OPTIONS | {"max_steps": 80} | options)


@pytest.mark.parametrize("answer", [1, np.array([True])], ids=repr)
def test_callback_that_returns_anything(answer):
    """What is neither true nor false by its type is a mistake, and no wish."""
    with pytest.raises(TypeError, match="callback returned"):
        solve(callback=lambda snapshot: answer)


@pytest.mark.parametrize("answer", [True, jnp.asarray(True)], ids=repr)
def test_callback_that_ends_the_run(answer):
    """True ends a run, whoever's it is, and the run can continue from there."""
    seen = []

    def callback(snapshot):
        seen.append(snapshot)
        return answer if snapshot.step >= 32 else False

    result = solve(callback=callback)
    assert (result.nit, result.status, result.success) == (32, Status.CALLBACK, True)
    assert [snapshot.step for snapshot in seen] == [0, 16, 32]
    assert [snapshot.status for snapshot in seen] == [Status.RUNNING] * 3
    assert_same_results(solve(state=result.state), solve())


def test_callback_that_writes_into_its_snapshot():
    """A snapshot's arrays are copies, the callback's own, and the run is not changed."""

    def callback(snapshot):
        snapshot.x[:] = 0

    assert_same_results(solve(callback=callback), solve())


def test_callback_that_sleeps():
    """The time of a callback counts, and it is not taken for slow steps."""
    result = solve(max_steps=None, max_seconds=0.3, callback=lambda snapshot: time.sleep(0.15))
    assert result.status == Status.MAX_SECONDS
    assert 0.3 <= result.elapsed < 60
    assert len(result.history) <= 5


def test_a_callback_may_steer():
    """Settings that a callback returns hold from the next chunk on; the run is one all the same."""
    seen = []

    def steer(snapshot):
        seen.append((snapshot.step, snapshot.fun))
        floor = 20 if snapshot.step < 30 else -100
        return js.Steer(countdown(floor), None)

    result = js.solve(
        line(40), countdown(20), 0, num_searches=2, max_steps=60, chunk_steps=10, callback=steer
    )
    assert seen == [(0, 40), (10, 30), (20, 20), (30, 20), (40, 10), (50, 0), (60, -10)]
    assert (result.fun, result.nit) == (-10, 60)
