"""Files become instances by suffix and shape; bad ones are refused with the line."""

import io
import types

import numpy as np
import pytest
from probes import refuses

import jaxopt_search as js
from jaxopt_search.command import reading

COORDINATES = "0,0\n3,0\n3,4\n"
DISTANCES = "0,1,2\n1,0,3\n2,3,0\n"


def read(tmp_path, content, name="x.csv", kind=None, **options):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return reading.read(str(path), reading.Wanted(kind, **options))


@pytest.mark.parametrize(
    ("content", "kind", "expected"),
    [
        (COORDINATES, None, "coordinates"),
        (DISTANCES, None, "matrix"),
        ("0,1\n1,0\n", None, "coordinates"),
        ("0,1\n1,0\n", "matrix", "matrix"),
        ("0,1\n1,0\n0,2\n2,0\n", None, "coordinates"),
        ("0,1\n1,0\n0,2\n2,0\n", "qap", "qap"),
        ("7\n", None, "matrix"),
    ],
)
def test_the_shape_tells_what_numbers_are(content, kind, expected, tmp_path):
    """In a CSV and in an array of NumPy's alike; `--kind` decides where two would do."""
    table = np.loadtxt(io.StringIO(content), delimiter=",", dtype=int, ndmin=2)
    np.save(tmp_path / "y.npy", table)
    for found in (
        read(tmp_path, content, kind=kind),
        reading.read(f"{tmp_path}/y.npy", reading.Wanted(kind)),
    ):
        assert found.kind == ("qap" if expected == "qap" else "tsp")
        assert (found.metric == "MATRIX") == (expected == "matrix")
        assert (found.coordinates is not None) == (expected == "coordinates")
        assert np.array_equal(np.vstack(found.data), table)


@pytest.mark.parametrize(
    "content",
    [
        "x,y\n" + COORDINATES,
        '"city x","city y"\n' + COORDINATES,
        COORDINATES.replace(",", ";"),
        COORDINATES.replace(",", "  "),
        COORDINATES.replace("\n", "\r\n\r\n"),
        "\ufeff" + COORDINATES.rstrip(),
        "id,Y,X\n7,0,0\n8,0,3\n9,4,3\n",
        "x_coord\ty-coord\tdemand\tname\n0\t0\t1\tNew York\n3\t0\t1\tLa\n3\t4\t1\tB\n",
        'name;XCOORD.;YCOORD.\n"A;B";0;0\n;3;0\nC;3;4\n',
        "A,0,0\nB,3,0\nC,3,4\n",
    ],
)
def test_layouts_of_one_table(content, tmp_path):
    """Headers name columns; separators and line ends change nothing; integers stay integers."""
    (found,) = read(tmp_path, content).data
    assert found.tolist() == [[0, 0], [3, 0], [3, 4]]
    assert found.dtype == np.int64


IDS = "1,565,575\n2,25,185\n3,345,750\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (IDS, "3 x 3, which may be a table of cities; expected --columns"),
        ("lat,lon\n52.5,13.4\n48.1,11.6\n", "lat, lon have degrees"),
        ("x,y,z\n" + IDS, "which of x, y, z are coordinates"),
        ("565,575,A\n25,185,B\n", "line 1: 'A' is not a number; --columns"),
    ],
)
def test_a_table_that_may_be_something_else_is_refused(content, message, tmp_path):
    """In one line that names the way out, which works."""
    with pytest.raises(ValueError) as caught:
        read(tmp_path, content)
    assert message.removeprefix("line ") in str(caught.value) and "\n" not in str(caught.value)
    found = read(tmp_path, content, columns=("1" if content.startswith("x,d") else "2", "2"))
    assert found.data[0].shape[1] == 2 and found.metric == "EUCLID"


