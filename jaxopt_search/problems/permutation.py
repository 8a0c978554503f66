"""Random and perturbed permutations."""

import jax
import jax.numpy as jnp


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
