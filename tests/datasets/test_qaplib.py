"""The QAPLIB readers, on published files and on broken ones."""

import csv

import numpy as np
import pytest

from jaxopt_search.datasets import QAPInstance, load_qaplib, load_qaplib_solution, orient
from jaxopt_search.errors import InstanceFormatError

A, B = [[0, 1, 2], [3, 4, 5], [6, 7, 8]], [[9, -8, 7], [6, 5, 4], [3, 2, 1]]
GOOD = "3\n\n0 1 2\n3 4 5\n6 7 8\n\n9 -8 7 6 5 4 3 2 1\n"


def write(tmp_path, content, name="x.dat"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_published_solutions_cost_what_the_table_says(data_dir):
    """Permutations of all solution files cost exactly the tabulated value in both directions.

    `orient` finds the direction by itself, and refuses kra32, whose stated value is wrong.
    """
    folder = data_dir / "qaplib"
    with open(folder / "sln_conventions.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) > 50
    for row in rows:
        instance = load_qaplib(folder / f"{row['name']}.dat")
        n, value, permutation = load_qaplib_solution(folder / f"{row['name']}.sln")
        assert (n, value) == (instance.n, int(row["stated_value"]))
        assert instance.cost(permutation) == int(row["cost_direct"]), row["name"]
        assert instance.cost(np.argsort(permutation)) == int(row["cost_inverse"]), row["name"]
        if row["name"] == "kra32":
            with pytest.raises(InstanceFormatError, match="kra32: the permutation costs 88700"):
                orient(instance, value, permutation)
        else:
            assert instance.cost(orient(instance, value, permutation)) == value


@pytest.mark.parametrize(
    ("content", "best_known"),
    [
        (GOOD, None),
        (GOOD.replace("\n", "\r\n"), None),
        (GOOD.replace(" ", "\t").strip(), None),
        (GOOD.replace("3\n", "3 42\n", 1), 42),
        (GOOD.replace("3\n", "3\n-1\n", 1), -1),
    ],
)
def test_matrices_are_read_in_order(content, best_known, tmp_path):
    """The first matrix is flow, the second distance; an extra number after n is the best known."""
    instance = load_qaplib(write(tmp_path, content, "mine.dat"))
    np.testing.assert_array_equal(instance.flow, A)
    np.testing.assert_array_equal(instance.distance, B)
    assert (instance.name, instance.best_known, instance.is_optimal) == ("mine", best_known, False)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "1: the file is empty"),
        (b"3\0", "1: the file is binary"),
        (GOOD.encode("utf-16"), "1: the file is UTF-16"),
        ("x" + GOOD, "1: n is 'x3', expected a positive integer"),
        (GOOD.replace("3", "0", 1), "1: n is '0', expected a positive integer"),
        (GOOD.replace("3", "-3", 1), "1: n is '-3', expected a positive integer"),
        (GOOD.replace("3", "3.0", 1), "1: n is '3.0', expected a positive integer"),
        (GOOD.replace("3", "1000000000", 1), "1: n is 1000000000, expected at most what"),
        (GOOD.replace("3", "4", 1), "1: n is 4, expected at most what"),
        (GOOD.replace(" 1\n", " \n"), "found 17 numbers for two 3 x 3 matrices, expected 18 or 19"),
        (GOOD + "1\n", "found 19 numbers for two 3 x 3 matrices, expected 18"),
        (GOOD.replace("2 1\n", "2 1 0\n"), "found 19 numbers for two 3 x 3 matrices"),
        ("\n".join([*GOOD.split(), "0"]), "found 19 numbers for two 3 x 3 matrices"),
        (" ".join([*GOOD.split(), "0"]), "found 19 numbers for two 3 x 3 matrices"),
        (GOOD + "1 2\n", "8: '2' follows the last of two 3 x 3 matrices, expected the end"),
        (GOOD.replace("5 4", "5 1e3"), "7: '1e3' among two 3 x 3 matrices"),
        (GOOD.replace("5 4", "5 4.0"), "'4.0' among two 3 x 3 matrices, expected an integer with"),
        (GOOD.replace("5 4", "5 nan"), "7: 'nan' among two 3 x 3 matrices"),
        (GOOD.replace("5 4", "5 0x1F"), "7: '0x1F' among two 3 x 3 matrices"),
        (GOOD.replace("5 4", "5 1_000"), "7: '1_000' among two 3 x 3 matrices"),
        (GOOD.replace("5 4", "5 \u0967\u0968"), r"7: '\u0967\u0968' among two 3 x 3 matrices"),
        (GOOD.replace("5 4", "5 1" + 18 * "0"), "expected an integer of at most 18 digits"),
    ],
)
def test_broken_files_are_refused_with_the_line(content, message, tmp_path):
    """Whatever breaks the format ends in one line that names file, line and fault."""
    path = write(tmp_path, content)
    with pytest.raises(InstanceFormatError) as caught:
        load_qaplib(path)
    text = str(caught.value)
    assert text.startswith(f"{path}:") and "\n" not in text and "expected" in text
    assert message in text, text


