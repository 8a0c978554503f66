"""The entries of a matrix that a user hands in: dense, sparse or listed; checked on the host."""

from typing import Any, NamedTuple

import numpy as np

from jaxopt_search.checks import MAX_INT32, check_count, plain_array, real_array
from jaxopt_search.problems.matrix_input import is_integral, largest_of, refuse_first

_SAFE = 2**59  # sums up to this, a few times over, are int64


class Given(NamedTuple):
    """The entries of a matrix [n, n].

    Attributes:
      n: its size.
      rows, columns: [k] int64, where the values are.
      values: [k] int64 or float64, in multiples of `unit`.
      unit: a common divisor of integers whose sums int64 could not hold; mostly 1.
      is_list: whether they were given as a list.
    """

    n: int
    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    unit: int
    is_list: bool


def given_entries(
    arguments: tuple[Any, Any, Any], names: tuple[str, str, str], dtype: Any
) -> Given:
    """Returns the entries of a user's matrix or list, all finite.

    Args:
      arguments: the matrix, or the values and the entries, and n or None.
      names: of these arguments.
      dtype: of the device, or None.
    """
    (values, entries, number), (name, entries_name, number_name) = arguments, names
    if entries is not None:
        n, rows, columns = _listed(entries, number, entries_name, number_name)
        array = _numbers(values, name)
        if array.shape not in ((), rows.shape):
            raise ValueError(f"{name} has shape {array.shape}, expected {rows.shape}, as entries")
        values = np.broadcast_to(array, rows.shape)
    elif number is not None:
        raise ValueError(f"{number_name} is {number!r} without {entries_name}, expected None")
    elif hasattr(values, "tocoo"):
        sparse = values.tocoo()
        n, rows, columns = _square(sparse.shape, name), sparse.row, sparse.col
        values = real_array(_numbers(sparse.data, name), name)
    else:
        matrix = real_array(_numbers(values, name), name)
        n = _square(matrix.shape, name)
        refuse_first(matrix, ~np.isfinite(matrix), name)
        rows, columns = np.nonzero(matrix)
        values = matrix[rows, columns]
    refuse_first(values, ~np.isfinite(values), name)
    values, unit = _summable(values, name, dtype)
    rows, columns = rows.astype(np.int64), columns.astype(np.int64)
    return Given(n, rows, columns, values, unit, is_list=entries is not None)


def _numbers(values: Any, name: str) -> np.ndarray:
    """Returns int64 or float64, with booleans as 0 and 1."""
    array = plain_array(values, name)
    return real_array(array.astype(np.int8) if array.dtype == np.bool_ else array, name)


def _square(shape: tuple[int, ...], name: str) -> int:
    if len(shape) != 2 or shape[0] != shape[1] or not shape[0]:
        raise ValueError(f"{name} has shape {tuple(shape)}, expected (n, n) with n >= 1")
    return shape[0]


def _listed(
    entries: Any, number: Any, name: str, number_name: str
) -> tuple[int, np.ndarray, np.ndarray]:
    """Returns n, and the rows and columns of listed entries."""
    pairs = plain_array(entries, name)
    if pairs.shape == (0,):
        pairs = pairs.reshape(0, 2).astype(np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise ValueError(f"{name} has shape {pairs.shape}, expected (k, 2)")
    if not np.issubdtype(pairs.dtype, np.integer):
        raise ValueError(f"{name} has dtype {pairs.dtype}, expected integers")
    least, most = (pairs.min().item(), pairs.max().item()) if pairs.size else (0, -1)
    n = check_count(number_name, max(most + 1, 1) if number is None else number)
    if least < 0 or most >= n:
        raise ValueError(f"{name} holds {least if least < 0 else most}, expected 0 to {n - 1}")
    return n, pairs[:, 0], pairs[:, 1]


def _summable(values: np.ndarray, name: str, dtype: Any) -> tuple[np.ndarray, int]:
    """Returns values whose sums fit int64 or float64, and the unit in which they are counted."""
    if dtype == "int32" and not is_integral(values):
        raise ValueError("dtype is 'int32', expected None or 'float32' for fractional numbers")
    largest = largest_of(values) if values.size else 0
    if is_integral(values) and dtype != "float32":
        values = values.astype(np.int64)
        if largest * values.size < _SAFE:
            return values, 1
        unit = int(np.gcd.reduce(values))
        if largest // unit * values.size < _SAFE:
            return values // unit, unit
        raise beyond_int32(name, f"holds {largest}")
    most = float(np.finfo(np.float64).max) / (8 * max(values.size, 1))
    if largest > most:
        raise ValueError(
            f"{name} reaches {largest:.6g}, expected up to {most:.6g} for float64 sums; multiply by"
            " a constant"
        )
    return values.astype(np.float64), 1


def beyond_int32(name: str, what: str) -> ValueError:
    return ValueError(
        f"{name} {what}, beyond int32 ({MAX_INT32}); use dtype='float32' for inexact costs"
    )
