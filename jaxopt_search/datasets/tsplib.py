"""Strict readers of TSPLIB instances and tours (Reinelt, TSPLIB95, 1995)."""

import dataclasses
import os
import pathlib
import re

import numpy as np

from jaxopt_search.datasets import distances
from jaxopt_search.datasets._tokens import INTEGER, MAX_BYTES, Source, parse_real, show
from jaxopt_search.datasets.instances import TSPInstance

_KEYWORD = re.compile(rb"^[ \t]*([A-Z][A-Z0-9_]*)[ \t]*(?::(.*))?$", re.MULTILINE)
_KEYS = [
    "NAME",
    "TYPE",
    "COMMENT",
    "DIMENSION",
    "CAPACITY",
    "EDGE_WEIGHT_TYPE",
    "EDGE_WEIGHT_FORMAT",
    "EDGE_DATA_FORMAT",
    "NODE_COORD_TYPE",
    "DISPLAY_DATA_TYPE",
]
_SECTIONS = [
    "NODE_COORD_SECTION",
    "EDGE_WEIGHT_SECTION",
    "DISPLAY_DATA_SECTION",
    "FIXED_EDGES_SECTION",
    "TOUR_SECTION",
    "DEPOT_SECTION",
    "DEMAND_SECTION",
    "EDGE_DATA_SECTION",
]
_READ = ("NODE_COORD_SECTION", "EDGE_WEIGHT_SECTION", "DISPLAY_DATA_SECTION", "FIXED_EDGES_SECTION")

# For symmetric matrices a column form is the row form of the other triangle.
_LOWER, _LOWER_DIAG = ("LOWER_ROW", "UPPER_COL"), ("LOWER_DIAG_ROW", "UPPER_DIAG_COL")
_UPPER, _UPPER_DIAG = ("UPPER_ROW", "LOWER_COL"), ("UPPER_DIAG_ROW", "LOWER_DIAG_COL")
_FORMATS = ("FULL_MATRIX", *_LOWER, *_LOWER_DIAG, *_UPPER, *_UPPER_DIAG)


