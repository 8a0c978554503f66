"""Whether int32 or float32 holds the costs and deltas of a QAP, and in which unit; on the host."""

from typing import NamedTuple

import numpy as np

from jaxopt_search.checks import MAX_INT32
from jaxopt_search.problems.matrix_input import largest_of, power_of_two

_FLOAT32, _FLOAT64 = np.finfo(np.float32), np.finfo(np.float64)


class Bounds(NamedTuple):
    """What no assignment and no swap exceeds, as Python integers.

    Attributes:
      low: no cost is below.
      high: no cost is above.
      delta: no swap changes the cost by more.
      fit: whether entries, deltas, and costs minus `offset` fit int32.
    """

    low: int
    high: int
    delta: int
    fit: bool

    @property
    def offset(self) -> int:
        """What has to be taken off all costs."""
        is_needed = self.low < -MAX_INT32 or self.high > MAX_INT32
        return (self.low + self.high) // 2 if is_needed else 0


def bounds(flow: np.ndarray, distance: np.ndarray) -> Bounds:
    f, d = largest_of(flow), largest_of(distance)
    if max(f, d) > MAX_INT32:
        size = flow.size * f * d
        return Bounds(-size, size, 2 * size, fit=False)
    low, high = _cost_bounds(flow, distance)
    delta = high - low
    if delta >= MAX_INT32:
        delta = min(delta, _delta_bound(flow, distance))
    # The largest int32 is left to null moves.
    return Bounds(low, high, delta, fit=delta < MAX_INT32 and high - low <= 2 * MAX_INT32)


def _cost_bounds(flow: np.ndarray, distance: np.ndarray) -> tuple[int, int]:
    """Returns a lower and an upper bound of all costs.

    Whichever entries meet, the sum of their products is least if one matrix is sorted up and the
    other down, and greatest if both are sorted up (the rearrangement inequality). This is tight
    enough only for the parts that cannot mix: diagonals, and the symmetric and the antisymmetric
    part of the rest. O(n * n * log n).
    """
    off_diagonal = ~np.eye(len(flow), dtype=bool)
    parts = [
        _rearranged(*(part[off_diagonal] for part in (flow + flow.T, distance + distance.T))),
        _rearranged(*(part[off_diagonal] for part in (flow - flow.T, distance - distance.T))),
    ]
    low, high = _rearranged(flow.diagonal(), distance.diagonal())
    return low - sum(-part[0] for part in parts) // 4, high + sum(part[1] for part in parts) // 4


def _rearranged(a: np.ndarray, b: np.ndarray) -> tuple[int, int]:
    """Returns the least and the greatest sum of products of the numbers of `a` and `b`, paired."""
    a, b = np.sort(a), np.sort(b)
    if a.size and a.size * largest_of(a) * largest_of(b) >= 2**63:
        a, b = a.astype(object), b.astype(object)
    return int(np.dot(a, b[::-1])), int(np.dot(a, b))


def _delta_bound(flow: np.ndarray, distance: np.ndarray) -> int:
    """Returns an upper bound of the change by any swap; O(n**3).

    A swap pairs differences of two rows or columns of one matrix with differences of entries of
    the other: see `QAP.swap_delta`. Its terms outside the sum weigh no more than the terms that
    the sum leaves out, by the triangle inequality.
    """

    def bound(a: np.ndarray, b: np.ndarray) -> int:
        spread = b.max().item() - b.min().item()
        return (_largest_row_difference(a) + _largest_row_difference(a.T)) * spread

    return min(bound(flow, distance), bound(distance, flow))


def _largest_row_difference(matrix: np.ndarray) -> int:
    """Returns the greatest sum of absolute differences between two rows."""
    return max(np.abs(matrix - row).sum(axis=1).max().item() for row in matrix)


def check_float_range(flow: np.ndarray, distance: np.ndarray) -> None:
    f, d, n = largest_of(flow), largest_of(distance), len(flow)
    sizes = {"flow": f, "distance": d, "flow times distance": f * d}
    most = float(_FLOAT64.max) / (4 * n * n)
    for name, size in sizes.items():
        least = float(_FLOAT64.tiny) if f and d and name not in ("flow", "distance") else 0.0
        if not least <= size <= most:
            raise ValueError(
                f"{name} reaches {size:.6g}, expected {least:.6g} to {most:.6g} for float64 sums"
                f" over {n} facilities; multiply by a constant"
            )


def float_units(flow: np.ndarray, distance: np.ndarray) -> tuple[float, float]:
    """Returns powers of two in which both matrices are counted: 1 where float32 holds products."""
    f, d, n = largest_of(flow), largest_of(distance), len(flow)
    # A cost has n * n products, a delta 2 * n of two differences each.
    most, least = float(_FLOAT32.max) / max(n * n, 8 * n), float(_FLOAT32.tiny / _FLOAT32.eps)
    if all(not size or least <= size <= most for size in (f, d, f * d)):
        return 1, 1
    return power_of_two(f or 1.0), power_of_two(d or 1.0)
