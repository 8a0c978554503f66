"""The quickstart runs, and its figures are what they say."""

import pytest

import jaxopt_search as js
from experiments import common, quickstart


def test_the_command(tmp_path, monkeypatch, capsys):
    """On one tiny instance it prints the table, writes a record, and draws pictures."""
    pytest.importorskip("matplotlib")
    tiny = js.datasets.grid_tsp(4, 4, spacing=100, seed=0)
    monkeypatch.setattr(quickstart, "instances", lambda: [tiny])
    monkeypatch.setattr(js, "enable_compilation_cache", lambda: None)
    assert quickstart.main(["--seconds", "1", "--out", str(tmp_path), "--devices", "1"]) == 0
    shown = capsys.readouterr().out
    assert "grid-4x4-d100-s0" in shown and shown.count("plot written") == 2
    (record,) = common.read(tmp_path / "runs.jsonl")
    assert (record["cost"], record["best_known"], record["n"]) == (1600, 1600, 16)
    pictures = sorted(tmp_path.glob("*.png"))
    assert [one.name for one in pictures] == ["convergence.png", "tour-grid-4x4-d100-s0.png"]
    assert all(one.read_bytes().startswith(b"\x89PNG") for one in pictures)