def load_tsplib(
    path: str | os.PathLike, *, fixed_edges: str = "refuse", max_bytes: int = MAX_BYTES
) -> TSPInstance:
    """Returns the symmetric instance in a TSPLIB file.

    Read are TYPE TSP with EUC_2D, CEIL_2D, ATT or GEO coordinates, or an EXPLICIT integer matrix
    in any of TSPLIB's forms. Nodes are placed by their ids, which are `1..n` or `0..n-1` in any
    order; city `i` of the instance is the node with the i-th smallest id. The diagonal of a matrix
    is set to zero, whatever the file says. Display data is checked and left out. GEO minutes of 60
    and more are used as they stand, as TSPLIB's own formula does.

    Args:
      path: the file; the name of the instance is the file's name without its ending, as NAME is
        wrong in some TSPLIB files.
      fixed_edges: "refuse" a FIXED_EDGES_SECTION, or "ignore" it and return the unconstrained
        instance, whose optimum is another one.
      max_bytes: larger files are refused before they are read.

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
    if fixed_edges not in ("refuse", "ignore"):
        raise ValueError(f"fixed_edges is {fixed_edges!r}, expected 'refuse' or 'ignore'")
    source = Source(path, max_bytes, "a TSPLIB instance")
    parts = _parse(source)
    _require_type(source, parts, "TSP")
    weights = _edge_weight_type(source, parts)
    n = _dimension(source, parts)
    _check_sections(source, parts, _READ)
    if "FIXED_EDGES_SECTION" in parts.sections:
        _check_fixed_edges(source, parts, n, fixed_edges)
    coordinates, matrix = None, None
    if weights == "EXPLICIT":
        matrix = _matrix(source, parts, n)
        if "NODE_COORD_SECTION" in parts.sections:
            _nodes(source, parts, "NODE_COORD_SECTION", n)
    else:
        coordinates = _nodes(source, parts, "NODE_COORD_SECTION", n)
        if "EDGE_WEIGHT_SECTION" in parts.sections:
            start = parts.sections["EDGE_WEIGHT_SECTION"][0]
            message = f"EDGE_WEIGHT_SECTION under EDGE_WEIGHT_TYPE {weights}, expected EXPLICIT"
            raise source.error(start, message)
    if "DISPLAY_DATA_SECTION" in parts.sections:
        _nodes(source, parts, "DISPLAY_DATA_SECTION", n)
    return TSPInstance(
        name=pathlib.Path(path).stem,
        edge_weight_type=weights,
        coordinates=coordinates,
        matrix=matrix,
        comment=" ".join(parts.comments),
    )


def load_atsp(path: str | os.PathLike, *, max_bytes: int = MAX_BYTES) -> np.ndarray:
    """Returns the [n, n] int64 distances of a file of TYPE ATSP; zeros on the diagonal.

    It raises what `load_tsplib` does.

    Example:
      >>> import tempfile
      >>> path = pathlib.Path(tempfile.mkdtemp(), "two.atsp")
      >>> lines = ["TYPE: ATSP", "DIMENSION: 2", "EDGE_WEIGHT_TYPE: EXPLICIT"]
      >>> lines += ["EDGE_WEIGHT_FORMAT: FULL_MATRIX", "EDGE_WEIGHT_SECTION", "0 7", "3 0", "EOF"]
      >>> _ = path.write_text("\\n".join(lines))
      >>> load_atsp(path).tolist()
      [[0, 7], [3, 0]]
    """
    source = Source(path, max_bytes, "a TSPLIB instance")
    parts = _parse(source)
    _require_type(source, parts, "ATSP")
    _check_sections(source, parts, ("EDGE_WEIGHT_SECTION",))
    return _matrix(source, parts, _dimension(source, parts), is_symmetric=False)


def load_tour(path: str | os.PathLike, *, max_bytes: int = MAX_BYTES) -> np.ndarray:
    """Returns the tour in a TSPLIB tour file.

    Args:
      path: the file: TYPE TOUR, a TOUR_SECTION of ids from 1, ended by -1.
      max_bytes: larger files are refused before they are read.

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
    source = Source(path, max_bytes, "a TSPLIB tour")
    parts = _parse(source)
    _require_type(source, parts, "TOUR")
    start, stop = _section(source, parts, "TOUR_SECTION")
    if "DIMENSION" in parts.header:
        n = _dimension(source, parts, numbers_per_node=1)
    else:  # as in rd100.opt.tour
        n = max(1, len(source.data[start:stop].split()) - 1)
    numbers = source.integers(start, stop, (n + 1,), f"a tour of {n} cities and -1")
    if numbers[-1] != -1:
        raise source.error(start, f"TOUR_SECTION ends with {numbers[-1]}, expected -1")
    tour = numbers[:-1]
    counts = np.bincount(tour.clip(0, n + 1), minlength=n + 2)
    if not (counts[1 : n + 1] == 1).all():
        missing = int(np.argmax(counts[1 : n + 1] == 0)) + 1
        raise source.error(start, f"the tour lacks city {missing}, expected each of 1..{n} once")
    return (tour - 1).astype(np.int32)


@dataclasses.dataclass
class _Parts:
    """Header values with their positions, and the ranges of the sections' bodies."""

    header: dict[str, tuple[int, str]] = dataclasses.field(default_factory=dict)
    comments: list[str] = dataclasses.field(default_factory=list)
    sections: dict[str, tuple[int, int]] = dataclasses.field(default_factory=dict)


def _parse(source: Source) -> _Parts:
    """Splits a file into header lines and section bodies; nothing else may stand in it."""
    parts, position, section = _Parts(), 0, None
    for match in _KEYWORD.finditer(source.data):
        _close(source, parts, section, position, match.start())
        position, section = match.end(), None
        keyword, value = match.group(1).decode(), match.group(2)
        value = value if value is None else value.strip()
        if keyword == "EOF" and not value:
            _close(source, parts, None, position, len(source.data))
            return parts
        if keyword in _SECTIONS and not value:
            if keyword in parts.sections:
                raise source.error(match.start(1), f"a second {keyword}, expected one")
            section = keyword
        elif keyword in _KEYS and value is not None:
            text = value.decode("utf-8", "replace")
            if keyword == "COMMENT":
                parts.comments.append(text)
            elif keyword in parts.header:
                raise source.error(match.start(1), f"a second {keyword}, expected one")
            else:
                parts.header[keyword] = match.start(1), text
        else:
            raise _junk(source, match.start(1))
    _close(source, parts, section, position, len(source.data))
    return parts


