"""Which instances int32, float32 and a device's memory hold; on the host."""

from typing import Any, NamedTuple

import numpy as np

from jaxopt_search.checks import MAX_INT32

MAX_BYTES = 2**30
_FLOAT32 = np.finfo(np.float32)
MAX_FLOAT32 = float(_FLOAT32.max)
_EDGES_IN_A_DELTA = 6
_FORBIDDEN_AT_ONCE = 64  # edges whose sum int32 holds, where it cannot hold n of them
_MOST_FLOAT_DISTANCE = 2.0**63
_LEAST_DIAMETER = 2.0**-40  # below, squared distances of neighbors may be 0 in float32
_DIFFERENCES = 2.0**-44, 2.0**-14  # of the largest: float64's noise, and what float32 adds up
_LEAST_FLOAT = float(_FLOAT32.tiny / _FLOAT32.eps)


def largest_of(array: np.ndarray) -> Any:
    """Returns the largest absolute value, a Python number."""
    return max(array.max().item(), -array.min().item())


def check_bytes(num_bytes: int, what: str, advice: str = "") -> None:
    """Refuses an instance that takes too much of a device's memory."""
    if num_bytes > MAX_BYTES:
        raise ValueError(
            f"{what} takes {num_bytes / 2**30:.1f} GiB on each device, expected at most 1 GiB"
            f"{advice}"
        )


def beyond_int32(what: str, way_out: str) -> ValueError:
    """Returns the error to raise for an instance whose costs int32 does not hold."""
    return ValueError(f"{what}, beyond int32 ({MAX_INT32}); use {way_out} for inexact costs")


def check_floats(largest: float, most: float, name: str, least: float = _LEAST_FLOAT) -> None:
    """Refuses numbers that float32 cannot add up or multiply; zeros are fine."""
    if largest and not least <= largest <= most:
        raise ValueError(
            f"{name} reach {largest:.6g}, expected {least:.6g} to {most:.6g} for float32; multiply"
            " by a constant"
        )


def check_differences(matrix: np.ndarray, name: str, is_known: Any = True) -> None:
    """Refuses floats that are nearly the same off the diagonal, such as 1e9 and a bit.

    Args:
      is_known: which entries count, [n, n] bool or all.
    """
    known = matrix[~np.eye(len(matrix), dtype=bool) & is_known]
    least, most = known.min(initial=np.inf).item(), known.max(initial=-np.inf).item()
    noise, least_difference = (share * max(most, -least) for share in _DIFFERENCES)
    if noise < most - least < least_difference:
        raise ValueError(
            f"{name} reach from {least:.9g} to {most:.9g}, expected larger differences for float32;"
            " take off what all of them share"
        )


class Bounds(NamedTuple):
    """What no solution and no move exceeds, as Python integers.

    Attributes:
      low: no cost is below.
      high: no cost is above.
      delta: no move changes the cost by more.
      fit: whether int32 holds entries, deltas, and costs minus `offset`.
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

    def refusal(self, name: str, moves: str, way_out: str) -> ValueError:
        """Returns the error to raise for an instance that does not fit."""
        return beyond_int32(
            f"{name} costs from {self.low:.6g} to {self.high:.6g} and {moves} that change them by"
            f" up to {self.delta:.6g}",
            way_out,
        )


def qubo_bounds(
    linear: np.ndarray, first: np.ndarray, second: np.ndarray, values: np.ndarray
) -> Bounds:
    """Returns bounds of costs, and of changes by flips and swaps; costs have no offset.

    At worst, all negative or all positive terms count. With sides -1 and 1 in place of 0 and 1 this
    gives other bounds, which are integer times a quarter; for cuts they are close.

    Args:
      linear: [n] int64 linear terms.
      first, second, values: [k] int64 couplings of pairs of variables.
    """
    negative, positive = np.zeros_like(linear), np.zeros_like(linear)
    for end in (first, second):
        np.add.at(negative, end, np.minimum(values, 0))
        np.add.at(positive, end, np.maximum(values, 0))

    def total(values: np.ndarray) -> int:
        return int(values.sum())

    low = total(np.minimum(linear, 0)) + total(np.minimum(values, 0))
    high = total(np.maximum(linear, 0)) + total(np.maximum(values, 0))
    middle = 2 * total(linear) + total(values)
    spread = total(np.abs(2 * linear + negative + positive)) + total(np.abs(values))
    low, high = max(low, -((spread - middle) // 4)), min(high, (middle + spread) // 4)
    flips = np.maximum(np.abs(linear + negative), np.abs(linear + positive))
    delta = max(int(flips.max()), min(int(np.sort(flips)[-2:].sum()), high - low))
    # The largest int32 is left to null moves.
    return Bounds(low, high, delta, fit=max(-low, high, delta) < MAX_INT32)


def qap_bounds(flow: np.ndarray, distance: np.ndarray, linear: np.ndarray | None = None) -> Bounds:
    """Returns bounds of the costs of assignments and of changes by swaps."""
    linear = np.zeros((1, 1), np.int64) if linear is None else linear
    f, d, own = map(largest_of, (flow, distance, linear))
    if max(f, d, own) > MAX_INT32:
        size = flow.size * f * d + len(flow) * own
        return Bounds(-size, size, 2 * size, fit=False)
    low, high = qap_costs(flow, distance)
    delta = high - low
    if delta >= MAX_INT32:
        delta = min(delta, largest_swap(flow, distance))
    low, high = low + linear.min(axis=1).sum().item(), high + linear.max(axis=1).sum().item()
    delta += 2 * np.ptp(linear, axis=1).max().item()
    # The largest int32 is left to null moves.
    return Bounds(low, high, delta, fit=delta < MAX_INT32 and high - low <= 2 * MAX_INT32)


def qap_costs(flow: np.ndarray, distance: np.ndarray) -> tuple[int, int]:
    """Returns a lower and an upper bound of all costs of a QAP.

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


