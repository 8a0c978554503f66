"""The script of islands on the QAP: its tables by hand, and small runs."""

import dataclasses
import itertools
import pathlib

import numpy as np
import pytest

from experiments import common
from experiments.islands import __main__ as qap_islands
from experiments.islands.paper import FLOW, INSTANCES
from jaxopt_search.datasets import registry
from jaxopt_search.datasets.instances import QAPInstance


def instance(n, highest, name="", seed=0):
    """Returns a random instance with its optimum, and the costs of all assignments."""
    matrices = np.random.default_rng(seed).integers(0, highest, (2, n, n))
    flow, distance = (np.triu(matrix, 1) + np.triu(matrix, 1).T for matrix in matrices)
    made = QAPInstance(name=name, flow=flow, distance=distance)
    costs = [made.cost(np.array(p)) for p in itertools.permutations(range(n))]
    return dataclasses.replace(made, best_known=min(costs)), costs


def setting(**changes):
    return qap_islands.Setting(islands=2, population=8)._replace(on="1", **changes)


def test_records_have_costs_in_full():
    """The device leaves out an offset where costs are large, which records of tai30b lacked."""
    one, costs = instance(6, 20_000)
    task = qap_islands.Task(one, setting(), 300)
    assert task.problem.host.offset > 0
    (found,) = task.make([0])
    assert found["best_cost"] in costs
    assert found["reached"]
    assert found["best_cost"] == one.best_known
    (cut,) = qap_islands.Task(one, setting(), 0).make([0])
    assert cut["best_cost"] in costs


def test_kept_records_hold_no_cost_below_the_best_known():
    folder = pathlib.Path(qap_islands.__file__).parent / "results"
    best = {name: registry.find(name).best_known for name in INSTANCES}
    found = {}
    for path in folder.glob("qap_islands*.jsonl"):
        for run in common.read(path):
            if "best_cost" in run:
                found.setdefault(run["instance"], []).append((run["best_cost"], run["reached"]))
    assert "tai30b" in found
    for name, runs in found.items():
        highest = best[name] * (1.0006 if name == "tai50b" else 1)
        assert all(cost >= best[name] and (cost <= highest or not hit) for cost, hit in runs)


@pytest.mark.parametrize(("name", "gap"), [("tai25b", 0.0), ("tai50b", 0.0006)])
def test_a_run_ends_at_the_papers_target(name, gap):
    """The best known cost, and 0.06 % above it on one instance, on the device as on the host."""
    one, _ = instance(5, 1000, name)
    task = qap_islands.Task(one, setting(), 300)
    assert task.target == int(one.best_known * (1 + gap))
    assert task.problem.host.in_full(int(task.own_target)) == task.target


def test_matrices_are_read_as_equation_1_has_them():
    """The second one of a file is the flow on eight of the nine instances, and not on kra32."""
    assert [name for name in INSTANCES if FLOW[name] == 1] == ["kra32"]
    for name, encoding, is_first in (
        ("tai25b", "paper", False),
        ("tai25b", "file", True),
        ("kra32", "paper", True),
        ("mine", "paper", True),
    ):
        one, _ = instance(4, 9, name)
        problem = qap_islands.Task(one, setting(encoding=encoding), 1).problem
        flow = one.flow if is_first else one.distance
        np.testing.assert_array_equal(np.asarray(problem.flow).reshape(4, 4), flow)


@pytest.mark.slow
def test_small_runs(tmp_path, monkeypatch, capsys):
    """Every setting is run once per seed; the same command finds all of it in the file."""
    monkeypatch.setattr(common, "data_folder", lambda data: None)
    out, plot = tmp_path / "runs.jsonl", tmp_path / "figure.png"
    flags = ["--table", "2", "--islands", "3", "--sizes", "16", "--runs", "2"]
    flags += ["--generations", "3000", "--individuals", "16", "--out", str(out)]
    assert qap_islands.main(flags) == 0
    printed, runs = capsys.readouterr().out, common.read(out)
    assert len(runs) == 2
    assert all(run["reached"] and 0 < run["generations"] < 3000 for run in runs)
    assert qap_islands.main(flags) == 0
    assert capsys.readouterr().out == printed
    assert common.read(out) == runs
    pytest.importorskip("matplotlib")
    shown = ["--report", str(out), "--table", "2", "--figure", "5", "--plot", str(plot)]
    assert qap_islands.main(shown) == 0
    assert plot.read_bytes().startswith(b"\x89PNG")