def _close(source: Source, parts: _Parts, section: str | None, start: int, stop: int) -> None:
    """Ends what began at `start`: a section takes the text, else there must be none."""
    if section is not None:
        parts.sections[section] = start, stop
    elif rest := re.compile(rb"\S").search(source.data, start, stop):
        raise _junk(source, rest.start())


def _junk(source: Source, position: int):
    line = source.data[position : position + 200].splitlines()[0].rstrip()
    return source.error(position, f"{show(line)}, expected a TSPLIB keyword")


def _header(source: Source, parts: _Parts, key: str, expected: str) -> tuple[int, str]:
    if key not in parts.header:
        raise source.error(0, f"{key} is missing, expected {expected}")
    return parts.header[key]


def _require_type(source: Source, parts: _Parts, expected: str) -> None:
    position, value = _header(source, parts, "TYPE", expected)
    if value.split()[:1] != [expected]:  # si175 has `TSP (M.~Hofmeister)`
        name = show(value.encode())
        raise source.unsupported(position, f"TYPE {name} is not supported, expected {expected}")


def _check_sections(source: Source, parts: _Parts, known: tuple[str, ...]) -> None:
    for section, (start, _) in parts.sections.items():
        if section not in known:
            raise source.unsupported(start, f"{section} is not supported")


def _edge_weight_type(source: Source, parts: _Parts) -> str:
    supported = ", ".join([*distances.EDGE_WEIGHTS, "EXPLICIT"])
    position, value = _header(source, parts, "EDGE_WEIGHT_TYPE", f"one of {supported}")
    if value != "EXPLICIT" and value not in distances.EDGE_WEIGHTS:
        name = show(value.encode())
        message = f"EDGE_WEIGHT_TYPE {name} is not supported, expected one of {supported}"
        raise source.unsupported(position, message)
    if parts.header.get("NODE_COORD_TYPE", (0, ""))[1] == "THREED_COORDS":
        position = parts.header["NODE_COORD_TYPE"][0]
        raise source.unsupported(position, "NODE_COORD_TYPE 'THREED_COORDS' is not supported")
    return value


def _dimension(source: Source, parts: _Parts, numbers_per_node: int = 3) -> int:
    """Returns DIMENSION if the file can hold that many nodes at two bytes a number."""
    position, value = _header(source, parts, "DIMENSION", "a positive integer")
    token = value.encode()
    if not INTEGER.fullmatch(token) or int(token) < 1:
        raise source.error(position, f"DIMENSION is {show(token)}, expected a positive integer")
    n = int(token)
    needed = numbers_per_node * n
    if "EDGE_WEIGHT_SECTION" in parts.sections:
        needed = n * (n - 1) // 2
    if 2 * needed > source.size:
        raise source.error(
            position,
            f"DIMENSION is {n}, expected at most what {source.size} bytes can hold "
            f"({needed} numbers)",
        )
    return n


def _section(source: Source, parts: _Parts, name: str) -> tuple[int, int]:
    if name not in parts.sections:
        raise source.error(len(source.data.rstrip()), f"{name} is missing, expected one")
    return parts.sections[name]


def _nodes(source: Source, parts: _Parts, section: str, n: int) -> np.ndarray:
    """Returns the [n, 2] float64 coordinates of a section of lines `id x y`, ordered by id."""
    start, stop = _section(source, parts, section)
    coordinates = np.empty((n + 1, 2), np.float64)  # by id; ids are 0..n-1 or 1..n
    seen = np.full(n + 1, -1, np.int64)  # position of each id's line
    last = start
    for last, line in source.lines(start, stop):
        fields = line.split(None, 3)
        if len(fields) != 3:
            text = show(line.strip())
            raise source.error(last, f"{text} in {section}, expected a node id and two numbers")
        if not INTEGER.fullmatch(fields[0]):
            raise source.error(last, f"{show(fields[0])} as node id, expected an integer")
        node = int(fields[0])
        if not 0 <= node <= n:
            raise source.error(last, f"node {node}, expected ids 1..{n} (DIMENSION is {n})")
        if seen[node] >= 0:
            first = source.line(seen[node])
            message = f"node {node} appears twice (first in line {first}), expected it once"
            raise source.error(last, message)
        seen[node] = last
        what = f"coordinate of node {node}"
        coordinates[node, 0] = parse_real(source, last, fields[1], what)
        coordinates[node, 1] = parse_real(source, last, fields[2], what)
    missing = np.flatnonzero(seen < 0)
    if missing.size == 0:
        message = f"{n + 1} nodes, 0..{n}, in {section}, expected {n} (DIMENSION is {n})"
        raise source.error(last, message)
    if missing.size > 1 or missing[0] not in (0, n):
        node = missing[1] if missing[0] == 0 else missing[0]
        message = f"node {node} is missing in {section}, expected {n} nodes (DIMENSION is {n})"
        raise source.error(last, message)
    return np.delete(coordinates, missing[0], axis=0)


