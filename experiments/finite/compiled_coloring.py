"""TabuCol compiled for one core: the sequential baseline on graph coloring.

Hertz and de Werra, "Using tabu search techniques for graph coloring" (1987), with the tenure of
Galinier and Hao, "Hybrid evolutionary algorithms for graph coloring" (1999): a random number below
10 plus 0.6 times the vertices in conflict. For each vertex and color the neighbors of that color
are counted; a step looks at the vertices in conflict only, and updates the counts of one vertex's
neighbors. It needs numba, from the extra `peers`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jaxopt_search.datasets import GraphInstance

TENURE = (0, 9, 60)
"""Least and most steps of a tenure, and percents of the vertices in conflict, which are added."""


class Neighbors(NamedTuple):
    """The neighbors of each vertex, one after the other.

    Attributes:
      first: [n + 1] int64, where the neighbors of each vertex begin; last, where all end.
      vertex: [2 m] int64.
    """

    first: np.ndarray
    vertex: np.ndarray


class Search(NamedTuple):
    """The state of a search; arrays are written in place.

    Attributes:
      colors, best: [n] int64, the current ones and the best.
      counts: [n, k] int64, the neighbors of each vertex in each color.
      until: [n, k] int64, the last step at which the vertex is forbidden the color.
      bad: [n] int64, the vertices in conflict, in any order, and then anything.
      place: [n] int64, where each stands in `bad`, or -1.
      numbers: [5] int64: steps made, conflicting edges now and at best, the state of the
        generator, vertices in conflict.
    """

    colors: np.ndarray
    best: np.ndarray
    counts: np.ndarray
    until: np.ndarray
    bad: np.ndarray
    place: np.ndarray
    numbers: np.ndarray


def neighbors(graph: GraphInstance) -> Neighbors:
    """Returns the neighbors of each vertex in a graph."""
    both = np.concatenate([graph.edges, graph.edges[:, ::-1]])
    order = np.lexsort((both[:, 1], both[:, 0]))
    degrees = np.bincount(both[:, 0], minlength=graph.n)
    first = np.concatenate([[0], np.cumsum(degrees)]).astype(np.int64)
    return Neighbors(first, np.ascontiguousarray(both[order, 1]))


def start(graph: GraphInstance, num_colors: int, seed: int) -> Search:
    """Returns a search at random colors."""
    n = graph.n
    colors = np.random.default_rng(seed).integers(0, num_colors, n)
    counts = np.zeros((n, num_colors), np.int64)
    for one, other in (graph.edges.T, graph.edges.T[::-1]):
        np.add.at(counts, (one, colors[other]), 1)
    own = counts[np.arange(n), colors]
    in_conflict = np.flatnonzero(own)
    bad, place = np.zeros(n, np.int64), np.full(n, -1)
    bad[: len(in_conflict)] = in_conflict
    place[in_conflict] = np.arange(len(in_conflict))
    cost = own.sum() // 2
    numbers = np.array([0, cost, cost, 1 + seed % (2**31 - 2), len(in_conflict)], np.int64)
    until = np.full((n, num_colors), -1)
    return Search(colors, colors.copy(), counts, until, bad, place, numbers)


def build(compile_fn: Callable[[Any], Any]) -> Any:
    """Returns `advance(first, vertex, search, num_steps, target, tenure)`.

    It makes this many steps, or fewer if it reaches `target`, and returns how many.
    """
    find, note = compile_fn(_find), compile_fn(_note)

    @compile_fn
    def advance(first, vertex, search, num_steps, target, tenure):
        colors, best, counts, until, _, _, numbers = search
        for made in range(num_steps):
            if numbers[2] <= target:
                return made
            v, color, change = find(search)
            if v < len(colors):
                old = colors[v]
                numbers[3] = numbers[3] * 48271 % (2**31 - 1)
                drawn = tenure[0] + numbers[3] % (tenure[1] - tenure[0] + 1)
                until[v, old] = numbers[0] + drawn + tenure[2] * numbers[4] // 100
                colors[v] = color
                for place in range(first[v], first[v + 1]):
                    u = vertex[place]
                    counts[u, old] -= 1
                    counts[u, color] += 1
                    if colors[u] == old or colors[u] == color:
                        note(search, u)
                note(search, v)
                numbers[1] += change
                if numbers[1] < numbers[2]:
                    numbers[2] = numbers[1]
                    best[:] = colors
            numbers[0] += 1
        return num_steps

    return advance


def _find(search):
    """Returns the vertex and color of the best allowed move, and its change; or n, 0, 0.

    One that leads below the best is allowed always. Of equals each is as likely.
    """
    colors, _, counts, until, bad, _, numbers = search
    n, k = counts.shape
    low, equals, vertex, color = n, 0, n, 0
    for place in range(numbers[4]):
        v = bad[place]
        own, now = counts[v, colors[v]], numbers[0]
        for c in range(k):
            change = counts[v, c] - own
            if change > low or c == colors[v]:
                continue
            if until[v, c] < now or numbers[1] + change < numbers[2]:
                if change < low:
                    low, equals = change, 0
                equals += 1
                numbers[3] = numbers[3] * 48271 % (2**31 - 1)  # Park, Miller, Stockmeyer, 1993
                if numbers[3] % equals == 0:
                    vertex, color = v, c
    return vertex, color, low if vertex < n else 0


def _note(search, v):
    """Adds vertex v to those in conflict, or takes it out."""
    colors, _, counts, _, bad, place, numbers = search
    is_bad = counts[v, colors[v]] > 0
    if is_bad and place[v] < 0:
        place[v] = numbers[4]
        bad[numbers[4]] = v
        numbers[4] += 1
    elif not is_bad and place[v] >= 0:
        numbers[4] -= 1
        last = bad[numbers[4]]
        bad[place[v]], place[last] = last, place[v]
        place[v] = -1
