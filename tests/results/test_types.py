"""Results as text, and their histories as arrays and CSV."""

import csv

import made
import numpy as np
import pytest

from jaxopt_search.results import History


def test_a_summary_says_it_all():
    """In about ten lines, each a name and a value."""
    lines = str(made.result()).splitlines()
    assert dict(line.split(maxsplit=1) for line in lines if not line.startswith("target")) == {
        "cost": "123,456 (1.250% from the best known)",
        "success": "yes",
        "ended": "the target was reached",
        "steps": "20 of each of 2 searches",
        "agreement": "1 of 2 searches end at this cost",
        "priced": "3.40e+09 moves",
        "time": "2.5 s to compile, 11.8 s to search",
        "ran": "on      2 x cpu (AMD EPYC), native",
        "versions": "jaxopt_search 0.1.0, jax 0.10.2",
        "solution": "[3, 0, 2, 1]",
    }
    assert "target met  by search 1, after 17" in lines


def test_what_is_not_known_is_left_out():
    text = str(made.result(gap=None, first_hit=None, x={"a": 1}, fun=float("inf"), env={}))
    assert "best known" not in text and "target met" not in text
    assert "cost        inf" in text and "solution    a dict" in text


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (
            made.result(),
            "Result(fun=123456, gap=0.0125, success=True, status=TARGET, nit=20, x=[3, 0, 2, 1])",
        ),
        (
            made.stacked(),
            "StackedResult(fun=[1.5, 2.5], success=False, status=INTERRUPTED, nit=9, x=<2 arrays>)",
        ),
        (
            made.queens(),
            "QueensResult(solutions=<array (2, 4)>, success=True, status=EXHAUSTED, num_found=5)",
        ),
    ],
)
def test_a_result_is_one_line(result, text):
    """However large its arrays are."""
    assert repr(result) == text


def test_summaries_of_other_results():
    assert "mean cost   2, from 1.5 to 2.5" in str(made.stacked())
    assert "placements  2 different valid ones of 4 queens" in str(made.queens())
    assert "first" not in str(made.queens(solutions=np.zeros((0, 4), np.int16)))


def test_a_history_as_arrays():
    arrays = made.LINES.arrays()
    assert arrays["step"].tolist() == [0, 10, 20] and arrays["step"].dtype == np.int64
    np.testing.assert_array_equal(arrays["best"], [200, 2.0**70, 100])
    empty = History().arrays()
    assert {name: array.shape for name, array in empty.items()} == dict.fromkeys(arrays, (0,))


def test_a_history_as_csv(tmp_path):
    """It is read back with all digits."""
    made.LINES.to_csv(tmp_path / "history.csv")
    with open(tmp_path / "history.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["best"]) for row in rows] == [200, 2**70, 100]
    assert [float(row["seconds"]) for row in rows] == [0.5, 1.0, 1.5]