def _matrix(source: Source, parts: _Parts, n: int, is_symmetric: bool = True) -> np.ndarray:
    """Returns the [n, n] int64 matrix of an EDGE_WEIGHT_SECTION, its diagonal set to zero."""
    expected = f"one of {', '.join(_FORMATS)}"
    position, form = _header(source, parts, "EDGE_WEIGHT_FORMAT", expected)
    if form not in _FORMATS:
        name = show(form.encode())
        raise source.error(position, f"EDGE_WEIGHT_FORMAT is {name}, expected {expected}")
    start, stop = _section(source, parts, "EDGE_WEIGHT_SECTION")
    count = n * n
    if form != "FULL_MATRIX":
        count = n * (n + 1) // 2 if "DIAG" in form else n * (n - 1) // 2
    if 2 * count > source.size + 1:
        message = f"{form} of {n} cities, expected at most what {source.size} bytes can hold"
        raise source.error(position, f"{message} ({count} numbers)")
    numbers = source.integers(start, stop, (count,), f"{form} of {n} cities", "a section or EOF")
    if form == "FULL_MATRIX":
        matrix = numbers.reshape(n, n)
        if is_symmetric:
            _check_symmetric(source, start, matrix)
    else:
        matrix = _fill(numbers, n, form)
    np.fill_diagonal(matrix, 0)
    return matrix


def _fill(numbers: np.ndarray, n: int, form: str) -> np.ndarray:
    """Returns the symmetric matrix whose triangle is listed row by row in `numbers`."""
    matrix = np.zeros((n, n), np.int64)
    lower, diagonal = form in _LOWER + _LOWER_DIAG, int("DIAG" in form)
    position = 0
    for i in range(n):
        columns = slice(0, i + diagonal) if lower else slice(i + 1 - diagonal, n)
        width = columns.stop - columns.start
        matrix[i, columns] = matrix[columns, i] = numbers[position : position + width]
        position += width
    return matrix


def _check_symmetric(source: Source, position: int, matrix: np.ndarray) -> None:
    for i, row in enumerate(matrix):
        differs = np.flatnonzero(row != matrix[:, i])
        if differs.size:
            j = int(differs[0])
            message = (
                f"FULL_MATRIX has {row[j]} at ({i + 1}, {j + 1}) and {matrix[j, i]} at "
                f"({j + 1}, {i + 1}), expected a symmetric matrix under TYPE TSP"
            )
            raise source.error(position, message)


def _check_fixed_edges(source: Source, parts: _Parts, n: int, fixed_edges: str) -> None:
    start, stop = parts.sections["FIXED_EDGES_SECTION"]
    if fixed_edges == "refuse":
        message = "FIXED_EDGES_SECTION is not supported, expected none (see fixed_edges)"
        raise source.unsupported(start, message)
    tokens = [line for _, line in source.lines(start, stop)]
    pairs = [line.split(None, 2) for line in tokens[:-1]]
    good = bool(tokens) and tokens[-1].split() == [b"-1"] and len(pairs) <= n
    for pair in pairs:
        good = good and len(pair) == 2 and all(map(INTEGER.fullmatch, pair))
        good = good and all(1 <= int(node) <= n for node in pair)
    if not good:
        raise source.error(start, "malformed FIXED_EDGES_SECTION, expected pairs of ids and -1")
