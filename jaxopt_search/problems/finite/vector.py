"""What problems on vectors share: random and perturbed vectors, lists of neighbors.

A vector is [n] int32, with entry i from 0 to `domain_sizes[i] - 1`.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxopt_search.backends import loops, memory, random
from jaxopt_search.backends.memory import load, store
from jaxopt_search.checks import check_shape
from jaxopt_search.problems import permutation
from jaxopt_search.problems.host import Original
from jaxopt_search.problems.padding import list_room, with_room
from jaxopt_search.pytrees import pytree, static
from jaxopt_search.types import Tallied, VectorProblem

_PERTURBED_VARIABLES = 4


def random_vector(key: jax.Array, domain_sizes: jax.Array) -> jax.Array:
    """Returns a random vector, [n] int32: variables are independent, their values equally likely.

    Args:
      key: [] a `jax.random.key`.
      domain_sizes: [n] int32, at least 1 each.

    Example:
      >>> random_vector(jax.random.key(0), jnp.array([1, 2, 3, 4])).tolist()
      [0, 0, 1, 2]
    """
    words, _ = permutation.words(key, domain_sizes.shape[0])
    return random.below(words, domain_sizes)


class FiniteProblem(VectorProblem):
    """What the library's problems on vectors share; a base class."""

    host: Original

    @property
    def is_trivial(self) -> bool:
        """Whether there is only one solution."""
        return self.max_domain == 1

    def cost(self, solution: jax.Array) -> jax.Array:
        """Returns the cost in full, [] int32 or float32; float32 where neither holds all costs."""
        solution = jnp.asarray(solution)
        hint = "" if self.host.as_given is None else ", variables that were not eliminated"
        check_shape(solution, "solution", self.domain_sizes.shape, hint)
        return self.cost_in_full(self.device_cost(solution))

    def init(self, key: jax.Array) -> jax.Array:
        """Returns a random solution, [n] int32."""
        return random_vector(key, self.domain_sizes)

    def perturb(self, key: jax.Array, solution: jax.Array) -> jax.Array:
        """Returns a solution near `solution`: a few random variables have random values."""
        n = solution.shape[0]

        def assign(vector: jax.Array, words: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
            variable = random.below(words[0], n)
            value = random.below(words[1], self.domain_sizes[variable])
            return vector.at[variable].set(value), None

        words = permutation.words(key, min(_PERTURBED_VARIABLES, n))
        return lax.scan(assign, solution, words)[0]


def assigned(problem: Any, tallied: Tallied, variable: Any, value: Any, where: Any) -> Tallied:
    """Returns a vector after an assignment, if the scalar `where` holds; portable.

    Args:
      problem: with hooks, see `types.VectorProblem`.
      tallied: the vector and its tally.
      variable, value: [] int32.
      where: [] bool.
    """
    solution, tally = tallied
    tally = problem.assigned(solution, tally, variable, value, where)
    return Tallied(store(solution, variable, value, memory.after(where, tally)), tally)


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

    def least(self, values: jax.Array) -> jax.Array:
        """Returns [n] int32, the least value of each vertex and its neighbors; O(n * max_degree).

        Args:
          values: [n] int32.
        """
        start, end = self.starts[:-1], self.starts[1:]

        def look(k: jax.Array, least: jax.Array) -> jax.Array:
            value = values[load(self.neighbors, start + k, start + k < end)]
            return jnp.where(start + k < end, jnp.minimum(least, value), least)

        return loops.fori_loop(0, self.max_degree, look, values)


def components(is_member: jax.Array, least: Callable[[jax.Array], jax.Array]) -> jax.Array:
    """Returns the connected components of some vertices of a graph, each by its least one.

    A vertex takes the least number known to a neighbor, then the least known to that vertex, until
    nothing changes.

    Args:
      is_member: [n] bool.
      least: returns the least value of each vertex and its neighbors, as `NeighborLists.least`.

    Returns:
      [n] int32; n for the other vertices.
    """
    n = is_member.shape[0]
    first = jnp.where(is_member, lax.iota(jnp.int32, n), n)

    def spread(carry: tuple[jax.Array, Any]) -> tuple[jax.Array, jax.Array]:
        known, _ = carry
        found = jnp.where(is_member, least(known), n)
        for _ in range(2):
            found = jnp.append(found, n)[found]
        return found, jnp.any(found != known)

    return lax.while_loop(lambda carry: carry[1], spread, (first, jnp.bool_(True)))[0]


def neighbor_lists(
    n: int, first: np.ndarray, second: np.ndarray, values: np.ndarray
) -> tuple[NeighborLists, np.ndarray]:
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
    return lists, with_room(np.concatenate([values, values])[order], room)
