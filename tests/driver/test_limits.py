"""What a limit means: seconds of search, whatever compiles before; steps; a proven optimum."""

import functools
import itertools
import time

import numpy as np
import pytest
from probes import countdown, line

import jaxopt_search as js
from jaxopt_search import Status
from jaxopt_search.driver import options as driver_options
from jaxopt_search.driver.options import Timer
from jaxopt_search.driver.run import Run
from jaxopt_search.solvers import queens, stacked

GRID = js.datasets.grid_tsp(6, 6, spacing=10, seed=2)
QAP = js.datasets.planted_qap(2, 4, seed=1)
SLOW = 1.0  # seconds of compiling


def solve_many(**options):
    points = np.random.default_rng(0).random((2, 12, 2))
    return js.solve_tsp(points, devices=1, **options)


CALLS = {
    "tsp": functools.partial(js.solve_tsp, GRID, target=None, devices=1),
    "qap tabu": functools.partial(js.solve_qap, QAP, target=None, devices=1, method="tabu"),
    "many": solve_many,
}


def slowed(make):
    """Returns a function whose first call takes as long as compiling does on a busy machine."""
    waits = [SLOW]

    def call(*arguments, **options):
        time.sleep(waits.pop() if waits else 0)
        return make(*arguments, **options)

    return call


@pytest.fixture
def _slow_compiling(monkeypatch):
    monkeypatch.setattr(Run, "advance", slowed(Run.advance))
    monkeypatch.setattr(stacked.StackedRun, "advance", slowed(stacked.StackedRun.advance))


@pytest.mark.usefixtures("_slow_compiling")
@pytest.mark.parametrize("name", ["tsp", "many"])
def test_compiling_is_not_counted(name):
    """However long it takes to compile, the search has its time; and it is told."""
    result = CALLS[name](max_seconds=0.4)
    assert (result.status, result.success) == (Status.MAX_SECONDS, True)
    assert result.nit > 0
    assert result.compile_seconds >= SLOW
    assert result.elapsed - result.compile_seconds >= 0.4
    if name == "tsp":
        assert result.gap <= 0.1
        assert result.history[0].seconds < 0.1
        assert 0.4 <= result.history[-1].seconds < 0.4 + SLOW


@pytest.mark.usefixtures("_slow_compiling")
def test_queens_have_their_time():
    """Placements are found although compiling takes longer than the limit."""
    result = js.solve_nqueens(30, 10**6, max_seconds=0.4, devices=1)
    assert result.status == Status.MAX_SECONDS
    assert result.nit > 0
    assert result.num_found > 0
    assert result.elapsed - result.compile_seconds >= 0.4


@pytest.mark.parametrize(("name", "max_steps"), [("qap tabu", 2**40), ("many", 10**8)])
def test_the_clock_counts_next_to_many_steps(name, max_steps):
    """Of two limits the first one ends the run, however many steps the other one allows."""
    result = CALLS[name](max_steps=max_steps, max_seconds=0.3)
    assert result.status == Status.MAX_SECONDS
    assert 0 < result.nit < max_steps
    assert result.elapsed - result.compile_seconds < 20


def test_a_run_of_steps_is_the_same_however_it_is_cut(monkeypatch):
    """With max_steps only, the pace follows from the steps, and the clock changes nothing."""
    xy = np.random.default_rng(1).random((9, 2))
    whole = js.solve_tsp(xy, 3, max_steps=200, num_searches=4, devices=1)
    monkeypatch.setattr(driver_options, "_CHUNK_SECONDS", 1e-9)
    monkeypatch.setattr(driver_options, "_MAX_GROWTH", 1)
    pieces = js.solve_tsp(xy, 3, max_steps=200, num_searches=4, devices=1)
    assert len(pieces.history) > len(whole.history)
    np.testing.assert_array_equal(pieces.solutions, whole.solutions)
    np.testing.assert_array_equal(pieces.costs, whole.costs)


