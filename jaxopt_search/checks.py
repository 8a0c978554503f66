"""Checks of users' arguments, on the host, without JAX; and of installed modules."""

import bisect
import importlib
import math
import operator
import os
import sys
from typing import Any

import numpy as np

MAX_INT32 = 2**31 - 1
MAX_STEPS = 2**63 - 1
"""The most steps of a run: the device counts them in 64 bits."""


def number(value: Any, dtype: Any) -> Any:
    """Returns `value` with a dtype: as an array if it is one, else as a NumPy scalar.

    Making a JAX array of a number would launch a kernel on a GPU.
    """
    return value.astype(dtype) if hasattr(value, "astype") else np.dtype(dtype).type(value)


def int32(value: Any) -> Any:
    """Returns `number` of `value`, [] int32."""
    return number(value, np.int32)


def float32(value: Any) -> Any:
    """Returns `number` of `value`, [] float32."""
    return number(value, np.float32)


def check_count(name: str, value: Any, minimum: int = 1, maximum: int | None = MAX_INT32) -> int:
    """Returns `value` as a Python integer in range; floats are accepted if integral.

    Raises:
      ValueError: naming `name`, the value and the range.
    """
    try:
        count = int(value) if isinstance(value, float | np.floating) else operator.index(value)
        is_valid = count == value and count >= minimum and (maximum is None or count <= maximum)
    except (TypeError, ValueError, OverflowError):
        count, is_valid = 0, False
    if not is_valid or isinstance(value, bool | np.bool_):
        upper = "up" if maximum is None else f"to {maximum}"
        raise ValueError(f"{name} is {value!r}, expected an integer from {minimum} {upper}")
    return count


def check_share(name: str, value: Any) -> Any:
    """Returns `value`, a number from 0 to 1."""
    if not 0 <= check_number(name, value) <= 1:
        raise ValueError(f"{name} is {value}, expected a share from 0 to 1")
    return value


def check_number(name: str, value: Any, minimum: float = -math.inf) -> Any:
    """Returns `value`, a number of at least `minimum`, of Python; infinity is one, NaN is not.

    Integers beyond float64 count as infinite. Those of NumPy might wrap if they were negated.
    """
    if not _is_real(value) or not value >= minimum:
        bound = "a number" if minimum == -math.inf else f"a number >= {minimum:g}"
        raise ValueError(f"{name} is {value!r}, expected {bound}")
    if isinstance(value, int) and abs(value) > sys.float_info.max:
        return math.inf if value > 0 else -math.inf
    return value.item() if isinstance(value, np.generic) else value


