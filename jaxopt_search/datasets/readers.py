"""Strict readers of files of instances: one clear line with file and line number, or numbers.

Reinelt, TSPLIB95, 1995; Burkard, Karisch and Rendl, QAPLIB, 1997. Files are not trusted. Python's
`int` and `float` accept `1_000`, `nan`, `0x1F` (with a base) and digits of any script, so each
token is matched against a pattern of plain ASCII numbers first. Everything works on bytes.
"""

import io
import itertools
import os
import pathlib
import re
from collections.abc import Iterator, Sequence
from typing import BinaryIO

import numpy as np

from jaxopt_search.checks import MAX_INT32
from jaxopt_search.datasets import distances
from jaxopt_search.datasets.generators import MAX_VARIABLES
from jaxopt_search.datasets.instances import MAX_FLOAT, GraphInstance, QAPInstance, TSPInstance
from jaxopt_search.errors import InstanceFormatError, UnsupportedInstance
from jaxopt_search.files import check_regular

__all__ = [
    "load_bqp",
    "load_gap",
    "load_graph",
    "load_labels",
    "load_qaplib",
    "load_qaplib_solution",
    "load_tour",
    "load_tsplib",
    "orient",
]

MAX_BYTES = 256 * 2**20
"""Larger files are refused."""

INTEGER = re.compile(rb"[+-]?[0-9]{1,18}")
REAL = re.compile(rb"[+-]?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[eE][+-]?[0-9]{1,4})?")
_TOKEN = re.compile(rb"\S+")
# As many numbers as there are; nothing is tried twice.
_INTEGERS, _REALS = (
    re.compile(rb"(?:\s*+%b(?!\S))*+\s*+" % one.pattern) for one in (INTEGER, REAL)
)

_KEYWORD = re.compile(rb"^[ \t]*([A-Z][A-Z0-9_]*)[ \t]*(?::(.*))?$", re.MULTILINE)
_KEY = re.compile(
    "NAME|TYPE|COMMENT|DIMENSION|CAPACITY|EDGE_WEIGHT_TYPE|EDGE_WEIGHT_FORMAT|EDGE_DATA_FORMAT"
    "|NODE_COORD_TYPE|DISPLAY_DATA_TYPE"
)
_SECTION = re.compile(
    "(NODE_COORD|EDGE_WEIGHT|DISPLAY_DATA|FIXED_EDGES|TOUR|DEPOT|DEMAND|EDGE_DATA)_SECTION"
)
_READ = ("NODE_COORD_SECTION", "EDGE_WEIGHT_SECTION", "DISPLAY_DATA_SECTION")

# For symmetric matrices a column form is the row form of the other triangle.
_LOWER = ("LOWER_ROW", "UPPER_COL", "LOWER_DIAG_ROW", "UPPER_DIAG_COL")
_UPPER = ("UPPER_ROW", "LOWER_COL", "UPPER_DIAG_ROW", "LOWER_DIAG_COL")
_FORMATS = ("FULL_MATRIX", *_LOWER, *_UPPER)


