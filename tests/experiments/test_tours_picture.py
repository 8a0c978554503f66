"""The script that draws the README's picture."""

import pytest

from experiments import tours_picture

pytest.importorskip("matplotlib")


def test_tours_at_moments_of_a_run(tmp_path, capsys):
    """Each moment has a tour, and they do not get longer."""
    path = tmp_path / "images" / "tours.png"
    assert tours_picture.main(["--cities", "9", "--picture", str(path)]) == 0
    assert path.read_bytes().startswith(b"\x89PNG") and str(path) in capsys.readouterr().out


def test_the_moments_are_those_asked_for(monkeypatch):
    monkeypatch.setattr(tours_picture, "_MOMENTS", (0, 4, 12))
    reports = tours_picture.tours_of(tours_picture.np.random.default_rng(0).random((9, 2)))
    assert [report.step for report in reports] == [0, 4, 12]
    assert reports[0].fun >= reports[1].fun >= reports[2].fun
