"""Instances from files, told apart by the suffix and by the shape of what is in them."""

import contextlib
import csv
import dataclasses
import io
import itertools
import pathlib
import re
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np

from jaxopt_search.checks import real_array
from jaxopt_search.datasets import load_atsp, load_qaplib, load_tsplib, registry
from jaxopt_search.datasets.instances import QAPInstance, TSPInstance, digest
from jaxopt_search.datasets.readers import INTEGER, MAX_BYTES, REAL, Source, show
from jaxopt_search.errors import InstanceFormatError
from jaxopt_search.files import check_regular
from jaxopt_search.problems.matrix_input import is_integral, may_be_rows

_SUFFIXES = (".tsp", ".atsp", ".dat", ".csv", ".npy")
_Recorded = TypeVar("_Recorded", TSPInstance, QAPInstance)
_SHAPES = "n x 2 (coordinates), n x n (distances) or 2n x n (flows above distances)"
_INTEGER, _REAL = re.compile(INTEGER.pattern.decode()), re.compile(REAL.pattern.decode())
_X = {"x", "xcoord", "xcoordinate", "easting", "east"}
_Y = {"y", "ycoord", "ycoordinate", "northing", "north"}
_Z = {"z", "zcoord", "zcoordinate"}
_DEGREES = {"lat", "latitude", "lon", "lng", "long", "longitude"}
_FEW = 10  # columns of a table of cities


class Instance(NamedTuple):
    """What is to be solved.

    Attributes:
      text: what has been read, for people.
      kind: `"tsp"` or `"qap"`.
      data: what the solver takes first: one instance or array, or the two matrices of a QAP.
      metric: as `solve_tsp` takes it.
      coordinates: [n, 2], to be drawn; None if there are none.
      is_integral: whether every solution costs an integer.
    """

    text: str
    kind: str
    data: tuple[Any, ...]
    metric: str | None = None
    coordinates: np.ndarray | None = None
    is_integral: bool = True


def read(file: str, kind: str | None = None, columns: tuple[str, str] | None = None) -> Instance:
    """Returns the instance in a file.

    Args:
      file: its path, or `-` for a CSV from standard input.
      kind: what it is to be, `"tsp"`, `"qap"` or `"matrix"`; None for what it looks like.
      columns: of a table, those of the coordinates: their names, or numbers from 1.

    Raises:
      ValueError: the file breaks its format, is of no known one, or may be one thing or another.
      OSError: it cannot be read.
    """
    path, suffix = pathlib.Path(file), pathlib.Path(file).suffix.lower()
    if columns and kind in ("qap", "matrix"):
        raise ValueError(f"--columns is {','.join(columns)} with --kind {kind}, expected none")
    if file == "-":
        stream = sys.stdin.buffer
        source = Source("standard input", MAX_BYTES, "a table of numbers", stream)
        return _of_numbers("standard input", *_csv(source, kind, columns), kind)
    if suffix not in _SUFFIXES:
        found = f"the suffix {suffix!r}" if suffix else "no suffix"
        raise ValueError(f"{file}: {found}, expected one of {', '.join(_SUFFIXES)}")
    if suffix == ".csv":
        source = Source(path, MAX_BYTES, "a table of numbers")
        return _of_numbers(file, *_csv(source, kind, columns), kind)
    if suffix == ".npy":
        return _of_numbers(file, *_npy(path, columns), kind)
    if columns:
        raise ValueError(f"{file}: --columns is {','.join(columns)}, expected none for {suffix}")
    is_qap = suffix == ".dat"
    if kind is not None and is_qap != (kind == "qap"):
        raise ValueError(f"{file}: --kind is {kind}, expected none or another for {suffix}")
    if is_qap:
        instance = _with_best_known(load_qaplib(path))
        return Instance(f"QAP of {instance.n} facilities", "qap", (instance,))
    if suffix == ".atsp":
        matrix = load_atsp(path)
        return Instance(f"{len(matrix)} cities with distances", "tsp", (matrix,), metric="MATRIX")
    instance = _with_best_known(load_tsplib(path))
    rule = f"coordinates ({instance.edge_weight_type})"
    text = "distances" if instance.matrix is not None else rule
    text = f"{instance.n} cities with {text}"
    return Instance(text, "tsp", (instance,), coordinates=instance.coordinates)