class Source:
    """The bytes of a text file, with errors that name file and line.

    Attributes:
      path: the path as given.
      data: the content, each line ending turned into a line feed.
    """

    def __init__(self, path: str | os.PathLike, what: str, stream: BinaryIO | None = None):
        """Reads the file, or in its place a stream, which `path` then only names."""
        self.path = os.fspath(path)
        if "\0" in self.path:
            raise ValueError(f"path is {self.path!r}, expected a path without NUL")
        self.data = b""
        if stream is None:
            check_regular(path)
            with open(path, "rb") as file:
                data = file.read(MAX_BYTES + 1)
        else:
            data = stream.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise self.error(0, f"the file is larger, expected at most {MAX_BYTES} bytes")
        if data.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise self.error(0, f"the file is UTF-16, expected {what} in ASCII")
        if b"\0" in data:
            raise self.error(0, f"the file is binary (it has NUL bytes), expected {what}")
        data = data.removeprefix(b"\xef\xbb\xbf")
        self.data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if not self.data.strip():
            raise self.error(0, f"the file is empty, expected {what}")

    def error(self, position: int, message: str) -> InstanceFormatError:
        """Returns the error to raise for the text at `position` in `data`."""
        return InstanceFormatError(f"{self.path}:{self.line(position)}: {message}")

    def unsupported(self, position: int, message: str) -> UnsupportedInstance:
        """Returns the error to raise for a well-formed file that is not read."""
        return UnsupportedInstance(f"{self.path}:{self.line(position)}: {message}")

    def line(self, position: int) -> int:
        """Returns the line, from 1, of a position in `data`."""
        return self.data.count(b"\n", 0, position) + 1

    def lines(self, start: int, stop: int) -> Iterator[tuple[int, bytes]]:
        """Yields position and content of the lines in `data[start:stop]` that are not blank."""
        position = start
        for line in io.BytesIO(self.data[start:stop]):
            if not line.isspace():
                yield position, line
            position += len(line)

    def numbers(
        self, start: int, stop: int, counts: Sequence[int], what: str, is_matrix: bool = False
    ) -> np.ndarray:
        """Returns the numbers in `data[start:stop]`, where nothing else may stand.

        Args:
          start, stop: the part of `data` to read.
          counts: how many numbers are right, ascending.
          what: the words for them in errors.
          is_matrix: whether they are weights of TSPLIB, which may have decimal points, and behind
            which more may follow.

        Returns:
          [m] int64, m in `counts`; float64 if any is no integer.

        Raises:
          InstanceFormatError: a token is no such number, or there are too few or too many.
        """

        def reach(pattern: re.Pattern[bytes]) -> int:
            match = pattern.match(self.data, start, stop)
            return match.end() if match else start

        end, dtype, most = reach(_INTEGERS), np.int64, counts[-1]
        if is_matrix and end < stop:
            end, dtype = reach(_REALS), np.float64
        # Nothing but white space would be taken for a number.
        values = np.fromstring(self.data[start:end].strip(), dtype, sep=" ")
        wrong = [len(values)] if end < stop else []  # tokens by number
        wrong += [most] if len(values) > most else []
        if dtype is np.float64:
            wrong += np.flatnonzero(np.abs(values) > MAX_FLOAT).tolist()
        if wrong:
            number = min(wrong)
            match = list(itertools.islice(_TOKEN.finditer(self.data, start), number + 1))[-1]
            expected = "a section or EOF" if is_matrix else "the end"
            found = f"follows the last of {what}, expected {expected}"
            if number < most:
                found = f"among {what}, expected an integer of at most 18 digits"
                found += ", or a number of at most 1e12 in magnitude" if is_matrix else ""
            raise self.error(match.start(), f"{show(match.group())} {found}")
        if len(values) not in counts:
            expected = " or ".join(map(str, counts))
            last = start + len(self.data[start:stop].rstrip())
            raise self.error(last, f"found {len(values)} numbers for {what}, expected {expected}")
        return values


def _is_real(token: bytes) -> bool:
    """Returns whether a token is a real number up to 1e12."""
    return bool(REAL.fullmatch(token)) and abs(float(token)) <= MAX_FLOAT


def show(token: bytes) -> str:
    """Returns a token in quotes, in ASCII and of bounded length, to stand in a message."""
    text = ascii(token[:41].decode("utf-8", "replace"))
    return text if len(token) <= 40 else f"{text[:40]}...'"


