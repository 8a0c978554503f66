"""Solutions become files that are there as a whole or not at all."""

import numpy as np
import pytest

from jaxopt_search.command import solve


@pytest.mark.parametrize("suffix", solve.TABLES)
def test_solutions_in_tables(suffix, tmp_path):
    """Counted from 0; nothing else is left in the folder."""
    path = tmp_path / f"x{suffix}"
    solve.write_solution(path, "tsp", np.array([2, 0, 1], np.int32), 5)
    if suffix == ".npy":
        found = np.load(path)
    elif suffix == ".csv":
        assert path.read_text().startswith("position,city\n0,2\n")
        found = np.loadtxt(path, int, delimiter=",", skiprows=1)[:, 1]
    else:
        found = np.loadtxt(path, int)
    assert found.tolist() == [2, 0, 1]
    assert list(tmp_path.iterdir()) == [path]


def test_no_half_file_is_left(tmp_path):
    """What fails in the middle leaves what was there before, and nothing beside it."""
    path = tmp_path / "x.txt"
    path.write_text("old")

    def fail():
        with solve.whole(path) as file:
            file.write(b"half")
            file.flush()
            assert path.read_text() == "old"
            raise OSError("full")

    with pytest.raises(OSError, match="full"):
        fail()
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]
    link = tmp_path / "link.txt"
    link.symlink_to(path)
    solve.write_solution(link, "tsp", np.array([0]), 0)
    assert link.is_symlink() and path.read_text() == "0\n"
