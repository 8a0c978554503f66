"""TSP: for each city, the few cities where a good tour may go next; computed on the host.

Johnson, McGeoch, "The traveling salesman problem: a case study in local optimization", 1997, on
neighbor lists and quadrant neighbors. Where only distances are known, candidates are spread after
Toussaint, "The relative neighbourhood graph of a finite planar set", 1980.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, TypeAlias

import jax
import numpy as np

from jaxopt_search.checks import imported
from jaxopt_search.problems.tsp.problem import TSP

Kind: TypeAlias = Literal["nearest", "spread"]

_ROWS = 256  # cities whose distances to all others a thread has in memory at once
_THREADS = 4
_POOL, _WIDER = 6, 8  # times as many nearest cities as candidates, and as before
_FEW = 1024  # points of which all distances are computed
_NEAR_ROWS = 512  # nearest cities of which candidates are chosen by distances alone
SAME_PLACE = 0.1  # of its distance from the city, within which one city stands for another


def neighbors(problem: TSP, num_candidates: int, kind: Kind = "nearest") -> np.ndarray:
    """Returns [n, K] int32: K near cities of each city.

    Cities at the same place count as one. Of its own place, a city has the next one around a ring;
    of another place, one that depends on the city. Where there are too few places, some cities are
    there twice.

    Args:
      problem: a single city is its own neighbor.
      num_candidates: K at most, at least 1; n - 1 if there are fewer other cities.
      kind: `"nearest"`, the nearest first; or `"spread"`, also from directions where they are
        farther. With coordinates, K / 4 from each quadrant around the city and then the nearest of
        the others; without, each time the nearest of those to which the fewest of the chosen are
        nearer than the city.
    """
    n, coords = int(problem.n), problem.host.coords
    num = min(num_candidates, n - 1)
    if n == 1:
        return np.zeros((1, 1), np.int32)
    by_matrix = problem.matrix is not None and (kind == "nearest" or coords is None)
    table = problem.distances_on_host() if by_matrix else np.asarray(coords)
    first, place = places(table)
    if len(first) < n:
        table = table[np.ix_(first, first)] if by_matrix else table[first]
    few = min(num, len(first) - 1)
    if few == 0:
        lists = np.zeros((1, 0), np.int32)
    elif by_matrix:
        rule = _spread_in_rows if kind == "spread" else _nearest_in_rows
        blocks = _each_block(lambda rows: rule(table, few, rows), np.arange(len(table)))
        lists = np.concatenate(blocks).astype(np.int32)
    else:
        lists = (_quadrant_neighbors if kind == "spread" else _nearest_points)(table, few)
    return lists if len(first) == n else of_cities(lists, place, num)


def with_room(problem: TSP, lists: np.ndarray, num: int) -> jax.Array:
    """Returns lists of n cities, [capacity, num]: where there are fewer, of the city itself."""
    own = np.arange(problem.capacity, dtype=np.int32)[:, None].repeat(num, axis=1)
    own[: len(lists), : lists.shape[1]] = lists
    return jax.device_put(own)


def places(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the first city of each place, ascending, and the place of each city, [n].

    Args:
      table: [n, n] distances or [n, 2] coordinates; where a city is follows from its row.
    """
    rows = np.ascontiguousarray(table + table.dtype.type(0))  # which makes -0 the same as 0
    as_one = rows.view(np.dtype((np.void, rows[:1].nbytes))).ravel()
    _, first, group = np.unique(as_one, return_index=True, return_inverse=True)
    rank = np.empty_like(first)
    rank[np.argsort(first)] = np.arange(len(first))
    return np.sort(first), rank[group.ravel()]


