"""The script that draws the README's picture."""

import pytest

from experiments import tours_picture

pytest.importorskip("matplotlib")


def test_tours_at_moments_of_a_run(tmp_path, capsys):
    """Each moment has a tour, and they do not get longer."""
    path = tmp_path / "images" / "tours.png"
    assert tours_picture.main(["--cities", "9", "--picture", str(path)]) == 0
    assert path.read_bytes().startswith(b"\x89PNG") and str(path) in capsys.readouterr().out
