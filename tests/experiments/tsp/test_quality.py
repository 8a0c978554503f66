"""Gaps, optima and times are what the runs say; an interrupted experiment continues."""

import types

import numpy as np
import pytest

import jaxopt_search as js
from experiments import common
from experiments.peers import tsp as peers_tsp
from experiments.tsp import quality as tsp_quality
from jaxopt_search.engine import device_split
from jaxopt_search.results import Record

INSTANCE = js.datasets.planted_tsp(12, seed=0)
BEST = INSTANCE.best_known


@pytest.fixture(autouse=True)
def _compiled_is_kept(monkeypatch):
    """Other tests need not compile again, and the tests choose the number of devices."""
    monkeypatch.setattr(tsp_quality.jax, "clear_caches", lambda: None)
    monkeypatch.setattr(common, "use_cpu_cores", lambda: None)


def plan(**changes):
    fields = {
        "instances": [INSTANCE],
        "seconds": [0.5],
        "seeds": range(2),
        "devices": device_split.find_devices(1),
        "is_cold": False,
    }
    return tsp_quality.Plan(**(fields | changes))


def result(tour=None, status=js.Status.MAX_SECONDS):
    """Returns what `solve_tsp` might have found."""
    course = [(0, 0.1, 2 * BEST), (5, 1.0, BEST + 1), (9, 1.5, BEST), (12, 2.5, BEST)]
    return types.SimpleNamespace(
        x=np.arange(12) if tour is None else tour,
        status=status,
        nit=12,
        nfev=840,
        costs=[0] * 7,
        history=[Record(step, seconds, cost, 0.1) for step, seconds, cost in course],
        compile_seconds=0.25,
        elapsed=2.75,
        env={"implementation": "native", "devices": "1 x cpu"},
    )


def test_a_record_agrees_with_its_result(monkeypatch):
    """Times count from the call to the first line of the history at the level."""
    ticks = iter([10.0, 13.0])
    monkeypatch.setattr(tsp_quality.time, "perf_counter", lambda: next(ticks))
    monkeypatch.setattr(js, "solve_tsp", lambda *_, **options: result())
    monkeypatch.setattr(tsp_quality, "NEAR", 1 / BEST)
    made = tsp_quality.make(plan(), INSTANCE, {"seconds": 2.5}, 4, compile_seconds=1.25)
    monkeypatch.undo()
    cost = INSTANCE.tour_length(np.arange(12))
    assert (made["cost"], made["gap"], made["seed"]) == (cost, (cost - BEST) / BEST, 4)
    assert (made["steps"], made["moves"], made["searches"]) == (12, 840, 7)
    assert (made["seconds"], made["compile_seconds"]) == (3.0, 1.25)
    # Half a second went by before the search, half of it in compiling.
    assert (made["seconds_to_near"], made["seconds_to_best_known"]) == (1.5, 2.0)
    assert made["trace"] == [(0.6, 2 * BEST), (1.5, BEST + 1), (2.0, BEST)]
    assert made["implementation"] == "native"


def test_what_compiles_is_called_before_unless_cold(monkeypatch):
    """Warm: a call without time and a short one, per instance with missing runs. Cold: forget."""
    calls = []

    def noted(data, key, *, max_seconds, devices):
        calls.append((key, max_seconds))
        return result()

    monkeypatch.setattr(js, "solve_tsp", noted)
    monkeypatch.setattr(tsp_quality.jax, "clear_caches", lambda: calls.append("forget"))
    runs = common.Runs(None)
    for num_seeds in (1, 2, 2):
        the_plan = plan(seconds=[0.25, 3.0], seeds=range(num_seeds))
        tsp_quality.execute(the_plan, runs)
    warm = ["forget", (0, 0.0), (0, 0.25)]
    assert calls == [*warm, (0, 0.25), (0, 3.0), *warm, (1, 0.25), (1, 3.0)]
    assert all(one["compile_seconds"] > 0 for one in runs.records)
    calls.clear()
    tsp_quality.execute(plan(is_cold=True), runs)
    assert calls == ["forget", (0, 0.5), "forget", (1, 0.5)]
    assert runs.records[-1]["compile_seconds"] == 0.25


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
        assert one["compile_seconds"] > 0 and one["implementation"] in ("native", "none")
    assert table.count("planted-12-s0") == table.count("at least 1 of 1") == 2
    monkeypatch.setattr(js, "solve_tsp", None)
    for again in (command, ["--report", str(out)]):
        assert tsp_quality.main(again) == 0
        assert capsys.readouterr().out == table
    assert common.read(out) == records