def of_cities(lists: np.ndarray, place: np.ndarray, num: int) -> np.ndarray:
    """Returns candidates of cities, [n, num] int32, from the candidates of their places.

    Args:
      lists: [p, W] of places, W >= 1 if there are several.
      place: [n] of each city.
    """
    by_place, count = np.argsort(place, kind="stable"), np.bincount(place)
    start = np.cumsum(count) - count
    rank = np.empty_like(place)
    rank[by_place] = np.arange(len(place)) - start[place[by_place]]
    near = lists[place]
    others = by_place[start[near] + rank[:, None] % count[near]]
    own = by_place[start[place] + (rank + 1) % count[place]][:, None]
    with_own, without = (np.concatenate(each, axis=1) for each in ((own, others), (others, own)))
    is_alone = (count[place] == 1)[:, None]
    # A city that is alone is not its own candidate.
    without[:, -1:] = np.where(is_alone, without[:, :1], own)
    found = np.where(is_alone, without, with_own)
    return found[:, np.arange(num) % found.shape[1]].astype(np.int32)


def nearest_among(problem: TSP, cities: np.ndarray, num: int) -> np.ndarray:
    """Returns [m, num] the nearest to each of some cities among them, m - 1 if there are fewer.

    Args:
      cities: [m], at least 2.
    """
    num = min(num, len(cities) - 1)
    if problem.matrix is None:
        return cities[_nearest_points(np.asarray(problem.host.coords)[cities], num)]
    matrix = problem.distances_on_host()[np.ix_(cities, cities)]
    return cities[_nearest_in_rows(matrix, num, np.arange(len(cities)))]


def _nearest_points(points: np.ndarray, num: int) -> np.ndarray:
    nearest, cities = _nearest_to(points), np.arange(len(points))
    near = np.concatenate(_each_block(lambda rows: nearest(rows, num + 1), cities))
    # A city is not always its own nearest neighbor: others may be at the same place.
    is_self = near == cities[:, None]
    order = np.argsort(is_self, axis=1, kind="stable")[:, :num]
    return np.take_along_axis(near, order, axis=1).astype(np.int32)


def _nearest_to(points: np.ndarray) -> Callable[[np.ndarray, int], np.ndarray]:
    """Returns a function from some points, by number, and k to the k nearest of each, [rows, k].

    In order; a point is mostly among its own.
    """
    if len(points) <= _FEW:
        return lambda rows, num: lowest(_squared(points, rows), num)
    # Imported only here: that takes ten times as long as all distances between a thousand points.
    tree = imported("scipy.spatial", "candidate lists need SciPy").KDTree(points)
    return lambda rows, num: tree.query(points[rows], num)[1]


