"""The chart of the README, from kept records."""

import pytest

from experiments import headline

pytest.importorskip("matplotlib")


def test_the_chart_and_its_table(tmp_path, capsys):
    path = tmp_path / "images" / "headline.svg"
    assert headline.main(["--picture", str(path)]) == 0
    assert "</svg>" in path.read_text(encoding="utf-8")
    assert "fast-tsp" in capsys.readouterr().out