@pytest.mark.parametrize(
    "solve",
    [
        functools.partial(js.solve_tsp, GRID),
        functools.partial(js.solve_qap, QAP),
    ],
    ids=["coordinates", "tabu"],
)
def test_a_proven_optimum_ends_the_run(solve):
    """Long before the limit; the message says why."""
    result = solve(max_seconds=60, devices=1)
    assert (result.gap, result.success, result.status) == (0, True, Status.TARGET)
    message, _, note = result.message.partition("; ")
    assert message == "the optimum was reached, which is proven"
    assert note == ("" if result.nit else "no step was made: this is the best start")
    assert result.elapsed - result.compile_seconds < 50


@pytest.mark.parametrize("solve", [js.solve_tsp, js.solve_qap])
def test_an_optimal_start_takes_no_step(solve):
    """A constructed start with the proven optimum is the result."""
    instance = OPTIMAL_STARTS[solve]
    result = solve(instance, max_seconds=60, devices=1)
    assert (result.fun, result.gap, result.status) == (instance.best_known, 0, Status.TARGET)
    assert (result.success, result.nit, result.state.step) == (True, 0, 0)
    assert result.costs.min() == result.fun == result.history[-1].best
    assert "no step was made" in str(result) and "moves" not in str(result)


OPTIMAL_STARTS = {
    js.solve_tsp: js.datasets.grid_tsp(4, 4, spacing=100, seed=0),
    js.solve_qap: js.datasets.planted_qap(1, 3, seed=0),
}


def test_best_known_is_not_proven():
    """A run to a cost that may be beaten continues; so does one that is told to."""
    best = GRID.best_known
    unproven = js.tsp(GRID.distances(), best_known=best)
    for result in (
        js.solve_tsp(unproven, max_steps=3000, devices=1),
        js.solve_tsp(GRID, max_steps=3000, target=None, devices=1),
    ):
        assert (result.fun, result.nit, result.status) == (best, 3000, Status.MAX_STEPS)
    result = js.solve(line(), countdown(), 0, num_searches=1, max_steps=5, target="optimum")
    assert (result.status, result.success) == (Status.MAX_STEPS, True)
    with pytest.raises(ValueError, match="target is 'best', expected one of optimum"):
        js.solve(line(), countdown(), 0, num_searches=1, target="best")


def test_nothing_to_search():
    """Where all tours are equal, no step has to be made."""
    result = js.solve_tsp(np.ones((3, 3)), max_seconds=60, devices=1)
    assert (result.success, result.nit) == (True, 0)
    assert result.message == "all solutions have the same cost"


@pytest.mark.parametrize("name", CALLS)
def test_no_step_is_no_success(name):
    """A start alone is no result."""
    result = CALLS[name](max_seconds=0)
    assert (result.success, result.nit) == (False, 0)


def test_a_callback_says_when_it_steers_again():
    """A chunk has no more steps than it allows."""
    calls = []

    def steer(snapshot):
        calls.append(snapshot.step)
        return js.Steer(countdown(), None, ask_after=7)

    js.solve(line(), countdown(), 0, num_searches=1, max_steps=20, chunk_steps=10, callback=steer)
    assert calls == [0, 7, 14, 20]


@pytest.mark.devices(2)
def test_a_callback_sees_all_searches():
    """What each has found so far, in the user's costs, while the run stands there."""
    flow, distance = np.random.default_rng(0).integers(0, 20, (2, 6, 6))
    kept, seen = [], []

    def watch(report):
        kept.append(report)
        seen.append((report.costs, report.solutions, report.fun))

    how = {"devices": 2, "callback": watch, "max_steps": 20, "num_searches": 3}
    result = js.solve_qap(flow, distance, maximize=True, **how)
    for costs, solutions, fun in seen:
        assert costs.tolist() == [(flow * distance[np.ix_(p, p)]).sum() for p in solutions]
        assert costs.max() == fun and len(costs) == 3
    np.testing.assert_array_equal(seen[-1][0], result.costs)
    with pytest.raises(RuntimeError, match="of step 0 are gone"):
        _ = kept[0].costs


