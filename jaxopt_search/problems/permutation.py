"""What the problems over permutations share: checks on the way in, random and perturbed starts."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def check_permutation(values: Any, n: int, name: str) -> np.ndarray:
    """Returns `values` as [n] int32, or says why it is no permutation of 0 to n - 1.

    Raises:
      ValueError: naming `name` and the offending value.
    """
    array = np.asarray(values)
    if array.shape != (n,):
        raise ValueError(f"{name} has shape {array.shape}, expected ({n},)")
    if not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"{name} has dtype {array.dtype}, expected integers")
    if n and array.min() == 1 and array.max() == n and np.unique(array).size == n:
        raise ValueError(f"{name} counts from 1, expected a permutation of 0 to {n - 1}")
    outside = array[(array < 0) | (array >= n)]
    if outside.size:
        raise ValueError(f"{name} holds {outside[0]}, expected a permutation of 0 to {n - 1}")
    counts = np.bincount(array, minlength=n)
    if counts.max(initial=0) > 1:
        raise ValueError(f"{name} holds {counts.argmax()} twice, expected a permutation")
    return array.astype(np.int32)


def random_permutation(key: jax.Array, n: int) -> jax.Array:
    """Returns a uniformly random permutation, [n] int32."""
    return jax.random.permutation(key, jnp.arange(n, dtype=jnp.int32))


def exchange_segments(key: jax.Array, permutation: jax.Array) -> jax.Array:
    """Returns `permutation` with two random neighboring segments exchanged.

    On a tour this is the double bridge (Martin, Otto, Felten, "Large-step Markov chains for the
    traveling salesman problem", 1991).
    """
    n = permutation.shape[0]
    low, middle, high = jnp.sort(jax.random.randint(key, (3,), 0, n + 1, dtype=jnp.int32))
    position = jnp.arange(n, dtype=jnp.int32)
    moved = jnp.where(
        position < low + high - middle, position + middle - low, position - high + middle
    )
    inside = (position >= low) & (position < high)
    return permutation[jnp.where(inside, moved, position)]
