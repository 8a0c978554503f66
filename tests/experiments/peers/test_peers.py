"""Times to a level are what they say; peers may be missing; an interrupted comparison continues."""

import math
import types

import numpy as np
import pytest

import jaxopt_search as js
from experiments import common
from experiments.peers import __main__ as peers
from experiments.peers import levels
from experiments.peers import tsp as peers_tsp

INSTANCE = js.datasets.planted_tsp(12, seed=0)
BEST = INSTANCE.best_known


class Scripted:
    """A solver whose runs end at given costs, one for each limit; counts its calls."""

    name, version, runs_on, note = "scripted", "1", "1 thread", "made up"
    unit, first, compiles = "seconds", 0.5, False

    def __init__(self, costs, **others):
        self.costs, self.calls, self.forgotten = list(costs), [], 0
        self.__dict__.update(others)

    def prepare(self, instance):
        return instance.name

    def solve(self, data, seed, limit, target):
        self.calls.append((seed, limit))
        return self.costs.pop(0), []

    def forget(self):
        self.forgotten += 1


def problem():
    """Returns a problem whose solutions are their own costs."""
    return types.SimpleNamespace(cost=lambda instance, solution: solution)


def plan(solver, seconds=5.0, num_seeds=1):
    instance = types.SimpleNamespace(name="made-up", n=3, best_known=100)
    return peers.Plan(problem(), [instance], [solver], seconds, range(num_seeds))


def measure(solver, runs=None, **others):
    runs = common.Runs(None) if runs is None else runs
    return peers.execute(plan(solver, **others), runs, common.Progress(1))


@pytest.mark.parametrize(
    ("level", "seconds"),
    [(0.01, 1.0), (0.009, 2.5), (0.001, 2.5), (0.0, 4.0), (-0.01, math.inf)],
)
def test_time_to_level_is_when_the_first_point_is_low_enough(level, seconds):
    """A gap equal to the level counts; a level that was not reached takes forever."""
    trace = [(0.5, 1011), (1.0, 1010), (2.5, 1001), (4.0, 1000)]
    assert levels.time_to_level(trace, 1000, level) == seconds


def test_a_series_ends_at_the_best_known_cost():
    """The third limit finds it, so the fourth is not tried; each seed begins with the first."""
    solver = Scripted([110, 105, 100, 100], first=0.5)
    records = measure(solver, num_seeds=2)
    assert solver.calls == [(0, 0.5), (0, 1.25), (0, 3.125), (1, 0.5)]
    assert [round(r["gap"], 9) for r in records] == [0.1, 0.05, 0.0, 0.0]
    assert all(r["trace"] == [[r["seconds"], r["cost"]]] for r in records)


def test_what_compiles_is_called_cold_once_and_then_warm(tmp_path):
    """One call forgets before, one is not recorded; so it is when going on from a file."""
    runs = common.Runs(tmp_path / "runs.jsonl")
    solver = Scripted([120, 999, 100], compiles=True)
    records = measure(solver, runs)
    assert [(r["settings"]["call"], r["cost"]) for r in records] == [("first", 120), ("warm", 100)]
    assert (solver.calls, solver.forgotten) == ([(0, 0.5), (0, 5.0), (0, 0.5)], 1)
    again = Scripted([999, 100], compiles=True)
    assert len(measure(again, common.Runs(tmp_path / "runs.jsonl"), num_seeds=2)) == 3
    assert (again.calls, again.forgotten) == ([(1, 5.0), (1, 0.5)], 0)
    assert len(common.read(tmp_path / "runs.jsonl")) == 3


def test_command_writes_records_and_goes_on(tmp_path, monkeypatch, capsys):
    """Our solver finds the optimum of 12 cities; the second call makes no run."""
    monkeypatch.setattr(common, "use_cpu_cores", lambda: None)
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
