"""Times to a level are what they say; peers may be missing; an interrupted comparison continues."""

import doctest
import math
import sys
import types

import numpy as np
import pytest

import jaxopt_search as js
from experiments import common
from experiments.packages import tsp as packages_tsp
from experiments.peers import levels, tables
from experiments.peers import runs as runs_of
from experiments.peers import script as peers
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


def record(seed, trace, cost, call="warm"):
    settings = {"solver": "x", "version": "2", "runs_on": "1 thread", "call": call}
    fields = {"instance": "i", "best_known": 1000, "seed": seed, "settings": settings}
    return {**fields, "trace": trace, "cost": cost}


def test_examples():
    """The examples in the docstrings hold."""
    assert doctest.testmod(peers).failed == 0


@pytest.mark.parametrize(
    ("level", "seconds"),
    [(0.01, 1.0), (0.009, 2.5), (0.001, 2.5), (0.0, 4.0), (-0.01, math.inf)],
)
def test_time_to_level_is_when_the_first_point_is_low_enough(level, seconds):
    """A gap equal to the level counts; a level that was not reached takes forever."""
    trace = [(0.5, 1011), (1.0, 1010), (2.5, 1001), (4.0, 1000)]
    assert levels.time_to_level(trace, 1000, level) == seconds


def test_nothing_was_reached_in_an_empty_history():
    """No points, no time."""
    assert levels.time_to_level([], 1000, 0.01) == math.inf


def test_improvements_leave_out_what_is_not_better():
    """Equal and higher costs go; the first point stays."""
    trace = [(0.1, 9), (0.2, 9), (0.3, 12), (0.4, 7), (0.5, 8)]
    assert levels.improvements(trace) == [(0.1, 9), (0.4, 7)]


@pytest.mark.parametrize(
    ("first", "seconds", "expected"),
    [(2.0, 20.0, [2.0, 5.0, 12.5, 20.0]), (2.0, 5.0, [2.0, 5.0]), (2.0, 1.0, [1.0]),
     (None, 3.0, [3.0])],
)  # fmt: skip
def test_limits_grow_and_end_with_the_last(first, seconds, expected):
    """The last limit is there exactly once."""
    assert list(runs_of.limits(Scripted([], first=first), seconds)) == expected


def test_a_row_holds_medians_of_the_shortest_times():
    """Three seeds, one with two runs, worked out by hand."""
    records = [
        record(0, [(3.0, 1005)], 1005),
        record(0, [(1.0, 1010), (6.0, 1000)], 1000),
        record(1, [(2.0, 1001)], 1001),
        record(2, [(9.0, 1020)], 1020),
    ]
    expected = ["i", "x 2", "1 thread", "2.000 (2/3)", "6.000 (2/3)", "- (1/3)", "0.10%", "-"]
    assert tables.row(records, tables.LEVELS) == expected


def test_first_calls_have_a_column_of_their_own():
    """A call that compiles counts for nothing else, though it found the best known cost."""
    first = record(0, [(0.1, 1000)], 1000, call="first")
    records = [{**first, "seconds": 4.25}, record(0, [(1.0, 1010)], 1010)]
    line = tables.table(records, markdown=False).splitlines()[1]
    assert line.split()[-5:] == ["1.000", "-", "-", "1.00%", "4.2"]


def test_a_best_known_cost_of_zero_has_one_level():
    """There are no shares of it: a median of 2 and of 0 are told as the costs that they are."""
    records = [
        {**record(seed, [(2.0, cost)], cost), "best_known": 0} for seed, cost in enumerate((0, 4))
    ]
    header, line = tables.table(records, markdown=False).splitlines()
    assert "s to best known" in header and "0.1%" not in header
    assert line.split()[-4:] == ["-", "(1/2)", "2", "-"]


def test_a_series_ends_at_the_best_known_cost():
    """The third limit finds it, so the fourth is not tried; each seed begins with the first."""
    solver = Scripted([110, 105, 100, 100], first=0.5)
    records = measure(solver, num_seeds=2)
    assert solver.calls == [(0, 0.5), (0, 1.25), (0, 3.125), (1, 0.5)]
    assert [round(r["gap"], 9) for r in records] == [0.1, 0.05, 0.0, 0.0]
    assert all(r["trace"] == [[r["seconds"], r["cost"]]] for r in records)


def test_runs_are_doubled_while_they_should_fit(monkeypatch):
    """A clock of one second per call: 2 more seconds fit in 2.5, and do not fit in 1.5."""
    ticks = iter(range(100))
    monkeypatch.setattr(runs_of.time, "perf_counter", lambda: float(next(ticks)))
    for seconds, limits in ((1.5, [1]), (2.5, [1, 2, 4])):
        solver = Scripted([110, 110, 100], unit="runs", first=1)
        measure(solver, seconds=seconds)
        assert [limit for _, limit in solver.calls] == limits


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


def test_a_solver_that_claims_too_much_is_found_out():
    """The course to a solution cannot be better than the solution."""
    solver = Scripted([])
    solver.solve = lambda *_: (110, [(0.1, 105)])
    with pytest.raises(RuntimeError, match="scripted claims less than the 110"):
        measure(solver)


def test_missing_peers_are_left_out_with_one_line(monkeypatch, capsys):
    """Each of the three, and nothing else."""
    for name in ("fast_tsp", "elkai", "ortools"):
        monkeypatch.setitem(sys.modules, name, None)
    found = peers.find_solvers(peers_tsp, list(peers_tsp.SOLVERS))
    assert [solver.name for solver in found] == ["jaxopt_search"]
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" is left out: not installed")[0] for line in lines] == [
        "fast-tsp",
        "elkai",
        "ortools",
    ]


def test_unknown_solvers_are_refused():
    """A misspelt name is an error, not a missing package."""
    with pytest.raises(ValueError, match="'fasttsp' is unknown"):
        peers.find_solvers(peers_tsp, ["fasttsp"])


def test_distances_that_a_peer_cannot_take_leave_it_out(capsys):
    """One line, and the other solvers are measured."""

    class Narrow(Scripted):
        def prepare(self, instance):
            return packages_tsp.distances_up_to(js.datasets.grid_tsp(2, 2, spacing=70_000), 65535)

    assert measure(Narrow([])) == []
    assert (
        "scripted is left out on made-up: its distances are 0 to 98995" in capsys.readouterr().out
    )


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
