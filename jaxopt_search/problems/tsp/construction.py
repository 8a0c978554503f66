"""TSP: good tours, built on the host.

Greedy edges and 2-opt with Or-opt, by NumPy within milliseconds each, typically within 6 % of the
shortest; where distances depend on the direction, from assignments. Greedy tours are on average
about 1.16 times as long as the shortest, where going to the nearest city each time makes it 1.25
times: Bentley, "Fast algorithms for geometric traveling salesman problems", 1992.
"""

import dataclasses
import functools
from typing import Any

import numpy as np

from jaxopt_search.checks import MAX_INT32
from jaxopt_search.problems.host import Original
from jaxopt_search.problems.tsp import assignment, candidates, descent
from jaxopt_search.problems.tsp.descent import Distance
from jaxopt_search.problems.tsp.problem import TSP

_NUM_CANDIDATES = 8
_NEAR_ENDS = 5  # ends of other paths that an end of one may be joined to, as far as they are left
_MOST_STARTS = 8  # that differ
_SHORTEST, _LONGEST = 0.7, 1.3  # as which a greedy choice may see an edge of length 1
SECONDS_PER_CITY = 12e-6
"""What a tour takes on one core of a CPU, about."""


def constructed_tour(problem: TSP, near: np.ndarray | None = None) -> np.ndarray:
    """Returns a good tour, [n] int32; always the same one, after a bounded number of operations.

    Args:
      problem: with room for more cities or without.
      near: [n, K] candidates, nearest first, of symmetric distances; None to find them here.
    """
    if problem.is_symmetric or problem.is_trivial:
        if near is None:
            near = candidates.neighbors(problem, _NUM_CANDIDATES)
        return constructed_tours(problem, near, np.random.default_rng(0), 1)[0]
    return assignment.short_tour(problem)


def constructed_tours(
    problem: TSP, near: np.ndarray, generator: np.random.Generator, num_tours: int
) -> np.ndarray:
    """Returns tours that differ much and are about as good, [num_tours, n] int32.

    The first is the tour of `constructed_tour`; for the others, greedy choices use distances that
    are off by a random factor.

    Args:
      problem: of symmetric distances.
      near: [n, K] candidates, nearest first.
      generator: draws the factors.
      num_tours: at least 1.
    """
    n = int(problem.n)
    if problem.is_trivial:
        return np.tile(np.arange(n, dtype=np.int32), (num_tours, 1))
    near, distance = near[:, :_NUM_CANDIDATES].astype(np.int64), _distance_of(problem)

    def blurred(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return distance(a, b) * generator.uniform(_SHORTEST, _LONGEST, np.shape(a))

    starts = [
        greedy_tour(problem, near, blurred if number else distance) for number in range(num_tours)
    ]
    ends = [descent.descend(start, near, distance) for start in starts]
    # The descent uses distances in the plane, which some metrics round.
    better = [min(pair, key=problem.host.cost) for pair in zip(ends, starts, strict=True)]
    return np.array(better, np.int32)


def greedy_tour(problem: TSP, near: np.ndarray, distance: Distance) -> np.ndarray:
    """Returns a tour of the shortest edges that still fit, of those to candidates, [n] int64.

    An edge fits if it leaves no city three and closes no cycle. What is left are paths, whose ends
    are joined in the same way to near ends of others, until there is one.

    Args:
      problem: of symmetric distances.
      near: [n, K] candidates.
      distance: of its cities.
    """
    n = num_paths = len(near)
    links: list[list[int]] = [[] for _ in range(n)]  # of each city, its neighbors on its path
    other_end, cities = list(range(n)), np.arange(n)  # of the path that ends in a city
    while num_paths > 1:
        first, second = np.repeat(cities, near.shape[1]), near.ravel()
        order = np.argsort(distance(first, second), kind="stable")
        for a, b in zip(first[order].tolist(), second[order].tolist(), strict=True):
            if len(links[a]) < 2 and len(links[b]) < 2 and other_end[a] != b and a != b:
                links[a].append(b)
                links[b].append(a)
                end, start = other_end[a], other_end[b]
                other_end[end], other_end[start] = start, end
                num_paths -= 1
        cities = np.array([city for city, beside in enumerate(links) if len(beside) < 2])
        near = candidates.nearest_among(problem, cities, _NEAR_ENDS)
    before, tour = -1, [int(cities[0])]
    for _ in range(n - 1):
        beside = links[tour[-1]]
        before, city = tour[-1], beside[0] if beside[0] != before else beside[1]
        tour.append(city)
    return np.array(tour)


def with_good_starts(host: Original) -> Original:
    """Returns the host part of an instance of which random tours cost too much for int32.

    Sums wrap around there, so costs are right within 2**31 of 0, which holds for all tours that a
    search at a sensible temperature meets if it starts from a good one. If not, the lowest cost is
    a wrong one, and the driver notices.
    """
    return dataclasses.replace(host, check=functools.partial(_check_start, host), starts=_starts)


def _check_start(host: Original, solution: Any, name: str) -> np.ndarray:
    tour, most = host.check(solution, name), host.unit * (MAX_INT32 // 2)
    if not abs(cost := host.cost(tour)) <= most:
        way_out = "dtype='float32'" if host.coords is None else "metric='EUCLID'"
        raise ValueError(
            f"{name} costs {cost:.6g}, expected at most {most:.6g}, because int32 must hold the"
            f" costs around it; start from a shorter tour, or use {way_out} for inexact costs"
        )
    return tour


def _starts(problem: TSP, num_tours: int) -> np.ndarray:
    """Returns good tours for as many searches, [num_tours, n] int32; some are alike."""
    if not problem.is_symmetric:
        return np.tile(constructed_tour(problem), (num_tours, 1))
    near, generator = candidates.neighbors(problem, _NUM_CANDIDATES), np.random.default_rng(0)
    tours = constructed_tours(problem, near, generator, min(num_tours, _MOST_STARTS))
    return tours[np.arange(num_tours) % len(tours)]


def _distance_of(problem: TSP) -> Distance:
    """Returns the distances on the host; in the plane, where the device uses coordinates."""
    if problem.matrix is not None:
        n, entries = int(problem.n), problem.distances_on_host().ravel()
        return lambda a, b: entries.take(a * n + b).astype(np.float64)
    assert problem.host.coords is not None
    x, y = np.ascontiguousarray(problem.host.coords.T)

    def euclid(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        dx, dy = x[a] - x[b], y[a] - y[b]
        return np.sqrt(dx * dx + dy * dy)

    return euclid
