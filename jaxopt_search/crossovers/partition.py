"""Children that take parts of two solutions as they are: partition crossovers.

Of colorings: Galinier, Hao, "Hybrid evolutionary algorithms for graph coloring", 1999. Of zeros and
ones: Tinós, Whitley, Chicano, "Partition crossover for pseudo-Boolean optimization", 2015.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search.backends import floats, random
from jaxopt_search.checks import check_suits
from jaxopt_search.problems import permutation
from jaxopt_search.problems.finite.qubo import QUBO
from jaxopt_search.problems.finite.vector import components
from jaxopt_search.pytrees import pytree
from jaxopt_search.types import Crossover


@pytree
@dataclasses.dataclass(frozen=True)
class GreedyPartition(Crossover):
    """Build it with `greedy_partition`."""

    space = "vector"

    def child(
        self, key: jax.Array, problem: Any, own: jax.Array, given: jax.Array, share: jax.Array
    ) -> jax.Array:
        n, both = own.shape[0], jnp.stack([own, given])
        ones = jnp.ones(n, jnp.int32)

        def take(color: jax.Array, child: jax.Array) -> jax.Array:
            """Gives a color to the largest class of the parent whose turn it is."""
            turn = jnp.floor((color + 1) * share) - jnp.floor(color * share)
            parent, is_left = both[turn.astype(jnp.int32)], child < 0
            sizes = jnp.zeros(problem.max_domain, jnp.int32)
            sizes = sizes.at[parent].add(jnp.where(is_left, ones, 0))
            return jnp.where(is_left & (parent == jnp.argmax(sizes)), color, child)

        child = lax.fori_loop(0, jnp.max(problem.domain_sizes), take, -ones)
        words, _ = permutation.words(key, n)
        is_in_domain = (child >= 0) & (child < problem.domain_sizes)
        return jnp.where(is_in_domain, child, random.below(words, problem.domain_sizes))


def greedy_partition() -> GreedyPartition:
    """Returns the crossover of vectors in which it only matters which entries are equal.

    So it is with the colors of a graph, unless some are fixed. For one value after the other, a
    parent gives the child the largest of its classes of equal entries, of those that the child has
    not got yet: both parents by turns, where `share` of `recombine` is 0.5. What is left in the end
    gets random values.

    Example:
      >>> import jaxopt_search as js
      >>> crossover, problem = js.greedy_partition(), js.graph_coloring([[0, 1], [2, 5]], 2)
      >>> own, given = jnp.array([0, 0, 0, 1, 1, 1]), jnp.array([0, 1, 0, 1, 0, 1])
      >>> crossover.child(jax.random.key(0), problem, own, given, 0.5).tolist()
      [0, 0, 0, 1, 1, 1]
    """
    return GreedyPartition()


@pytree
@dataclasses.dataclass(frozen=True)
class ComponentPartition(Crossover):
    """Build it with `component_partition`."""

    space = "vector"

    def child(
        self, key: jax.Array, problem: Any, own: jax.Array, given: jax.Array, share: jax.Array
    ) -> jax.Array:
        check_suits("component_partition", "a QUBO", problem, isinstance(problem, QUBO))
        differs = own != given
        # Any variables may be flipped. In a maximum cut, opposite solutions are the same one.
        differs = differs ^ (jnp.sum(differs) > own.size // 2)
        component = components(differs, problem.couplings.least)
        change = problem.deltas_in_turn(own, differs)
        if jnp.issubdtype(change.dtype, jnp.floating):  # integers have no order in which to sum
            unit = floats.power_of_two(30, floats.total(jnp.abs(change)))
            change = jnp.round(change * unit).astype(jnp.int32)
        delta = jnp.zeros(own.size + 1, jnp.int32).at[component].add(change)[component]
        words, _ = permutation.words(key, own.size + 1)
        wins_tie = random.uniform(words[component]) < share
        is_taken = (delta < 0) | ((delta == 0) & wins_tie)
        return jnp.where(differs & is_taken, 1 - own, own)


def component_partition() -> ComponentPartition:
    """Returns the crossover of a QUBO's solutions, or cuts, that keeps the better of each part.

    The variables in which two solutions differ fall into components, of those that are coupled.
    What one component adds to the cost does not depend on the others, so the child takes each one
    from the parent in which it costs less; from the given one in `share` of ties. It is the best of
    all children of the two, and the sparser the couplings, the more components there are. Where
    parents differ in most variables, the opposite of the given one takes its place.

    Tinós, Whitley, Chicano, "Partition crossover for pseudo-Boolean optimization", 2015. A child,
    [n] int32, takes O(n * degree) operations for each time that numbers spread in a component.
    Changes of float32 are rounded to 2**-30 of their sum.

    Raises:
      TypeError: when used, for a problem that `qubo` or `max_cut` did not return.

    Example:
      >>> import jaxopt_search as js
      >>> path = [[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 6]]
      >>> own, given = jnp.array([0, 1, 0, 0, 0, 1, 0]), jnp.array([0, 1, 0, 1, 0, 1, 1])
      >>> problem = js.max_cut(1, edges=path)  # vertex 3 is better in the given one, 6 in its own
      >>> js.component_partition().child(jax.random.key(0), problem, own, given, 0.5).tolist()
      [0, 1, 0, 1, 0, 1, 0]
    """
    return ComponentPartition()