def largest_swap(flow: np.ndarray, distance: np.ndarray) -> int:
    """Returns an upper bound of the change in a QAP's cost by any swap; O(n**3).

    A swap pairs differences of two rows or columns of one matrix with differences of entries of
    the other: see `QAP.swap_delta`. Its terms outside the sum weigh no more than the terms that
    the sum leaves out, by the triangle inequality.
    """

    def row_difference(matrix: np.ndarray) -> int:
        return max(np.abs(matrix - row).sum(axis=1).max().item() for row in matrix)

    def bound(a: np.ndarray, b: np.ndarray) -> int:
        return (row_difference(a) + row_difference(a.T)) * (b.max().item() - b.min().item())

    return min(bound(flow, distance), bound(distance, flow))


def check_qap_floats(flow: np.ndarray, distance: np.ndarray) -> None:
    """Refuses matrices of which float32 cannot hold every cost and every change of it."""
    check_differences(flow, "entries of flow")
    check_differences(distance, "entries of distance")
    f, d, n = largest_of(flow), largest_of(distance), len(flow)
    # A cost has n * n products, a delta 2 * n of two differences each.
    most = MAX_FLOAT32 / max(n * n, 8 * n)
    check_floats(f, most, "entries of flow")
    check_floats(d, most, "entries of distance")
    check_floats(f * d, most, "products of flow and distance")


def tour_bound(n: int, largest: Any) -> Any:
    """Returns an upper bound on every tour's length and every partial delta."""
    return max(n, _EDGES_IN_A_DELTA) * largest


def dearest_edge(n: int, largest: Any, has_forbidden: bool) -> Any:
    """Returns the largest entry of the matrix on the device: the one of forbidden edges, if any.

    They make a tour dearer than every tour without one, negative distances included. Where int32
    cannot hold the sums of such, they are at least dearer than all edges that a move exchanges.
    """
    if not has_forbidden:
        return largest
    if not isinstance(largest, int):
        return 2 * n * (largest or 1.0)
    full, least = 2 * n * largest + 1, _EDGES_IN_A_DELTA * largest
    if tour_bound(n, full) <= MAX_INT32:
        return full
    held = MAX_INT32 // max(n, _EDGES_IN_A_DELTA)
    return max(held if held > least else MAX_INT32 // _FORBIDDEN_AT_ONCE, least + 1)


def check_tour_deltas(largest: Any, way_out: str) -> None:
    """Refuses distances of which int32 cannot hold every delta, and names the way out."""
    if (reached := tour_bound(0, largest)) > MAX_INT32:
        what = f"distances up to {largest:.6g} change costs by up to {reached:.6g}"
        raise beyond_int32(what, way_out)


def check_tour_floats(largest: float, name: str = "distances") -> None:
    """Refuses distances of which float32 cannot hold sums, and squares even of close neighbors."""
    check_floats(largest, _MOST_FLOAT_DISTANCE, name, _LEAST_DIAMETER)


def check_matrix_of(n: int, way_out: str) -> None:
    """Refuses a matrix of n cities that takes too much memory, and names the way out."""
    check_bytes(4 * n * n, f"a matrix of {n} cities", f"; use {way_out}")