def load_tsplib(path: str | os.PathLike) -> TSPInstance:
    """Returns the instance in a TSPLIB file.

    Read are TYPE TSP and ATSP with EUC_2D, CEIL_2D, ATT, GEO, MAN_2D, MAX_2D or EXACT_2D (not
    rounded) coordinates, or an EXPLICIT matrix in any of TSPLIB's forms, which only TYPE ATSP may
    have asymmetric; decimals make it float64. Nodes are
    placed by their ids, which are `1..n` or `0..n-1` in any order; city `i` of the instance is the
    node with the i-th smallest id. The diagonal of a matrix is set to zero, whatever the file says.
    Display data is checked and left out. GEO minutes of 60 and more are used as they stand, as
    TSPLIB's own formula does.

    Args:
      path: the file; the name of the instance is the file's name without its ending, as NAME is
        wrong in some TSPLIB files.

    Raises:
      InstanceFormatError: the file breaks the format; the message names the line.
      UnsupportedInstance: another problem type, edge weight type or section.
      OSError: the file cannot be read.

    Example:
      >>> import tempfile
      >>> path = pathlib.Path(tempfile.mkdtemp(), "corner.tsp")
      >>> lines = ["TYPE: TSP", "DIMENSION: 3", "EDGE_WEIGHT_TYPE: EUC_2D", "NODE_COORD_SECTION"]
      >>> _ = path.write_text("\\n".join([*lines, "1 0 0", "2 3 0", "3 0 4", "EOF"]))
      >>> instance = load_tsplib(path)
      >>> instance.name, instance.distances().tolist()
      ('corner', [[0, 3, 4], [3, 0, 5], [4, 5, 0]])
    """
    file = _Tsplib(path, ("TSP", "ATSP"), "a TSPLIB instance")
    kind = file.choice("EDGE_WEIGHT_TYPE", (*distances.EDGE_WEIGHTS, "EXPLICIT"))
    n = file.dimension()
    for section, (start, _) in file.sections.items():
        if section not in _READ:
            raise file.source.unsupported(start, f"{section} is not supported")
    is_explicit, has_places = kind == "EXPLICIT", "NODE_COORD_SECTION" in file.sections
    matrix = file.matrix(n, is_symmetric=file.kind == "TSP") if is_explicit else None
    places = None if is_explicit and not has_places else file.nodes("NODE_COORD_SECTION", n)
    if not is_explicit and "EDGE_WEIGHT_SECTION" in file.sections:
        message = f"EDGE_WEIGHT_SECTION under EDGE_WEIGHT_TYPE {kind}, expected EXPLICIT"
        raise file.source.error(file.sections["EDGE_WEIGHT_SECTION"][0], message)
    if "DISPLAY_DATA_SECTION" in file.sections:
        file.nodes("DISPLAY_DATA_SECTION", n)
    return TSPInstance(
        name=pathlib.Path(path).stem,
        edge_weight_type=kind,
        coordinates=None if is_explicit else places,
        matrix=matrix,
    )


def load_tour(path: str | os.PathLike) -> np.ndarray:
    """Returns the tour in a TSPLIB tour file.

    Args:
      path: the file: TYPE TOUR, a TOUR_SECTION of ids from 1, ended by -1.

    Returns:
      [n] int32, the city at each position, counted from 0.

    Raises:
      InstanceFormatError: the file breaks the format, or holds no permutation.
      OSError: the file cannot be read.

    Example:
      >>> import tempfile
      >>> path = pathlib.Path(tempfile.mkdtemp(), "small.tour")
      >>> _ = path.write_text("\\n".join(["TYPE: TOUR", "TOUR_SECTION", "1 3 2 -1", "EOF"]))
      >>> load_tour(path).tolist()
      [0, 2, 1]
    """
    file = _Tsplib(path, ("TOUR",), "a TSPLIB tour")
    source, (start, stop) = file.source, file.section("TOUR_SECTION")
    if "DIMENSION" in file.header:
        n = file.dimension()
    else:  # as in rd100.opt.tour
        n = max(1, len(source.data[start:stop].split()) - 1)
    numbers = source.numbers(start, stop, (n + 1,), f"a tour of {n} cities and -1")
    if numbers[-1] != -1:
        raise source.error(start, f"TOUR_SECTION ends with {numbers[-1]}, expected -1")
    tour = numbers[:-1]
    missing = np.setdiff1d(np.arange(1, n + 1), tour)
    if missing.size:
        raise source.error(start, f"the tour lacks city {missing[0]}, expected each of 1..{n} once")
    return (tour - 1).astype(np.int32)