def _with_best_known(instance: _Recorded) -> _Recorded:
    """Returns an instance with the best known cost on record, if it is the recorded one."""
    entry = registry.entries().get(instance.name)
    if entry is None or entry.best_known is None or entry.digest != digest(instance):
        return instance
    return dataclasses.replace(instance, best_known=entry.best_known, is_optimal=entry.is_optimal)


def _of_numbers(name: str, numbers: np.ndarray, note: str, kind: str | None) -> Instance:
    """Returns the instance that an array is by its shape.

    Args:
      note: which columns of a table they are; "" for all.
    """
    rows, columns = numbers.shape
    _refuse_infinite(name, numbers)
    is_square, is_two = rows == columns > 0, rows == 2 * columns > 0
    if columns == 2 and rows > 0 and kind in (None, "tsp"):
        text = f"{rows} cities with coordinates{note}"
        return Instance(text, "tsp", (numbers,), coordinates=numbers, is_integral=False)
    matrices = numbers.reshape(-1, columns, columns) if is_square or is_two else None
    if kind in (None, "tsp") and columns <= _FEW and matrices is not None and may_be_rows(matrices):
        expected = "--kind matrix" if is_square else "--kind qap"
        raise ValueError(
            f"{name}: the numbers are {rows} x {columns}, which may be a table of cities; expected"
            f" --columns such as 2,3 for their coordinates, or {expected}"
        )
    if is_square and kind in (None, "tsp", "matrix"):
        text = f"{rows} cities with distances"
        return Instance(text, "tsp", (numbers,), "MATRIX", is_integral=is_integral(numbers))
    if is_two and kind in (None, "qap"):
        text = f"QAP of {columns} facilities"
        return Instance(text, "qap", (*np.split(numbers, 2),), is_integral=is_integral(numbers))
    expected = {
        None: f"{_SHAPES}, or --columns such as 2,3 for coordinates",
        "tsp": "n x 2 or n x n, or --columns such as 2,3 for coordinates",
        "matrix": "n x n",
        "qap": "2n x n",
    }[kind]
    raise ValueError(f"{name}: the numbers are {rows} x {columns}, expected {expected}")


def _refuse_infinite(name: str, numbers: np.ndarray) -> None:
    """Refuses what is not finite; on the diagonal of distances it means nothing."""
    bad = ~np.isfinite(numbers)
    if len(numbers) == numbers.shape[1] != 2:
        np.fill_diagonal(bad, False)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        value = numbers[row, column]
        where = f"row {row + 1}, column {column + 1}"
        raise ValueError(f"{name}: {where}: {value} is not a finite number")


def _npy(path: pathlib.Path, columns: tuple[str, str] | None) -> tuple[np.ndarray, str]:
    """Returns the array in a file of NumPy's, and which columns it is.

    It is mapped, so that a false shape allocates nothing.
    """
    check_regular(path)
    try:
        numbers = np.lib.format.open_memmap(path, mode="r")
        numbers = real_array(numbers, "the array")
    except OSError:
        raise
    except Exception as error:  # a header that is no good fails in many ways
        raise ValueError(f"{path}: no array of numbers: {error}") from error
    if numbers.ndim != 2:
        shape = " x ".join(map(str, numbers.shape)) or "a single number"
        raise ValueError(f"{path}: the numbers are {shape}, expected {_SHAPES}")
    if columns is None:
        return numbers, ""
    chosen = [_place_of(one, [], numbers.shape[1]) for one in columns]
    return numbers[:, chosen], _note(columns)


