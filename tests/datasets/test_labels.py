"""Files of cities with tours: they are read as they were written, and nothing else is."""

import numpy as np
import pytest
from probes import refuses

import jaxopt_search as js
from jaxopt_search.datasets.readers import label_line

LINE = "0.5 0.25 0.0 1.0 1.0 0.0 output 2 1 3 2"


def test_lines_are_read_as_they_were_written(tmp_path):
    """Of different sizes, with all digits."""
    rng, path = np.random.default_rng(0), tmp_path / "labels.txt"
    points = [rng.standard_normal((n, 2)) * 10.0**n for n in (1, 4, 9)]
    tours = [rng.permutation(n).astype(np.int32) for n in (1, 4, 9)]
    path.write_text("".join(f"{label_line(*pair)}\n" for pair in zip(points, tours, strict=True)))
    found = js.datasets.load_labels(path)
    for some, others in zip(found, (points, tours), strict=True):
        for one, other in zip(some, others, strict=True):
            np.testing.assert_array_equal(one, other)
            assert one.dtype == other.dtype


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (LINE.replace(" output 2 1 3 2", ""), "expected coordinates, 'output' and a closed tour"),
        (LINE.replace("0.5", "nan"), "expected finite points"),
        (LINE.replace("0.5", "a"), "could not convert"),
        (LINE.replace("0.5", "1_0"), "expected coordinates, 'output' and a closed tour"),
        (LINE.replace("1 3", "1 33333333333333333333"), "too large"),
        (LINE[:-2], "and a closed tour"),
        (LINE.replace("2 1 3 2", "1 0 2 1"), "expected a tour of the 3 cities"),
    ],
)
def test_what_is_no_label_is_refused(line, reason, tmp_path):
    path = tmp_path / "labels.txt"
    path.write_text(f"{LINE}\n{line}\n")
    with refuses(js.InstanceFormatError, "labels.txt, line 2: ", reason):
        js.datasets.load_labels(path)


POINTS, TOURS = np.zeros((2, 3, 2)), np.tile(np.arange(3), (2, 1))


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        ({"points": POINTS}, "no archive of points and tours"),
        ({"points": POINTS + np.nan, "tours": TOURS}, "finite"),
        ({"points": POINTS, "tours": TOURS + 1}, "a tour of the 3 cities"),
        ({"points": POINTS.astype(str), "tours": TOURS}, "no archive of points and tours"),
        (b"PK torn", "no archive of points and tours"),
    ],
)
def test_no_other_archive_is_read(arrays, reason, tmp_path):
    path = tmp_path / "labels.npz"
    if isinstance(arrays, bytes):
        path.write_bytes(arrays)
    else:
        np.savez(path, **arrays)
    with refuses(js.InstanceFormatError, "labels.npz", reason):
        js.datasets.load_labels(path)