class _Tsplib:
    """A file of TSPLIB, split into header lines and sections; nothing else may stand in it.

    Attributes:
      source: its bytes.
      kind: its TYPE.
      header: values of keys, with their positions.
      sections: where the bodies of sections begin and end.
    """

    def __init__(self, path: str | os.PathLike, kinds: tuple[str, ...], what: str):
        """Reads a file, whose TYPE must be one of these."""
        self.source = source = Source(path, what)
        self.header: dict[str, tuple[int, str]] = {}
        self.sections: dict[str, tuple[int, int]] = {}
        end, section = 0, None
        for match in _KEYWORD.finditer(source.data):
            self._close(section, end, match.start())
            end, section = match.end(), self._open(match)
            if match.group(1) == b"EOF":
                break
        self._close(section, end, len(source.data))
        expected = " or ".join(kinds)
        position, value = self.key("TYPE", expected)
        self.kind = value.partition(" ")[0]  # si175 has `TSP (M.~Hofmeister)`
        if self.kind not in kinds:
            name = show(value.encode())
            raise source.unsupported(position, f"TYPE {name} is not supported, expected {expected}")

    def _open(self, match: re.Match[bytes]) -> str | None:
        """Notes the value of a keyword, and returns the section that its line begins, if any."""
        keyword, value = match.group(1).decode(), match.group(2)
        is_empty = not (value or b"").strip()
        if keyword == "EOF" and is_empty:
            return None
        if keyword in self.sections or keyword in self.header:
            raise self.source.error(match.start(1), f"a second {keyword}, expected one")
        if is_empty and _SECTION.fullmatch(keyword):
            return keyword
        if value is None or not _KEY.fullmatch(keyword):
            raise self._junk(match.start(1))
        if keyword != "COMMENT":  # of which there may be several
            self.header[keyword] = match.start(1), value.strip().decode("utf-8", "replace")
        return None

    def _close(self, section: str | None, start: int, stop: int) -> None:
        """Ends the part from `start` on: a section takes the text, else there must be none."""
        if section is not None:
            self.sections[section] = start, stop
        elif rest := re.compile(rb"\S").search(self.source.data, start, stop):
            raise self._junk(rest.start())

    def _junk(self, position: int) -> InstanceFormatError:
        line = self.source.data[position : position + 200].splitlines()[0].rstrip()
        return self.source.error(position, f"{show(line)}, expected a TSPLIB keyword")

    def key(self, name: str, expected: str) -> tuple[int, str]:
        """Returns the position and the value of a key of the header."""
        if name not in self.header:
            raise self.source.error(0, f"{name} is missing, expected {expected}")
        return self.header[name]

    def choice(self, name: str, options: tuple[str, ...]) -> str:
        """Returns the value of a key that has to be one of these."""
        expected = f"one of {', '.join(options)}"
        position, value = self.key(name, expected)
        if value not in options:
            message = f"{name} {show(value.encode())} is not supported, expected {expected}"
            raise self.source.unsupported(position, message)
        return value

    def section(self, name: str) -> tuple[int, int]:
        """Returns where the body of a section begins and ends."""
        if name not in self.sections:
            end = len(self.source.data.rstrip())
            raise self.source.error(end, f"{name} is missing, expected one")
        return self.sections[name]

    def dimension(self) -> int:
        position, value = self.key("DIMENSION", "a positive integer")
        if not INTEGER.fullmatch(value.encode()) or int(value) < 1:
            message = f"DIMENSION is {show(value.encode())}, expected a positive integer"
            raise self.source.error(position, message)
        return int(value)

    def nodes(self, section: str, n: int) -> np.ndarray:
        """Returns the [n, 2] float64 coordinates of a section of lines `id x y`, ordered by id."""
        source, (start, stop) = self.source, self.section(section)
        places, last = dict[int, list[float]](), start
        for last, line in source.lines(start, stop):
            number, *place = line.split(None, 3)
            if not INTEGER.fullmatch(number) or len(place) != 2 or not all(map(_is_real, place)):
                expected = "expected a node id and two numbers of at most 1e12 in magnitude"
                raise source.error(last, f"{show(line.strip())} in {section}, {expected}")
            if (node := int(number)) in places:
                raise source.error(last, f"node {node} appears twice, expected it once")
            places[node] = list(map(float, place))
        ids = sorted(places)
        if len(ids) != n or ids[0] not in (0, 1) or ids[-1] - ids[0] != n - 1:
            found = f"{len(ids)} nodes in {section}, {ids[:1]} to {ids[-1:]}"
            raise source.error(last, f"{found}, expected 1..{n} (DIMENSION is {n}), each once")
        return np.array([places[node] for node in ids], np.float64)

    def matrix(self, n: int, is_symmetric: bool) -> np.ndarray:
        """Returns the [n, n] matrix of an EDGE_WEIGHT_SECTION, its diagonal set to zero."""
        form = self.choice("EDGE_WEIGHT_FORMAT", _FORMATS)
        start, stop = self.section("EDGE_WEIGHT_SECTION")
        is_full, what = form == "FULL_MATRIX", f"{form} of {n} cities"
        count = n * n if is_full else n * (n + 1 if "DIAG" in form else n - 1) // 2
        numbers = self.source.numbers(start, stop, (count,), what, is_matrix=True)
        if is_full:
            matrix = numbers.reshape(n, n)
        else:
            matrix, offset = np.zeros((n, n), numbers.dtype), int("DIAG" not in form)
            listed = np.triu_indices(n, offset) if form in _UPPER else np.tril_indices(n, -offset)
            matrix[listed] = matrix.T[listed] = numbers
        if is_symmetric and (differs := np.argwhere(matrix != matrix.T)).size:
            i, j = differs[0]
            message = f"FULL_MATRIX has {matrix[i, j]} at ({i + 1}, {j + 1}) and {matrix[j, i]} at"
            message += f" ({j + 1}, {i + 1}), expected a symmetric matrix under TYPE TSP"
            raise self.source.error(start, message)
        np.fill_diagonal(matrix, 0)
        return matrix


