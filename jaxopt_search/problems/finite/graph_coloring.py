"""Graph coloring: k colors for the vertices of a graph, so that few edges join equal colors.

A search for a coloring without such an edge is one of Hertz and de Werra, "Using tabu search
techniques for graph coloring", Computing 39, 1987; the table of neighbors by color with which a
move is priced in O(1) is from Fleurent and Ferland, "Genetic and hybrid algorithms for graph
coloring", Annals of Operations Research 63, 1996.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxopt_search.backends import memory, tables
from jaxopt_search.backends.memory import load, store
from jaxopt_search.checks import MAX_INT32, check_count, check_vector, plain_array
from jaxopt_search.problems.finite.entries import edges_of, entries_of, graph_of
from jaxopt_search.problems.finite.vector import (
    FiniteProblem,
    NeighborLists,
    neighbor_lists,
)
from jaxopt_search.problems.host import Original
from jaxopt_search.problems.matrix_input import (
    check_below,
    integer_pairs,
    on_device,
    refuse_options,
)
from jaxopt_search.problems.padding import list_room, with_room
from jaxopt_search.pytrees import pytree, static
from jaxopt_search.types import Scan

_TILE = 128  # neighbors that a kernel handles at once


class Graph(NamedTuple):
    """A simple graph on the device.

    Attributes:
      lists: of each vertex's neighbors.
      first, second: [E] int32, the ends of each edge.
      weights: [E] int32, of the edges; 0 where there is room for more, so that graphs of one kind
        share compiled code.
      of_neighbors: [2 E] int32, the weights in the order of `lists.neighbors`; None if all are 1.
    """

    lists: NeighborLists
    first: jax.Array
    second: jax.Array
    weights: jax.Array
    of_neighbors: jax.Array | None = None


class ColorCounts(NamedTuple):
    """What makes moves cheap.

    Attributes:
      neighbors: [n, k] int32, how many neighbors of each vertex have each color; with weights, the
        sum of the weights of the edges to them.
      conflicts: [n] int32, how many have its own color, likewise.
    """

    neighbors: jax.Array
    conflicts: jax.Array


@pytree
@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class GraphColoring(FiniteProblem):
    """The colorings of a graph with k colors. Build it with `graph_coloring`.

    A solution is [n] int32, the color of each vertex that may be colored. Its cost is the number of
    edges whose ends have the same color, or the sum of their weights; 0 for a proper coloring.

    Attributes:
      domain_sizes: [n] int32, k for each of these vertices.
      graph: of these vertices.
      fixed: [n, k] int32, how many neighbors with a fixed color of each vertex have each color;
        None if no color is fixed.
      n: the number of vertices that may be colored.
      max_domain: k.
      host: the instance as it was given.
    """

    domain_sizes: jax.Array = dataclasses.field(repr=False)
    graph: Graph = dataclasses.field(repr=False)
    fixed: jax.Array | None = dataclasses.field(repr=False)
    n: int = static()
    max_domain: int = static()
    host: Original = static(repr=False)

    @property
    def num_colors(self) -> int:
        """k, how many colors there are."""
        return self.max_domain

    def device_cost(self, coloring: jax.Array) -> jax.Array:
        """Returns the number, or weight, of edges that join equal colors, [] int32."""
        graph = self.graph
        is_conflict = coloring[graph.first] == coloring[graph.second]
        number = jnp.sum(jnp.where(is_conflict, graph.weights, 0), dtype=jnp.int32)
        if self.fixed is None:
            return number
        vertex = lax.iota(jnp.int32, self.n)
        return number + jnp.sum(self.fixed[vertex, coloring], dtype=jnp.int32)

    def picture(self, coloring: np.ndarray, coords: Any = None) -> Callable[[Any], Any]:
        from jaxopt_search.results import plotting

        first, second, weights = map(np.asarray, self.graph[1:4])
        edges, given = np.stack([first, second], axis=1)[weights > 0], self.host.as_given
        edges = edges if given is None else given.free[edges]
        return functools.partial(plotting.plot_graph, edges, coloring, coords=coords)

    def tally(self, coloring: jax.Array) -> ColorCounts:
        """Returns the neighbors of each vertex by color; O(n k + edges)."""
        _, first, second, weights, _ = self.graph
        shape = self.n, self.max_domain
        counts = jnp.zeros(shape, jnp.int32) if self.fixed is None else self.fixed
        for here, there in ((first, second), (second, first)):
            counts = counts.at[here, coloring[there]].add(weights, **memory.IN_BOUNDS)
        return ColorCounts(counts, counts[lax.iota(jnp.int32, self.n), coloring])

    def assign_delta(
        self, coloring: jax.Array, tally: ColorCounts, vertex: jax.Array, color: jax.Array
    ) -> jax.Array:
        """Returns the change in cost if `vertex` gets `color`; portable, O(1)."""
        return load(tally.neighbors, (vertex, color)) - load(tally.conflicts, vertex)

    def swap_values_delta(
        self, coloring: jax.Array, tally: ColorCounts, first: jax.Array, second: jax.Array
    ) -> jax.Array:
        """Returns the change in cost if two vertices exchange colors; portable, O(log degree)."""
        there = self.assign_delta(coloring, tally, first, load(coloring, second))
        here = self.assign_delta(coloring, tally, second, load(coloring, first))
        # Each counts the other one as a neighbor of the color that it leaves.
        place, are_neighbors = self.graph.lists.find(first, second)
        return there + here - 2 * jnp.where(are_neighbors, self._weight(place), 0)

    def assigned(
        self,
        coloring: jax.Array,
        tally: ColorCounts,
        vertex: jax.Array,
        color: jax.Array,
        where: jax.Array,
    ) -> ColorCounts:
        """Returns the tally after `vertex` got `color`, if `where` holds; portable, O(degree)."""
        old, lists = load(coloring, vertex), self.graph.lists
        start, end = lists.range_of(vertex)
        number = jnp.where(where & (old != color), end - start, 0)

        def change(which: tuple[int, ...], tally: tuple[Any, ...]) -> tuple[Any, ...]:
            def body(i: jax.Array, is_real: jax.Array, tally: tuple[Any, ...]) -> tuple[Any, ...]:
                neighbor = load(lists.neighbors, start + i, is_real)
                own = load(coloring, neighbor)
                step = self._weight(start + i, is_real)
                gain = (own == color).astype(jnp.int32) - (own == old).astype(jnp.int32)
                there, here = (jnp.broadcast_to(one, neighbor.shape) for one in (old, color))
                # Which field, where in it, and by how much.
                changes = (
                    (0, (neighbor, there), -step),
                    (0, (neighbor, here), step),
                    (1, neighbor, step * gain),
                )
                chosen = [changes[k] for k in which]
                after = [load(tally[field], place) + amount for field, place, amount in chosen]
                fields = list(tally)
                for (field, place, _), value in zip(chosen, after, strict=True):
                    fields[field] = store(fields[field], place, value, is_real)
                return tuple(fields)

            return memory.each_index(number, lists.max_degree, body, tally, _TILE)

        # XLA copies a buffer to which a loop for a CPU has two stores.
        passes = ((0, 2), (1,)) if memory.is_native() else ((0, 1, 2),)
        fields: tuple[Any, ...] = tuple(tally)
        for which in passes:
            fields = change(which, fields)
        counts, conflicts = fields
        # No vertex is its own neighbor, so these counts of it stay.
        own = load(counts, (vertex, color))
        return ColorCounts(counts, store(conflicts, vertex, own, where))

    def scan(self, coloring: jax.Array, tally: ColorCounts) -> Scan:
        """Returns how all assignments are priced in one pass."""
        return Scan(
            tables=(tally.neighbors,),
            of_variable=lambda vertex: tables.in_rows(tally.conflicts, vertex),
            of_value=lambda color: None,
            delta=lambda place, entries: entries[0] - place.here,
        )

    def _weight(self, place: jax.Array, where: jax.Array | None = None) -> jax.Array:
        """Returns the weights of edges by where they stand among the neighbors; portable."""
        weights = self.graph.of_neighbors
        return jnp.int32(1) if weights is None else load(weights, place, where)


def graph_coloring(
    graph: Any,
    num_colors: int,
    *,
    weights: Any = None,
    fixed: Any = None,
    num_vertices: int | None = None,
) -> GraphColoring:
    """Returns the problem of coloring the vertices of a graph so that few neighbors are alike.

    The cost is the number of edges whose ends have the same color, or the sum of their weights. A
    coloring of cost 0 is a proper one; `target=0` stops there.

    Args:
      graph: [m, 2] integers, edges as pairs of vertices from 0 on; an edge that is given twice,
        in either direction, counts once. Or an adjacency matrix, [n, n] of 0 and 1 or of booleans,
        symmetric and with an empty diagonal. A 2 x 2 array that could be either is a matrix. Or a
        sparse adjacency matrix from SciPy, a `GraphInstance`, or an undirected graph of `networkx`,
        whose vertices are numbered in the order of its nodes.
      num_colors: k, at least 1.
      weights: [m] integers, at least 1, of the edges in the order in which `graph` has them, which
        is no matrix then; weights of an edge that is given twice add up. None for 1 each.
      fixed: [m, 2] integers, vertices and the colors that they have; None if all are to be colored.
        Only other vertices are searched; colorings that are given or returned have all vertices.
      num_vertices: n, for edges: vertices above the highest in an edge have no neighbors. None for
        this highest vertex plus 1.

    Raises:
      ValueError: for anything else, edges from a vertex to itself, vertices out of range, a matrix
        that is not symmetric, entries that are not integers, numbers out of range, or neighbors
        that are fixed to one color.

    Example:
      >>> problem = graph_coloring([[0, 1], [1, 2], [2, 3], [3, 0]], 2)
      >>> int(problem.cost(jax.numpy.array([0, 1, 0, 0])))
      2
    """
    n, edges, of_edges = _edges_of(graph, weights, num_vertices)
    # Vertices by colors, and edges both ways, are numbered in int32.
    num_colors = check_count("num_colors", num_colors, 1, MAX_INT32 // n)
    check_count("the number of edges", len(edges), 0, MAX_INT32 // 2)
    domains, counts, given = np.full(n, num_colors), None, None
    check = functools.partial(check_vector, domains)
    if fixed is not None:
        given = _fixed_colors(fixed, domains)
        edges, of_edges, counts = given.leave_out(edges, of_edges, num_colors)
        check, n = given.check, len(given.free)
        domains = domains[:n]
    (first, second), room = edges.T, list_room(len(edges))
    host = Original(
        cost=functools.partial(_cost_on_host, edges, of_edges, counts), check=check, as_given=given
    )
    lists, of_neighbors = neighbor_lists(n, first, second, of_edges)
    return GraphColoring(
        domain_sizes=on_device(domains, jnp.int32),
        graph=Graph(
            lists=lists,
            first=jnp.asarray(with_room(first, room), jnp.int32),
            second=jnp.asarray(with_room(second, room), jnp.int32),
            weights=on_device(with_room(of_edges, room), jnp.int32),
            of_neighbors=None if weights is None else on_device(of_neighbors, jnp.int32),
        ),
        fixed=None if counts is None else on_device(counts, jnp.int32),
        n=n,
        max_domain=num_colors,
        host=host,
    )


class _FixedColors(NamedTuple):
    """Colorings of all vertices from colorings of the free ones, and back.

    Attributes:
      colors: [n] int32, of all vertices; -1 of a free one.
      free: [m] integers, the free vertices, ascending.
      domains: [n] the number of colors.
    """

    colors: np.ndarray
    free: np.ndarray
    domains: np.ndarray

    def __call__(self, colorings: np.ndarray) -> np.ndarray:
        whole = np.broadcast_to(self.colors, (*colorings.shape[:-1], len(self.colors))).copy()
        whole[..., self.free] = colorings
        return whole

    def check(self, values: Any, name: str) -> np.ndarray:
        """Returns the colors of the free vertices, [m], from the colors of all."""
        whole = check_vector(self.domains, values, name)
        (wrong,) = np.nonzero((self.colors >= 0) & (whole != self.colors))
        if wrong.size:
            i = wrong[0]
            raise ValueError(f"{name}[{i}] is {whole[i]}, expected {self.colors[i]}, as fixed says")
        return whole[self.free]

    def leave_out(
        self, edges: np.ndarray, weights: np.ndarray, num_colors: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns the edges among free vertices, their weights, and those to others by color."""
        ends = self.colors[edges]
        clash = (ends[:, 0] >= 0) & (ends[:, 0] == ends[:, 1])
        if clash.any():
            i, j = edges[clash][0]
            raise ValueError(f"fixed gives neighbors {i} and {j} one color, expected two")
        place = np.cumsum(self.colors < 0) - 1
        counts = np.zeros((len(self.free), num_colors), np.int32)
        for here, there in ((0, 1), (1, 0)):
            leads_out = (ends[:, here] < 0) & (ends[:, there] >= 0)
            at = place[edges[leads_out, here]], ends[leads_out, there]
            np.add.at(counts, at, weights[leads_out])
        is_inside = (ends < 0).all(axis=1)
        return place[edges[is_inside]], weights[is_inside], counts


