"""Ctrl-C while something compiles waits for that, and is not lost."""

import signal
import threading

import numpy as np
import pytest
from probes import line, walk

import jaxopt_search as js
from jaxopt_search.interrupts import held_back


@pytest.fixture(autouse=True)
def default_handler():
    """A shell has what it starts in the background ignore this signal."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def ctrl_c():
    signal.raise_signal(signal.SIGINT)


def test_it_waits_for_the_end():
    """The block is done first, and what Ctrl-C does is as before afterwards."""
    done = []
    with pytest.raises(KeyboardInterrupt), held_back():
        ctrl_c()
        done.append("compiled")
    assert done == ["compiled"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with held_back():
        done.append("again")
    assert done == ["compiled", "again"]


def test_one_block_in_another():
    """The outer one decides."""
    done = []
    with pytest.raises(KeyboardInterrupt), held_back():
        with held_back():
            ctrl_c()
        done.append("inner")
    assert done == ["inner"]


def test_handlers_of_a_user():
    """A handler of the user's own is called at once and stays."""
    calls = []

    def handler(number, frame):
        calls.append(number)

    signal.signal(signal.SIGINT, handler)
    with held_back():
        ctrl_c()
        assert calls == [signal.SIGINT]
        assert signal.getsignal(signal.SIGINT) is handler
    assert signal.getsignal(signal.SIGINT) is handler


def test_in_a_thread():
    """Other threads get no signals, and may set no handlers."""
    handlers = []

    def work():
        with held_back():
            handlers.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert handlers == [signal.default_int_handler]


LAST_WRITES = {
    "a limit, pressed once": (None, 1, js.Status.MAX_STEPS),
    "a limit, pressed twice": (None, 2, KeyboardInterrupt),
    "an error, pressed once": (ZeroDivisionError, 1, ZeroDivisionError),
    "an error, pressed twice": (ZeroDivisionError, 2, KeyboardInterrupt),
    "a signal, and none later": (KeyboardInterrupt, 0, js.Status.INTERRUPTED),
    "a signal, pressed once": (KeyboardInterrupt, 1, KeyboardInterrupt),
}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("case", LAST_WRITES)
def test_the_last_write(case, number, tmp_path, monkeypatch):
    """Waits for one signal if none has ended the run, and for no second one; the file is whole."""
    ended_by, presses, expected = LAST_WRITES[case]
    path, savez = tmp_path / "run.npz", np.savez

    def told(report):
        if report.step == 20 and ended_by is KeyboardInterrupt:
            signal.raise_signal(number)
        if report.step == 20 and ended_by is not None:
            raise ended_by

    def pressed(*args, **kwargs):
        for _ in range(presses):
            signal.raise_signal(number)
        savez(*args, **kwargs)

    def outcome(max_steps, callback=None):
        options = {"checkpoint": path, "resume": True, "callback": callback, "chunk_steps": 5}
        try:
            found = js.solve(line(), walk(), 3, num_searches=5, max_steps=max_steps, **options)
        except (ZeroDivisionError, KeyboardInterrupt) as error:
            return type(error)
        return found.status

    outcome(10)
    good, before = path.read_bytes(), signal.getsignal(number)
    monkeypatch.setattr(np, "savez", pressed)
    assert outcome(30, told) == expected
    is_broken = expected is KeyboardInterrupt
    assert (path.read_bytes() == good) is is_broken and list(tmp_path.iterdir()) == [path]
    assert signal.getsignal(number) is before
