"""Random and perturbed permutations, from the library's own generator."""

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search.backends import memory, random


def random_permutation(
    key: jax.Array, capacity: int, num_entries: jax.Array | None = None
) -> jax.Array:
    """Returns a uniformly random permutation, [capacity] int32: positions sorted by 64 random bits.

    Args:
      key: typed.
      capacity: its length.
      num_entries: [] int32; only this many first entries are permuted.
        None for all.
    """
    positions, bits = lax.iota(jnp.int32, capacity), words(key, capacity)
    if num_entries is not None:
        last = jnp.uint32(2**32 - 1)  # of equal keys, the lower position comes first
        bits = tuple(jnp.where(positions < num_entries, word, last) for word in bits)
    return lax.sort((*bits, positions), num_keys=2)[2]


def exchange_segments(
    key: jax.Array, permutation: jax.Array, n: jax.Array | int | None = None
) -> jax.Array:
    """Returns `permutation` with two random neighboring segments exchanged.

    On a tour this is the double bridge (Martin, Otto, Felten, "Large-step Markov chains for the
    traveling salesman problem", 1991).

    Args:
      key: typed.
      permutation: [capacity] int32.
      n: how many of its entries may move, the first ones; None for all.
    """
    n = permutation.shape[0] if n is None else n
    low, middle, high = jnp.sort(random.below(words(key, 3)[0], n + 1))
    position = lax.iota(jnp.int32, permutation.shape[0])
    moved = jnp.where(
        position < low + high - middle, position + middle - low, position - high + middle
    )
    inside = (position >= low) & (position < high)
    return permutation[jnp.where(inside, moved, position)]


def inverse(permutation: jax.Array) -> jax.Array:
    """Returns the position of each value, [n] int32."""
    positions = lax.iota(jnp.int32, permutation.shape[0])
    return jnp.zeros_like(permutation).at[permutation].set(positions, **memory.IN_BOUNDS)


def words(key: jax.Array, number: int) -> tuple[jax.Array, jax.Array]:
    """Returns two uint32 arrays [number]."""
    data = random.data_of(key)
    counter = lax.iota(jnp.uint32, number)
    drawn = random.threefry2x32((data[0], data[1]), (counter, jnp.zeros_like(counter)))
    return memory.computed_once(drawn)
