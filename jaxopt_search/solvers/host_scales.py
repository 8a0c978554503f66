"""The scales of a TSP as `scales` has them, by NumPy: nothing is compiled for a single instance.

They are equal bit for bit, as far as the device rounds as IEEE 754 asks for.
"""

from collections.abc import Callable

import numpy as np

from jaxopt_search.datasets import distances
from jaxopt_search.problems.tsp.problem import TSP
from jaxopt_search.solvers import scales

_MOST_CITIES = 4096  # of larger instances, the device measures the tree sooner
_FEW = 2048  # cities of which all distances are computed before they are asked for
_ROWS = 64  # of them, at once


def near_distance(problem: TSP) -> float:
    """Returns what `scales.near_distance` does."""
    n = int(problem.n)
    if n > _MOST_CITIES:
        return float(scales.near_distance(problem))
    number, distances_from = min(n, scales.SAMPLED_CITIES), _rows(problem)
    some = np.arange(number) * max(1, n // scales.SAMPLED_CITIES)
    rows = np.stack([distances_from(city) for city in some.tolist()])
    rows[np.arange(number), some] = np.inf
    rows[rows == 0] = np.inf
    num_near = min(3, n - 1)
    nearest = np.sort(np.partition(rows, num_near - 1, axis=1)[:, :num_near]) if n > 1 else rows
    scale = _mean(_known(nearest), np.isfinite(nearest).sum())
    if not scale > 0:
        scale = _mean(_known(np.abs(rows)), number * (n - 1))
    return float(scale) if scale > 0 else 1.0


def tree_edge(problem: TSP) -> float:
    """Returns what `scales.tree_edge` does."""
    n = int(problem.n)
    if n > _MOST_CITIES:
        return float(scales.tree_edge(problem))
    distances_from, edges = _rows(problem), np.zeros(n, np.float32)
    away, inside, city = np.full(n, np.inf, np.float32), np.zeros(n, np.float32), 0
    for number in range(1, n):
        inside[city] = away[city] = np.inf
        np.minimum(away, np.maximum(distances_from(city), inside), out=away)
        city = int(away.argmin())
        edges[number] = away[city]
    total = np.add.accumulate(_product(edges, edges))[-1]  # one after the other
    return float(np.sqrt(total * _inverse(n - 1)))


def _rows(problem: TSP) -> Callable[[int], np.ndarray]:
    """Returns the function that gives the distances from a city as on the device, [n] float32."""
    n = int(problem.n)
    if problem.matrix is not None:
        matrix = problem.distances_on_host()
        return lambda city: matrix[city].astype(np.float32)
    if problem.metric != "EUCLID":
        points, rule = problem.host.coords, distances.EDGE_WEIGHTS[problem.metric]
        assert points is not None
        return lambda city: rule(points[city], points).astype(np.float32)
    assert problem.coords is not None
    x, y = (np.asarray(part)[:n] for part in problem.coords)
    if n <= _FEW:
        return _euclid_matrix(x, y).__getitem__
    return lambda city: _euclid(x - x[city], y - y[city])


def _euclid_matrix(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Returns the distances between all cities, [n, n] float32."""
    matrix = np.empty((len(x), len(x)), np.float32)
    for low in range(0, len(x), _ROWS):
        rows = slice(low, low + _ROWS)
        matrix[rows] = _euclid(x - x[rows, None], y - y[rows, None])
    return matrix


def _euclid(dx: np.ndarray, dy: np.ndarray) -> np.ndarray:
    return np.sqrt(_product(dx, dx) + _product(dy, dy))


def _product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Returns what `floats.product` does."""
    bits = np.asarray(a * b).view(np.int32) & np.int32(-2)
    return bits.view(np.float32)


def _known(values: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(values), values, np.float32(0))


def _mean(values: np.ndarray, number: int) -> np.ndarray:
    return _total(_total(values)) * _inverse(number)


def _inverse(number: int) -> np.float32:
    """Returns what XLA multiplies by on a CPU where it is told to divide by a number, or by 1."""
    return np.float32(1) / np.float32(max(number, 1))


def _total(values: np.ndarray) -> np.ndarray:
    """Returns what `floats.total` does."""
    size = values.shape[-1]
    room = (1 << max(size - 1, 0).bit_length()) - size
    values = np.concatenate([values, np.zeros((*values.shape[:-1], room), np.float32)], axis=-1)
    while (half := values.shape[-1] // 2) > 0:
        values = values[..., :half] + values[..., half:]
    return values[..., 0]
