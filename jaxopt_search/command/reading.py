"""Instances from files, told apart by the suffix and by the shape of their numbers."""

import contextlib
import csv
import io
import itertools
import pathlib
import re
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from jaxopt_search.checks import real_array
from jaxopt_search.datasets import load_qaplib, load_tsplib, registry
from jaxopt_search.datasets.instances import QAPInstance
from jaxopt_search.datasets.readers import INTEGER, REAL, Source, show
from jaxopt_search.errors import InstanceFormatError
from jaxopt_search.files import check_regular
from jaxopt_search.problems.matrix_input import is_integral, may_be_rows

_SUFFIXES = (".tsp", ".atsp", ".dat", ".csv", ".npy")
_SHAPES = {
    None: "n x 2 (coordinates), n x n (distances) or 2n x n (flows above distances)",
    "tsp": "n x 2 or n x n",
    "matrix": "n x n",
    "qap": "2n x n",
}
_NOTE = " (columns {} and {})"
_INTEGER, _REAL = re.compile(INTEGER.pattern.decode()), re.compile(REAL.pattern.decode())
_WORDS = (  # in names of columns: for x, y and z, and for degrees
    "x xcoord xcoordinate easting east",
    "y ycoord ycoordinate northing north",
    "z zcoord zcoordinate",
    "lat latitude",
    "lon lng long longitude",
)
_MISSING = ("", "-", "inf", "+inf", "infinity", "na", "n/a", "nan", "none", "null")
_FEW = 10  # columns of a table of cities


class Wanted(NamedTuple):
    """What the user says of the numbers in a file.

    Attributes:
      kind: what they are to be, `"tsp"`, `"qap"` or `"matrix"`; None for what they look like.
      columns: of a table, the columns of the two coordinates: names, or numbers from 1.
      metric: the rule that gives distances; `"HAVERSINE"` has a table read by its latitudes and
        longitudes.
      forbidden: `"inf"` if distances may be infinite or missing, which is the same.
    """

    kind: str | None = None
    columns: tuple[str, ...] | None = None
    metric: str | None = None
    forbidden: str | None = None


_ANYTHING = Wanted()


class Instance(NamedTuple):
    """What is to be solved.

    Attributes:
      text: a description for people.
      kind: `"tsp"` or `"qap"`.
      data: the solver's first arguments: one instance or array, or the two matrices of a QAP.
      metric: as `solve_tsp` takes it.
      coordinates: [n, 2], to be drawn; None if there are none.
      is_integral: whether every solution costs an integer.
      names: of the cities; None if they have none.
    """

    text: str
    kind: str
    data: tuple[Any, ...]
    metric: str | None = None
    coordinates: np.ndarray | None = None
    is_integral: bool = True
    names: list[str] | None = None


def read(file: str, wanted: Wanted = _ANYTHING) -> Instance:
    """Returns the instance in a file, whose path may be `-` for a CSV from standard input.

    Raises:
      ValueError: the file breaks its format, is of no known one, or may be one thing or another.
      OSError: it cannot be read.
    """
    stream, (kind, columns, *_) = sys.stdin.buffer if file == "-" else None, wanted
    name = "standard input" if stream else file
    suffix = ".csv" if stream else pathlib.Path(file).suffix.lower()
    if suffix not in _SUFFIXES:
        found = f"the suffix {suffix!r}" if suffix else "no suffix"
        raise ValueError(f"{file}: {found}, expected one of {', '.join(_SUFFIXES)}")
    is_table, is_qap = suffix in (".csv", ".npy"), suffix == ".dat"
    if columns and (len(columns) != 2 or kind in ("qap", "matrix") or not is_table):
        other = f"none with --kind {kind}" if kind in ("qap", "matrix") else "two, of a table"
        raise ValueError(f"{name}: --columns is {','.join(columns)}, expected {other}")
    if is_table:
        if suffix == ".csv":
            source = Source(name, "a table of numbers", stream)
            numbers, note, names = _csv(source, wanted)
        else:
            (numbers, note), names = _npy(file, columns), None
        instance = _of_numbers(name, numbers, note, wanted)
        return instance._replace(names=names if instance.kind == "tsp" else None)
    if kind is not None and is_qap != (kind == "qap"):
        raise ValueError(f"{file}: --kind is {kind}, expected none or another for {suffix}")
    instance = load_qaplib(file) if is_qap else load_tsplib(file)
    instance = registry.with_record(instance, instance.name) or instance
    if isinstance(instance, QAPInstance):
        return Instance(f"QAP of {instance.n} facilities", "qap", (instance,))
    rule = f"coordinates ({instance.edge_weight_type})" if instance.matrix is None else "distances"
    text = f"{instance.n} cities with {rule}"
    return Instance(text, "tsp", (instance,), coordinates=instance.coordinates)


