"""Lists of the neighbors of a graph's vertices, for graphs to color and couplings of variables."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from jaxopt_search.backends import memory
from jaxopt_search.backends.memory import load
from jaxopt_search.problems.padding import list_room, with_room
from jaxopt_search.pytrees import pytree, static


@pytree
@dataclasses.dataclass(frozen=True, eq=False)
class NeighborLists:
    """The neighbors of all vertices, one list after the other.

    They take memory in proportion to the edges. A matrix would take more for all but the densest
    graphs, and lists of one length would take more where degrees differ.

    Attributes:
      starts: [n + 1] int32, where the list of each vertex begins, and where the last one ends.
      neighbors: [m] int32, ascending within a list. Behind the last list there is room, so that
        graphs of about as many edges share compiled code.
      max_degree: the length of the longest list, or the next power of two.
    """

    starts: jax.Array
    neighbors: jax.Array
    max_degree: int = static()

    def range_of(self, vertex: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Returns where the list of a vertex begins and ends; portable, elementwise."""
        return load(self.starts, vertex), load(self.starts, vertex + 1)

    def find(self, first: jax.Array, second: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Finds `second` in the list of `first`, by bisection, O(log(max_degree)); portable.

        Returns:
          Where it stands, in range in any case, and whether it is there; elementwise.
        """
        (low, end), last = self.range_of(first), self.neighbors.shape[0] - 1
        high = end
        for _ in range(self.max_degree.bit_length()):
            middle = (low + high) >> 1
            is_lower = load(self.neighbors, jnp.minimum(middle, last)) < second
            is_before = (low < high) & is_lower
            low, high = jnp.where(is_before, middle + 1, low), jnp.where(is_before, high, middle)
        place = jnp.minimum(low, last)
        return place, (low < end) & (load(self.neighbors, place) == second)


def neighbor_lists(
    n: int, first: np.ndarray, second: np.ndarray, values: np.ndarray | None = None
) -> tuple[NeighborLists, np.ndarray | None]:
    """Returns the lists of a graph, and the values of edges in the order of its neighbors.

    Args:
      n: the number of vertices.
      first, second: [k] integers, the ends of each edge, which differ.
      values: [k], of the edges.
    """
    rows, columns = np.concatenate([first, second]), np.concatenate([second, first])
    order = np.lexsort((columns, rows))
    degrees = np.bincount(rows, minlength=n)
    room = 2 * list_room(len(first))
    lists = NeighborLists(
        starts=jnp.asarray(np.concatenate([[0], np.cumsum(degrees)]), jnp.int32),
        neighbors=jnp.asarray(with_room(columns[order], room), jnp.int32),
        max_degree=memory.power_of_two(max(int(degrees.max()), 1)),
    )
    if values is None:
        return lists, None
    return lists, with_room(np.concatenate([values, values])[order], room)
