"""Checks on matrices and coordinates that users hand in, shared by all problems; on the host."""

import dataclasses
import math
from typing import Any, Literal, TypeAlias

import jax
import numpy as np

DType: TypeAlias = Literal["int32", "float32"]

_MOSTLY = 256  # times as large as the rest


def on_device(values: Any, dtype: Any) -> jax.Array:
    """Returns a copy with a dtype; converted on the host and put, which compiles nothing."""
    return jax.device_put(np.array(values, dtype))


def quick_shape(values: Any) -> tuple[int, ...]:
    """Returns the shape of an array, or of nested lists if they are not ragged.

    Unlike `np.shape`, it copies no list to tell.
    """
    if isinstance(values, list | tuple):
        return (len(values), *quick_shape(values[0])) if values else (0,)
    return tuple(getattr(values, "shape", ()))


def is_stack(data: Any) -> bool:
    """Returns whether data are matrices of several instances, be they right or wrong."""
    if isinstance(data, list | tuple):
        return any(len(quick_shape(one)) == 2 for one in data)
    return len(quick_shape(data)) == 3


def may_be_rows(matrices: np.ndarray) -> bool:
    """Returns whether matrices may be rows of other numbers, such as places in space.

    They may if one is neither symmetric nor of one value on the diagonal, infinite ones aside.

    Args:
      matrices: [B, n, n], or [n, n].
    """
    diagonals = np.diagonal(matrices, axis1=-2, axis2=-1)
    is_one = ((diagonals == diagonals[..., :1]) | ~np.isfinite(diagonals)).all(axis=-1)
    is_symmetric = (matrices == matrices.swapaxes(-2, -1)).all(axis=(-2, -1))
    return not (is_one | is_symmetric).all()


def check_square(matrix: Any, name: str, hint: str = "") -> None:
    """Refuses what has not the shape of a matrix, [n, n]."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise ValueError(f"{name} has shape {matrix.shape}, expected (n, n) with n >= 1{hint}")


def check_places(points: Any, name: str) -> None:
    """Refuses what has not the shape of places in the plane, [n, 2]."""
    if points.ndim != 2 or points.shape[1] != 2 or not points.size:
        raise ValueError(f"{name} has shape {points.shape}, expected (n, 2) with n >= 1")


def refuse_first(array: np.ndarray, is_bad: np.ndarray, name: str, hint: str = "") -> None:
    """Refuses an array with a bad entry, naming the first one.

    Args:
      hint: what to do about an infinite entry.
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


def is_nearly_symmetric(matrix: np.ndarray, least: float = 0.0) -> bool:
    """Returns whether a matrix is symmetric but for rounding noise, a relative 1e-6.

    Args:
      least: smaller entries are only as exact as this one.
    """
    scale = np.maximum(np.maximum(np.abs(matrix), np.abs(matrix.T)), least)
    return bool((np.abs(matrix - matrix.T) <= 1e-6 * scale).all())


def largest_of(array: np.ndarray) -> Any:
    """Returns the largest absolute value, a Python number."""
    return max(array.max().item(), -array.min().item())


def as_told(problem: Any, is_symmetric: bool | None, text: str) -> Any:
    """Returns a problem that is as symmetric as the user says, if he does.

    Args:
      text: the beginning of a sentence about its matrices.
    """
    if is_symmetric is None:
        return problem
    if is_symmetric and not problem.is_symmetric:
        raise ValueError(f"is_symmetric is True, expected None or False: {text} not symmetric")
    return dataclasses.replace(problem, is_symmetric=is_symmetric)


def power_of_two(largest: float) -> float:
    """Returns the largest power of two up to `largest`, which is above 0."""
    return 2.0 ** (math.frexp(largest)[1] - 1)


def is_mostly_common(whole: float, left: float) -> bool:
    """Returns whether numbers have most of their size in common: float32 has better uses.

    Args:
      whole: the largest of them.
      left: the largest one after the common part is taken off; if 0, nothing needs the precision.
    """
    return whole > _MOSTLY * left > 0


def unit_note(unit: float) -> str:
    """Returns a sentence that names the device's unit; "" if it is 1."""
    if unit == 1:
        return ""
    return f"temperatures count in units of 2**{math.frexp(unit)[1] - 1} (problem.host.unit)"
