"""Ctrl-C and SIGTERM of real processes: while they compile, in a chunk, and while they write."""

import os
import pathlib
import signal
import subprocess
import sys

import numpy as np
import pytest

import jaxopt_search as js

ROOT = pathlib.Path(__file__).resolve().parents[2]
_LIMIT = 270  # seconds, of which most go into compiling

RUN = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
import jax, numpy as np
import jaxopt_search as js
from jaxopt_search.driver import checkpoints
from jaxopt_search.driver.run import Run

when, path = sys.argv[1:]
problem = js.tsp_from_coords(np.random.default_rng(0).random((20, 2)))
search = js.simulated_annealing(js.two_opt(problem), 1.0)
advance, write = Run.advance, checkpoints.write

def told_advance(run, num_steps):
    is_now = when.endswith("compiling" if num_steps == 0 else "chunk")
    if is_now and (num_steps == 0 or run.step >= 20):
        print("now", flush=True)
        time.sleep(60.0 if when.startswith("long") else 1.0)  # what a long chunk takes
    advance(run, num_steps)
    if is_now and num_steps == 0:
        print("compiled", flush=True)

def told_write(*arguments):
    if when.endswith("write"):
        print("now", flush=True)
        time.sleep(60.0 if when.startswith("long") else 1.0)  # what a slow disk takes
    write(*arguments)
    print("written", flush=True)

Run.advance, checkpoints.write = told_advance, told_write
options = {"checkpoint": path, "checkpoint_every": 0.0 if "write" in when else 1e6}
result = js.solve(
    problem, search, 0, num_searches=2, max_seconds=60, chunk_steps=10, **options, resume=True
)
print("ended", result.status.name, result.nit, flush=True)
"""


def said(when, path, *numbers):
    """Returns how a process ended, and its lines, that gets signals at a moment."""
    programs = {  # the processes of all tests compile the same
        "JAX_COMPILATION_CACHE_DIR": str(path.parents[1] / "programs"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", RUN, when, str(path)],
        env=os.environ | {"PYTHONPATH": str(ROOT)} | programs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        for line in process.stdout:
            if line == "now\n":
                break
        for place, number in enumerate(numbers):
            if place:
                with pytest.raises(subprocess.TimeoutExpired):
                    process.wait(0.3)  # one alone does not end it
            process.send_signal(number)
        written, errors = process.communicate(timeout=_LIMIT)
    finally:
        process.kill()
    return process.returncode, written.splitlines(), errors


def resumed(path):
    """Returns the steps of the run that a checkpoint holds."""
    problem = js.tsp_from_coords(np.random.default_rng(0).random((20, 2)))
    search = js.simulated_annealing(js.two_opt(problem), 1.0)
    return js.solve(problem, search, 0, resume=path, max_steps=0).nit


@pytest.mark.slow
@pytest.mark.parametrize(
    ("when", "number"), [("chunk", signal.SIGINT), ("write", signal.SIGTERM)], ids=str
)
def test_a_signal_ends_with_what_there_is(when, number, tmp_path):
    """In a chunk and in a write: the best so far, and a checkpoint from which a run continues."""
    path = tmp_path / "run.npz"
    status, lines, errors = said(when, path, number)
    assert status == 0, errors
    assert lines[-1].startswith("ended INTERRUPTED") and lines[-2] == "written"
    assert resumed(path) == int(lines[-1].split()[-1])
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT])
def test_a_signal_while_compiling_waits_for_that(number, tmp_path):
    """There is no result yet: the process ends by the interrupt, not by a crash."""
    status, lines, errors = said("compiling", tmp_path / "run.npz", number)
    assert lines[0] == "compiled" and not any(line.startswith("ended") for line in lines)
    assert errors.endswith("KeyboardInterrupt\n")
    assert status == -signal.SIGINT


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM])
def test_who_presses_again_and_again_does_not_wait(number, tmp_path):
    """The last write takes a minute here. The first signal ends the run, the second one the write.

    The file of before is whole.
    """
    path = tmp_path / "run.npz"
    assert said("chunk", path, number)[0] == 0
    good, steps = path.read_bytes(), resumed(path)
    status, lines, errors = said("long write", path, number, number)
    assert status == -signal.SIGINT and "written" not in lines, errors
    assert path.read_bytes() == good and resumed(path) == steps
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT])
def test_a_second_one_in_compiling_ends_at_once(number, tmp_path):
    """What compiles takes a minute here. The start is written down."""
    path = tmp_path / "run.npz"
    status, lines, errors = said("long compiling", path, number, number)
    assert "compiled" not in lines and status == -signal.SIGINT, errors
    assert resumed(path) == 0
