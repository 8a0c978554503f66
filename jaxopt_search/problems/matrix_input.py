"""Checks on matrices and coordinates that users hand in, shared by all problems; on the host."""

from typing import Any, Literal, TypeAlias

import numpy as np

DType: TypeAlias = Literal["int32", "float32"]


def real_array(values: Any, name: str) -> np.ndarray:
    """Returns `values` as int64 or float64, or refuses what are not real numbers."""
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} is a ragged list, expected an array") from error
    if array.dtype.kind not in "iuf" and array.dtype.name != "bfloat16":
        raise TypeError(f"{name} has dtype {array.dtype}, expected integers or floats")
    if array.dtype.kind == "u" and array.size and array.max() > np.iinfo(np.int64).max:
        raise ValueError(f"{name} holds {array.max()}, expected integers below 2**63")
    return array.astype(np.int64 if array.dtype.kind in "iu" else np.float64)


def refuse_first(array: np.ndarray, is_bad: np.ndarray, name: str, hint: str = "") -> None:
    """Refuses an array with a bad entry, naming the first one.

    Args:
      hint: what to do about an infinite one.
    """
    if is_bad.any():
        index = tuple(np.argwhere(is_bad)[0].tolist())
        value, where = array[index], ",".join(map(str, index))
        text = "NaN" if np.isnan(value) else str(value)
        hint = hint if value == np.inf else ""
        raise ValueError(f"{name}[{where}] is {text}, expected a finite number{hint}")


def is_integral(values: np.ndarray) -> bool:
    """Returns whether all values are integers that a float64 holds exactly."""
    if values.dtype.kind == "i":
        return True
    return bool((np.abs(values) <= 2.0**53).all() and (values == np.floor(values)).all())


def is_nearly_symmetric(matrix: np.ndarray) -> bool:
    """Returns whether a matrix is symmetric but for rounding noise, a relative 1e-6."""
    scale = np.maximum(np.abs(matrix), np.abs(matrix.T))
    return bool((np.abs(matrix - matrix.T) <= 1e-6 * scale).all())
