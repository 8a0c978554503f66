"""FANG's tables: the heuristic of the paper, the compiled core, and what is recorded."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxopt_search as js
from experiments import common
from experiments.fang import __main__ as script
from experiments.fang import compiled, heuristic, paper
from experiments.fang.heuristic import Nearer
from experiments.fang.paper import Row, Time
from jaxopt_search.backends import obstacle, random
from jaxopt_search.successors import generation

TINY = Row(16, 3, 2, 288)  # 17 x 17 cells: two blocks, the second not full; goals in two parts


def test_the_compiled_core_makes_the_same_successors():
    """As plain Python; numba compiles the same."""
    nearer = Nearer(num_variables=2, side=17, load=16)
    goals, points = heuristic.start(3, nearer, seed=4)
    given = jax.tree.map(jnp.asarray, (goals, points))
    expected = js.successors.generate(5, nearer, *given, implementation="native").states
    loop = compiled.build(lambda fn: fn, 17, 16)
    x, y = (np.copy(leaf) for leaf in points)
    loop(x, y, *goals, 0, 5)
    assert not np.array_equal(x, points.x)
    np.testing.assert_array_equal(x, expected.x)
    np.testing.assert_array_equal(y, expected.y)


@pytest.mark.parametrize("in_floats", [False, True])
def test_the_heuristic_becomes_a_kernel(in_floats):
    """It can be emitted, which needs no GPU."""
    nearer = Nearer(num_variables=2, side=17, in_floats=in_floats)
    given = jax.tree.map(jnp.asarray, heuristic.start(2, nearer))

    def launch(problem, states):
        setup = generation.Setup(1, "fixed", "stored", "cuda")
        shared = (nearer,), problem, random.as_key(0)
        return generation.run(setup, shared, states, None, None)

    assert obstacle(launch, *given) == ""


@pytest.fixture
def tiny(monkeypatch):
    """One row that takes no time."""
    times = dict.fromkeys(paper.MACHINES_1, Time(2.0, 0.1))
    monkeypatch.setattr(script, "_TABLES", {1: {TINY: times}})


def test_the_command_measures_and_reports(tiny, tmp_path, capsys):
    """A record of three executions or more; once made, it is only read."""
    out = str(tmp_path / "fang.jsonl")
    command = ["--ways", "native", "--seconds", "0.01", "--out", out]
    assert script.main(command) == 0
    printed = capsys.readouterr().out
    (made,) = common.read(out)
    assert 3 <= len(made["seconds"]) <= 100 and min(made["seconds"]) > 0
    assert made["settings"]["way"] == "native" and made["compile_seconds"] > 0
    assert script.main(command) == 0 and len(common.read(out)) == 1
    capsys.readouterr()
    assert script.main(["--report", out]) == 0
    assert capsys.readouterr().out == printed and "288" in printed
