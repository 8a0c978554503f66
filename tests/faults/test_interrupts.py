"""Ctrl-C while something compiles waits for that, and is not lost."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from jaxopt_search.guards.interrupts import held_back


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


def test_a_second_one_does_not_wait():
    """Who presses twice is in a hurry."""
    with pytest.raises(KeyboardInterrupt), held_back():
        ctrl_c()
        ctrl_c()
        raise AssertionError("it waited")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_errors_come_out():
    """An exception of the block is not hidden, and the handler is put back."""
    with pytest.raises(ZeroDivisionError), held_back():
        raise ZeroDivisionError
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


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


SCRIPT = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
import jax, numpy as np
import jaxopt_search as js

problem = js.tsp_from_coords(np.random.default_rng(0).random((20, 2)))
search = js.simulated_annealing(js.two_opt(problem), 1.0)
wait = js.driver.running.Ahead.wait

def told(ahead):
    print("compiling", flush=True)
    wait(ahead)
    print("compiled", flush=True)

js.driver.running.Ahead.wait = told
js.solve(problem, search, 0, max_steps=1)
print("solved", flush=True)
"""


@pytest.mark.slow
def test_a_real_one(tmp_path):
    """A process that is interrupted while it compiles ends by that, and not by a crash."""
    script = tmp_path / "compile.py"
    script.write_text(SCRIPT)
    run = subprocess.Popen(
        [sys.executable, script],
        env=os.environ | {"PYTHONPATH": os.getcwd()},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert run.stdout.readline() == "compiling\n"
    run.send_signal(signal.SIGINT)
    said, errors = run.communicate(timeout=300)
    assert said == "compiled\n"
    assert errors.endswith("KeyboardInterrupt\n")
    assert run.returncode == -signal.SIGINT
