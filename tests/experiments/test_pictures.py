"""The pictures of the guide."""

from experiments import pictures


def test_draws_all(tmp_path):
    assert pictures.main(["--folder", str(tmp_path)]) == 0
    names = sorted(path.stem for path in tmp_path.glob("*.png"))
    assert names == ["assignment", "board", "coloring", "tour"]
