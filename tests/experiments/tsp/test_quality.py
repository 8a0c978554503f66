"""Gaps, optima and times are what the runs say; an interrupted experiment continues."""

import pytest

import jaxopt_search as js
from experiments import common
from experiments.peers import tsp as peers_tsp
from experiments.tsp import quality as tsp_quality

INSTANCE = js.datasets.planted_tsp(12, seed=0)
BEST = INSTANCE.best_known


@pytest.fixture(autouse=True)
def _compiled_is_kept(monkeypatch):
    """Other tests need not compile again, and the tests choose the number of devices."""
    monkeypatch.setattr(tsp_quality.jax, "clear_caches", lambda: None)


def test_the_command_runs_resumes_and_reports(tmp_path, monkeypatch, capsys):
    """12 cities are solved; the second call makes no run and prints the same table."""
    monkeypatch.setattr(peers_tsp, "instances", lambda names, data: [INSTANCE])
    out = tmp_path / "quality.jsonl"
    command = ["--seconds", "0.2,0.3", "--seeds", "2", "--devices", "1", "--out", str(out)]
    assert tsp_quality.main(command) == 0
    table, records = capsys.readouterr().out, common.read(out)
    assert [r["settings"]["seconds"] for r in records] == [0.2, 0.2, 0.3, 0.3]
    for one in records:
        assert (one["cost"], one["gap"], one["best_known"]) == (BEST, 0.0, BEST)
        assert 0 < one["seconds_to_near"] <= one["seconds_to_best_known"] <= one["seconds"]
        assert one["steps"] * one["searches"] <= one["moves"]
        assert one["compile_seconds"] > 0 and one["implementation"] == "native"
    assert table.count("planted-12-s0") == table.count("at least 1 of 1") == 2
    monkeypatch.setattr(js, "solve_tsp", None)
    for again in (command, ["--report", str(out)]):
        assert tsp_quality.main(again) == 0
        assert capsys.readouterr().out == table
    assert common.read(out) == records
