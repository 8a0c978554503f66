"""Strict readers of QAPLIB instances and solutions (Burkard, Karisch and Rendl, 1997)."""

import itertools
import os
import pathlib

import numpy as np

from jaxopt_search.datasets._tokens import INTEGER, MAX_BYTES, Source, show
from jaxopt_search.datasets.instances import QAPInstance
from jaxopt_search.errors import InstanceFormatError


def load_qaplib(path: str | os.PathLike, *, max_bytes: int = MAX_BYTES) -> QAPInstance:
    """Returns the instance in a QAPLIB file: n, the matrix A, the matrix B.

    Line breaks mean nothing. Matrices may be asymmetric, have nonzero diagonals and hold negative
    numbers. A is taken as flow and B as distance, whatever the family calls them: the cost is the
    sum of `A[i, j] * B[p[i], p[j]]`. Some public copies put the best known cost after n, in its
    line or in one of its own; it becomes `best_known`, unproved. A surplus number anywhere else is
    an error.

    Args:
      path: the file; the name of the instance is the file's name without its ending.
      max_bytes: larger files are refused before they are read.

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
    source = Source(path, max_bytes, "a QAPLIB instance")
    n, start = _size(source)
    if 4 * n * n > source.size:
        raise source.error(
            0, f"n is {n}, expected at most what {source.size} bytes can hold ({2 * n * n} numbers)"
        )
    what = f"two {n} x {n} matrices"
    end = len(source.data)
    numbers = source.integers(start, end, (2 * n * n, 2 * n * n + 1), what)
    best_known = None
    if len(numbers) == 2 * n * n + 1:
        if not _has_best_known(source):
            raise source.error(
                end - 1, f"found {len(numbers)} numbers for {what}, expected {2 * n * n}"
            )
        best_known, numbers = int(numbers[0]), numbers[1:]
    return QAPInstance(
        name=pathlib.Path(path).stem,
        flow=numbers[: n * n].reshape(n, n).copy(),
        distance=numbers[n * n :].reshape(n, n).copy(),
        best_known=best_known,
    )


def load_qaplib_solution(
    path: str | os.PathLike, *, max_bytes: int = MAX_BYTES
) -> tuple[int, int, np.ndarray]:
    """Returns size, stated cost and permutation of a QAPLIB solution file.

    The permutation may be written from 1 or from 0, and with commas. QAPLIB does not say whether
    it maps A's indices to B's or back, and its files do both: pass the result to `orient` before
    use. The stated cost is not checked here.

    Args:
      path: the file.
      max_bytes: larger files are refused before they are read.

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
    source = Source(path, max_bytes, "a QAPLIB solution")
    source.data = source.data.replace(b",", b" ")
    n, start = _size(source)
    if 2 * n > source.size:
        raise source.error(0, f"n is {n}, expected at most what {source.size} bytes can hold")
    what = f"the value and a permutation of {n}"
    numbers = source.integers(start, len(source.data), (n + 1,), what)
    value, permutation = int(numbers[0]), numbers[1:]
    ordered = np.sort(permutation)
    base = int(ordered[0])
    if base not in (0, 1) or not np.array_equal(ordered, np.arange(base, base + n)):
        raise source.error(start, f"no permutation, expected each of 1..{n} or of 0..{n - 1} once")
    return n, value, (permutation - base).astype(np.int32)


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


def _size(source: Source) -> tuple[int, int]:
    """Returns n and the position after it."""
    token = source.data.split(None, 1)[0]
    start = source.data.index(token)
    if not INTEGER.fullmatch(token) or int(token) < 1:
        raise source.error(start, f"n is {show(token)}, expected a positive integer")
    return int(token), start + len(token)