def _of_numbers(name: str, numbers: np.ndarray, note: str, wanted: Wanted) -> Instance:
    """Returns the instance that an array is by its shape.

    Args:
      note: which columns of a table they are; "" for all.
    """
    kind = wanted.kind
    rows, columns = numbers.shape
    bad = ~np.isfinite(numbers)
    if wanted.forbidden:
        bad &= numbers == -np.inf
    if rows == columns != 2:
        np.fill_diagonal(bad, False)  # which means nothing in distances
    if bad.any():
        row, column = np.argwhere(bad)[0]
        value = numbers[row, column]
        raise ValueError(
            f"{name}: row {row + 1}, column {column + 1}: {value} is not a finite number"
        )
    is_square, is_two = rows == columns > 0, rows == 2 * columns > 0
    if columns == 2 and rows > 0 and kind in (None, "tsp"):
        text = f"{rows} cities with coordinates{note}"
        return Instance(text, "tsp", (numbers,), "EUCLID", coordinates=numbers, is_integral=False)
    matrices = numbers.reshape(-1, columns, columns) if is_square or is_two else None
    if kind in (None, "tsp") and columns <= _FEW and matrices is not None and may_be_rows(matrices):
        expected = "--kind matrix" if is_square else "--kind qap"
        raise ValueError(
            f"{name}: the numbers are {rows} x {columns}, which may be a table of cities; expected"
            f" --columns such as 2,3 for their coordinates, or {expected}"
        )
    if is_square and kind != "qap":
        text = f"{rows} cities with distances"
        return Instance(text, "tsp", (numbers,), "MATRIX", is_integral=is_integral(numbers))
    if is_two and kind in (None, "qap"):
        text = f"QAP of {columns} facilities"
        return Instance(text, "qap", (*np.split(numbers, 2),), is_integral=is_integral(numbers))
    expected = f"{_SHAPES[kind]}, or --columns such as 2,3 for coordinates"
    raise ValueError(f"{name}: the numbers are {rows} x {columns}, expected {expected}")


def _npy(path: str, columns: tuple[str, ...] | None) -> tuple[np.ndarray, str]:
    """Returns the array in a file of NumPy's, and which columns it is.

    It is mapped, so that a false shape allocates nothing.
    """
    check_regular(path)
    try:
        numbers = real_array(np.lib.format.open_memmap(path, mode="r"), "the array")
    except OSError:
        raise
    except Exception as error:  # a header that is no good fails in many ways
        raise ValueError(f"{path}: no array of numbers: {error}") from error
    if numbers.ndim != 2:
        shape = " x ".join(map(str, numbers.shape)) or "a single number"
        raise ValueError(f"{path}: the numbers are {shape}, expected {_SHAPES[None]}")
    if columns is None:
        return numbers, ""
    chosen = [_place_of(one, [], numbers.shape[1]) for one in columns]
    return numbers[:, chosen], _NOTE.format(*columns)