def load_qaplib(path: str | os.PathLike) -> QAPInstance:
    """Returns the instance in a QAPLIB file: n, the matrix A, the matrix B.

    Line breaks mean nothing. Matrices may be asymmetric, have nonzero diagonals and hold negative
    numbers. A is taken as flow and B as distance, whatever the family calls them: the cost is the
    sum of `A[i, j] * B[p[i], p[j]]`. Some public copies put the best known cost after n, in its
    line or in one of its own; it becomes `best_known`, unproved. A surplus number anywhere else is
    an error.

    Args:
      path: the file; the name of the instance is the file's name without its ending.

    Raises:
      InstanceFormatError: the file breaks the format; the message names the line.
      OSError: the file cannot be read.

    Example:
      >>> import tempfile
      >>> path = pathlib.Path(tempfile.mkdtemp(), "two.dat")
      >>> _ = path.write_text("2   0 5  1 0   0 3  2 0")
      >>> instance = load_qaplib(path)
      >>> instance.name, instance.flow.tolist(), instance.distance.tolist()
      ('two', [[0, 5], [1, 0]], [[0, 3], [2, 0]])
    """
    file, best_known = _Integers(path, "a QAPLIB instance"), None
    n = file.next("n, a positive integer")
    if len(file.numbers) == 2 * n * n + 2 and _has_best_known(file.source):
        best_known = file.take(1, "a cost").item()
    flow, distance = (file.take(n * n, f"two {n} x {n} matrices").reshape(n, n) for _ in range(2))
    file.end()
    name = pathlib.Path(path).stem
    return QAPInstance(name=name, flow=flow, distance=distance, best_known=best_known)


def load_qaplib_solution(path: str | os.PathLike) -> tuple[int, int, np.ndarray]:
    """Returns size, stated cost and permutation of a QAPLIB solution file.

    The permutation may be written from 1 or from 0, and with commas. QAPLIB does not say whether
    it maps A's indices to B's or back, and its files do both: pass the result to `orient` before
    use. The stated cost is not checked here.

    Args:
      path: the file.

    Returns:
      n, the value, and the permutation, [n] int32, counted from 0, as it stands in the file.

    Raises:
      InstanceFormatError: the file breaks the format, or holds no permutation.
      OSError: the file cannot be read.

    Example:
      >>> import tempfile
      >>> path = pathlib.Path(tempfile.mkdtemp(), "three.sln")
      >>> _ = path.write_text("3 218  3 1 2")
      >>> load_qaplib_solution(path)
      (3, 218, array([2, 0, 1], dtype=int32))
    """
    file = _Integers(path, "a QAPLIB solution", has_commas=True)
    n = file.next("n, a positive integer")
    value, permutation = (file.take(m, f"the value and a permutation of {n}") for m in (1, n))
    file.end()
    base = int(permutation.min())
    if base not in (0, 1) or not np.array_equal(np.sort(permutation), np.arange(base, base + n)):
        raise file.error(2, f"expected each of 1..{n} or of 0..{n - 1} once")
    return n, value.item(), (permutation - base).astype(np.int32)


def orient(instance: QAPInstance, value: int, permutation: np.ndarray) -> np.ndarray:
    """Returns `permutation` or its inverse, whichever costs `value` on `instance`.

    A published permutation says nothing about its direction, so both are evaluated. If both give
    `value`, the permutation is returned as it is.

    Args:
      instance: the instance that the permutation solves.
      value: the stated cost.
      permutation: [n] integers, a permutation of `0..n-1`.

    Returns:
      [n] int32, an assignment in the sense of `QAPInstance.cost`.

    Raises:
      InstanceFormatError: neither costs `value`. This happens with published files: QAPLIB's
        solution of kra32 states 88900 and costs 88700.
      ValueError: `permutation` is no permutation of `0..n-1`.

    Example:
      >>> flow, distance = np.zeros((3, 3), np.int64), np.arange(9).reshape(3, 3)
      >>> flow[0, 1] = 1
      >>> instance = QAPInstance(name="three", flow=flow, distance=distance)
      >>> [orient(instance, value, np.array([1, 2, 0])).tolist() for value in (5, 6)]
      [[1, 2, 0], [2, 0, 1]]
    """
    direct = instance.cost(permutation)
    if direct == value:
        return np.asarray(permutation).astype(np.int32)
    inverse = np.argsort(permutation)
    if (other := instance.cost(inverse)) == value:
        return inverse.astype(np.int32)
    raise InstanceFormatError(
        f"{instance.name}: the permutation costs {direct} and its inverse {other}, expected {value}"
    )