def test_a_matrix_with_names_and_edges_that_are_missing(tmp_path):
    """Names stand above and before distances; gaps are infinite if the user says so."""
    content = ",A,B,C\nA,0,2,inf\nB,2,0,\nC,NA,3,0\n"
    found = read(tmp_path, content, forbidden="inf")
    assert found.data[0].tolist() == [[0, 2, np.inf], [2, 0, np.inf], [np.inf, 3, 0]]
    assert found.metric == "MATRIX"
    with pytest.raises(ValueError, match="'inf' is not a number"):
        read(tmp_path, content)
    found = read(tmp_path, "NA,1,2\n1,NA,3\n2,3,NA\n", forbidden="inf")  # no names
    assert found.data[0].tolist() == [[np.inf, 1, 2], [1, np.inf, 3], [2, 3, np.inf]]
    np.save(tmp_path / "y.npy", np.array([[0, 1, np.nan], [1, 0, 2], [3, 4, 0]]))
    assert reading.read(f"{tmp_path}/y.npy", reading.Wanted(forbidden="inf")).metric == "MATRIX"


def test_degrees_are_read_as_latitude_and_longitude(tmp_path):
    """Whatever their order."""
    found = read(tmp_path, "city,lng,lat\nA,13.4,52.5\nB,11.6,48.1\n", metric="HAVERSINE")
    assert found.data[0].tolist() == [[52.5, 13.4], [48.1, 11.6]]


def test_columns_by_name_or_number(tmp_path):
    """What is read is told; `--kind` needs no columns."""
    found = read(tmp_path, "id,lat,lon\n" + IDS, columns=("LON", "2"))
    assert found.data[0].tolist() == [[575, 565], [185, 25], [750, 345]]
    assert found.text == "3 cities with coordinates (columns LON and 2)"
    np.save(tmp_path / "x.npy", np.arange(12).reshape(4, 3))
    found = reading.read(str(tmp_path / "x.npy"), reading.Wanted(columns=("2", "3")))
    assert found.data[0].tolist() == [[1, 2], [4, 5], [7, 8], [10, 11]]
    assert read(tmp_path, "id,x,y\n" + IDS, kind="matrix").metric == "MATRIX"
    for columns in (("x", "z"), ("0", "2"), ("2", "4")):
        with pytest.raises(ValueError, match="--columns has '[z04]', expected one of id, x, y, or"):
            read(tmp_path, "id,x,y\n" + IDS, columns=columns)


def test_large_integers_are_exact_and_fractions_are_floats(tmp_path):
    (found,) = read(tmp_path, "0,123456789012345678\n1,1\n").data
    assert found[0, 1] == 123456789012345678
    (found,) = read(tmp_path, "0,1\n.5,1e3\n2,2\n").data
    assert found.tolist() == [[0, 1], [0.5, 1000], [2, 2]]


BAD_TABLES = {
    "": "line 1: the file is empty",
    ",,\n,,\n": "",
    "0,0\n1,1\n1,abc\n": "line 3: 'abc' is not a number",
    "0,0\n\n1\n": "line 3: 1 numbers, expected 2",
    "1,2,3\n4,5,6\n": "the numbers are 2 x 3, expected n x 2",
    "0,0\n1,1e400\n": "row 2, column 2: inf is not a finite number",
    "0,0\n".encode("utf-16"): "line 1: the file is UTF-16",
}


@pytest.mark.parametrize("content", BAD_TABLES, ids=range(len(BAD_TABLES)))
def test_bad_tables_are_refused(content, tmp_path):
    with pytest.raises(ValueError) as caught:
        read(tmp_path, content)
    message = str(caught.value)
    assert message.startswith(str(tmp_path / "x.csv:")) and "\n" not in message
    assert BAD_TABLES[content].removeprefix("line ") in message


BAD_ARRAYS = {
    "objects": (np.array([[{}]]), "no array of numbers"),
    "nothing": (np.ones((0, 2)), "x.npy: "),
    "NaN": (np.array([[0, 0], [1, np.nan], [2, 2]]), "row 2, column 2: nan is not a finite"),
}


