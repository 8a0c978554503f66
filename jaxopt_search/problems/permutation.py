"""Random and perturbed permutations, from the library's own generator, and their check."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxopt_search.checks import check_permutation
from jaxopt_search.portable import random


def random_permutation(key: jax.Array, n: int) -> jax.Array:
    """Returns a uniformly random permutation, [n] int32: positions sorted by 64 random bits."""
    positions = lax.iota(jnp.int32, n)
    return lax.sort((*words(key, n), positions), num_keys=2)[2]


def exchange_segments(key: jax.Array, permutation: jax.Array) -> jax.Array:
    """Returns `permutation` with two random neighboring segments exchanged.

    On a tour this is the double bridge (Martin, Otto, Felten, "Large-step Markov chains for the
    traveling salesman problem", 1991).
    """
    n = permutation.shape[0]
    low, middle, high = jnp.sort(random.below(words(key, 3)[0], n + 1))
    position = lax.iota(jnp.int32, n)
    moved = jnp.where(
        position < low + high - middle, position + middle - low, position - high + middle
    )
    inside = (position >= low) & (position < high)
    return permutation[jnp.where(inside, moved, position)]


def inverse(permutation: jax.Array) -> jax.Array:
    """Returns the position of each value, [n] int32."""
    positions = lax.iota(jnp.int32, permutation.shape[0])
    return jnp.zeros_like(permutation).at[permutation].set(positions)


def check(n: int, values: Any, name: str) -> np.ndarray:
    """Like `check_permutation`, but with `n` first, so that `partial` makes an `Original.check`."""
    return check_permutation(values, n, name)


def words(key: jax.Array, number: int) -> tuple[jax.Array, jax.Array]:
    """Returns two uint32 arrays [number]."""
    data = random.data_of(key)
    counter = lax.iota(jnp.uint32, number)
    return random.threefry2x32((data[0], data[1]), (counter, jnp.zeros_like(counter)))