def _has_best_known(source: Source) -> bool:
    """Returns whether a number stands by itself after n: in its line, or in one between others."""
    lines = itertools.islice(source.lines(0, len(source.data)), 3)
    first, second, third, *_ = [*(len(line.split(None, 2)) for _, line in lines), 0, 0]
    return first == 2 or (first == second == 1 and third > 1)


def load_graph(path: str | os.PathLike) -> GraphInstance:
    """Returns the graph in a file of DIMACS's coloring benchmark (`.col`) or of the G-set.

    In the one, lines are comments `c ...`, `p edge N M` and edges `e I J`, which may be given both
    ways, and M may count each edge once or twice; in the other, `N M` and then edges `I J` or
    `I J WEIGHT`. Vertices count from 1 there, and from 0 in the instance.

    Raises:
      InstanceFormatError: naming file and line, if it breaks its format.
      OSError: if it cannot be read.

    Example:
      >>> import pathlib, tempfile
      >>> path = pathlib.Path(tempfile.mkdtemp(), "path.col")
      >>> _ = path.write_text("p edge 3 2\\ne 1 2\\ne 3 2\\n")
      >>> load_graph(path).edges.tolist()
      [[0, 1], [1, 2]]
    """
    source = Source(path, "a graph")
    lines = ((at, line.split()) for at, line in source.lines(0, len(source.data)))
    lines = ((at, words) for at, words in lines if words[0] != b"c")
    at, head = next(lines, (0, []))
    is_dimacs = head[:1] == [b"p"]
    if is_dimacs and head[1:2] not in ([b"edge"], [b"edges"], [b"col"]):
        raise source.error(at, f"{show(b' '.join(head))}, expected p edge N M")
    n, num_edges = _integers_of(source, at, head[2:] if is_dimacs else head, (2,), "N M")
    if not 0 < n <= MAX_INT32:
        raise source.error(at, f"N is {n}, expected 1 to {MAX_INT32} vertices")
    found: dict[tuple[int, int], int] = {}
    number = 0
    for at, words in lines:
        if is_dimacs and words[0] != b"e":
            raise source.error(at, f"{show(words[0])}, expected an edge e I J")
        numbers = words[1:] if is_dimacs else words
        one, other, *weight = _integers_of(
            source, at, numbers, (2,) if is_dimacs else (2, 3), "an edge I J"
        )
        pair = min(one, other) - 1, max(one, other) - 1
        if not 0 <= pair[0] < pair[1] < n:
            raise source.error(at, f"the edge {one}-{other}, expected two vertices from 1 to {n}")
        if pair in found and not is_dimacs:
            raise source.error(at, f"the edge {one}-{other} again, expected each edge once")
        found[pair] = weight[0] if weight else 1
        number += 1
    if num_edges not in (number, len(found)) and not (is_dimacs and num_edges == 2 * len(found)):
        raise source.error(len(source.data), f"{number} edges, expected {num_edges}")
    return GraphInstance(
        name=pathlib.Path(path).stem,
        n=n,
        edges=np.array(list(found), np.int64).reshape(-1, 2),
        weights=np.array(list(found.values()), np.int64),
    )


