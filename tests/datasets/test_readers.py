"""The TSPLIB and QAPLIB readers and distance rules, on published files and on broken ones."""

import csv
import itertools
import re

import numpy as np
import pytest
from probes import refuses

import jaxopt_search as js
from jaxopt_search.datasets import (
    QAPInstance,
    TSPInstance,
    distances,
    load_bqp,
    load_gap,
    load_graph,
    load_qaplib,
    load_qaplib_solution,
    load_tour,
    load_tsplib,
    orient,
)
from jaxopt_search.errors import InstanceFormatError, UnsupportedInstance

HEAD = "NAME: x\nTYPE: TSP\nDIMENSION: 3\nEDGE_WEIGHT_TYPE: EUC_2D\n"
NODES = "NODE_COORD_SECTION\n1 0 0\n2 3 0\n3 0 4\n"
GOOD = f"{HEAD}{NODES}EOF\n"
MATRIX_HEAD = "TYPE: TSP\nDIMENSION: 3\nEDGE_WEIGHT_TYPE: EXPLICIT\n"


def write(tmp_path, content, name="x.tsp"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_published_tours_have_the_tabulated_length(data_dir):
    """Each file loads, and each optimal tour measures exactly the optimum in the table.

    linhp318, which has a fixed edge, is refused: a plain TSP would silently drop it.
    """
    folder = data_dir / "tsplib"
    with open(folder / "optimal.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) > 50
    for row in rows:
        name = row["name"]
        if name == "linhp318":
            with pytest.raises(UnsupportedInstance, match="linhp318.tsp:6: FIXED_EDGES_SECTION"):
                load_tsplib(folder / f"{name}.tsp")
            continue
        instance = load_tsplib(folder / f"{name}.tsp")
        assert (instance.name, instance.n) == (name, int(row["dimension"]))
        assert instance.edge_weight_type == row["edge_weight_type"]
        expected = int(row["optimal_length"])
        tours = [folder / f"{name}.opt.tour", folder / "lkh_tours" / f"{name}.lkh.tour"]
        tours = [path for path in tours if path.exists()]
        assert bool(tours) == (row["tour_file"] != "none")
        for path in tours:
            assert instance.tour_length(load_tour(path)) == expected, path.name


@pytest.mark.parametrize(
    ("kind", "a", "b", "expected"),
    [
        ("EUC_2D", (0, 0), (1, 2), 2),  # 2.236
        ("EUC_2D", (0, 0), (2.5, 0), 3),  # a half goes up, where rint gives 2
        ("CEIL_2D", (0, 0), (1, 2), 3),
        ("ATT", (0, 0), (10, 0), 4),  # sqrt(10) = 3.16 goes up
        ("ATT", (0, 0), (30, 10), 10),  # exactly 10
        ("GEO", (10.2, 20.4), (10.2, 20.4), 1),  # coincident nodes
        ("GEO", (0, 0), (0, 180), 20039),  # half the equator: 6378.388 * 3.141592 = 20038.3
        ("GEO", (0, 0), (0.30, 0), 56),  # thirty minutes
        ("GEO", (0, 0), (-0.30, 0), 56),  # degrees are cut towards zero
        ("GEO", (0, 0), (0.75, 0), 140),  # 75 minutes: TSPLIB's formula as it stands
        ("MAN_2D", (0, 0), (1.25, 2.25), 4),  # 3.5: a half goes up
        ("MAX_2D", (0, 0), (1.25, 2.5), 3),
        ("EXACT_2D", (0, 0), (1.5, 2), 2.5),
    ],
)
def test_distance_rules(kind, a, b, expected):
    """Single distances as worked out by hand from TSPLIB's formulas, in both directions."""
    a, b = np.array(a, np.float64), np.array(b, np.float64)
    assert distances.EDGE_WEIGHTS[kind](a, b) == expected
    assert distances.EDGE_WEIGHTS[kind](b, a) == expected


@pytest.mark.parametrize("kind", distances.EDGE_WEIGHTS)
def test_matrix_and_tour_length_agree(kind, monkeypatch):
    """The matrix in row blocks equals all pairs at once; lengths with and without it agree."""
    rng = np.random.default_rng(1)
    points = rng.uniform(-60, 60, (37, 2)).round(2)
    points[5] = points[9]
    expected = distances.EDGE_WEIGHTS[kind](points[:, None], points[None])
    assert expected[5, 9] == (kind == "GEO")
    np.fill_diagonal(expected, 0)
    monkeypatch.setattr(distances, "_BLOCK", 100)
    np.testing.assert_array_equal(distances.distance_matrix(points, kind), expected)
    tour = rng.permutation(37)
    length = expected[tour, np.roll(tour, -1)].sum()
    assert distances.tour_length(points, kind, tour) == pytest.approx(length, rel=1e-14)
    assert distances.tour_length(points[:1], kind, np.array([0])) == 0


def entries(matrix, form):
    """Lists the entries that an EDGE_WEIGHT_FORMAT has, in its order."""
    n = len(matrix)
    if form == "FULL_MATRIX":
        return matrix.ravel().tolist()
    upper, diagonal, by_row = "UPPER" in form, "DIAG" in form, form.endswith("ROW")
    pairs = itertools.product(range(n), repeat=2)
    pairs = [(a, b) if by_row else (b, a) for a, b in pairs]
    keep = [(i, j) for i, j in pairs if ((i < j) == upper and i != j) or (diagonal and i == j)]
    return [int(matrix[i, j]) for i, j in keep]


FORMS = ["FULL_MATRIX"] + [
    f"{side}_{diagonal}{order}"
    for side in ("UPPER", "LOWER")
    for diagonal in ("", "DIAG_")
    for order in ("ROW", "COL")
]


@pytest.mark.parametrize("form", FORMS)
def test_every_explicit_format_gives_the_same_matrix(form, tmp_path):
    """A matrix survives being written in each form; line breaks and the diagonal mean nothing."""
    rng = np.random.default_rng(2)
    matrix = np.triu(rng.integers(-9, 1000, (6, 6)), 1)
    matrix += matrix.T
    written = matrix + 77 * np.eye(6, dtype=np.int64)
    numbers = [f"{x}\n" if k % 4 == 3 else f"{x} " for k, x in enumerate(entries(written, form))]
    content = (
        f"TYPE: TSP\nDIMENSION: 6\nEDGE_WEIGHT_TYPE: EXPLICIT\nEDGE_WEIGHT_FORMAT: {form}\n"
        f"EDGE_WEIGHT_SECTION\n{''.join(numbers)}\nEOF\n"
    )
    instance = load_tsplib(write(tmp_path, content))
    np.testing.assert_array_equal(instance.distances(), matrix)


@pytest.mark.parametrize(
    ("header", "body", "expected"),
    [
        ("EUC_2D", NODES, 12),
        ("MAN_2D", NODES, 14),
        ("EXACT_2D", "NODE_COORD_SECTION\n1 0 0\n2 .1 0\n3 0 .1\n", 0.2 + 0.02**0.5),
        ("EXPLICIT\nEDGE_WEIGHT_FORMAT: FULL_MATRIX", "9 .5 2 .5 9 1e-1 2 .1 9", 2.6),
        ("EXPLICIT\nEDGE_WEIGHT_FORMAT: UPPER_ROW", "1 2.5\n30", 33.5),
    ],
)
def test_what_is_read_is_solved(header, body, expected, tmp_path):
    """Each rule of distances in a file gives its costs; those with decimals are floats."""
    section = "" if "SECTION" in body else "EDGE_WEIGHT_SECTION\n"
    content = f"TYPE: TSP\nDIMENSION: 3\nEDGE_WEIGHT_TYPE: {header}\n{section}{body}\n"
    instance = load_tsplib(write(tmp_path, content))
    assert instance.tour_length([0, 1, 2]) == pytest.approx(expected, rel=1e-15)
    if "FULL_MATRIX" in header:
        other = load_tsplib(write(tmp_path, content.replace("TSP", "ATSP", 1)))
        np.testing.assert_array_equal(other.matrix, instance.matrix)
    cost = js.tsp_from_instance(instance).host.cost(np.arange(3))
    assert cost == pytest.approx(expected, rel=1e-15)
    assert isinstance(cost, float if "." in body else int)


@pytest.mark.parametrize(
    "content",
    [
        GOOD,
        GOOD.replace("\n", "\r\n"),
        GOOD.replace(" ", "\t"),
        GOOD.replace("EOF\n", ""),
        GOOD.replace("\n2 3 0", "\n\n  2 3 0\n\n"),
        b"\xef\xbb\xbf" + GOOD.encode(),
        f"{HEAD}COMMENT: caf\u00e9\nCOMMENT: two\nNODE_COORD_SECTION :\n3 0 4.\n1 .0 0e5\n2 +3 0\n",
        f"{HEAD}NODE_COORD_SECTION\n2 0 4\n0 -0 0\n1 3.0e+00 0\n",
        f"{GOOD[:-4]}DISPLAY_DATA_SECTION\n1 5 5\n2 6 6\n3 7 7\n",
    ],
)
def test_harmless_variations_are_read(content, tmp_path):
    """Line ends, blanks, order of nodes, ids from 0 and a missing EOF do not change the instance.

    NAME is not trusted: the instance is named after its file.
    """
    instance = load_tsplib(write(tmp_path, content, "triangle.tsp"))
    assert instance.name == "triangle"
    np.testing.assert_array_equal(instance.coordinates, [[0, 0], [3, 0], [0, 4]])
    np.testing.assert_array_equal(instance.distances(), [[0, 3, 4], [3, 0, 5], [4, 5, 0]])
    assert instance.tour_length([0, 2, 1]) == 12


def nodes(text):
    return f"{HEAD}NODE_COORD_SECTION\n{text}\nEOF\n"


def dimension(text):
    return GOOD.replace("DIMENSION: 3\n", text)


def matrix(form, numbers):
    return f"{MATRIX_HEAD}EDGE_WEIGHT_FORMAT: {form}\nEDGE_WEIGHT_SECTION\n{numbers}\nEOF\n"


BROKEN = {
    "empty": ("", "1: the file is empty"),
    "binary": (b"\x7fELF\0\0\1", "1: the file is binary"),
    "no DIMENSION": (dimension(""), "1: DIMENSION is missing"),
    "DIMENSION 10^9": (dimension("DIMENSION: 1000000000\n"), "8: 3 nodes in NODE_COORD_SECTION"),
    "duplicate id": (nodes("1 0 0\n2 3 0\n2 0 4"), "8: node 2 appears twice"),
    "missing id": (
        nodes("1 0 0\n3 0 4"),
        "7: 2 nodes in NODE_COORD_SECTION, [1] to [3]",
    ),
    "nan": (nodes("1 0 0\n2 nan 0\n3 0 4"), "7: '2 nan 0' in NODE_COORD_SECTION"),
    "too few": (matrix("UPPER_ROW", "1\n2"), "7: found 2 numbers for UPPER_ROW of 3 cities"),
    "too many": (matrix("UPPER_ROW", "1 2\n3 4"), "7: '4' follows the last of UPPER_ROW"),
    "no number": (matrix("UPPER_ROW", "1 2.5\n0x3"), "7: '0x3' among UPPER_ROW of 3 cities"),
    "too large": (matrix("UPPER_ROW", "1 2.5\n1e13"), "7: '1e13' among UPPER_ROW of 3 cities"),
    "asymmetric": (
        matrix("FULL_MATRIX", "0 1 2 1 0 3 2 4 0"),
        "FULL_MATRIX has 3 at (2, 3) and 4 at (3, 2)",
    ),
    "no format": (f"{MATRIX_HEAD}EDGE_WEIGHT_SECTION\n1 2 3\n", "EDGE_WEIGHT_FORMAT is missing"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_files_are_refused_with_the_line(case, tmp_path):
    """Whatever breaks the format ends in one line that names file, line, fault and expectation."""
    content, message = BROKEN[case]
    path = write(tmp_path, content)
    with refuses(InstanceFormatError, f"{path}:", message, "expected"):
        load_tsplib(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (GOOD.replace("TYPE: TSP", "TYPE: SOP", 1), "2: TYPE 'SOP'"),
        (GOOD.replace("EUC_2D", "XRAY1"), "4: EDGE_WEIGHT_TYPE 'XRAY1'"),
    ],
)
def test_other_problems_are_named(content, message, tmp_path):
    """A well-formed file of another kind is refused by naming the kind."""
    with refuses(UnsupportedInstance, message):
        load_tsplib(write(tmp_path, content))


def test_large_files_are_refused(tmp_path):
    """Without reading a sparse file of 10 GB to its end."""
    path = tmp_path / "x.tsp"
    with open(path, "wb") as file:
        file.truncate(10 * 2**30)
    with pytest.raises(
        InstanceFormatError, match="the file is larger, expected at most 268435456 bytes"
    ):
        load_tsplib(path)
    with pytest.raises(ValueError, match="not a regular file"):
        load_tsplib(tmp_path)


@pytest.mark.parametrize("filler", ["7", " "])
def test_one_long_line_is_refused_in_linear_time(filler, tmp_path):
    """A line of megabytes neither stalls a pattern nor floods the message."""
    for content in (f"{GOOD[:-4]}{filler * 2**21}x\n", f"COMMENT: {filler * 2**21}x\n{GOOD}x"):
        with pytest.raises(InstanceFormatError) as caught:
            load_tsplib(write(tmp_path, content))
        assert len(str(caught.value)) < 1000


ATSP = """NAME: x
TYPE: ATSP
DIMENSION: 3
EDGE_WEIGHT_TYPE: EXPLICIT
EDGE_WEIGHT_FORMAT: FULL_MATRIX
EDGE_WEIGHT_SECTION
9999 2 3
4 9999 6
7 8 9999
EOF
"""


def test_asymmetric_instances(tmp_path):
    """The matrix as it stands, but for the diagonal; other sections are refused."""
    matrix = load_tsplib(write(tmp_path, ATSP, "x.atsp")).matrix
    assert matrix.dtype == np.int64
    assert matrix.tolist() == [[0, 2, 3], [4, 0, 6], [7, 8, 0]]
    with pytest.raises(InstanceFormatError, match="FIXED_EDGES_SECTION is not"):
        load_tsplib(write(tmp_path, ATSP.replace("EOF", "FIXED_EDGES_SECTION\n1 2\n-1")))


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
        (GOOD, "TYPE 'TSP' is not supported, expected TOUR"),
    ],
)
def test_broken_tours_are_refused(content, message, tmp_path):
    """A tour file must hold each city once and end with -1."""
    with pytest.raises(InstanceFormatError, match=re.escape(message)):
        load_tour(write(tmp_path, content))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"edge_weight_type": "MAX_2D", "matrix": np.zeros((2, 2))},
            "edge_weight_type is 'MAX_2D'",
        ),
        ({"matrix": np.ones((2, 3), np.int64)}, r"matrix has shape \(2, 3\)"),
        ({"matrix": np.array([[0, np.inf], [np.inf, 0]])}, "holds inf"),
        ({"coordinates": np.array([[0.0, np.nan]])}, "coordinates holds nan"),
    ],
)
def test_instances_check_their_arrays(fields, message):
    """Instances made by hand meet the same conditions as those read from files."""
    kind = "EXPLICIT" if "matrix" in fields else "EUC_2D"
    with pytest.raises(ValueError, match=message):
        TSPInstance(**{"name": "x", "edge_weight_type": kind, **fields})


