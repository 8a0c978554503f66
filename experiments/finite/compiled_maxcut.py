"""One-flip tabu search for max-cut compiled for one core: the sequential baseline.

As in Kochenberger, Hao, Lu, Wang and Glover, "Solving large scale max cut problems via tabu search"
(2013), the flip that gains most of those not forbidden is made, and one that leads to a new best is
never forbidden. The tenure is from Benlic and Hao, "Breakout local search for the max-cut
problem" (2013), 3 steps and a random number up to n / 10: from single starts it came closer to the
best than n / 100 and up to 10, the former paper's. Gains are kept, and a flip updates the gains of
the vertex's neighbors. It needs numba, from the extra `peers`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jaxopt_search.datasets import GraphInstance


class Search(NamedTuple):
    """The state of a search; arrays are written in place.

    Attributes:
      sides, best: [n] int8, the side of each vertex, 0 or 1; the current ones and the best.
      gains: [n] int32, what the cut gains if the vertex changes sides.
      until: [n] int32, the last step at which the vertex is forbidden to.
      numbers: [4] int64: steps made, the cut, the best cut, the state of the generator.
    """

    sides: np.ndarray
    best: np.ndarray
    gains: np.ndarray
    until: np.ndarray
    numbers: np.ndarray


def tenure(n: int) -> tuple[int, int]:
    """Returns the least and the most steps of a tenure."""
    return 3, 3 + n // 10


def cut(graph: GraphInstance, sides: np.ndarray) -> int:
    """Returns the weight of the edges between the two sides."""
    low, high = graph.edges.T
    return int(graph.weights[sides[low] != sides[high]].sum())


def start(graph: GraphInstance, seed: int) -> Search:
    """Returns a search at random sides.

    Raises:
      ValueError: if gains could leave int32.
    """
    if 2 * int(np.abs(graph.weights).sum()) >= 2**31:
        raise ValueError(f"{graph.name} has weights of 2**30 and more in all, expected less")
    sides = np.random.default_rng(seed).integers(0, 2, graph.n).astype(np.int8)
    gains = np.zeros(graph.n, np.int32)
    low, high = graph.edges.T
    signed = np.where(sides[low] == sides[high], graph.weights, -graph.weights)
    for one in (low, high):
        np.add.at(gains, one, signed)
    value = cut(graph, sides)
    numbers = np.array([0, value, value, 1 + seed % (2**31 - 2)], np.int64)
    return Search(sides, sides.copy(), gains, np.full(graph.n, -1, np.int32), numbers)


def build(compile_fn: Callable[[Any], Any]) -> Any:
    """Returns `advance(first, vertex, weight, search, num_steps, target, low, high)`.

    It makes this many steps, or fewer if the best cut reaches `target`, and returns how many.
    Tenures are from `low` to `high`; neighbors as `compiled_coloring.neighbors` has them.
    """
    find = compile_fn(_find)

    @compile_fn
    def advance(first, vertex, weight, search, num_steps, target, low, high):
        sides, best, gains, until, numbers = search
        keys, limits = np.empty_like(gains), np.empty(2, gains.dtype)
        for made in range(num_steps):
            if numbers[2] >= target:
                return made
            numbers[3] = numbers[3] * 48271 % (2**31 - 1)  # Park, Miller, Stockmeyer, 1993
            limits[0], limits[1] = numbers[0], numbers[2] - numbers[1]
            v = find(gains, until, keys, limits[0], limits[1], numbers[3])
            if v < len(sides):
                numbers[1] += gains[v]
                gains[v] = -gains[v]
                for place in range(first[v], first[v + 1]):
                    u = vertex[place]
                    twice = 2 * weight[place]
                    gains[u] += -twice if sides[u] == sides[v] else twice
                sides[v] = 1 - sides[v]
                numbers[3] = numbers[3] * 48271 % (2**31 - 1)
                until[v] = numbers[0] + low + numbers[3] % (high - low + 1)
                if numbers[1] > numbers[2]:
                    numbers[2] = numbers[1]
                    best[:] = sides
            numbers[0] += 1
        return num_steps

    return advance


def _find(gains, until, keys, now, missing, word):
    """Returns the vertex of most gain of those allowed, from a random place on; or n.

    A vertex is allowed that is not forbidden, or that gains more than is `missing`.
    """
    n, lowest = len(gains), -(1 << 30)
    for v in range(n):
        keys[v] = gains[v] if (until[v] < now) | (gains[v] > missing) else lowest
    most = lowest
    for v in range(n):
        most = max(most, keys[v])
    if most == lowest:
        return n
    origin = word % n
    for v in range(origin, n):
        if keys[v] == most:
            return v
    for v in range(origin):
        if keys[v] == most:
            return v
    return n
