"""Children of two permutations, without a loop over positions."""

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search.problems.permutation import inverse


def pmx(first: jax.Array, second: jax.Array, is_second: jax.Array) -> jax.Array:
    """Returns the partially matched child of two permutations.

    It has the values of `second` where `is_second` holds. Elsewhere it has that of `first`; where
    the child has this value already, that of `first` at the place which `second` has it at, and so
    on. Goldberg, Lingle, "Alleles, loci, and the traveling salesman problem", 1985, for a segment
    of positions. All chains of values are followed at once, in ceil(log2 n) doublings.

    Args:
      first, second: [n] int32 permutations of 0 to n - 1.
      is_second: [n] bool.

    Returns:
      [n] int32, a permutation.

    Raises:
      TypeError: if a parent is no [n] int32.
    """
    n = _size(first)
    position = inverse(second)
    following = jnp.where(is_second[position], first[position], lax.iota(jnp.int32, n))
    for _ in range((n - 1).bit_length()):
        following = following[following]
    return jnp.where(is_second, second, following[first])


def ox(first: jax.Array, second: jax.Array, is_second: jax.Array, start: jax.Array) -> jax.Array:
    """Returns the ordered child of two permutations.

    It has the values of `second` where `is_second` holds. The others fill the rest from `start` on,
    around the end, in the order in which `first` has them from there on. Davis, "Applying adaptive
    algorithms to epistatic domains", 1985, for a segment of positions and the position behind it.

    Args:
      first, second: [n] int32 permutations of 0 to n - 1.
      is_second: [n] bool.
      start: [] int32, 0 to n - 1.

    Returns:
      [n] int32, a permutation.

    Raises:
      TypeError: if a parent is no [n] int32.
    """
    n = _size(first)
    around = (start + lax.iota(jnp.int32, n)) % n
    values, is_taken = first[around], is_second[inverse(second)]
    # Each value that is left, and each place, has a number among those.
    is_left, is_free = ~is_taken[values], ~is_second[around]
    number = jnp.where(is_left, jnp.cumsum(is_left) - 1, n)
    left = jnp.zeros_like(first).at[number].set(values, mode="drop")
    filled = jnp.where(is_free, left[jnp.cumsum(is_free) - 1], second[around])
    return jnp.zeros_like(first).at[around].set(filled)


def _size(parent: jax.Array) -> int:
    if jnp.ndim(parent) != 1 or jnp.result_type(parent) != jnp.int32:
        kind = f"{jnp.result_type(parent)}{list(jnp.shape(parent))}"
        raise TypeError(f"a parent is {kind}, expected a permutation, int32[n]")
    return jnp.shape(parent)[0]