A, B = [[0, 1, 2], [3, 4, 5], [6, 7, 8]], [[9, -8, 7], [6, 5, 4], [3, 2, 1]]
QAP = "3\n\n0 1 2\n3 4 5\n6 7 8\n\n9 -8 7 6 5 4 3 2 1\n"


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
        (QAP, None),
        (QAP.replace("\n", "\r\n"), None),
        (QAP.replace(" ", "\t").strip(), None),
        (QAP.replace("3\n", "3 42\n", 1), 42),
        (QAP.replace("3\n", "3\n-1\n", 1), -1),
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
        (QAP.replace(" 1\n", " \n"), "8: the end, expected two 3 x 3 matrices"),
        (QAP + "1 2\n", "8: '1', expected the end"),
        (QAP.replace("5 4", "5 4.0"), "'4.0' among a QAPLIB instance, expected an integer of"),
    ],
)
def test_broken_qaplib_files_are_refused(content, message, tmp_path):
    """Whatever breaks the format ends in one line that names file, line and fault."""
    path = write(tmp_path, content)
    with refuses(InstanceFormatError, f"{path}:", message, "expected"):
        load_qaplib(path)


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
        ("3 17\n2 3 3\n", "2: '2', expected each of 1..3 or of 0..2 once"),
        ("3 17\n2 3\n", "the end, expected the value and a permutation of 3"),
    ],
)
def test_broken_solutions_are_refused(content, message, tmp_path):
    """A solution must hold a permutation of the stated size."""
    with refuses(InstanceFormatError, message):
        load_qaplib_solution(write(tmp_path, content))


