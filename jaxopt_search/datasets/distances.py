"""TSPLIB's distance rules and exact tour lengths, on the host in 64 bits.

All distances but EXACT_2D are integers, rounded as TSPLIB rounds them: nearest means
`floor(x + 0.5)`, which differs from `numpy.rint` at halves. Source of the rules: Reinelt,
TSPLIB95 (1995), section 2.

`problems.tsp.problem` computes the same distances on the device in 32 bits, except GEO; the tests
compare the two.
"""

from collections.abc import Callable

import numpy as np

_BLOCK = 1 << 16  # elements of a temporary array, which caches hold
_EARTH = 6371.0088  # kilometers, its mean radius


def euc_2d(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Returns the Euclidean distance, rounded to the nearest integer.

    Args:
      a: [..., 2] float64 coordinates.
      b: [..., 2] float64 coordinates that broadcast against `a`.

    Returns:
      [...] int64 distances.
    """
    return np.floor(np.sqrt(_squared(a, b)) + 0.5).astype(np.int64)


def ceil_2d(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Returns the Euclidean distance, rounded up. Arguments as in `euc_2d`."""
    return np.ceil(np.sqrt(_squared(a, b))).astype(np.int64)


def att(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Returns the pseudo-Euclidean distance of att48 and att532. Arguments as in `euc_2d`."""
    exact = np.sqrt(_squared(a, b) / 10.0)
    nearest = np.floor(exact + 0.5)
    return np.where(nearest < exact, nearest + 1.0, nearest).astype(np.int64)


def man_2d(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Returns the Manhattan distance, rounded to the nearest integer. Arguments as in `euc_2d`."""
    return np.floor(np.abs(a - b).sum(axis=-1) + 0.5).astype(np.int64)


def max_2d(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Returns the longer of both ways along the axes, likewise. Arguments as in `euc_2d`."""
    return np.floor(np.abs(a - b).max(axis=-1) + 0.5).astype(np.int64)


def exact_2d(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Returns the Euclidean distance as it is, [...] float64. Arguments as in `euc_2d`."""
    return np.sqrt(_squared(a, b))


def geo(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Returns the distance in kilometers on TSPLIB's idealized earth.

    Coordinates are latitude and longitude written DDD.MM (degrees and minutes). TSPLIB's formula
    is used as it stands: pi is 3.141592, minutes of 60 or more are not carried, and two nodes at
    the same place are at distance 1. Arguments as in `euc_2d`.
    """
    a, b = _radians(a), _radians(b)
    q1 = np.cos(a[..., 1] - b[..., 1])
    q2 = np.cos(a[..., 0] - b[..., 0])
    q3 = np.cos(a[..., 0] + b[..., 0])
    # Rounding must not carry the cosine past 1, where arccos is NaN.
    cosine = np.clip(0.5 * ((1.0 + q1) * q2 - (1.0 - q1) * q3), -1.0, 1.0)
    return np.floor(6378.388 * np.arccos(cosine) + 1.0).astype(np.int64)


EDGE_WEIGHTS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "EUC_2D": euc_2d,
    "CEIL_2D": ceil_2d,
    "ATT": att,
    "GEO": geo,
    "MAN_2D": man_2d,
    "MAX_2D": max_2d,
    "EXACT_2D": exact_2d,
}
"""EDGE_WEIGHT_TYPE of TSPLIB, and EXACT_2D of LKH, to the function that computes it."""


def haversine(degrees: np.ndarray) -> np.ndarray:
    """Returns all distances in kilometers along great circles of a sphere of 6371.0088 km.

    Args:
      degrees: [n, 2] float64 latitudes and longitudes, as decimal fractions.

    Returns:
      [n, n] float64, symmetric.

    Example:
      >>> haversine(np.array([[52.52, 13.405], [48.8566, 2.3522]])).round(1).tolist()
      [[0.0, 877.5], [877.5, 0.0]]
    """
    latitude, longitude = np.radians(degrees).T
    half = np.sin((latitude[:, None] - latitude) / 2) ** 2
    along = np.sin((longitude[:, None] - longitude) / 2) ** 2
    half += np.cos(latitude)[:, None] * np.cos(latitude) * along
    return 2 * _EARTH * np.arcsin(np.sqrt(np.minimum(half, 1)))


def distance_matrix(coordinates: np.ndarray, edge_weight_type: str) -> np.ndarray:
    """Returns all distances; the diagonal is 0. O(n^2), with temporaries of bounded size.

    Args:
      coordinates: [n, 2] float64.
      edge_weight_type: a key of `EDGE_WEIGHTS`.

    Returns:
      [n, n] int64, or float64 of EXACT_2D; symmetric.
    """
    weight, n = EDGE_WEIGHTS[edge_weight_type], len(coordinates)
    matrix = np.empty((n, n), weight(coordinates[:1], coordinates[:1]).dtype)
    rows, coordinates = max(1, _BLOCK // max(1, n)), np.asfortranarray(coordinates)
    for start in range(0, n, rows):
        block = coordinates[start : start + rows, None, :]
        matrix[start : start + rows] = weight(block, coordinates[None, :, :])
    np.fill_diagonal(matrix, 0)
    return matrix


def tour_length(coordinates: np.ndarray, edge_weight_type: str, tour: np.ndarray) -> int | float:
    """Returns the exact length of a closed tour, without a matrix: O(n) time and memory.

    Args:
      coordinates: [n, 2] float64.
      edge_weight_type: a key of `EDGE_WEIGHTS`.
      tour: [m] integers, the city at each position; whether it is a permutation is not checked.

    Returns:
      The sum of the distances, the closing edge included. An edge from a city to itself
      counts 0, as on the diagonal of `distance_matrix`.
    """
    weight, following, total = EDGE_WEIGHTS[edge_weight_type], np.roll(tour, -1), 0
    for start in range(0, len(tour), _BLOCK):
        i, j = tour[start : start + _BLOCK], following[start : start + _BLOCK]
        lengths = np.where(i == j, 0, weight(coordinates[i], coordinates[j]))
        total += sum(lengths.tolist())  # Python integers: no overflow
    return total


def _squared(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    dx, dy = (a[..., axis] - b[..., axis] for axis in (0, 1))
    return dx * dx + dy * dy


def _radians(coordinates: np.ndarray) -> np.ndarray:
    coordinates = np.asarray(coordinates, np.float64)
    degrees = np.trunc(coordinates)
    minutes = coordinates - degrees
    return 3.141592 * (degrees + 5.0 * minutes / 3.0) / 180.0
