"""Times to a level are what they say; peers may be missing; an interrupted comparison continues."""

import numpy as np
import pytest

import jaxopt_search as js
from experiments import common
from experiments.peers import __main__ as peers
from experiments.peers import tsp as peers_tsp

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


@pytest.mark.parametrize(
    ("name", "package", "limit"),
    [("fast-tsp", "fast_tsp", 0.01), ("elkai", "elkai", 1), ("ortools", "ortools", 0.2)],
)
def test_peers_return_permutations(name, package, limit):
    """Each peer's answer visits every city once, and its course ends at its length."""
    pytest.importorskip(package)
    instance = js.datasets.planted_tsp(30, seed=1)
    solver = peers_tsp.SOLVERS[name]()
    tour, points = solver.solve(solver.prepare(instance), 0, limit, instance.best_known)
    assert sorted(tour) == list(range(30))
    lengths = [length for _, length in points]
    assert not lengths or min(lengths) == peers_tsp.cost(instance, np.array(tour))
