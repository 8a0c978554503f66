"""TSP: one good tour within milliseconds, built on the host by NumPy.

Greedy edges and 2-opt with Or-opt, typically within 6 % of the shortest; where distances depend on
the direction, from city to nearest city and then Or-opt.
"""

import numpy as np

from jaxopt_search.problems.tsp import candidates, descent, insertion
from jaxopt_search.problems.tsp.descent import Distance
from jaxopt_search.problems.tsp.greedy import greedy_tour
from jaxopt_search.problems.tsp.nearest_neighbor import nearest_neighbor_tours
from jaxopt_search.problems.tsp.problem import TSP

_NUM_CANDIDATES = 8


def constructed_tour(problem: TSP, near: np.ndarray | None = None) -> np.ndarray:
    """Returns a good tour, [n] int32; always the same one, after a bounded number of operations.

    Args:
      problem: with room for more cities or without.
      near: [n, K] candidates, nearest first, of symmetric distances; None to find them here.
    """
    if problem.is_trivial:
        return np.arange(int(problem.n), dtype=np.int32)
    if problem.is_symmetric:
        if near is None:
            near = candidates.neighbors(problem, _NUM_CANDIDATES)
        near, distance = near[:, :_NUM_CANDIDATES].astype(np.int64), _distance_of(problem)
        start = greedy_tour(problem, near, distance)
        end = descent.descend(start, near, distance)
    else:
        start = nearest_neighbor_tours(problem, np.random.default_rng(0), 1)[0]
        end = insertion.descend(start, problem.distances_on_host())
    # The descent goes by distances in the plane, which some metrics round.
    return min(end, start, key=problem.host.cost).astype(np.int32)


def _distance_of(problem: TSP) -> Distance:
    """Returns the distances on the host; in the plane, where the device goes by coordinates."""
    if problem.matrix is not None:
        matrix = problem.distances_on_host()
        return lambda a, b: matrix[a, b].astype(np.float64)
    assert problem.host.coords is not None
    x, y = np.ascontiguousarray(problem.host.coords.T)
    return lambda a, b: np.hypot(x[a] - x[b], y[a] - y[b])
