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
MATRIX = [[0, 1, 2], [1, 0, 3], [2, 3, 0]]

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")


@needs_fork
@pytest.mark.filterwarnings("ignore:os.fork")
def test_a_child_knows():
    """The library learns of a fork; the parent continues as before."""
    assert len(jax.devices()) > 0
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        try:
            refuse_orphans()
            os.write(writer, b"went on")
        except RuntimeError as error:
            os.write(writer, str(error).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as text:
        said = text.read()
    os.waitpid(child, 0)
    assert said.startswith("this process was forked from one in which JAX had started")
    assert "get_context('spawn')" in said
    assert "\n" not in said
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
import multiprocessing, sys
import jaxopt_search as js

def search(seed):
    return js.solve_tsp([[0, 0], [2, 2], [0, 2], [2, 0], [1, 3]], seed, max_steps=20).fun

if __name__ == "__main__":
    if "used" in sys.argv:
        import jax
        jax.devices()
    with multiprocessing.get_context("fork").Pool(1) as pool:
        try:
            print(pool.map(search, [0]))
        except RuntimeError as error:
            print(error)
"""


@needs_fork
@pytest.mark.slow
@pytest.mark.parametrize(("word", "said"), [("used", "this process was forked"), ("not", "[8.8")])
def test_pools(tmp_path, word, said):
    """A pool of forked processes fails at once, or works, where JAX has not started before."""
    script = tmp_path / "pool.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", script, word],
        env=os.environ | {"PYTHONPATH": os.getcwd()},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert done.stdout.startswith(said), done.stderr
