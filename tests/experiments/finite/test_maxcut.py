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


def test_a_small_run_of_each_way(tmp_path, small):
    out = tmp_path / "runs.jsonl"
    flags = ["--graphs", "G1", "--ways", ",".join(maxcut.WAYS), "--seeds", "1", "--searches", "3"]
    assert maxcut.main([*flags, "--seconds", "60", "--devices", "1", "--out", str(out)]) == 0
    for run in common.read(out):
        assert run["cut"] == 32 and timed_runs.seconds_to(run, -32) <= run["seconds"] < 60
