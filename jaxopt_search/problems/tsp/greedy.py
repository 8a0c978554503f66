"""TSP: tours from the shortest edges that still fit, built on the host.

Bentley, "Fast algorithms for geometric traveling salesman problems", 1992: on average about 1.16
times as long as the shortest tour, where going to the nearest city each time makes it 1.25 times.
"""

import numpy as np

from jaxopt_search.problems.tsp import candidates
from jaxopt_search.problems.tsp.descent import Distance
from jaxopt_search.problems.tsp.problem import TSP

_NEAR_ENDS = 5  # ends of other paths that an end of one may be joined to, as far as they are left


class Paths:
    """Paths through all cities, at first a city each, which edges join.

    Attributes:
      links: of each city, its neighbors on its path.
      num: of paths.
    """

    def __init__(self, n: int):
        self.links: list[list[int]] = [[] for _ in range(n)]
        self.num = n
        self._other_end = list(range(n))  # of the path that ends in a city

    def join(self, first: np.ndarray, second: np.ndarray) -> None:
        """Adds those edges, in their order, that leave no city three and close no cycle."""
        links, other_end = self.links, self._other_end
        for a, b in zip(first.tolist(), second.tolist(), strict=True):
            if len(links[a]) < 2 and len(links[b]) < 2 and other_end[a] != b and a != b:
                links[a].append(b)
                links[b].append(a)
                end, start = other_end[a], other_end[b]
                other_end[end], other_end[start] = start, end
                self.num -= 1

    def ends(self) -> np.ndarray:
        """Returns the cities that have room for another edge, ascending."""
        return np.array([city for city, links in enumerate(self.links) if len(links) < 2])

    def tour(self) -> np.ndarray:
        """Returns the cities in order, once there is one path, [n] int64."""
        before, city = -1, next(i for i, links in enumerate(self.links) if len(links) < 2)
        tour = [city]
        for _ in range(len(self.links) - 1):
            links = self.links[city]
            before, city = city, links[0] if links[0] != before else links[1]
            tour.append(city)
        return np.array(tour)


def greedy_tour(problem: TSP, near: np.ndarray, distance: Distance) -> np.ndarray:
    """Returns a tour of the shortest edges that still fit, of those to candidates, [n] int64.

    What is left are paths, whose ends are joined likewise, again and again, to near other ends.

    Args:
      problem: of symmetric distances.
      near: [n, K] candidates.
      distance: of its cities.
    """
    paths, cities = Paths(len(near)), np.arange(len(near))
    while paths.num > 1:
        first, second = np.repeat(cities, near.shape[1]), near.ravel()
        order = np.argsort(distance(first, second), kind="stable")
        paths.join(first[order], second[order])
        cities = paths.ends()
        near = candidates.nearest_among(problem, cities, _NEAR_ENDS)
    return paths.tour()