@pytest.mark.parametrize("case", BAD_ARRAYS)
def test_bad_arrays_are_refused(case, tmp_path):
    array, message = BAD_ARRAYS[case]
    np.save(tmp_path / "x.npy", array, allow_pickle=True)
    with pytest.raises(ValueError, match=message):
        reading.read(str(tmp_path / "x.npy"))


def test_an_array_that_claims_to_be_huge_is_refused(tmp_path):
    """By its size on disk: nothing is allocated. So is what is no array."""
    np.save(tmp_path / "x.npy", np.zeros((8, 2)))
    content = (tmp_path / "x.npy").read_bytes()
    for bad in (content.replace(b"(8, 2), ", b"(10**9,2),"), content[:-8], b"", b"PK\3\4zip"):
        with pytest.raises(ValueError, match="no array of numbers"):
            read(tmp_path, bad, "x.npy")
    huge = content.replace(b"(8, 2), }" + 9 * b" ", b"(8" + 9 * b"0" + b", 2), }")
    assert len(huge) == len(content) and huge != content
    with pytest.raises(ValueError, match="no array of numbers: mmap length"):
        read(tmp_path, huge, "x.npy")


def test_the_diagonal_of_distances_may_be_anything(tmp_path):
    """Tables of distances often have NaN or infinity there."""
    distances = np.ones((3, 3))
    np.fill_diagonal(distances, np.nan)
    np.save(tmp_path / "x.npy", distances)
    assert reading.read(str(tmp_path / "x.npy")).metric == "MATRIX"


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("x.xlsx", None, "the suffix '.xlsx', expected one of .tsp, .atsp, .dat, .csv, .npy"),
        ("x.csv", "qap", "the numbers are 3 x 2, expected 2n x n"),
    ],
)
def test_what_does_not_fit_is_refused(name, kind, message, tmp_path):
    with refuses(ValueError, message):
        read(tmp_path, COORDINATES, name, kind)


def test_standard_input_is_a_table(monkeypatch):
    monkeypatch.setattr("sys.stdin", types.SimpleNamespace(buffer=io.BytesIO(b"0,0\n1,x\n")))
    with pytest.raises(ValueError, match="standard input:2: 'x' is not a number"):
        reading.read("-")


def test_recorded_instances_have_their_best_known_cost(data_dir, tmp_path):
    """Told by their numbers: the same name with others has none."""
    (found,) = reading.read(str(data_dir / "tsplib" / "eil51.tsp")).data
    assert (found.best_known, found.is_optimal) == (426, True)
    text = (data_dir / "tsplib" / "eil51.tsp").read_text().replace("37 52", "38 52")
    (found,) = read(tmp_path, text, "eil51.tsp").data
    assert found.best_known is None


def test_libraries_of_instances_are_read_by_their_readers(tmp_path):
    """As `datasets` does; a matrix of TYPE ATSP comes as an array."""
    text = "TYPE: TSP\nDIMENSION: 3\nEDGE_WEIGHT_TYPE: EUC_2D\nNODE_COORD_SECTION\n"
    found = read(tmp_path, text + "1 0 0\n2 3 0\n3 3 4\nEOF\n", "x.tsp")
    assert isinstance(found.data[0], js.datasets.TSPInstance)
    assert found.coordinates.tolist() == [[0, 0], [3, 0], [3, 4]]
    found = read(tmp_path, "2  0 1 1 0  0 2 2 0", "x.DAT")
    assert (found.kind, found.data[0].n) == ("qap", 2)
    text = "TYPE: ATSP\nDIMENSION: 2\nEDGE_WEIGHT_TYPE: EXPLICIT\nEDGE_WEIGHT_FORMAT: FULL_MATRIX"
    found = read(tmp_path, f"{text}\nEDGE_WEIGHT_SECTION\n9 2\n3 9\nEOF\n", "x.atsp")
    assert found.data[0].matrix.tolist() == [[0, 2], [3, 0]]
