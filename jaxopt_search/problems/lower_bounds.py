"""Costs that no solution is below, on the host: how good a result is where no optimum is known.

Of symmetric tours the 1-tree bound (Held, Karp, "The traveling-salesman problem and minimum
spanning trees: part II", 1971), of asymmetric ones the assignment problem, of the QAP the bound of
Gilmore ("Optimal and suboptimal algorithms for the quadratic assignment problem", 1962) and Lawler
("The quadratic assignment problem", 1963).
"""

import math
from typing import Any

import numpy as np

MOST_CITIES, MOST_FACILITIES = 1000, 200
"""Beyond, a bound takes seconds and gigabytes."""
_FEW_CITIES, _TREES, _TREES_OF_MANY = 300, 100, 50
_FIRST_STEP, _LAST_STEP = 0.4, 0.004  # of the mean length of edges
# The most that float64 adds, and float32, of the largest sums.
_EXACT, _ROUNDED = 1e-12, 2e-7


def of_tours(matrix: np.ndarray, is_symmetric: bool) -> int | float:
    """Returns a length that no tour is below.

    Args:
      matrix: [n, n] distances, integers or floats; the diagonal does not count.
    """
    n = len(matrix)
    if n == 1:
        bound = 0.0
    elif is_symmetric and n > 2:
        bound = _one_trees(matrix.astype(np.float64))
    else:
        apart = matrix.astype(np.float64)
        np.fill_diagonal(apart, np.inf)
        bound = _assigned(apart)
    return rounded(bound, matrix)


def of_assignments(
    flow: np.ndarray, distance: np.ndarray, fixed: Any = (), places: Any = ()
) -> int | float:
    """Returns a cost that no assignment is below.

    A facility at a location costs at least the product of its flows, from the largest on, and the
    location's distances, from the smallest on; with fixed facilities it is known what it costs. The
    cheapest such assignment is the bound.

    Args:
      flow, distance: [n, n], integers or floats, of any sign, symmetric or not.
      fixed: [k] integers, the facilities that are fixed.
      places: [k] integers, their locations.
    """
    f, d = flow.astype(np.float64), distance.astype(np.float64)
    free, room = (np.delete(np.arange(len(f)), one) for one in (fixed, places))
    among, between = f[np.ix_(free, free)], d[np.ix_(room, room)]
    m = len(free)
    others = ~np.eye(m, dtype=bool)
    flows = np.sort(among[others].reshape(m, -1)) if m else among
    distances = np.sort(between[others].reshape(m, -1))[:, ::-1] if m else between
    least = flows @ distances.T + np.outer(among.diagonal(), between.diagonal())
    least += f[np.ix_(free, fixed)] @ d[np.ix_(room, places)].T
    least += f[np.ix_(fixed, free)].T @ d[np.ix_(places, room)]
    apart = (f[np.ix_(fixed, fixed)] * d[np.ix_(places, places)]).sum().item()
    return rounded(_assigned(least) + apart, flow, distance)


def _assigned(matrix: np.ndarray) -> float:
    from scipy import optimize  # of JAX's own requirements, and slow to import

    return float(matrix[optimize.linear_sum_assignment(matrix)].sum())


def rounded(bound: float, *matrices: np.ndarray) -> int | float:
    """Returns a bound less the rounding that it may contain; of integers, the next integer."""
    largest = math.prod(float(np.abs(matrix).sum(axis=1).max()) for matrix in matrices)
    size = max(abs(bound), largest)
    if all(np.issubdtype(matrix.dtype, np.integer) for matrix in matrices):
        return math.ceil(bound - _EXACT * size)
    return bound - _ROUNDED * size


def _one_trees(matrix: np.ndarray) -> float:
    """Returns the length of the longest of the shortest 1-trees that some penalties give.

    Outside of the trees stands the city that is farthest from the second nearest.
    A penalty for each end of an edge at a city makes all tours longer by the same. Those of cities
    with more than two edges grow, those of ends shrink, by steps that get shorter (Volgenant,
    Jonker, "A branch and bound algorithm for the symmetric traveling salesman problem based on the
    1-tree relaxation", 1982).
    """
    n, best = len(matrix), -np.inf
    np.fill_diagonal(matrix, np.inf)
    penalty, before = np.zeros(n), np.zeros(n)
    nearest = np.sort(matrix, axis=1)[:, :2]
    usual, farthest = np.median(np.abs(nearest)), int(nearest[:, 1].argmax())
    first = np.r_[farthest, np.delete(np.arange(n), farthest)]
    matrix = matrix[np.ix_(first, first)]
    trees = _TREES if n <= _FEW_CITIES else _TREES_OF_MANY
    for step in usual * np.geomspace(_FIRST_STEP, _LAST_STEP, trees):
        length, degree = _one_tree(matrix + penalty[:, None] + penalty)
        best, excess = max(best, length - 2 * penalty.sum()), degree - 2
        if not excess.any():
            break
        penalty = penalty + step * (0.7 * excess + 0.3 * before)
        before = excess
    return best


def _one_tree(matrix: np.ndarray) -> tuple[float, np.ndarray]:
    """Returns the length of the shortest 1-tree, and the number of edges at each city, [n].

    That is a tree of all cities but the first, and the two shortest edges of that one. The tree is
    grown as in Prim, "Shortest connection networks and some generalizations", 1957.
    """
    n = len(matrix)
    pair = np.argpartition(matrix[0, 1:], 1)[:2] + 1
    length, degree = float(matrix[0, pair].sum()), np.zeros(n, int)
    degree[0], degree[pair] = 2, 1
    nearest, distance = np.ones(n, int), matrix[1].copy()
    distance[:2] = np.inf
    for _ in range(n - 2):
        city = int(distance.argmin())
        length += distance[city]
        degree[[city, nearest[city]]] += 1
        row = matrix[city]
        is_nearer = (row < distance) & (distance < np.inf)
        distance = np.where(is_nearer, row, distance)
        nearest[is_nearer] = city
        distance[city] = np.inf
    return length, degree
