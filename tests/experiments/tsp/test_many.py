"""The script for many instances at once."""

import importlib.util

import numpy as np
import pytest

from experiments import common
from experiments.tsp import many as tsp_many


def test_the_command(tmp_path, monkeypatch, capsys):
    """Two instances are solved to the optimum; the table can be printed again."""
    monkeypatch.setattr(tsp_many.importlib.util, "find_spec", lambda name: None)
    out = tmp_path / "many.jsonl"
    flags = ["--instances", "2", "--cities", "7", "--seconds", "1", "--devices", "1"]
    assert tsp_many.main([*flags, "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "no fast-tsp to compare with" in printed and "100.0%" in printed
    (run,) = common.read(out)
    assert run["steps"] > 100 and len(run["lengths"]) == 2
    assert tsp_many.main(["--report", str(out)]) == 0
    assert capsys.readouterr().out in printed


@pytest.mark.skipif(not importlib.util.find_spec("fast_tsp"), reason="fast-tsp is not installed")
def test_fast_tsp_runs_on_all_cores():
    """Its tours are measured with the exact distances."""
    points = tsp_many.instances(3, 20, seed=0)
    made = tsp_many.on_all_cores(tsp_many._fast_tsp_tour, points, 0.01)
    extent = np.ptp(points, axis=1).max(axis=1)
    assert (np.array(made["lengths"]) >= 2 * extent).all()
    assert (np.array(made["lengths"]) < 20 * extent).all()