def _fixed_colors(fixed: Any, domains: np.ndarray) -> _FixedColors:
    pairs = integer_pairs(fixed, "fixed")
    check_below(pairs, "fixed", len(domains), domains[0])
    vertices, colors = pairs.T
    if len(np.unique(vertices)) < len(vertices):
        raise ValueError("fixed has a vertex twice, expected each once")
    of_all = np.full(len(domains), -1, np.int32)
    of_all[vertices] = colors
    (free,) = np.nonzero(of_all < 0)
    if not free.size:
        raise ValueError("fixed has all vertices, expected one or more to be colored")
    return _FixedColors(of_all, free, domains)


def _cost_on_host(
    edges: np.ndarray, weights: np.ndarray, fixed: np.ndarray | None, coloring: np.ndarray
) -> int:
    coloring = np.asarray(coloring)
    number = int(weights[coloring[edges[:, 0]] == coloring[edges[:, 1]]].sum())
    return number if fixed is None else number + int(fixed[np.arange(len(fixed)), coloring].sum())


def _edges_of(
    graph: Any, weights: Any, num_vertices: int | None
) -> tuple[int, np.ndarray, np.ndarray]:
    """Returns n, the edges, [m, 2] from the lower vertex to the higher, and their weights."""
    if (given := graph_of(graph)) is not None:
        refuse_options("a graph", num_vertices=num_vertices)
        graph, num_vertices = given.pairs, given.number
    if not (is_matrix := hasattr(graph, "tocoo")):
        graph = plain_array(graph, "graph")
        is_matrix = graph.ndim == 2 and graph.shape[0] == graph.shape[1]
        if graph.shape == (2, 2) and graph.dtype != np.bool_:
            is_matrix = graph.tolist() in ([[0, 0], [0, 0]], [[0, 1], [1, 0]])
        if not graph.size and num_vertices is None:
            raise ValueError("graph has no edges, expected num_vertices, too")
    names = ("graph" if is_matrix else "weights", "graph", "num_vertices")
    if is_matrix:
        refuse_options("a matrix", weights=weights)
        entries = entries_of(graph, None, None, names, None)
    else:
        entries = entries_of(1 if weights is None else weights, graph, num_vertices, names, None)
    n, *_, values = entries
    if num_vertices not in (None, n):
        raise ValueError(f"num_vertices is {num_vertices}, expected {n}, as the matrix has")
    least, total = values.min(initial=1), values.sum()
    if weights is not None and (values.dtype.kind == "f" or least < 1 or total > MAX_INT32):
        expected = "integers of 1 or more, with a sum that fits int32"
        raise ValueError(f"weights has {least} or a sum of {total}, expected {expected}")
    first, second, sums = edges_of(*entries, "graph", is_matrix)
    if is_matrix and (sums != 1).any():
        raise ValueError(f"graph has the entry {sums[sums != 1][0]}, expected 0 or 1")
    return n, np.stack([first, second], axis=1), np.ones_like(sums) if weights is None else sums
