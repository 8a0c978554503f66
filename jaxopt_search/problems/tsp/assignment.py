"""TSP: tours and candidates from assignment problems, for asymmetric distances; on the host.

Its solution is the shortest set of cycles through all cities, which is often nearly as long as the
shortest tour, or shorter by little. Carpaneto, Toth, "Some new branching and bounding criteria for
the asymmetric travelling salesman problem", 1980; Karp, "A patching algorithm for the nonsymmetric
traveling-salesman problem", 1979.
"""

from typing import NamedTuple

import numpy as np

from jaxopt_search.problems.tsp import candidates
from jaxopt_search.problems.tsp.problem import TSP

_MOST_ASSIGNMENTS, _MOST_WORK = 300, 1e9


class _Node(NamedTuple):
    """Part of all tours.

    Attributes:
      cost: of the shortest cycles, a lower bound.
      after: [n] the city behind each city on these.
      matrix: [n, n] distances, +inf of edges that no tour of them has.
      is_open: [n] whether it is open what follows a city; else all of them have the same edge.
    """

    cost: float
    after: np.ndarray
    matrix: np.ndarray
    is_open: np.ndarray


def short_tour(problem: TSP) -> np.ndarray:
    """Returns the best tour that few assignment problems lead to, [n] int32.

    Branch and bound, depth first: the smallest cycle of a part's shortest cycles loses one of its
    edges. Joined, the cycles of each part make a tour. Up to 300 assignments of O(n * n * n) are
    solved, fewer of more than 150 cities: for random distances the tour is then often optimal, and
    of few edges that are not forbidden one is mostly found. Cities at the same place follow one
    another.

    Args:
      problem: of a matrix, two cities or more.
    """
    matrix, place = _places(problem)
    if len(matrix) == 1:
        return np.arange(len(place), dtype=np.int32)
    order = np.argsort(_short_tour(matrix))
    return np.argsort(order[place], kind="stable").astype(np.int32)


