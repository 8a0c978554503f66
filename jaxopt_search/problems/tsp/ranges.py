"""Which distances int32, float32 and a device's memory hold, in which unit; on the host."""

from typing import Any

import numpy as np

from jaxopt_search.checks import MAX_INT32
from jaxopt_search.problems.matrix_input import power_of_two

_FLOAT32_MAX = float(np.finfo(np.float32).max)
_LEAST_DIAMETER = 2.0**-40  # below, squared distances of neighbors may be 0 in float32
_LARGEST_FLOAT = float(np.finfo(np.float64).max)
_EDGES_IN_A_DELTA = 6
_FORBIDDEN_AT_ONCE = 64  # edges whose sum int32 holds, where it cannot hold n of them
_MAX_MATRIX_BYTES = 2**30


def float_unit(n: int, largest: float) -> float:
    """Returns the power of two that float distances are counted in: 1 where float32 holds them.

    It has to hold their sums, and squares of coordinates, even of close neighbors.

    Args:
      largest: the largest distance.
    """
    is_held = max(bound(n, largest), largest * largest) <= _FLOAT32_MAX
    is_held &= largest >= _LEAST_DIAMETER
    return 1 if is_held or not largest else power_of_two(largest)


def dearest(n: int, largest: Any, has_forbidden: bool) -> Any:
    """Returns the largest entry of the matrix on the device: the one of forbidden edges, if any.

    They make a tour dearer than every tour without one, negative distances included. Where int32
    cannot hold the sums of such, they are at least dearer than all edges that a move exchanges.
    """
    if not has_forbidden:
        return largest
    if not isinstance(largest, int):
        return 2 * n * (largest or 1.0)
    full, least = 2 * n * largest + 1, _EDGES_IN_A_DELTA * largest
    if bound(n, full) <= MAX_INT32:
        return full
    held = MAX_INT32 // max(n, _EDGES_IN_A_DELTA)
    return max(held if held > least else MAX_INT32 // _FORBIDDEN_AT_ONCE, least + 1)


def bound(n: int, largest: Any) -> Any:
    """Returns what no cost, and no sum in a delta, exceeds."""
    return max(n, _EDGES_IN_A_DELTA) * largest


def check_deltas(largest: Any) -> None:
    """Refuses distances of which int32 cannot hold every delta."""
    if (reached := bound(0, largest)) > MAX_INT32:
        raise ValueError(
            f"distances up to {largest:.6g} change costs by up to {reached:.6g}, beyond int32"
            f" ({MAX_INT32}); use dtype='float32' or metric='EUCLID' for inexact costs"
        )


def check_float_range(n: int, largest: float, name: str = "distances") -> None:
    """Refuses distances of which float64 cannot hold every cost."""
    # A forbidden edge counts as 2 n others.
    if not largest <= _LARGEST_FLOAT / (2 * max(n, _EDGES_IN_A_DELTA) ** 2):
        raise ValueError(
            f"{name} reach {largest:.6g}, expected ones that float64 can add up over {n} cities;"
            " divide them by a constant"
        )


def check_memory(n: int, way_out: str) -> None:
    """Refuses a matrix that takes too much of a device's memory, and says what to use instead."""
    num_bytes = 4 * n * n
    if num_bytes > _MAX_MATRIX_BYTES:
        raise ValueError(
            f"a matrix of {n} cities takes {num_bytes / 2**30:.1f} GiB on each device, expected at"
            f" most 1 GiB; use {way_out}"
        )
