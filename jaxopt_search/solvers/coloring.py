"""One call from a graph to a coloring with few colors: `solve_coloring`."""

import dataclasses
import heapq
import itertools
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxopt_search.backends import random
from jaxopt_search.crossovers.partition import greedy_partition
from jaxopt_search.driver.run import solve
from jaxopt_search.engine.devices import Team, find_devices
from jaxopt_search.exchanges import recombine
from jaxopt_search.neighborhoods import Guided
from jaxopt_search.problems.finite.graph_coloring import GraphColoring, graph_coloring
from jaxopt_search.results import Result
from jaxopt_search.searches import TabuSearch, tabu_search
from jaxopt_search.solvers.anneal import completed
from jaxopt_search.successors import ConflictsOnly

_NEVER = 2**30  # steps
_ON_CPU = 8  # searches
# As many searches on a GPU as have so many vertices by colors in all, from the least to the most.
_ENTRIES, _LEAST, _MOST = 2**23, 132, 264
# Steps for each vertex between recombinations, and `recombine`'s settings.
_STEPS, _REACH, _ALIKE = 8, 7, 0.6
_OF_ONE = ("target", "initial", "state", "checkpoint", "resume")  # options for a number of colors


def solve_coloring(
    graph: Any,
    num_colors: int | None = None,
    key: Any = 0,
    *,
    fixed: Any = None,
    num_vertices: int | None = None,
    max_seconds: float | None = None,
    **options: Any,
) -> Result:
    """Returns a coloring of a graph in which no edge joins equal colors, by memetic tabu search.

    Without `num_colors`, it starts from the greedy coloring of Brelaz, "New methods to color the
    vertices of a graph", 1979, and asks for one color less again and again, until no coloring is
    found in the time that is left, or the colors are as few as the vertices of a clique that it
    knows. Tabu search moves vertices in conflict, as TabuCol does: Hertz, de Werra, "Using tabu
    search techniques for graph coloring", 1987. After every 8 steps for each vertex, the searches
    continue from children of their colorings (`greedy_partition`), unless colors are fixed:
    Galinier, Hao, "Hybrid evolutionary algorithms for graph coloring", 1999.

    Args:
      graph: as `graph_coloring` takes it.
      num_colors: how many colors; None for as few as are found.
      key: an integer seed or a `jax.random.key`.
      fixed: as in `graph_coloring`; with `num_colors`.
      num_vertices: likewise, for edges.
      max_seconds: seconds of search, in all; 10 if neither this nor `max_steps` is given.
      options: the other arguments of `solve`, such as `devices`, by default all, and `exchange`,
        None for none; `max_steps` is for each number of colors. The default of `num_searches` on
        each device is 8 on a CPU, and on a GPU 264, less for large graphs, down to 132. What a run
        starts from, `target`, 0 by default, and checkpoints, only with `num_colors`.

    Returns:
      A `Result`; `x` is [n] int32, the color of each vertex. Of fewer and fewer colors, the last
      run that found a coloring.

    Raises:
      ValueError, TypeError: as `graph_coloring` and `solve`; if what needs `num_colors` is given
        without it.

    Example:
      >>> import jaxopt_search as js
      >>> result = solve_coloring(js.datasets.queen_graph(5, 5), max_steps=2000)
      >>> result.fun, result.x.max() + 1
      (0, np.int32(5))
    """
    options["max_seconds"] = max_seconds
    if num_colors is not None:
        problem = graph_coloring(graph, num_colors, fixed=fixed, num_vertices=num_vertices)
        options = _with_defaults({"target": 0} | options, problem)
        return solve(problem, _search(), key, **options)
    for name, value in {"fixed": fixed, **{name: options.get(name) for name in _OF_ONE}}.items():
        if value is not None:
            raise ValueError(f"{name} is given without num_colors, expected how many there are")
    first = graph_coloring(graph, 1, num_vertices=num_vertices)
    coloring, clique = greedy_coloring(first)
    most = int(coloring.max()) + 1
    whole = graph_coloring(graph, most, num_vertices=num_vertices)
    words, began, found = random.as_key(key), time.perf_counter(), None
    options = _with_defaults(options, whole)
    team = Team(find_devices(options["devices"]))
    for number in range(most, clique - 1, -1):
        # With colors that no vertex may have, all numbers of colors share one program.
        sizes = jnp.full_like(whole.domain_sizes, number)
        problem = dataclasses.replace(whole, domain_sizes=sizes)
        before = 0.0 if found is None else team.told(time.perf_counter() - began)
        seconds = options["max_seconds"]
        left = None if seconds is None else max(seconds - before, 0.0)
        own = jax.random.fold_in(random.typed_key(words), number)
        limits = {"target": 0, "max_seconds": left, "initial": coloring % number}
        result = solve(problem, _search(), own, **options | limits)
        if result.fun != 0:
            return result if found is None else found
        if found is None:
            began = time.perf_counter()
        found, coloring = result, result.x
    assert found is not None
    return found


def _search() -> TabuSearch:
    return tabu_search(
        Guided(ConflictsOnly()),
        tenure=(0, 9),
        tenure_per_cost=1.0,
        aspiration_age=_NEVER,
        ties="random",
    )


def _with_defaults(options: dict[str, Any], problem: GraphColoring) -> dict[str, Any]:
    if problem.fixed is None:  # else colors are no mere names
        how = {"every": _STEPS * problem.n, "alike": _ALIKE, "reach": _REACH}
        exchange = recombine(**how, crossover=greedy_partition(), generational=True)
        options = {"exchange": exchange} | options
    each = min(max(_ENTRIES // (problem.n * problem.max_domain), _LEAST), _MOST)
    return completed(options, _ON_CPU, each)


def greedy_coloring(problem: GraphColoring) -> tuple[np.ndarray, int]:
    """Returns a proper coloring, [n] int32, and the size of a clique, neither the best.

    The vertex that sees the most colors comes next, of several the one of the highest degree.
    """
    lists = problem.graph.lists
    starts, neighbors = np.asarray(lists.starts), np.asarray(lists.neighbors)
    around = [neighbors[low:high].tolist() for low, high in itertools.pairwise(starts)]
    coloring, seen = np.full(problem.n, -1, np.int32), [set[int]() for _ in around]
    waiting = [(0, -len(near), vertex) for vertex, near in enumerate(around)]
    heapq.heapify(waiting)
    clique: set[int] = set()
    while waiting:
        number, _, vertex = heapq.heappop(waiting)
        if coloring[vertex] >= 0 or -number != len(seen[vertex]):
            continue  # it is there again, with what it sees by now
        color = next(color for color in range(problem.n) if color not in seen[vertex])
        coloring[vertex] = color
        if clique <= set(around[vertex]):
            clique.add(vertex)
        for near in around[vertex]:
            if coloring[near] < 0 and color not in seen[near]:
                seen[near].add(color)
                heapq.heappush(waiting, (-len(seen[near]), -len(around[near]), near))
    return coloring, max(len(clique), 1)