def test_costs_beyond_64_bits_are_exact():
    """Where the bound does not fit 64 bits the sum is taken in Python integers."""
    far = np.full((4, 4), 10**18, np.int64)
    instance = QAPInstance(name="x", flow=np.full((4, 4), -(10**17), np.int64), distance=far)
    assert instance.cost([3, 1, 0, 2]) == -16 * 10**35
    np.fill_diagonal(far, 0)
    instance = TSPInstance(name="x", edge_weight_type="EXPLICIT", matrix=far)
    assert instance.tour_length(np.arange(4)) == 4 * 10**18


def test_qap_instances_check_their_arrays():
    """Both matrices are square, of one size, and 64-bit integers."""
    for flow in (np.zeros((2, 3), np.int64), np.zeros((2, 2)), np.zeros((3, 3), np.int64)):
        with pytest.raises(ValueError, match="flow|distance has shape"):
            QAPInstance(name="x", flow=flow, distance=np.zeros((2, 2), np.int64))


@pytest.mark.parametrize(
    "content",
    [
        "c a comment\np edge 4 2\ne 1 2\ne 4 2\n",
        "p edge 4 4\ne 1 2\ne 2 1\ne 4 2\ne 2 4\n",
        "p edge 4 2\ne 1 2\ne 2 1\ne 4 2\ne 2 4\n",
        "p col 4 4\ne 1 2\ne 4 2\n",
        "p edge 4 3\ne 1 2\ne 2 1\ne 4 2\n",
        "4 2\n1 2 1\n4 2\n",
    ],
    ids=["dimacs", "both ways", "both, counted once", "once, counted twice", "one twice", "g-set"],
)
def test_graphs(content, tmp_path):
    """Vertices count from 0; DIMACS may give an edge both ways, and count it once or twice."""
    (tmp_path / "x.col").write_text(content)
    graph = load_graph(tmp_path / "x.col")
    assert (graph.n, graph.edges.tolist()) == (4, [[0, 1], [1, 3]])
    assert graph.weights.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("p edge 3\n", "1: '3', expected N M, integers"),
        ("\n-3 0\n", "2: N is -3, expected 1 to"),
        ("p edge 3 1\ne 1 4\n", "2: the edge 1-4, expected two vertices from 1 to 3"),
        ("3 2\n1 2 -1\n2 1 1\n", "3: the edge 2-1 again"),
        ("3 2\n1 2 4\n", "3: 1 edges, expected 2"),
        ("p edge 4 5\ne 1 2\ne 2 3\ne 3 4\n", "5: 3 edges, expected 5"),
    ],
)
def test_bad_graphs_are_refused(content, message, tmp_path):
    """With the line."""
    (tmp_path / "x.col").write_text(content)
    with pytest.raises(InstanceFormatError, match=re.escape(f"x.col:{message}")):
        load_graph(tmp_path / "x.col")


