"""Cities with good tours, for learning: the text format in which such sets are exchanged.

A line for each instance: the coordinates `x y x y ...`, the word `output`, and the tour
`i j ... i`, closed and numbered from 1; as Joshi, Laurent, Bresson, "An efficient graph
convolutional network technique for the travelling salesman problem", 2019, have theirs.
"""

import os
from collections.abc import Iterable

import numpy as np

from jaxopt_search.errors import InstanceFormatError
from jaxopt_search.files import check_regular

_OUTPUT = "output"


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
    return " ".join([*map(repr, points.ravel().tolist()), _OUTPUT, *map(str, closed)])


def load_labels(path: str | os.PathLike) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Reads instances with their tours, as `jaxopt-search labels` writes them.

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
    with open(path, encoding="ascii", errors="replace") as file:
        return labels_of(file, os.fspath(path))


def labels_of(lines: Iterable[str], name: str) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Returns what `load_labels` does, of lines."""
    pairs = [_label_of(line, f"{name}, line {at}") for at, line in enumerate(lines, start=1)]
    return [points for points, _ in pairs], [tour for _, tour in pairs]


def _label_of(line: str, where: str) -> tuple[np.ndarray, np.ndarray]:
    given, word, order = line.partition(f" {_OUTPUT} ")
    try:
        numbers, tour = np.array(given.split(), np.float64), np.array(order.split(), np.int64) - 1
    except ValueError as error:
        raise InstanceFormatError(f"{where}: {error}") from None
    n = len(numbers) // 2
    if not word or len(numbers) != 2 * n or not np.isfinite(numbers).all():
        raise InstanceFormatError(f"{where}: expected finite coordinates, {_OUTPUT!r} and a tour")
    if len(tour) != n + 1 or tour[0] != tour[-1] or (np.sort(tour[:-1]) != np.arange(n)).any():
        raise InstanceFormatError(f"{where}: expected a closed tour of the {n} cities, from 1")
    return numbers.reshape(n, 2), tour[:-1].astype(np.int32)
