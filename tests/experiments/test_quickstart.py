"""The quickstart runs, and its figures are what they say."""

import pytest

import jaxopt_search as js
from experiments import quickstart


def test_the_command(tmp_path, monkeypatch, capsys):
    """On one tiny instance it prints the table and draws pictures."""
    pytest.importorskip("matplotlib")
    tiny = js.datasets.grid_tsp(4, 4, spacing=100, seed=0)
    monkeypatch.setattr(quickstart, "instances", lambda: [tiny])
    monkeypatch.setattr(js, "enable_compilation_cache", lambda: None)
    assert quickstart.main(["--seconds", "1", "--out", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert shown.count("plot written") == 2
    *_, row, _, _ = shown.splitlines()
    assert row.split()[:5] == ["grid-4x4-d100-s0", "16", "1600", "1600", "0.00%"]
    pictures = sorted(tmp_path.glob("*.png"))
    assert [one.name for one in pictures] == ["convergence.png", "tour-grid-4x4-d100-s0.png"]
    assert all(one.read_bytes().startswith(b"\x89PNG") for one in pictures)
