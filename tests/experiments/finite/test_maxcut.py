"""The max-cut script: small runs."""

import pytest

from experiments import common
from experiments.finite import gset, maxcut, timed_runs
from jaxopt_search.datasets import toroidal_grid


@pytest.fixture
def small(monkeypatch):
    """A small graph of known optimum."""
    graph = toroidal_grid(4, 4, seed=1, weights=(1,))
    monkeypatch.setitem(gset.GRAPHS, "G1", (32, lambda: graph))  # bipartite: all edges are cut
    monkeypatch.setattr(maxcut, "tenure", lambda n: (2, 4))


def test_small_runs_of_two_ways(tmp_path, small, capsys):
    """Both find the best cut and keep records; the same command finds all of it in the file."""
    out = tmp_path / "runs.jsonl"
    flags = ["--graphs", "G1", "--ways", "ours,anneal", "--seeds", "1", "--searches", "3"]
    flags += ["--seconds", "60", "--devices", "1", "--out", str(out)]
    assert maxcut.main(flags) == 0
    printed = capsys.readouterr().out
    for run in common.read(out):
        assert run["cut"] == 32 and 0 <= run["first_step"] <= run["steps"]
        assert timed_runs.seconds_to(run, -32) == run["course"][-1][0] <= run["seconds"] < 60
    assert maxcut.main(flags) == 0
    assert capsys.readouterr().out.splitlines()[-3:] == printed.splitlines()[-3:]
    assert maxcut.main(["--report", str(out), "--markdown"]) == 0
    assert capsys.readouterr().out.count("| G1 ") == 2
