"""Children of two colorings: greedy partition crossover (GPX).

Galinier, Hao, "Hybrid evolutionary algorithms for graph coloring", 1999.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search.backends import random
from jaxopt_search.problems import permutation
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
        return jnp.where(child < 0, random.below(words, problem.domain_sizes), child)


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
