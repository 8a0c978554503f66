"""The loop on the host, driven by a run that is written by hand."""

import contextlib
import signal
import time
import types

import pytest

from jaxopt_search import Status
from jaxopt_search.driver.chunks import drive
from jaxopt_search.driver.options import RunOptions, Timer


class Tape:
    """A run that takes down how it is called; `at` tells what happens in which call."""

    def __init__(self, sizes=(3, 2, 4, 1), at=None):
        self.calls, self.step, self.sizes, self.at = [], 0, list(sizes), at or {}
        self.what = "num_searches=4"

    def begin(self):
        """Nothing has to be made ready."""

    def called(self, name, value=None):
        self.calls.append(name if value is None else f"{name} {value}")
        event = self.at.get(self.calls[-1])
        if isinstance(event, type):
            raise event
        return event

    def advance(self, num_steps):
        self.called("advance", num_steps)
        self.step += num_steps

    def look(self):
        self.called("look")

    def status(self, limit):
        return self.called("status", self.step) or limit

    def report(self, status):
        self.called("report", status.name)
        return status

    def next_steps(self, made, seconds):
        return self.sizes.pop(0)

    def result(self, status):
        return status


def driven(tape, *observers, timer=None, **options):
    tape.observers, timer = observers, timer or Timer(9)
    tape.options = RunOptions(timer=timer, **options)
    return drive(tape), timer


def test_a_first_look_counts_as_compiling_in_several_processes_too():
    """There the clock is asked for now and then only."""

    class Slow(Tape):
        def look(self):
            time.sleep(0.2 if not self.step else 0)

    timer, alike = Timer(9), {"told": lambda now: now, "highest": lambda status: status}
    alike["losses_explained"] = contextlib.nullcontext
    timer.team = team = types.SimpleNamespace(is_shared=True, **alike)
    driven(Slow(), timer=timer, team=team)
    assert timer.compile_seconds >= 0.2 > timer.seconds


def test_the_first_chunk_makes_no_step():
    """It compiles; then come chunks of the sizes that the run wants, until a limit."""
    tape = Tape()
    status, timer = driven(tape, lambda status: None)
    assert status == Status.MAX_STEPS
    assert timer.compile_seconds is not None
    assert tape.calls == [
        *("advance 0", "look", "status 0", "report RUNNING"),
        *("advance 3", "look", "status 3", "report RUNNING"),
        *("advance 2", "look", "status 5", "report RUNNING"),
        *("advance 4", "look", "status 9", "report MAX_STEPS"),
    ]


def test_a_run_ends_by_itself():
    """Its own status comes first."""
    assert driven(Tape(at={"status 9": Status.TARGET}))[0] == Status.TARGET
    assert driven(Tape(at={"status 3": Status.PATIENCE}))[0] == Status.PATIENCE


def kept_steps(tape):
    """Returns a list that gets the step of each snapshot that is kept, and the keeper."""
    kept = []
    tape.identity, tape.snapshot = lambda: None, lambda: kept.append(tape.step)
    return kept, types.SimpleNamespace(is_due=True, write=lambda identity, make: make())


def test_a_run_is_kept_between_chunks():
    """And at its end, once."""
    tape = Tape()
    kept, keeper = kept_steps(tape)
    driven(tape, keeper=keeper)
    assert kept == [0, 3, 5, 9]


@pytest.mark.parametrize(("presses", "done"), [(1, ["look"]), (2, [])])
def test_ctrl_c_while_it_compiles(presses, done):
    """There is no result yet, so it is raised, once the chunk is compiled; a second one at once.

    The start is kept.
    """
    tape = Tape()
    tape.advance = lambda _: [signal.raise_signal(signal.SIGINT) for _ in range(presses)]
    kept, keeper = kept_steps(tape)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            driven(tape, keeper=keeper)
        assert (tape.calls, kept) == (done, [0])
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("where", ["advance 2", "status 5", "report RUNNING"])
def test_ctrl_c_later(where):
    """It ends the run."""
    tape = Tape(at={where: KeyboardInterrupt})
    assert driven(tape, lambda status: None)[0] == Status.INTERRUPTED


def test_ctrl_c_at_the_end():
    """It does not take the reason away for which the run has ended."""

    def interrupt(status):
        if status != Status.RUNNING:
            raise KeyboardInterrupt

    assert driven(Tape(), interrupt)[0] == Status.MAX_STEPS


def test_all_observers_are_asked():
    """One that ends the run does not keep the next one from being told."""
    told = []
    status, _ = driven(Tape(), lambda status: True, told.append)
    assert (status, told) == (Status.CALLBACK, [Status.RUNNING])
