"""TSP: for each city, the few to which a good tour may go; computed on the host.

Johnson, McGeoch, "The traveling salesman problem: a case study in local optimization", 1997, on
neighbor lists and quadrant neighbors.
"""

import functools
from collections.abc import Callable
from typing import Literal, TypeAlias

import numpy as np
from scipy import spatial

from jaxopt_search.checks import check_count
from jaxopt_search.problems.tsp import TSP

Kind: TypeAlias = Literal["nearest", "quadrant"]

_ROWS = 256  # cities whose distances to all others are in memory at once


def neighbors(problem: TSP, num_candidates: int, kind: Kind = "nearest") -> np.ndarray:
    """Returns [n, K] int32: K near cities of each city, nearest first.

    Args:
      problem: at least 2 cities; the only city of a smaller one is its own neighbor.
      num_candidates: K, at most; n - 1 if there are no more other cities.
      kind: `"nearest"`; or `"quadrant"`, K / 4 from each quadrant around the city and then the
        nearest of the others.

    Raises:
      ValueError: if an option is out of range, or there are no coordinates to tell quadrants by.
    """
    wanted = check_count("num_candidates", num_candidates)
    if kind not in ("nearest", "quadrant"):
        raise ValueError(f"candidates is {kind!r}, expected 'nearest' or 'quadrant'")
    coords, num = problem.host.coords, min(wanted, problem.n - 1)
    if kind == "quadrant" and coords is None:
        raise ValueError("candidates is 'quadrant', expected 'nearest': there are no coordinates")
    if problem.n == 1:
        return np.zeros((1, 1), np.int32)
    if problem.matrix is not None and kind == "nearest":
        matrix = np.asarray(problem.matrix).reshape(problem.n, problem.n)
        return _by_rows(problem.n, functools.partial(_nearest_in_rows, matrix, num))
    points = np.asarray(coords)
    if kind == "quadrant":
        return _by_rows(problem.n, functools.partial(_quadrant_neighbors, points, num))
    return _nearest_points(points, num)


def _nearest_points(points: np.ndarray, num: int) -> np.ndarray:
    near = spatial.KDTree(points).query(points, num + 1)[1]
    # A city is not always its own nearest neighbor: others may be at the same place.
    is_self = near == np.arange(len(points))[:, None]
    order = np.argsort(is_self, axis=1, kind="stable")[:, :num]
    return np.take_along_axis(near, order, axis=1).astype(np.int32)


def _by_rows(n: int, find: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    parts = [find(np.arange(low, min(low + _ROWS, n))) for low in range(0, n, _ROWS)]
    return np.concatenate(parts).astype(np.int32)


def _nearest_in_rows(matrix: np.ndarray, num: int, rows: np.ndarray) -> np.ndarray:
    distances = matrix[rows].astype(np.float64)
    distances[np.arange(len(rows)), rows] = np.inf
    return _lowest(distances, num)


def _quadrant_neighbors(points: np.ndarray, num: int, rows: np.ndarray) -> np.ndarray:
    differences = points - points[rows, None]
    squared = np.square(differences).sum(axis=2)
    squared[np.arange(len(rows)), rows] = np.inf
    quadrant = (differences >= 0) @ np.array([1, 2])
    near, ranks = [], []
    for number in range(4):
        found = _lowest(np.where(quadrant == number, squared, np.inf), num)
        near.append(found)
        ranks.append(np.broadcast_to(np.arange(num), found.shape))
    near, ranks = np.concatenate(near, axis=1), np.concatenate(ranks, axis=1)
    distances = np.take_along_axis(squared, near, axis=1)
    is_other = quadrant[np.arange(len(rows))[:, None], near] != np.repeat(np.arange(4), num)
    distances[is_other] = np.inf  # a quadrant with fewer cities than asked for
    order = np.lexsort((distances, (ranks >= num // 4) | ~np.isfinite(distances)))[:, :num]
    picked = np.take_along_axis(near, order, axis=1)
    nearest_first = np.argsort(np.take_along_axis(distances, order, axis=1), kind="stable")
    return np.take_along_axis(picked, nearest_first, axis=1)


def _lowest(values: np.ndarray, num: int) -> np.ndarray:
    """Returns [rows, num] the columns of the lowest values of each row, in order."""
    columns = np.argpartition(values, num - 1, axis=1)[:, :num]
    columns.sort(axis=1)
    order = np.argsort(np.take_along_axis(values, columns, axis=1), axis=1, kind="stable")
    return np.take_along_axis(columns, order, axis=1)