def test_quadratic_forms_are_read_in_order(tmp_path):
    """However the numbers are broken into lines; entries below the diagonal, too."""
    path = tmp_path / "bqp.txt"
    path.write_text("2\n3 2\n1 1 5\n3 2 -7\n 1 1 1\n1 -4\n")
    first, second = load_bqp(path)
    assert first.tolist() == [[5, 0, 0], [0, 0, -7], [0, -7, 0]] and second.tolist() == [[-4]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1\n3 2\n1 1 5\n", ":4: the end, expected 2 entries"),
        ("1\n3 1\n1\n4 5\n", ":4: '4', expected 1 to 3"),
        ("1\n3 1\n0 1 5\n", ":3: '0', expected 1 to 3"),
        ("1\n0 1\n", ":2: '0', expected N M, 1 to"),
        ("1\n3 -1\n", ":2: '-1', expected N M, 0 to"),
        ("-1\n", ":1: '-1', expected a number of problems"),
        ("2\n1 0\n", "the end, expected N M"),
        ("1\n1 0\n9\n", ":3: '9', expected the end"),
        ("1\n2 2\n1 2 5\n2 1 5\n", "expected each entry once"),
        ("1\n1 0.5\n", ":2: '0.5' among"),
    ],
)
def test_bad_quadratic_forms_are_refused(content, message, tmp_path):
    """With the line."""
    path = tmp_path / "bqp.txt"
    path.write_text(content)
    with pytest.raises(InstanceFormatError, match=re.escape(message)):
        load_bqp(path)


def test_assignment_problems_are_read_in_order(tmp_path):
    """Several behind their number, or one without; what does not add up is refused by line."""
    path = tmp_path / "gap.txt"
    one, other = "1 2\n5 -6\n7 8\n9\n", "2 1\n1\n2\n3\n4\n5 6\n"
    for content, number in ((f"2\n{one}{other}", 2), (one, 1), (f"1\n{one}", 1)):
        path.write_text(content)
        found = load_gap(path)
        assert [part.tolist() for part in found[0]] == [[[5, -6]], [[7, 8]], [9]]
        assert len(found) == number
    costs, loads, capacities = (part.tolist() for part in load_gap(write(tmp_path, other))[0])
    assert (costs, loads, capacities) == ([[1], [2]], [[3], [4]], [5, 6])
    for content, message in (
        (f"2\n{one}", ":6: the end, expected numbers of agents and jobs"),
        (f"1\n{one}3", ":6: '3', expected the end"),
        ("1\n2 2\n1 2 3", ":3: the end, expected 2 x 2 costs"),
        ("1\n0 2\n", ":2: '0', expected numbers of agents and jobs, 1 to"),
    ):
        path.write_text(content)
        with pytest.raises(InstanceFormatError, match=re.escape(message)):
            load_gap(path)
