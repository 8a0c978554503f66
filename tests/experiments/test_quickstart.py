"""The quickstart runs, and its figures are what they say."""

from unittest import mock

import pytest

import jaxopt_search as js
from experiments import common, quickstart


@pytest.fixture(scope="module")
def outcome():
    instance = js.datasets.grid_tsp(4, 4, spacing=100, seed=0)
    return quickstart.Outcome(instance, js.solve_tsp(instance, max_steps=2000, devices=1))


def test_quickstart_writes_pictures(outcome, tmp_path, capsys):
    """A tour and a convergence plot come out as PNG files."""
    pytest.importorskip("matplotlib")
    quickstart.save_plots([outcome], tmp_path)
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == ["convergence.png", "tour-grid-4x4-d100-s0.png"]
    assert all(file.read_bytes().startswith(b"\x89PNG") for file in files)
    assert capsys.readouterr().out.count("plot written") == 2


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
