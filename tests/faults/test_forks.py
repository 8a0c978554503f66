"""A child forked after JAX has started is told so, where it would hang."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest
from probes import annealing, small_tsp

import jaxopt_search as js
from jaxopt_search import interrupts
from jaxopt_search.interrupts import refuse_orphans

PROBLEM = small_tsp()
SEARCH = annealing()
STATE = js.init(0, PROBLEM, SEARCH, num_searches=2)
POINTS = [[0, 0], [3, 1], [1, 5], [4, 4], [2, 2]]

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")


@needs_fork
@pytest.mark.filterwarnings("ignore:os.fork")
def test_a_child_knows():
    """By what JAX itself has started; the parent continues as before."""
    assert len(jax.devices()) > 0
    if (child := os.fork()) == 0:
        try:
            refuse_orphans()
        except RuntimeError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    refuse_orphans()


@pytest.mark.parametrize(
    "call",
    [
        lambda: js.solve(PROBLEM, SEARCH, 0, max_steps=1),
        lambda: js.run(0, PROBLEM, SEARCH, num_searches=2, max_steps=1),
        lambda: js.advance(PROBLEM, SEARCH, STATE, 1),
        lambda: js.solve_tsp(PROBLEM, max_steps=1),
        lambda: js.solve_tsp([POINTS], max_steps=1),
        lambda: js.solve_nqueens(6),
    ],
    ids=["solve", "run", "advance", "solve_tsp", "stacked", "queens"],
)
def test_everything_that_would_hang(monkeypatch, call):
    """Whatever starts work on a device says so before."""

    def fail(*args, **kwargs):
        raise AssertionError("an array was made first")

    monkeypatch.setattr(interrupts, "_is_orphan", True)
    monkeypatch.setattr(jnp, "asarray", fail)
    with pytest.raises(RuntimeError, match="forked"):
        call()


SCRIPT = """
import os, sys, types
import jaxopt_search

for backends in ({}, {"cpu": "started"}):
    sys.modules["jax._src.xla_bridge"] = types.SimpleNamespace(_backends=backends)
    if os.fork() == 0:
        from jaxopt_search.interrupts import refuse_orphans
        try:
            refuse_orphans()
        except RuntimeError:
            os._exit(7)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.wait()[1]))
"""


@needs_fork
def test_forks_are_seen_from_the_import_on():
    """Though most of the library is imported later, in the child; and only if JAX has started."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env=os.environ | {"PYTHONPATH": os.getcwd()},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["0", "7"]