def _csv(source: Source, wanted: Wanted) -> tuple[np.ndarray, str, list[str] | None]:
    """Returns the numbers of a CSV, [rows, columns] int64 or float64, which columns they are, and
    the names in the first column, if it has any.

    Commas, semicolons, tabs or spaces stand between them. A first line without a number is a
    header: where it names x and y, these columns are read and no others. A first column without a
    number has names.
    """
    lines = _fields(source)
    number, first = next(lines, (0, []))
    names: list[str] = []
    if first and not any(map(_is_number, first)) and any(name[:1].isalpha() for name in first):
        names = first
        number, first = next(lines, (0, []))
    if not first:
        raise source.error(0, "no numbers, expected a table of them")
    if len(names) != len(first):
        names = []  # but a title
    try:
        chosen = _chosen(names, len(first), wanted)
    except ValueError as error:
        raise InstanceFormatError(f"{source.path}:1: {error}") from None
    is_whole = chosen == list(range(len(first)))
    gaps = _MISSING if wanted.forbidden else ("",)
    is_labeled = first[0].lower() not in gaps and not _is_number(first[0])
    if is_labeled and is_whole and len(first) > 2:
        chosen = chosen[1:]
    rows: list[np.ndarray] = []
    labels: list[str] = []
    for line, fields in itertools.chain([(number, first)], lines):
        where = f"{source.path}:{line}"
        if len(fields) != len(first):
            text = f"{len(fields)} numbers, expected {len(first)} as in lines before"
            raise InstanceFormatError(f"{where}: {text}")
        labels.append(fields[0])
        texts = [fields[place] for place in chosen]
        bad = [text for text in texts if not _REAL.fullmatch(text)]
        if wanted.forbidden:
            texts = ["inf" if text.lower() in _MISSING else text for text in texts]
            bad = [text for text in bad if text.lower() not in _MISSING]
        if bad:
            hint = "; --columns such as 2,3 reads only those" if len(texts) > 2 else ""
            raise InstanceFormatError(f"{where}: {show(bad[0].encode())} is not a number{hint}")
        is_integer = all(map(_INTEGER.fullmatch, texts))
        rows.append(np.array(list(map(int if is_integer else float, texts))))
    told = wanted.columns or [names[place] for place in chosen if names]
    note = "" if is_whole else _NOTE.format(*told)
    return np.stack(rows), note, labels if is_labeled and 0 not in chosen else None


def _fields(source: Source) -> Iterator[tuple[int, list[str]]]:
    """Yields the number and the fields of each line that is not blank."""
    lines = (line.decode("utf-8", "replace") for line in io.BytesIO(source.data))
    separator = next((one for one in ";,\t" if one.encode() in source.data), None)
    if separator is None:
        found = ((number, line.split()) for number, line in enumerate(lines, 1))
    else:
        reader = csv.reader(lines, delimiter=separator, skipinitialspace=True)
        found = ((reader.line_num, fields) for fields in reader)
    try:
        for number, fields in found:
            if any(fields := [field.strip().strip("'\"") for field in fields]):
                yield number, fields
    except csv.Error as error:
        raise source.error(0, f"no table: {error}") from error


def _is_number(text: str) -> bool:
    """Returns whether anyone would take a text for a number, also `nan` and `1_000`."""
    with contextlib.suppress(ValueError):
        float(text)
        return True
    return False


def _chosen(names: list[str], width: int, wanted: Wanted) -> list[int]:
    """Returns which columns of a table are to be read: coordinates, or all.

    Raises:
      ValueError: if that is not clear.
    """
    if wanted.columns is not None:
        return [_place_of(one, names, width) for one in wanted.columns]
    if wanted.kind in ("matrix", "qap"):
        return list(range(width))
    words = [{name.lower(), *re.split(r"[^a-z]+", name.lower())} for name in names]
    x, y, z, latitude, longitude = (
        [place for place, some in enumerate(words) if some & set(known.split())] for known in _WORDS
    )
    if wanted.metric == "HAVERSINE" and len(latitude) == len(longitude) == 1:
        return [*latitude, *longitude]
    if len(x) == len(y) == 1 and x != y and not z:
        return [*x, *y]
    shown = ", ".join(names)
    if x or y or z:
        raise ValueError(f"which of {shown} are coordinates is not clear; expected --columns A,B")
    if latitude or longitude:
        raise ValueError(
            f"the columns {shown} have degrees; --metric HAVERSINE takes latitude and longitude,"
            " --columns two columns for x and y in the plane"
        )
    return list(range(width))


def _place_of(column: str, names: list[str], width: int) -> int:
    """Returns the index of a column, which has a name or a number from 1."""
    lower = [name.lower() for name in names]
    if lower.count(column.lower()) == 1:
        return lower.index(column.lower())
    if column.isdecimal() and 1 <= int(column) <= width:
        return int(column) - 1
    known = f"one of {', '.join(names)}, or " if names else ""
    raise ValueError(f"--columns has {column!r}, expected {known}a number from 1 to {width}")