def _short_tour(matrix: np.ndarray) -> np.ndarray:
    """Returns the order of places that differ, [p], two or more."""
    root = _solved(matrix, np.ones(len(matrix), bool))
    assert root is not None
    tour, least, parts = root.after, np.inf, [root]
    num_left = min(_MOST_WORK // len(matrix) ** 3, _MOST_ASSIGNMENTS)
    while parts:
        part = parts.pop()
        if part.cost >= least:
            continue
        cycle = _cycles(part.after)
        found = _patched(matrix, part.after, cycle.copy())
        length = matrix[found, np.roll(found, -1)].sum()
        if length < least:
            tour, least = found, length
        if cycle.max() == 0 or num_left <= 0:
            continue
        smallest = np.bincount(cycle, part.is_open).argmin()
        cities, smaller = np.flatnonzero((cycle == smallest) & part.is_open), []
        with_all, is_open = part.matrix.copy(), part.is_open.copy()
        for city in cities:  # one part without its edge, all others with it
            other = part.after[city]
            length = with_all[city, other]
            with_all[city, other] = np.inf
            smaller.append(_solved(with_all.copy(), is_open.copy()))
            with_all[city] = with_all[:, other] = np.inf
            with_all[city, other], is_open[city] = length, False
        num_left -= len(cities)
        kept = [each for each in smaller if each is not None and each.cost < least]
        parts += sorted(kept, key=lambda each: -each.cost)
    return tour


def likeliest(problem: TSP, num_candidates: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the cities likeliest to follow each city on short tours, and the extra costs.

    A tour with this edge costs at least so much more than the shortest cycles: the distance
    less dual costs of leaving a city and reaching the other one. Cities at the same place count as
    one, as in `candidates.neighbors`.

    Args:
      problem: of a matrix.
      num_candidates: K at most; n - 1 if there are fewer other cities.

    Returns:
      [n, K] int32, likeliest first, and [n, K] float64. Where all other edges are forbidden, it is
      the city itself, and +inf.
    """
    n = int(problem.n)
    if n == 1:
        return np.zeros((1, 1), np.int32), np.full((1, 1), np.inf)
    matrix, place = _places(problem)
    num = min(num_candidates, n - 1)
    if len(matrix) == 1:
        return candidates.of_cities(np.zeros((1, 0), np.int32), place, num), np.zeros((n, num))
    node = _solved(matrix, np.ones(len(matrix), bool))
    assert node is not None
    extra = _reduced(matrix, node.after)
    if problem.host.max_feasible is not None:
        extra[matrix == problem.distances_on_host().max()] = np.inf
    near = candidates.lowest(extra, min(num, len(matrix) - 1))
    if len(matrix) < n:
        np.fill_diagonal(extra, 0)
        near = candidates.of_cities(near, place, num)
    extra = extra[place[:, None], place[near]]
    return np.where(np.isinf(extra), np.arange(n)[:, None], near).astype(np.int32), extra


def _places(problem: TSP) -> tuple[np.ndarray, np.ndarray]:
    """Returns distances between places, [p, p] float64, and the place of each city, [n].

    From a place to itself it is +inf.
    """
    matrix = problem.distances_on_host().astype(np.float64)
    first, place = candidates.places(np.concatenate([matrix, matrix.T], axis=1))
    matrix = matrix[np.ix_(first, first)]
    np.fill_diagonal(matrix, np.inf)
    return matrix, place


def _solved(matrix: np.ndarray, is_open: np.ndarray) -> _Node | None:
    """Returns the part of tours with the shortest cycles; None if there are none."""
    from scipy import optimize  # of JAX's own requirements, and slow to import

    try:
        cities, after = optimize.linear_sum_assignment(matrix)
    except ValueError:
        return None
    return _Node(matrix[cities, after].sum(), after, matrix, is_open)


def _cycles(after: np.ndarray) -> np.ndarray:
    """Returns the number of the cycle that each city is on, [n], from 0 on."""
    from scipy import sparse

    edges = sparse.csr_array((np.ones(len(after)), (np.arange(len(after)), after)))
    return sparse.csgraph.connected_components(edges)[1]


def _patched(matrix: np.ndarray, after: np.ndarray, cycle: np.ndarray) -> np.ndarray:
    """Returns a tour, [n], by joining the smallest cycle to another one, again and again.

    Two edges are replaced, those which make all longer by the least. O(n * n * log(n)).

    Args:
      after: [n] the city behind each city.
      cycle: [n] the number of its cycle, overwritten.
    """
    after, cities = after.copy(), np.arange(len(after))
    for _ in range(cycle.max()):
        sizes = np.bincount(cycle)
        is_in = cycle == np.where(sizes > 0, sizes, len(after) + 1).argmin()
        inside, outside, length = cities[is_in], cities[~is_in], matrix[cities, after]
        there, back = matrix[np.ix_(inside, after[outside])], matrix[np.ix_(outside, after[inside])]
        change = there + back.T - length[inside, None] - length[outside]
        i, j = np.unravel_index(change.argmin(), change.shape)
        pair = [inside[i], outside[j]]
        after[pair] = after[pair[::-1]]
        cycle[is_in] = cycle[pair[1]]
    tour = [0]
    for _ in cities[1:]:
        tour.append(int(after[tour[-1]]))
    return np.array(tour)


def _reduced(matrix: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Returns distances less dual costs, [n, n], at least 0, and 0 on the shortest cycles.

    By shortest paths, as in Bellman, "On a routing problem", 1958.
    """
    own = np.take_along_axis(matrix, after[:, None], axis=1)
    reaching, rows = np.zeros(len(matrix)), np.arange(len(matrix))
    for _ in range(len(matrix)):
        nearer = (matrix[rows] - own[rows] + reaching[after[rows], None]).min(axis=0, initial=0)
        is_nearer = nearer < reaching
        if not is_nearer.any():
            break
        reaching = np.where(is_nearer, nearer, reaching)
        (rows,) = np.nonzero(is_nearer[after])
    return matrix - own + reaching[after, None] - reaching