def _is_real(value: Any) -> bool:
    """Returns whether it is a real number, of Python or NumPy."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def highest_cost_that_meets(target: Any, dtype: Any, unit: Any = 1, offset: Any = 0) -> Any:
    """Returns the highest cost of `dtype`, counted in `unit` from `offset`, up to `target`."""
    target = check_number("target", target)
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            return np.float64(float(target) / unit - offset).astype(dtype)
    limits = np.iinfo(dtype)
    if math.isinf(target):
        return dtype.type(limits.max if target > 0 else limits.min)
    costs = range(limits.min, limits.max + 1)  # in full, those of a fractional offset are rounded
    met = bisect.bisect_right(costs, target, key=lambda cost: (cost + offset) * unit)
    return dtype.type(costs[max(met - 1, 0)])


def check_suits(part: str, kind: str, problem: Any, suits: bool) -> None:
    """Refuses a problem that a part of a search is not made for."""
    if not suits:
        raise TypeError(f"problem is a {type(problem).__name__}, expected {kind} for {part}")


def plain_array(values: Any, name: str) -> np.ndarray:
    """Returns `values` as a NumPy array, or says in one line why that is impossible.

    Raises:
      ValueError: for ragged lists, masked entries and deleted arrays.
      TypeError: for keys, and whatever else has no numbers.
      RuntimeError: for values that are being traced.
    """
    if isinstance(values, np.ma.MaskedArray):
        if num_masked := np.ma.count_masked(values):
            raise ValueError(f"{name} has {num_masked} masked entries, expected none")
        return values.data
    if hasattr(values, "select_dtypes"):  # a table of pandas or the like: its columns of numbers
        numbers = values.select_dtypes("number")
        try:
            values = numbers.to_numpy(na_value=np.nan)
        except ValueError:  # sparse integers have no place for NaN, and none that is missing
            values = numbers.to_numpy()
    try:
        return np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} is a ragged list, expected an array") from error
    except RuntimeError as error:
        raise ValueError(f"{name} is an array that was deleted, expected a live one") from error
    except TypeError as error:
        if not type(error).__module__.startswith("jax"):
            kind = getattr(values, "dtype", type(values).__name__)
            raise TypeError(f"{name} has dtype {kind}, expected numbers") from error
    raise RuntimeError(
        f"{name} is traced, expected numbers: instances are checked on the host, outside jit and"
        " vmap"
    )


def real_array(values: Any, name: str) -> np.ndarray:
    """Returns `values` as int64 or float64; refuses anything but real numbers.

    A missing one, None or pandas' NA, is NaN. Of a table of pandas, these are the columns that hold
    numbers.
    """
    array = plain_array(values, name)
    if array.dtype == object and array.ndim:
        given = [math.nan if one is None else one for one in array.flat]
        if all(map(_is_real, given)):
            array = np.array(given).reshape(array.shape)
    if array.dtype.kind not in "iuf" and array.dtype.name != "bfloat16":
        raise TypeError(f"{name} has dtype {array.dtype}, expected integers or floats")
    if array.dtype.kind in "iu" and array.size:
        largest = max(array.min().item(), array.max().item(), key=abs)
        if abs(largest) >= 2**63:
            raise ValueError(f"{name} holds {largest}, expected integers between -2**63 and 2**63")
    return array.astype(np.int64 if array.dtype.kind in "iu" else np.float64)


def check_permutation(values: Any, name: str, n: int) -> np.ndarray:
    """Returns `values` as [n] int32, or says why it is not a permutation of 0 to n - 1.

    Raises:
      ValueError: naming `name` and the offending value.
    """
    array = plain_array(values, name)
    if array.shape == (n,) and n and np.array_equal(np.sort(array), np.arange(1, n + 1)):
        raise ValueError(f"{name} counts from 1, expected a permutation of 0 to {n - 1}")
    array = check_vector(np.full(n, n), array, name)
    counts = np.bincount(array, minlength=n)
    if counts.max(initial=0) > 1:
        raise ValueError(f"{name} holds {counts.argmax()} twice, expected a permutation")
    return array


def check_vector(domain_sizes: np.ndarray, values: Any, name: str) -> np.ndarray:
    """Returns `values` as [n] int32, or says why it is no vector with these domains.

    Args:
      domain_sizes: [n] integers.
      values: the user's.
      name: of `values`, for messages.

    Raises:
      ValueError: naming `name` and the offending value.
    """
    array = plain_array(values, name)
    check_shape(array, name, domain_sizes.shape)
    if array.dtype != np.bool_ and not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"{name} has dtype {array.dtype}, expected integers")
    (outside,) = np.nonzero((array < 0) | (array >= domain_sizes))
    if outside.size:
        i = outside[0]
        raise ValueError(f"{name}[{i}] is {array[i]}, expected 0 to {domain_sizes[i] - 1}")
    return array.astype(np.int32)


def check_shape(array: Any, name: str, shape: tuple[int, ...], hint: str = "") -> None:
    """Refuses an array of another shape."""
    if array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape}, expected {shape}{hint}")


def check_square(matrix: Any, name: str, hint: str = "") -> None:
    """Refuses an array that is not [n, n]."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise ValueError(f"{name} has shape {matrix.shape}, expected (n, n) with n >= 1{hint}")


def check_places(points: Any, name: str) -> None:
    """Refuses an array that is not [n, 2], places in the plane."""
    if points.ndim != 2 or points.shape[1] != 2 or not points.size:
        raise ValueError(f"{name} has shape {points.shape}, expected (n, 2) with n >= 1")


def check_option(name: str, value: Any, options: tuple[Any, ...]) -> None:
    """Refuses a value that is not one of `options`."""
    if value not in options:
        expected = ", ".join(map(str, options))
        raise ValueError(f"{name} is {value!r}, expected one of {expected}")


def imported(module: str, what: str) -> Any:
    """Returns a module that only some functions need, when one of them is called.

    Args:
      module: its name, such as `"scipy.stats"`; the package has the name of the first part.
      what: what needs it, for the message: `"plots need matplotlib"`.

    Raises:
      ImportError: in one line, if it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"{what}: pip install {module.partition('.')[0]}") from error


def num_cores() -> int:
    """Returns how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not everywhere
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
