"""Successors that are equal to others."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxopt_search.backends import random
from jaxopt_search.successors.running import Successors

_SEEDS = (0x9E3779B9, 0x85EBCA6B)  # two arbitrary words


@jax.jit
def duplicates(states: Any, parent: jax.Array | None = None) -> jax.Array:
    """Returns which states are equal to one before them.

    States are compared with their neighbors in the order of a hash of 64 bits; so a duplicate is
    missed if, by a chance of about 2**-64, another state has its hash. None is found that is not.

    Args:
      states: a pytree, leaves [N, ...]; floats are compared by their bits.
      parent: [N] int32, of which state each is a successor: only successors of the same state are
        compared then; None for all.

    Returns:
      [N] bool.

    Example:
      >>> duplicates(jnp.array([[1, 2], [2, 1], [1, 2]])).tolist()
      [False, False, True]
    """
    if not jax.tree.leaves(states)[0].shape[0]:
        return jnp.zeros(0, bool)
    words = _words(states if parent is None else (states, parent))
    number = lax.iota(jnp.int32, words.shape[0])
    *_, order = lax.sort((*(_hash(words, seed) for seed in _SEEDS), number), num_keys=3)
    in_order = words[order]
    is_equal = (in_order[1:] == in_order[:-1]).all(axis=1)
    found = jnp.concatenate([jnp.zeros(1, bool), is_equal])
    return jnp.zeros_like(found).at[order].set(found)


def distinct(successors: Successors) -> Successors:
    """Returns the successors without those that equal an earlier one of the same state.

    On the host, because how many are left is not known before.

    Example:
      >>> states, parent = jnp.array([3, 4, 3, 3]), jnp.array([0, 0, 0, 1])
      >>> distinct(Successors(states, parent, ())).states.tolist()
      [3, 4, 3]
    """
    keep = np.flatnonzero(~np.asarray(duplicates(successors.states, successors.parent)))
    return jax.tree.map(lambda leaf: leaf[keep], successors)


def _words(tree: Any) -> jax.Array:
    """Returns all bits of each entry of a pytree with leaves [N, ...], [N, words] uint32."""
    parts = []
    for leaf in jax.tree.leaves(tree):
        flat = jnp.asarray(leaf).reshape(leaf.shape[0], -1)
        if flat.dtype == jnp.bool_:
            flat = flat.astype(jnp.uint8)
        size = flat.dtype.itemsize
        bits = lax.bitcast_convert_type(flat, {1: jnp.uint8, 2: jnp.uint16}.get(size, jnp.uint32))
        parts.append(bits.reshape(flat.shape[0], -1).astype(jnp.uint32))
    return jnp.concatenate(parts, axis=1)


def _hash(words: jax.Array, seed: int) -> jax.Array:
    """Returns a random word for each row, [N] uint32: the sum over its words."""
    place = lax.broadcasted_iota(jnp.uint32, words.shape, 1)
    mixed, other = random.threefry2x32((jnp.uint32(seed), place), (words, jnp.uint32(0)))
    return jnp.sum(mixed ^ other, axis=1, dtype=jnp.uint32)
