"""The script of multi-start searches on the QAP: its tables by hand, and small runs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxopt_search as js
from experiments import common, one_core
from experiments.multistart import __main__ as qap_multistart
from experiments.multistart import models, runs, tables


@pytest.mark.parametrize("algorithm", ["hc", "sa", "ts"])
def test_a_core_is_measured_as_it_says(algorithm, in_python):
    """Steps, moves and gaps of a small run of each search, as plain Python."""
    instance = js.datasets.planted_qap(3, 3, seed=0)
    way = runs.Way(tables.CORE, "numba", tuple(jax.devices("cpu")[:1]))
    found = runs.measure(runs.Task(instance, algorithm, way, 4, 50), 0)
    assert found["settings"]["implementation"] == "numba" and found["env"]["cpu"]
    assert 0 <= found["best_gap"] <= found["mean_gap"] < 2
    steps = 4 * found["steps"]
    assert 0 < found["moves_made"] <= steps < found["moves_priced"] <= steps * 36


def test_the_papers_models_make_the_librarys_searches():
    """Moves in turn for all searches, and searches in turn: the same assignments, bit for bit."""
    flow, distance = np.random.default_rng(0).integers(0, 9, (2, 6, 6))
    problem, search = js.qap(flow, distance), js.tabu_search(js.SwapTable())
    state = js.init(5, problem, search, num_searches=3)
    starts = jax.vmap(search.best, in_axes=(None, 0))(problem, state.searches)
    found = [
        models.algorithmic(jnp.int32(flow), jnp.int32(distance), starts, state.key, 100),
        models.iteration(problem, search, state, 100),
    ]
    ended = js.advance(problem, search, state, 100)
    for one in found:
        np.testing.assert_array_equal(one.current, ended.searches.representation.location)
        best = jax.vmap(search.best, in_axes=(None, 0))(problem, ended.searches)
        np.testing.assert_array_equal(one.best, best)
        np.testing.assert_array_equal(one.moves, ended.info.accepted)


@pytest.mark.slow
def test_a_small_table_and_figure(tmp_path, monkeypatch):
    """Every algorithm and way is measured once; the same command finds all of it in the file."""
    monkeypatch.setattr(one_core, "has_numba", lambda: False)
    monkeypatch.setattr(common, "data_folder", lambda data: None)
    out = tmp_path / "runs.jsonl"
    flags = ["--algorithms", "sa", "--searches", "2", "--steps", "20", "--out", str(out)]
    assert qap_multistart.main(["--table", "1", *flags]) == 0
    runs = common.read(out)
    first, second = runs  # a core, and all devices
    names = ("steps", "moves_priced", "moves_made", "mean_gap", "status")
    assert [first[name] for name in names] == [second[name] for name in names]
    assert first["status"] == "MAX_STEPS"
    assert {run["settings"]["way"] for run in runs} == {"1 core, XLA", "4 x cpu"}
    assert qap_multistart.main(["--table", "1", *flags]) == 0
    assert common.read(out) == runs
    assert qap_multistart.main(["--report", str(out)]) == 0