def load_bqp(path: str | os.PathLike) -> list[np.ndarray]:
    """Returns the matrices of QUBOs in a file of Beasley's, such as `bqp2500`: to be maximized.

    Beasley, "Heuristic algorithms for the unconstrained binary quadratic programming problem",
    1998. A file has the number of problems and, for each, `N M` and M entries `I J VALUE` of a
    symmetric matrix, each once.

    Returns:
      A list of [n, n] int64, symmetric; `js.solve_qubo(-matrix)` maximizes.

    Raises:
      InstanceFormatError: naming file and line, if it breaks its format.
      OSError: if it cannot be read.

    Example:
      >>> import pathlib, tempfile
      >>> path = pathlib.Path(tempfile.mkdtemp(), "bqp2.txt")
      >>> _ = path.write_text("1\\n2 2\\n1 1 5\\n1 2 -3\\n")
      >>> load_bqp(path)[0].tolist()
      [[5, -3], [-3, 0]]
    """
    file, found = _Integers(path, "quadratic forms"), []
    for _ in range(file.next("a number of problems", least=0)):
        n = file.next("N M", most=MAX_VARIABLES)
        number = file.next("N M", least=0)
        at, entries = file.at, file.take(3 * number, f"{number} entries").reshape(-1, 3)
        wrong = np.argwhere((entries[:, :2] < 1) | (entries[:, :2] > n))
        if len(wrong):
            row, column = wrong[0].tolist()
            raise file.error(at + 3 * row + column, f"expected 1 to {n}")
        row, column, value = entries.T
        pairs = np.minimum(row, column) * (n + 1) + np.maximum(row, column)
        if len(np.unique(pairs)) < number:
            raise file.error(at, "expected each entry once")
        matrix = np.zeros((n, n), np.int64)
        matrix[row - 1, column - 1] = matrix[column - 1, row - 1] = value
        found.append(matrix)
    file.end()
    return found


