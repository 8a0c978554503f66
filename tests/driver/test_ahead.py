"""Programs compiled ahead in threads: settings of the call hold, and errors there are none."""

import dataclasses
import os
import threading
import time

import jax
import numpy as np
import pytest
from cases import LinearOrdering, linear_ordering, matrix_tsp

import jaxopt_search as js
from jaxopt_search.driver import ahead
from jaxopt_search.driver.ahead import Ahead
from jaxopt_search.engine import kept_programs
from jaxopt_search.solvers import tsp

pytestmark = pytest.mark.skipif(ahead._num_cores() < 2, reason="nothing is compiled ahead")


def in_thread():
    return threading.current_thread().name == "compiles"


@pytest.fixture
def compiled():
    """Whether each program was compiled in a thread."""
    found = []

    def note(event, _, **__):
        if event.endswith("backend_compile_duration"):
            found.append(in_thread())

    jax.monitoring.register_event_duration_secs_listener(note)
    yield found
    jax.monitoring.unregister_event_duration_listener(note)


def solve(problem, num_searches, steps=20):
    search = js.simulated_annealing(js.FullEvaluation(js.Swap()), 5.0)
    return js.solve(problem, search, 1, num_searches=num_searches, max_steps=steps, devices=1)


def test_jobs_run_side_by_side():
    """Each waits for the other, and `wait` for both."""
    barrier, done = threading.Barrier(3, timeout=60), []

    def job(_):
        barrier.wait()
        done.append(in_thread())

    jobs = Ahead([job, job])
    barrier.wait()  # so do they and the caller
    jobs.wait()
    assert done == [True, True]


def test_what_comes_later_is_not_waited_for():
    """It is traced after the others are, compiled after they are; `wait_for_later` waits for it."""
    gate, done = threading.Event(), []

    def first(once_traced):
        time.sleep(0.1)  # what comes later could be first
        done.append("first traced")
        once_traced()
        assert gate.wait(60)
        time.sleep(0.1)
        done.append("first compiled")

    def later(once_traced):
        done.append("later traced")
        gate.set()
        once_traced()
        done.append("later compiled")

    jobs = Ahead([first, lambda _: done.append("loaded")], [later])
    jobs.wait()
    ahead.wait_for_later()
    assert done.index("later traced") > max(map(done.index, ("first traced", "loaded")))
    assert done[-3:] == ["later traced", "first compiled", "later compiled"]
    gate.clear()
    Ahead([], [lambda _: gate.wait(20)]).wait()
    assert not gate.is_set()
    gate.set()
    ahead.wait_for_later()
    assert not ahead._further


def test_errors_in_threads_are_silent():
    """One of the jobs fails, the others do not."""
    done = []
    jobs = Ahead([lambda _: 1 / 0, lambda _: done.append(in_thread())])
    jobs.wait()
    assert done == [True]


@js.pytree
@dataclasses.dataclass(frozen=True)
class NotInThreads(LinearOrdering):
    """A problem that cannot be traced in threads."""

    def cost(self, solution):
        if in_thread():
            raise ValueError("in a thread")
        return super().cost(solution)


@pytest.mark.devices(4)
@pytest.mark.parametrize("where", [slice(4), slice(3, 4)])
def test_other_devices(where, compiled):
    """Have their programs compiled in threads, too: by `pmap` those of several."""
    problem, devices = linear_ordering(6), jax.devices()[where]
    search = js.simulated_annealing(js.FullEvaluation(js.Swap()), 5.0)
    js.solve(problem, search, 1, num_searches=9, max_steps=20, devices=devices)
    assert compiled.count(True) == 3


def test_what_fails_there_is_compiled_by_the_call(compiled):
    """With the same result."""
    problem = linear_ordering(6)
    expected = solve(problem, 3)
    assert True in compiled
    found = solve(NotInThreads(problem.weight, problem.n), 3)
    assert (found.fun, found.x.tolist()) == (expected.fun, expected.x.tolist())


SETTINGS = {
    "x64": lambda: jax.enable_x64(True),
    "precision": lambda: jax.default_matmul_precision("float32"),
    "device": lambda: jax.default_device(jax.local_devices()[-1]),
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_settings_of_the_callers_thread(setting):
    """Are not those of other threads, so that nothing is compiled there."""
    done = []
    with SETTINGS[setting]():
        Ahead([lambda _: done.append(setting)]).wait()
    assert not done
    Ahead([lambda _: done.append(setting)]).wait()
    assert done == [setting]


def test_a_call_with_such_settings(compiled):
    """Compiles its programs itself, and the next call without them its own."""
    problem = matrix_tsp(7)
    with jax.enable_x64(True):
        result = solve(problem, 5)
    assert compiled and True not in compiled
    compiled.clear()
    np.testing.assert_array_equal(solve(problem, 5).solutions, result.solutions)
    assert compiled


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cores cannot be taken away")
def test_a_single_core():
    """Has no time for others."""
    cores, done = os.sched_getaffinity(0), []
    os.sched_setaffinity(0, {min(cores)})
    try:
        Ahead([lambda _: done.append(1)]).wait()
    finally:
        os.sched_setaffinity(0, cores)
    with jax.disable_jit():
        Ahead([lambda _: done.append(1)]).wait()
    assert not done


def test_the_longest_program_is_traced_first(monkeypatch):
    """And alone, so that it compiles while the others are traced."""
    order, now = [], []
    lower = kept_programs._lowered

    def noted(jitted, arguments, static, once_lowered):
        with kept_programs.interpreter:
            assert not now
            now.append(jitted)
            order.append(jitted.__qualname__)
            lowered = lower(jitted, arguments, static, bool)
            now.clear()
        once_lowered()
        return lowered

    monkeypatch.setattr(kept_programs, "_lowered", noted)
    js.solve_tsp(np.random.default_rng(3).random((21, 2)), max_steps=0, devices=1)
    assert order[0] == "_advance"
    assert set(order[1:5]) == {"offered", "adopted", "packed", "fresh"}


def test_starts_are_built_while_programs_compile(monkeypatch):
    """Once, after what is wrong with a call was found."""
    seen = []

    def build(*arguments):
        seen.append("built")
        return constructed_tours(*arguments)

    class Noted(Ahead):
        def __init__(self, *jobs):
            seen.append("compiles")
            super().__init__(*jobs)

        def wait(self):
            seen.append("waits")
            super().wait()

    constructed_tours = tsp.constructed_tours
    monkeypatch.setattr(tsp, "constructed_tours", build)
    monkeypatch.setattr(ahead, "Ahead", Noted)
    points = np.random.default_rng(4).random((37, 2))
    with pytest.raises(ValueError, match=r"^initial "):
        js.solve_tsp(points, max_steps=0, devices=1, initial=np.zeros(37, int))
    with pytest.raises(ValueError, match=r"^history_size "):
        js.solve_tsp(points, max_steps=0, devices=1, history_size=0)
    assert not seen
    js.solve_tsp(points, max_steps=0, devices=1)
    assert seen == ["compiles", "built", "waits"]