@pytest.fixture
def now(monkeypatch):
    """A clock that is set by hand."""
    now = [100.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    return now


def test_steps_come_before_seconds(now):
    timer = Timer(5, 0.0)
    timer.start_search()
    assert timer.status(5) == Status.MAX_STEPS
    assert timer.status(4) == Status.MAX_SECONDS


def test_chunks_fit_the_limits(now):
    """A fiftieth of the limit, no more than what is left, and never many times the last.

    Without a limit half a second, so that Ctrl-C is answered.
    """
    timer = Timer(10_000, 10.0)
    timer.start_search()
    assert timer.next_steps(0, 0, 0.0, 100) == 100
    assert timer.next_steps(100, 100, 0.1, 100) == 200
    assert timer.next_steps(100, 100, 1e-9, 100) == 800
    assert timer.next_steps(9_990, 100, 0.1, 100) == 10
    assert timer.next_steps(0, 100, 1e9, 100) == 1
    now[0] += 9.95
    assert timer.next_steps(100, 100, 0.1, 100) in (49, 50)
    unlimited = Timer()
    unlimited.start_search()
    assert unlimited.next_steps(0, 100, 0.1, 1) == 500


CLOCKED = CALLS | {
    "queens": functools.partial(js.solve_nqueens, 10_000, 100, devices=1),
    "solve": functools.partial(
        js.solve, line(), countdown(), num_searches=2, exchange=js.ring(every=40)
    ),
}
STEP, EXCHANGE, LIMIT = 1e-2, 0.2, 5.0


@pytest.fixture
def _slow_machine(monkeypatch, now):
    """Steps and exchanges take their time by the clock, now and then three times as long."""
    busy = itertools.cycle((1, 1, 3, 1, 1, 1, 3))

    def slow(kind, every, made):
        advance = kind.advance

        def slowly(run, num_steps):
            advance(run, num_steps)
            if not num_steps:
                return
            steps, period = made(run, num_steps), every(run)
            exchanges = (run.step + steps) // period - run.step // period
            now[0] += next(busy) * (steps * STEP + exchanges * EXCHANGE)

        monkeypatch.setattr(kind, "advance", slowly)

    slow(Run, lambda run: _period(run.exchange), lambda run, steps: steps)
    slow(stacked.StackedRun, lambda run: run.stack.pacer.pace.every, lambda run, steps: steps)
    slow(queens.Repairs, lambda run: 10**9, lambda run, steps: run._rounds)


def _period(exchange):
    return 10**9 if exchange is None else int(exchange.every)


@pytest.mark.usefixtures("_slow_machine")
@pytest.mark.parametrize("name", CLOCKED)
def test_runs_keep_to_their_seconds(name):
    """No solver takes half a second more, and a step of three times its time."""
    result = CLOCKED[name](max_seconds=LIMIT)
    assert result.status == Status.MAX_SECONDS
    seconds = result.elapsed - result.compile_seconds
    assert LIMIT <= seconds <= LIMIT + 0.5 + 3 * (8 * STEP + EXCHANGE)


@pytest.mark.parametrize(
    ("fixed", "each"), [(0.04, 0.0005), (0.04, 1e-6), (0.0, 0.002), (0.0, 0.05)]
)
def test_chunks_are_worth_their_own_time(now, fixed, each):
    """A third of the time and more goes to steps, if chunks take time of their own, or not."""
    timer, step, made, took = Timer(None, 1.0), 0, 0, 0.0
    timer.start_search()
    while timer.status(step) == Status.RUNNING:
        made = timer.next_steps(step, made, took)
        took = fixed + made * each
        now[0] += took
        step += made
    assert step * each > 0.33 and timer.seconds < 1.05 + each