@pytest.mark.parametrize("value", ["x", 0, -1, 1.5, None, 10**30])
def test_max_bytes_is_a_number(value, tmp_path):
    """Anything else is refused by name."""
    with pytest.raises(ValueError, match="max_bytes is .*, expected an integer from 1 to"):
        load_qaplib(write(tmp_path, GOOD), max_bytes=value)


@pytest.mark.parametrize(
    "content", ["3 17\n2 3 1\n", "3 17\n1 2 0", "3, 17\n2,3,1", "3\r\n17\r\n2 3\r\n1"]
)
def test_solutions_are_counted_from_zero(content, tmp_path):
    """Index base, commas and the last line end do not matter."""
    n, value, permutation = load_qaplib_solution(write(tmp_path, content))
    assert (n, value, permutation.dtype) == (3, 17, np.int32)
    np.testing.assert_array_equal(permutation, [1, 2, 0])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("3 17\n2 3 3\n", "no permutation, expected each of 1..3 or of 0..2 once"),
        ("3 17\n2 3 4\n", "no permutation"),
        ("3 17\n2 3\n", "found 3 numbers for the value and a permutation of 3, expected 4"),
        ("3 17\n2 3 1 4\n", "'4' follows the last of"),
        ("3 17\n2 3 x\n", "'x' among"),
        ("999999 17\n2 3 1\n", "n is 999999, expected at most"),
    ],
)
def test_broken_solutions_are_refused(content, message, tmp_path):
    """A solution must hold a permutation of the stated size."""
    with pytest.raises(InstanceFormatError) as caught:
        load_qaplib_solution(write(tmp_path, content))
    assert message in str(caught.value), str(caught.value)


def test_cost_counts_all_ordered_pairs_and_the_diagonal():
    """The cost is the double sum over asymmetric matrices with diagonals, term by term."""
    instance = QAPInstance(name="x", flow=np.array(A), distance=np.array(B))
    p = [2, 0, 1]
    expected = sum(A[i][j] * B[p[i]][p[j]] for i in range(3) for j in range(3))
    assert instance.cost(p) == expected
    inverse = np.argsort(p)
    assert instance.cost(inverse) != expected
    np.testing.assert_array_equal(orient(instance, expected, inverse), p)
    with pytest.raises(ValueError, match="assignment holds 2 twice"):
        instance.cost([2, 2, 1])


@pytest.mark.parametrize("sign", [1, -1])
def test_costs_beyond_64_bits_are_exact(sign):
    """Where the bound does not fit 64 bits the sum is taken in Python integers."""
    flow = np.full((4, 4), sign * 10**17, np.int64)
    instance = QAPInstance(name="x", flow=flow, distance=np.full((4, 4), 10**18, np.int64))
    assert instance.cost([3, 1, 0, 2]) == sign * 16 * 10**35


@pytest.mark.parametrize(
    ("flow", "distance", "message"),
    [
        (np.zeros((2, 3), np.int64), np.zeros((2, 2), np.int64), r"flow has shape \(2, 3\)"),
        (np.zeros((2, 2)), np.zeros((2, 2), np.int64), "flow is float64"),
        (np.zeros((2, 2), np.int64), np.zeros((3, 3), np.int64), r"distance has shape \(3, 3\)"),
    ],
)
def test_instances_check_their_arrays(flow, distance, message):
    """Both matrices are square, of one size, and 64-bit integers."""
    with pytest.raises(ValueError, match=message):
        QAPInstance(name="x", flow=flow, distance=distance)
