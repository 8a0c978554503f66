"""Tours of TSPLIB and their lengths: counted from zero, checked, exact."""

import numpy as np
import pytest

from jaxopt_search.datasets import TSPInstance, load_tour, load_tsplib
from jaxopt_search.errors import InstanceFormatError

HEAD = "NAME: x\nTYPE: TSP\nDIMENSION: 3\nEDGE_WEIGHT_TYPE: EUC_2D\n"
NODES = "NODE_COORD_SECTION\n1 0 0\n2 3 0\n3 0 4\n"
GOOD = f"{HEAD}{NODES}EOF\n"
MATRIX_HEAD = "TYPE: TSP\nDIMENSION: 3\nEDGE_WEIGHT_TYPE: EXPLICIT\n"


def write(tmp_path, content, name="x.tsp"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def matrix(form, numbers):
    return f"{MATRIX_HEAD}EDGE_WEIGHT_FORMAT: {form}\nEDGE_WEIGHT_SECTION\n{numbers}\nEOF\n"


TOUR = "TYPE: TOUR\nDIMENSION: 4\nTOUR_SECTION\n1 3\n2\n4\n-1\nEOF\n"


@pytest.mark.parametrize(
    "content", [TOUR, TOUR.replace("DIMENSION: 4\n", ""), TOUR.replace("EOF\n", "")]
)
def test_tours_are_counted_from_zero(content, tmp_path):
    """Tours come as int32 from 0, with or without DIMENSION and EOF."""
    tour = load_tour(write(tmp_path, content))
    assert tour.dtype == np.int32
    np.testing.assert_array_equal(tour, [0, 2, 1, 3])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (TOUR.replace("-1\n", ""), "found 4 numbers for a tour of 4 cities and -1, expected 5"),
        (TOUR.replace("-1", "5"), "ends with 5, expected -1"),
        (TOUR.replace("1 3", "1 2"), "the tour lacks city 3"),
        (TOUR.replace("1 3", "0 3"), "the tour lacks city 1"),
        (TOUR.replace("1 3", "1 x"), "'x' among a tour"),
        (TOUR.replace("-1\n", "-1\n1\n-1\n"), "'1' follows the last of a tour"),
        (TOUR.replace("4\n", "1000000000\n", 1), "DIMENSION is 1000000000, expected at most"),
        (GOOD, "TYPE 'TSP' is not supported, expected TOUR"),
    ],
)
def test_broken_tours_are_refused(content, message, tmp_path):
    """A tour file must hold each city once and end with -1."""
    with pytest.raises(InstanceFormatError) as caught:
        load_tour(write(tmp_path, content))
    assert message in str(caught.value), str(caught.value)


@pytest.mark.parametrize(
    ("tour", "message"),
    [
        ([0, 1], r"tour has shape \(2,\), expected \(3,\)"),
        ([0, 1, 1], "tour holds 1 twice"),
        ([1, 2, 3], "tour counts from 1, expected a permutation of 0 to 2"),
        ([0, -1, 2], "tour holds -1, expected a permutation of 0 to 2"),
        ([0.0, 1.0, 2.0], "tour has dtype float64, expected integers"),
    ],
)
def test_tour_length_wants_a_permutation(tour, message, tmp_path):
    """What is no tour has no length."""
    instance = load_tsplib(write(tmp_path, GOOD))
    with pytest.raises(ValueError, match=message):
        instance.tour_length(tour)


def test_lengths_beyond_64_bits_are_exact():
    """Tour lengths are Python integers and do not wrap."""
    matrix = np.full((20, 20), 10**18, np.int64)
    np.fill_diagonal(matrix, 0)
    instance = TSPInstance(name="x", edge_weight_type="EXPLICIT", matrix=matrix)
    assert instance.tour_length(np.arange(20)) == 20 * 10**18


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"edge_weight_type": "MAX_2D"}, "edge_weight_type is 'MAX_2D'"),
        ({"edge_weight_type": "EXPLICIT"}, "expected matrix"),
        ({"edge_weight_type": "GEO"}, "expected coordinates"),
        ({"matrix": np.ones((2, 3), np.int64)}, r"matrix has shape \(2, 3\)"),
        ({"matrix": np.zeros((2, 2))}, "matrix is float64"),
        ({"matrix": np.array([[0, 1], [2, 0]])}, "not symmetric"),
        ({"matrix": np.ones((2, 2), np.int64)}, "nonzero diagonal"),
        ({"coordinates": np.array([[0.0, np.nan]])}, "coordinates contains nan"),
        ({"coordinates": np.zeros((2, 3))}, r"coordinates has shape \(2, 3\)"),
    ],
)
def test_instances_check_their_arrays(fields, message):
    """Instances made by hand meet the same conditions as those read from files."""
    kind = "EXPLICIT" if "matrix" in fields else "EUC_2D"
    with pytest.raises(ValueError, match=message):
        TSPInstance(**{"name": "x", "edge_weight_type": kind, **fields})
