"""The quickstart runs, and its figures are what they say."""

import sys
from unittest import mock

import pytest

import jaxopt_search as js
from experiments import common, quickstart


@pytest.fixture(scope="module")
def outcome():
    instance = js.datasets.grid_tsp(4, 4, spacing=100, seed=0)
    return quickstart.Outcome(instance, js.solve_tsp(instance, max_steps=2000, devices=1))


def test_quickstart_reports_what_was_found(outcome):
    """The row and the record agree with the result, which for 16 cities is the optimum."""
    assert quickstart.row(outcome)[:5] == ["grid-4x4-d100-s0", "16", "1600", "1600", "0.00%"]
    record = quickstart.record(outcome, 3.0)
    steps = outcome.result.nit  # the start may be the optimum
    assert (record["cost"], record["best_known"], record["steps"]) == (1600, 1600, steps)
    assert record["moves"] == steps * record["settings"]["searches"] * 8


def test_quickstart_writes_pictures(outcome, tmp_path, capsys):
    """A tour and a convergence plot come out as PNG files."""
    pytest.importorskip("matplotlib")
    quickstart.save_plots([outcome], tmp_path)
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == ["convergence.png", "tour-grid-4x4-d100-s0.png"]
    assert all(file.read_bytes().startswith(b"\x89PNG") for file in files)
    assert capsys.readouterr().out.count("plot written") == 2


def test_quickstart_does_without_matplotlib(outcome, tmp_path, monkeypatch, capsys):
    """Plots are skipped with the command that installs what is missing."""
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    quickstart.save_plots([outcome], tmp_path)
    assert "pip install matplotlib" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


def test_quickstart_command(tmp_path, monkeypatch, capsys):
    """The whole command on one tiny instance prints the table and writes a record.

    It asks for the compilation cache, and does without where there can be none.
    """
    monkeypatch.setattr(quickstart, "instances", lambda: [js.datasets.planted_tsp(12, seed=0)])
    monkeypatch.setattr(common, "use_cpu_cores", lambda: None)
    monkeypatch.setattr(js, "enable_compilation_cache", mock.Mock(side_effect=OSError("full")))
    assert quickstart.main(["--seconds", "1", "--out", str(tmp_path), "--devices", "1"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("compiled programs are not kept: full\n")
    assert "planted-12-s0" in shown
    assert len(common.read(tmp_path / "runs.jsonl")) == 1
