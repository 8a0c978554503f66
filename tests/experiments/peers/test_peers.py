"""Each solver finds what is best of small instances; a comparison is kept, and continued."""

import itertools
from importlib import metadata

import numpy as np
import pytest
from scipy import sparse

import jaxopt_search as js
from experiments import common
from experiments.finite import gset
from experiments.peers import __main__ as peers
from experiments.peers import qap as peers_qap
from experiments.peers import qubo as peers_qubo
from experiments.peers import queens as peers_nqueens
from experiments.peers import tsp as peers_tsp
from experiments.peers.problems import PROBLEMS

INSTANCE = js.datasets.planted_tsp(12, seed=0)
BEST = INSTANCE.best_known


def test_command_writes_records_and_goes_on(tmp_path, monkeypatch, capsys):
    """Our solver finds the optimum of 12 cities; the second call makes no run."""
    monkeypatch.setattr(peers_tsp, "instances", lambda names, data: [INSTANCE])
    monkeypatch.setattr(peers_tsp.JaxoptSearch, "devices", 1)
    monkeypatch.setattr(peers_tsp.JaxoptSearch, "forget", lambda self: None)
    out = tmp_path / "peers.jsonl"
    command = ["--solvers", "jaxopt_search", "--seconds", "1", "--seeds", "1", "--out", str(out)]
    assert peers.main(command) == 0
    table = capsys.readouterr().out
    records = common.read(out)
    assert {r["settings"]["call"] for r in records} == {"first", "warm"}
    for one in records:
        assert one["best_known"] == BEST
        assert one["gap"] == (one["cost"] - BEST) / BEST
        assert one["trace"][-1][1] == one["cost"]
        assert 0 < one["trace"][-1][0] <= one["seconds"]
        assert {"env", "date"} <= set(one)
    assert min(one["cost"] for one in records) == BEST
    monkeypatch.setattr(js, "solve_tsp", None)
    assert peers.main([*command, "--markdown"]) == 0
    assert capsys.readouterr().out.startswith("| instance")
    assert table.count("planted-12-s0") == 1
    assert common.read(out) == records


MATRIX = np.triu(np.random.default_rng(0).integers(-9, 10, (10, 10)))
LOWEST = min(x @ MATRIX @ x for x in map(np.array, itertools.product((0, 1), repeat=10)))
# Of each problem an instance, and seconds that suffice for its best solution.
SMALL = {
    "nqueens": (*peers_nqueens.instances(["6x4"], None), 60.0),
    "qap": (js.datasets.planted_qap(3, 3, seed=0), 20.0),
    "qubo": (peers_qubo.Instance("small", 10, sparse.coo_array(MATRIX), int(LOWEST)), 0.2),
    "tsp": (INSTANCE, 0.2),
}


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind in SMALL for name in PROBLEMS[kind].SOLVERS]
)
def test_solvers_find_the_best_of_all(kind, name, in_python, monkeypatch):
    """So each is given the same problem, and what it returns is the best of its course."""
    monkeypatch.setattr(metadata, "version", lambda name: "none")
    monkeypatch.setattr(peers_qap, "_STEPS_BETWEEN_LOOKS", 3600)
    problem, (instance, limit) = PROBLEMS[kind], SMALL[kind]
    try:
        solver = problem.SOLVERS[name]()
    except ImportError:
        pytest.skip(f"{name} is not installed")
    limit = 1.0 if solver.unit == "runs" else limit
    found, course = solver.solve(solver.prepare(instance), 1, limit, instance.best_known)
    assert problem.cost(instance, found) == instance.best_known
    assert not course or min(cost for _, cost in course) == instance.best_known


def test_a_cut_costs_what_its_edges_weigh():
    (instance,) = peers_qubo.instances(["G11"], None)
    sides = np.random.default_rng(1).integers(0, 2, instance.n)
    assert -peers_qubo.cost(instance, sides) == gset.cut(gset.graph("G11"), sides)