def _squared(points: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Returns the squared distances from some points to all, [rows, n]."""
    x, y = points.T
    dx, dy = x[rows, None] - x, y[rows, None] - y
    # In place: a host may take longer to find room for an array than to compute it.
    squared = np.square(dx, out=dx)
    squared += np.square(dy, out=dy)
    return squared


def _each_block(
    fn: Callable[[np.ndarray], Any], rows: np.ndarray, size: int | None = None
) -> list[Any]:
    """Returns `fn(block)` of each block of `size` rows, in threads."""
    size = size or _ROWS
    blocks = [rows[low : low + size] for low in range(0, len(rows), size)]
    if len(blocks) < 2:
        return list(map(fn, blocks))
    with ThreadPoolExecutor(_THREADS) as threads:
        return list(threads.map(fn, blocks))


def _nearest_in_rows(matrix: np.ndarray, num: int, rows: np.ndarray) -> np.ndarray:
    distances = matrix[rows].astype(np.float64)
    distances[np.arange(len(rows)), rows] = np.inf
    return lowest(distances, num)


def _spread_in_rows(matrix: np.ndarray, num: int, rows: np.ndarray) -> np.ndarray:
    """Returns [rows, num] candidates that are spread, as `neighbors` says, in their order.

    Those within a tenth of their distance from a chosen one, which stands for them, come last.
    """
    distances = matrix[rows].astype(np.float64)
    distances[np.arange(len(rows)), rows] = np.inf
    size = min(_NEAR_ROWS, len(matrix) - 1)
    pool = np.sort(np.argpartition(distances, size - 1, axis=1)[:, :size], axis=1)
    away, each = np.take_along_axis(distances, pool, axis=1), np.arange(len(rows))
    step = 1 + 2 * np.abs(away).max(axis=1, keepdims=True)  # outweighs every distance
    rating, found = away.copy(), []
    for _ in range(num):
        at = rating.argmin(axis=1)
        found.append(pool[each, at])
        between = matrix[found[-1][:, None], pool]
        rating += step * (between < away)
        rating += num * step * (between < SAME_PLACE * away)
        rating[each, at] = np.inf
    return np.stack(found, axis=1)


def _quadrant_neighbors(points: np.ndarray, num: int) -> np.ndarray:
    """Returns [n, num]: for most cities from a pool of the nearest, for others from wider ones."""
    n, nearest = len(points), _nearest_to(points)
    found, left, size = np.empty((n, num), np.int32), np.arange(n), min(_POOL * num, n)
    if n <= _ROWS:
        size = n

    def among_nearest(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        is_all = size == n
        pool = np.broadcast_to(np.arange(n), (len(rows), n)) if is_all else nearest(rows, size)
        return _by_quadrant(points, num, rows, np.sort(pool, axis=1))

    block = _ROWS
    while len(left):
        picked, is_sure = map(
            np.concatenate, zip(*_each_block(among_nearest, left, block), strict=True)
        )
        found[left] = picked
        if size == n:
            break
        left, size, block = left[~is_sure], min(_WIDER * size, n), _ROWS // 8
    return found


def _by_quadrant(
    points: np.ndarray, num: int, rows: np.ndarray, pool: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Returns [rows, num] cities of the pool, and for which rows no city outside of it can be one.

    Args:
      rows: the cities whose candidates are wanted.
      pool: [rows, P] cities, ascending.
    """
    wanted, (x, y), own = num // 4, points.T, rows[:, None]
    dx, dy = x[pool] - x[own], y[pool] - y[own]
    quadrant = (dx >= 0) + np.int8(2) * (dy >= 0)
    squared = np.square(dx, out=dx)
    squared += np.square(dy, out=dy)
    farthest = squared.max(axis=1)
    squared[pool == own] = np.inf
    # Nearest first, of those equally far quadrant by quadrant; the city itself is the last one.
    order = np.lexsort((quadrant, squared))
    quadrant = np.take_along_axis(quadrant, order, axis=1)
    is_later, counts = np.ones(quadrant.shape, bool), []
    for number in range(4):
        is_of = quadrant == number
        count = is_of.cumsum(axis=1, dtype=np.int32)
        is_later &= ~is_of | (count > wanted)
        counts.append(count[:, -1])
    is_later[:, -1] = True
    counts = np.stack(counts, axis=1) - np.array([0, 0, 0, 1])  # without the city itself
    is_enough = counts >= wanted
    (few,) = np.nonzero(~is_enough.all(axis=1))
    is_enough[few] |= counts[few] == _counts(points, rows[few])
    picked = np.argsort(is_later, axis=1, kind="stable")[:, :num]
    order = np.take_along_axis(order, picked, axis=1)
    reach = np.take_along_axis(squared, order, axis=1)
    order = np.take_along_axis(order, np.argsort(reach, axis=1, kind="stable"), axis=1)
    is_sure = is_enough.all(axis=1) & (reach.max(axis=1) < farthest)
    return np.take_along_axis(pool, order, axis=1), is_sure


def _counts(points: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Returns how many other cities there are in each quadrant around some cities, [rows, 4]."""
    x, y = points.T
    is_right, is_above = x >= x[rows, None], y >= y[rows, None]
    both, right, above = (part.sum(axis=1) for part in (is_right & is_above, is_right, is_above))
    return np.stack([len(x) - right - above + both, right - both, above - both, both - 1], axis=1)


def lowest(values: np.ndarray, num: int) -> np.ndarray:
    """Returns the columns of the lowest values of each row, in order, [rows, num]."""
    columns = np.sort(np.argpartition(values, num - 1, axis=1)[:, :num], axis=1)
    order = np.argsort(np.take_along_axis(values, columns, axis=1), axis=1, kind="stable")
    return np.take_along_axis(columns, order, axis=1)