def _csv(
    source: Source, kind: str | None, columns: tuple[str, str] | None
) -> tuple[np.ndarray, str]:
    """Returns the numbers of a CSV, [rows, columns] int64 or float64, and which columns they are.

    Commas, semicolons, tabs or spaces stand between them. A first line without a number is a
    header: where it names x and y, these columns are read and no others.
    """
    lines = _fields(source)
    header: list[str] = []
    number, first = next(lines)
    if _is_header(first):
        header = [field.strip("'\"") for field in first]
        number, first = next(lines, (0, []))
    if not first:
        raise source.error(0, "no numbers, expected a table of them")
    names = header if len(header) == len(first) else []  # a title otherwise
    try:
        chosen = _chosen(names, len(first), kind, columns)
    except ValueError as error:
        raise InstanceFormatError(f"{source.path}:1: {error}") from None
    rows: list[np.ndarray] = []
    for line, fields in itertools.chain([(number, first)], lines):
        where = f"{source.path}:{line}"
        if len(fields) != len(first):
            text = f"{len(fields)} numbers, expected {len(first)} as in lines before"
            raise InstanceFormatError(f"{where}: {text}")
        texts = fields if chosen is None else [fields[place] for place in chosen]
        bad = next((text for text in texts if not _REAL.fullmatch(text)), None)
        if bad is not None:
            is_whole = chosen is None and len(first) > 2
            hint = "; --columns such as 2,3 reads only those" if is_whole else ""
            raise InstanceFormatError(f"{where}: {show(bad.encode())} is not a number{hint}")
        is_integer = all(map(_INTEGER.fullmatch, texts))
        rows.append(np.array(list(map(int if is_integer else float, texts))))
    if chosen is None or chosen == list(range(len(first))):
        return np.stack(rows), ""
    return np.stack(rows), _note(columns or [names[place] for place in chosen])


def _fields(source: Source) -> Iterator[tuple[int, list[str]]]:
    """Yields the number of each line that is not blank, and what stands in it."""
    lines = (line.decode("utf-8", "replace") for line in io.BytesIO(source.data))
    separator = next((one for one in ";,\t" if one.encode() in source.data), None)
    if separator is None:
        found = ((number, line.split()) for number, line in enumerate(lines, 1))
    else:
        reader = csv.reader(lines, delimiter=separator, skipinitialspace=True)
        found = ((reader.line_num, [one.strip() for one in fields]) for fields in reader)
    try:
        yield from ((number, fields) for number, fields in found if any(fields))
    except csv.Error as error:
        raise source.error(0, f"no table: {error}") from error


def _is_header(fields: list[str]) -> bool:
    """Returns whether there are letters, and nothing that anyone would take for a number."""
    for field in fields:
        with contextlib.suppress(ValueError):
            float(field)  # also `nan` and `1_000`
            return False
    return any(field[:1].isalpha() for field in (one.strip("'\"") for one in fields))


def _chosen(
    names: list[str], width: int, kind: str | None, columns: tuple[str, str] | None
) -> list[int] | None:
    """Returns which columns of a table are coordinates; None if all of it is to be read.

    Raises:
      ValueError: if that is not clear.
    """
    if columns is not None:
        return [_place_of(one, names, width) for one in columns]
    if kind in ("matrix", "qap") or not names:
        return None
    words = [{name.lower(), *re.split(r"[^a-z]+", name.lower())} for name in names]
    x, y, z, degrees = (
        [place for place, some in enumerate(words) if some & known]
        for known in (_X, _Y, _Z, _DEGREES)
    )
    if len(x) == len(y) == 1 and x != y and not z:
        return [*x, *y]
    shown = ", ".join(names)
    if x or y or z:
        raise ValueError(f"which of {shown} are coordinates is not clear; expected --columns A,B")
    if degrees:
        raise ValueError(
            f"the columns {shown} have degrees, between which no distances are computed: expected a"
            " matrix of distances; --columns would take degrees for x and y in the plane"
        )
    return None


def _place_of(column: str, names: list[str], width: int) -> int:
    """Returns the index of a column, which has a name or a number from 1."""
    lower = [name.lower() for name in names]
    if lower.count(column.lower()) == 1:
        return lower.index(column.lower())
    if column.isdecimal() and 1 <= int(column) <= width:
        return int(column) - 1
    known = f"one of {', '.join(names)}, or " if names else ""
    raise ValueError(f"--columns has {column!r}, expected {known}a number from 1 to {width}")


def _note(columns: Any) -> str:
    return f" (columns {columns[0]} and {columns[1]})"
