"""The script that makes the README's animation."""

import pytest

from experiments import tours_picture

pytest.importorskip("matplotlib")


def test_an_animation_of_many_searches(tmp_path, capsys):
    """Of each search the best tour, which gets no longer; a frame for each moment."""
    from PIL import Image

    path = tmp_path / "images" / "tours.gif"
    assert tours_picture.main(["--cities", "9", "--searches", "4", "--picture", str(path)]) == 0
    assert str(path) in capsys.readouterr().out
    with Image.open(path) as image:
        assert image.format == "GIF" and image.is_animated
