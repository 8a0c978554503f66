"""Instances from files, told apart by the suffix and by the shape of what is in them."""

import contextlib
import dataclasses
import os
import pathlib
import sys
from typing import Any, BinaryIO, NamedTuple, TypeVar

import numpy as np

from jaxopt_search.checks import real_array
from jaxopt_search.datasets import load_atsp, load_qaplib, load_tsplib, registry
from jaxopt_search.datasets._tokens import INTEGER, MAX_BYTES, REAL, Source, show
from jaxopt_search.datasets.instances import QAPInstance, TSPInstance, digest
from jaxopt_search.problems.matrix_input import is_integral

_SUFFIXES = (".tsp", ".atsp", ".dat", ".csv", ".npy")
_Recorded = TypeVar("_Recorded", TSPInstance, QAPInstance)
_SHAPES = "n x 2 (coordinates), n x n (distances) or 2n x n (flows above distances)"


class Instance(NamedTuple):
    """What is to be solved.

    Attributes:
      kind: `"tsp"` or `"qap"`.
      data: what the solver takes first: one instance or array, or the two matrices of a QAP.
      metric: as `solve_tsp` takes it.
      coordinates: [n, 2], to be drawn; None if there are none.
      is_integral: whether every solution costs an integer.
    """

    kind: str
    data: tuple[Any, ...]
    metric: str | None = None
    coordinates: np.ndarray | None = None
    is_integral: bool = True


def read(file: str, kind: str | None) -> Instance:
    """Returns the instance in a file.

    Args:
      file: its path, or `-` for a CSV from standard input.
      kind: what it is to be, `"tsp"`, `"qap"` or `"matrix"`; None for what it looks like.

    Raises:
      ValueError: the file breaks its format, or is of no known one.
      OSError: it cannot be read.
    """
    path, suffix = pathlib.Path(file), pathlib.Path(file).suffix.lower()
    if file == "-":
        return _of_numbers("standard input", _csv("standard input", sys.stdin.buffer), kind)
    if suffix not in _SUFFIXES:
        found = f"the suffix {suffix!r}" if suffix else "no suffix"
        raise ValueError(f"{file}: {found}, expected one of {', '.join(_SUFFIXES)}")
    if suffix in (".csv", ".npy"):
        return _of_numbers(file, _csv(path) if suffix == ".csv" else _npy(path), kind)
    is_qap = suffix == ".dat"
    if kind is not None and is_qap != (kind == "qap"):
        raise ValueError(f"{file}: --kind is {kind}, expected none or another for {suffix}")
    if is_qap:
        return Instance("qap", (_with_best_known(load_qaplib(path)),))
    if suffix == ".atsp":
        return Instance("tsp", (load_atsp(path),), metric="MATRIX")
    instance = _with_best_known(load_tsplib(path))
    return Instance("tsp", (instance,), coordinates=instance.coordinates)


def _with_best_known(instance: _Recorded) -> _Recorded:
    """Returns an instance with the best known cost on record, if it is the recorded one."""
    entry = registry.entries().get(instance.name)
    if entry is None or entry.best_known is None or entry.digest != digest(instance):
        return instance
    return dataclasses.replace(instance, best_known=entry.best_known, is_optimal=entry.is_optimal)


def _of_numbers(name: str, numbers: np.ndarray, kind: str | None) -> Instance:
    """Returns the instance that an array is by its shape."""
    rows, columns = numbers.shape
    _refuse_infinite(name, numbers)
    is_square, is_two = rows == columns > 0, rows == 2 * columns > 0
    if columns == 2 and rows > 0 and kind in (None, "tsp"):
        return Instance("tsp", (numbers,), coordinates=numbers, is_integral=False)
    if is_square and kind in (None, "tsp", "matrix"):
        return Instance("tsp", (numbers,), metric="MATRIX", is_integral=is_integral(numbers))
    if is_two and kind in (None, "qap"):
        return Instance("qap", (*np.split(numbers, 2),), is_integral=is_integral(numbers))
    expected = {None: _SHAPES, "tsp": "n x 2 or n x n", "matrix": "n x n", "qap": "2n x n"}[kind]
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


def _npy(path: pathlib.Path) -> np.ndarray:
    """Returns the array in a file of NumPy's; mapped, so that a false shape allocates nothing."""
    with open(path, "rb"):  # a missing file, a folder
        pass
    try:
        numbers = np.lib.format.open_memmap(path, mode="r")
        numbers = real_array(numbers, "the array")
    except Exception as error:  # a header that is no good fails in many ways
        raise ValueError(f"{path}: no array of numbers: {error}") from error
    if numbers.ndim != 2:
        shape = " x ".join(map(str, numbers.shape)) or "a single number"
        raise ValueError(f"{path}: the numbers are {shape}, expected {_SHAPES}")
    return numbers


def _csv(path: str | os.PathLike, stream: BinaryIO | None = None) -> np.ndarray:
    """Returns the numbers of a CSV, [rows, columns] int64 or float64.

    Commas, semicolons, tabs or spaces stand between them. A first line without a number is a
    header.
    """
    source = Source(path, MAX_BYTES, "a table of numbers", stream)
    lines = list(source.lines(0, len(source.data)))
    separator = next((one for one in (b";", b",") if one in source.data), None)
    rows: list[np.ndarray] = []
    for number, (position, line) in enumerate(lines):
        fields = [field.strip() for field in line.strip().split(separator)]
        bad = next((field for field in fields if not REAL.fullmatch(field)), None)
        if bad is None:
            if rows and len(fields) != len(rows[0]):
                raise source.error(
                    position, f"{len(fields)} numbers, expected {len(rows[0])} as in lines before"
                )
            is_integer = all(map(INTEGER.fullmatch, fields))
            rows.append(np.array(list(map(int if is_integer else float, fields))))
        elif number or not _is_header(fields):
            raise source.error(position, f"{show(bad)} is not a number")
    if not rows:
        raise source.error(0, "no numbers, expected a table of them")
    return np.stack(rows)


def _is_header(fields: list[bytes]) -> bool:
    """Returns whether there are letters, and nothing that anyone would take for a number."""
    for field in fields:
        with contextlib.suppress(ValueError):
            float(field)  # also `nan` and `1_000`
            return False
    return any(field[:1].isalpha() for field in (one.strip(b"'\"") for one in fields))