def load_gap(path: str | os.PathLike) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Returns the generalized assignment problems in a file of the OR-Library, such as `gap1`.

    Beasley, "OR-Library: distributing test problems by electronic mail", 1990. A file has the
    number of problems in its first line and, for each, the numbers m of agents and n of jobs, the
    costs, the loads and the capacities. With m and n in the first line it has one problem, as files
    of Yagiura, Ibaraki and Glover, "A path relinking approach with ejection chains for the
    generalized assignment problem", 2006, do.

    Returns:
      A list of costs, [m, n], loads, [m, n], and capacities, [m], int64, in the order in which
      `js.solve_assignment` takes them. In `gap1` to `gap12` costs are profits: negate them.

    Raises:
      InstanceFormatError: naming file and line, if it breaks its format.
      OSError: if it cannot be read.

    Example:
      >>> import pathlib, tempfile
      >>> path = pathlib.Path(tempfile.mkdtemp(), "gap.txt")
      >>> _ = path.write_text("1\\n2 3\\n1 2 3\\n4 4 4\\n2 2 2\\n1 1 1\\n4 9\\n")
      >>> costs, loads, capacities = load_gap(path)[0]
      >>> costs.tolist(), capacities.tolist()
      ([[1, 2, 3], [4, 4, 4]], [4, 9])
    """
    file, found = _Integers(path, "assignment problems"), []
    for _ in range(file.next("a number of problems", least=0) if file.has_number_first() else 1):
        m, n = (file.next("numbers of agents and jobs") for _ in range(2))
        costs, loads = (file.take(m * n, f"{m} x {n} {name}") for name in ("costs", "loads"))
        capacities = file.take(m, f"{m} capacities")
        found.append((costs.reshape(m, n), loads.reshape(m, n), capacities))
    file.end()
    return found


class _Integers:
    """The integers of a file that has nothing else, in turn.

    Attributes:
      numbers: all of them, int64.
      at: the next one's.
    """

    def __init__(self, path: str | os.PathLike, what: str, has_commas: bool = False):
        self.source, self.at = Source(path, what), 0
        if has_commas:
            self.source.data = self.source.data.replace(b",", b" ")
        size = len(self.source.data)
        self.numbers = self.source.numbers(0, size, range(1, size + 1), what)

    def has_number_first(self) -> bool:
        """Returns whether the first line with anything in it has a single number."""
        return len(self.source.data.lstrip().splitlines()[0].split()) == 1

    def error(self, number: int, expected: str) -> InstanceFormatError:
        """Returns the error to raise for an integer, by its number in the file."""
        data = self.source.data
        token = next(itertools.islice(_TOKEN.finditer(data), number, None), None)
        position, shown = len(data), "the end"
        if token is not None:
            position, shown = token.start(), show(token.group())
        return self.source.error(position, f"{shown}, {expected}")

    def take(self, number: int, what: str) -> np.ndarray:
        """Returns as many of the next ones."""
        if self.at + number > len(self.numbers):
            raise self.error(len(self.numbers), f"expected {what}")
        self.at += number
        return self.numbers[self.at - number : self.at].copy()

    def next(self, what: str, least: int = 1, most: int = MAX_INT32) -> int:
        """Returns the next one, a number of something."""
        value = self.take(1, what).item()
        if not least <= value <= most:
            raise self.error(self.at - 1, f"expected {what}, {least} to {most}")
        return value

    def end(self) -> None:
        """Refuses further ones."""
        if self.at < len(self.numbers):
            raise self.error(self.at, "expected the end")


def _integers_of(
    source: Source, at: int, words: list[bytes], counts: tuple[int, ...], what: str
) -> list[int]:
    """Returns the integers of a line."""
    if len(words) not in counts or not all(map(INTEGER.fullmatch, words)):
        raise source.error(at, f"{show(b' '.join(words))}, expected {what}, integers")
    return list(map(int, words))


# Cities with good tours, for learning, as such sets are exchanged: a line for each instance, with
# the coordinates `x y x y ...`, the word `output`, and the tour `i j ... i`, closed and numbered
# from 1. Joshi, Laurent, Bresson, "An efficient graph convolutional network technique for the
# travelling salesman problem", 2019, have theirs so.


def label_line(points: np.ndarray, tour: np.ndarray) -> str:
    """Returns the line of an instance, without its end.

    Args:
      points: [n, 2] coordinates, which are written with all their digits.
      tour: [n] integers from 0.

    Example:
      >>> label_line(np.array([[0.5, 0.25], [0, 1], [1, 0]]), np.array([1, 0, 2]))
      '0.5 0.25 0.0 1.0 1.0 0.0 output 2 1 3 2'
    """
    closed = [*(tour + 1).tolist(), int(tour[0]) + 1]
    return " ".join([*map(repr, points.ravel().tolist()), "output", *map(str, closed)])


def load_labels(path: str | os.PathLike) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Reads instances with their tours, as `jaxopt-search labels` writes them: text, or .npz.

    Returns the coordinates, [n, 2] float64 each, and the tours, [n] int32 each, from 0.

    Raises:
      InstanceFormatError: with the line, for what is no instance with a closed tour of all cities.
      ValueError, OSError: if it is no file that can be read.

    Example:
      >>> import pathlib, tempfile
      >>> path = pathlib.Path(tempfile.mkdtemp(), "labels.txt")
      >>> _ = path.write_text("0.5 0.25 0 1 1 0 output 2 1 3 2\\n")
      >>> points, tours = load_labels(path)
      >>> points[0].tolist(), tours[0].tolist()
      ([[0.5, 0.25], [0.0, 1.0], [1.0, 0.0]], [1, 0, 2])
    """
    check_regular(path)
    if str(path).endswith(".npz"):
        with open(path, "rb") as file:
            try:
                archive = np.load(file)
                points = archive["points"].astype(np.float64, casting="same_kind")
                given = list(zip(points, archive["tours"], strict=True))
            except Exception as error:  # a torn file has many ways to fail
                what = f"no archive of points and tours: {error}"
                raise InstanceFormatError(f"{path}: {what}") from None
        pairs = [_checked(*one, f"{path}, instance {at}") for at, one in enumerate(given)]
    else:
        with open(path, encoding="ascii", errors="replace") as file:
            lines = [(at, line) for at, line in enumerate(file, start=1) if not line.isspace()]
        pairs = [label_of(line, f"{path}, line {at}") for at, line in lines]
    return [points for points, _ in pairs], [tour for _, tour in pairs]


def label_of(line: str, where: str) -> tuple[np.ndarray, np.ndarray]:
    """Returns the coordinates and the tour in a line; `where` it is, for errors."""
    given, word, order = line.partition(" output ")
    try:
        numbers, tour = np.array(given.split(), np.float64), np.array(order.split(), np.int64) - 1
    except (ValueError, OverflowError) as error:
        raise InstanceFormatError(f"{where}: {error}") from None
    if not word or "_" in line or len(numbers) % 2 or not len(tour) or tour[0] != tour[-1]:
        raise InstanceFormatError(f"{where}: expected coordinates, 'output' and a closed tour")
    return _checked(numbers.reshape(-1, 2), tour[:-1], where)


def _checked(points: np.ndarray, tour: np.ndarray, where: str) -> tuple[np.ndarray, np.ndarray]:
    n = np.size(tour)
    if points.shape != (n, 2) or not np.isfinite(points).all():
        raise InstanceFormatError(f"{where}: expected finite points, (n, 2)")
    if tour.shape != (n,) or (np.sort(tour) != np.arange(n)).any():
        raise InstanceFormatError(f"{where}: expected a tour of the {n} cities")
    return points.astype(np.float64), tour.astype(np.int32)
