"""TSP: tours that go to the nearest city not yet visited, again and again; built on the host.

Rosenkrantz, Stearns, Lewis, "An analysis of several heuristics for the traveling salesman problem",
1977. They need distances only, where curves need coordinates, and are on average about 1.25 times
as long as the shortest tour.
"""

import numpy as np

from jaxopt_search.problems.tsp.problem import TSP


def nearest_neighbor_tours(
    problem: TSP, generator: np.random.Generator, num_tours: int
) -> np.ndarray:
    """Returns tours from random first cities, all different, [min(num_tours, n), n] int32.

    Args:
      problem: with a matrix.
      generator: draws the first cities.
      num_tours: how many, at least 1.
    """
    matrix = problem.distances_on_host()
    n = len(matrix)
    first = generator.permutation(n)[:num_tours]
    tours = np.empty((len(first), n), np.int32)
    tours[:, 0] = first
    number, is_left = np.arange(len(first)), np.ones(tours.shape, bool)
    for position in range(1, n):
        city = tours[:, position - 1]
        is_left[number, city] = False
        away = np.where(is_left, matrix[city], np.inf)
        tours[:, position] = away.argmin(axis=1)
    return tours
