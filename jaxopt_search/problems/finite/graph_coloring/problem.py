"""Graph coloring: k colors for the vertices of a graph, so that few edges join equal colors.

A search for a coloring without such an edge is one of Hertz and de Werra, "Using tabu search
techniques for graph coloring", Computing 39, 1987; the table of neighbors by color with which a
move is priced in O(1) is from Fleurent and Ferland, "Genetic and hybrid algorithms for graph
coloring", Annals of Operations Research 63, 1996.
"""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search.backends import loops, memory, tables
from jaxopt_search.backends.memory import load, store
from jaxopt_search.problems.finite import vector
from jaxopt_search.problems.host import Original
from jaxopt_search.pytrees import pytree
from jaxopt_search.types import Scan, VectorProblem

_TILE = 128  # neighbors that a kernel handles at once


class Graph(NamedTuple):
    """A simple graph on the device.

    The lists of neighbors, one after the other, take memory in proportion to the edges. A matrix
    would take more for all but the densest graphs, and lists of one length would take more where
    degrees differ. As the lists are sorted, asking whether two vertices are neighbors is
    O(log degree).

    Arrays have room beyond the edges, so that random graphs of one kind share compiled code.

    Attributes:
      start: [n + 1] int32, where the neighbors of each vertex start, and end.
      neighbors: [2 E] int32, the neighbors of vertex 0, then of vertex 1, and so on, each list
        sorted.
      first, second: [E] int32, the ends of each edge.
      num_edges: [] int32; entries beyond are room.
    """

    start: jax.Array
    neighbors: jax.Array
    first: jax.Array
    second: jax.Array
    num_edges: jax.Array


class ColorCounts(NamedTuple):
    """What makes moves cheap.

    Attributes:
      neighbors: [n, k] int32, how many neighbors of each vertex have each color.
      conflicts: [n] int32, how many neighbors of each vertex have its own color.
    """

    neighbors: jax.Array
    conflicts: jax.Array


@functools.partial(
    pytree,
    data_fields=("domain_sizes", "graph"),
    meta_fields=("n", "max_domain", "max_degree", "host"),
)
@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class GraphColoring(VectorProblem):
    """The colorings of a graph with k colors. Build it with `graph_coloring`.

    A solution is [n] int32, the color of each vertex. Its cost is the number of edges whose ends
    have the same color; 0 for a proper coloring.

    Attributes:
      domain_sizes: [n] int32, k for each vertex.
      graph: the graph.
      n: the number of vertices.
      max_domain: k.
      max_degree: no vertex has more neighbors; a power of two.
      host: the instance as it was given.
    """

    domain_sizes: jax.Array = dataclasses.field(repr=False)
    graph: Graph = dataclasses.field(repr=False)
    n: int
    max_domain: int
    max_degree: int
    host: Original = dataclasses.field(repr=False)

    space = "vector"

    @property
    def num_colors(self) -> int:
        """k, how many colors there are."""
        return self.max_domain

    @property
    def is_trivial(self) -> bool:
        """Whether there is only one coloring."""
        return self.max_domain == 1

    def init(self, key: jax.Array) -> jax.Array:
        """Returns a random coloring, [n] int32."""
        return vector.random_vector(key, self.domain_sizes)

    def perturb(self, key: jax.Array, coloring: jax.Array) -> jax.Array:
        """Returns a coloring near `coloring`: a few random vertices have random colors."""
        return vector.perturbed(key, coloring, self.domain_sizes)

    def cost(self, coloring: jax.Array) -> jax.Array:
        """Returns the number of edges that join equal colors, [] int32."""
        graph = self.graph
        is_conflict = coloring[graph.first] == coloring[graph.second]
        return jnp.sum(is_conflict & self._is_edge(), dtype=jnp.int32)

    def tally(self, coloring: jax.Array) -> ColorCounts:
        """Returns the neighbors of each vertex by color; O(n k + edges)."""
        (_, _, first, second, _), one = self.graph, self._is_edge().astype(jnp.int32)
        counts = jnp.zeros((self.n, self.max_domain), jnp.int32)
        for here, there in ((first, second), (second, first)):
            counts = counts.at[here, coloring[there]].add(one, **memory.IN_BOUNDS)
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
        return there + here - 2 * self._are_neighbors(first, second).astype(jnp.int32)

    def assigned(
        self,
        coloring: jax.Array,
        tally: ColorCounts,
        vertex: jax.Array,
        color: jax.Array,
        where: jax.Array,
    ) -> ColorCounts:
        """Returns the tally after `vertex` got `color`, if `where` holds; portable, O(degree)."""
        old, neighbors = load(coloring, vertex), self.graph.neighbors
        start, end = (load(self.graph.start, one) for one in (vertex, vertex + 1))
        step = (old != color).astype(jnp.int32)

        def changes(neighbor: jax.Array) -> tuple[Any, ...]:
            """Returns what changes about neighbors: which field, where in it, and by how much."""
            own = load(coloring, neighbor)
            gain = (own == color).astype(jnp.int32) - (own == old).astype(jnp.int32)
            there, here = (jnp.broadcast_to(one, neighbor.shape) for one in (old, color))
            return (0, (neighbor, there), -step), (0, (neighbor, here), step), (1, neighbor, gain)

        def change(which: tuple[int, ...], tally: tuple[Any, ...]) -> tuple[Any, ...]:
            def body(i: jax.Array, is_real: jax.Array, tally: tuple[Any, ...]) -> tuple[Any, ...]:
                found = changes(load(neighbors, start + i, is_real))
                after = [
                    (field, place, load(tally[field], place) + amount)
                    for field, place, amount in (found[k] for k in which)
                ]
                fields = list(tally)
                for field, place, value in after:
                    fields[field] = store(fields[field], place, value, where & is_real)
                return tuple(fields)

            return memory.each_index(end - start, self.max_degree, body, tally, _TILE)

        # XLA copies a buffer to which a loop for a CPU has two stores.
        passes = ((0,), (1,), (2,)) if memory.is_native() else ((0, 1, 2),)
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

    def _is_edge(self) -> jax.Array:
        return lax.iota(jnp.int32, self.graph.first.shape[0]) < self.graph.num_edges

    def _are_neighbors(self, first: jax.Array, second: jax.Array) -> jax.Array:
        """Returns whether vertices are neighbors, by bisection."""
        end = load(self.graph.start, first + 1)

        def halve(i: jax.Array, bounds: tuple[jax.Array, jax.Array]) -> Any:
            low, high = bounds  # all before `low` are lower than `second`, none from `high` on is
            middle = (low + high) >> 1
            is_open = low < high
            found = load(self.graph.neighbors, jnp.where(is_open, middle, jnp.zeros_like(middle)))
            is_lower = is_open & (found < second)
            is_not = is_open & (found >= second)
            return jnp.where(is_lower, middle + 1, low), jnp.where(is_not, middle, high)

        bounds = load(self.graph.start, first), end
        low, _ = loops.fori_loop(0, self.max_degree.bit_length(), halve, bounds)
        place = jnp.where(low < end, low, jnp.zeros_like(low))
        return (low < end) & (load(self.graph.neighbors, place) == second)
