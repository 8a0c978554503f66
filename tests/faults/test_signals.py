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
        time.sleep(60.0 if when.startswith("long") else 1.0)
    advance(run, num_steps)
    if is_now and num_steps == 0:
        print("compiled", flush=True)

def told_write(*arguments):
    if when == "long write":
        print("now", flush=True)
        time.sleep(60.0)  # what a slow disk takes
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
def test_a_signal_ends_with_what_there_is(tmp_path):
    """In a chunk: the best so far, and a checkpoint from which a run continues.

    In a last write that takes a minute a second signal ends that, too; the file of before is whole.
    """
    path = tmp_path / "run.npz"
    status, lines, errors = said("chunk", path, signal.SIGINT)
    assert status == 0, errors
    assert lines[-1].startswith("ended INTERRUPTED") and lines[-2] == "written"
    good, steps = path.read_bytes(), resumed(path)
    assert steps == int(lines[-1].split()[-1])
    status, lines, errors = said("long write", path, signal.SIGTERM, signal.SIGTERM)
    assert status == -signal.SIGINT and "written" not in lines, errors
    assert path.read_bytes() == good and resumed(path) == steps
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.slow
def test_a_second_one_in_compiling_ends_at_once(tmp_path):
    """What compiles takes a minute here, for which the first one waits. The start is kept."""
    path = tmp_path / "run.npz"
    status, lines, errors = said("long compiling", path, signal.SIGINT, signal.SIGINT)
    assert "compiled" not in lines and status == -signal.SIGINT, errors
    assert resumed(path) == 0
