# pyright: reportUnknownMemberType=false
"""The generator of random words: Threefry-2x32.

Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011: additions,
rotations and exclusive ors only, so every backend computes the same bits. Keys are derived with its
20 rounds; the words of a step take 13, the fewest for which the paper reports that all of TestU01's
BigCrush passes.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

KEY_ROUNDS = 20
"""Rounds by which keys are derived."""
WORD_ROUNDS = 13
"""Rounds by which the words of a step are drawn."""

_ROTATIONS = (13, 15, 26, 6, 17, 29, 16, 24)
_PARITY = 0x1BD11BDA  # Skein's key-schedule constant


class Key(NamedTuple):
    """Two uint32 words, scalars or [S] arrays."""

    first: jax.Array
    second: jax.Array


# Traced once for each shape: some hundred operations, drawn from at many places of a step.
@functools.partial(jax.jit, static_argnames="rounds", inline=True)
def threefry2x32(
    key: tuple[Any, Any], counter: tuple[Any, Any], rounds: int = KEY_ROUNDS
) -> tuple[jax.Array, jax.Array]:
    """Returns two random words: the Threefry-2x32 block cipher of `counter` under `key`.

    Args:
      key: two uint32 arrays, or scalars of NumPy's, that broadcast with the counter.
      counter: likewise.
      rounds: the number of rounds.

    Returns:
      Two uint32 arrays of the broadcast shape.

    Example:
      >>> zeros = jnp.uint32(0), jnp.uint32(0)
      >>> [hex(word) for word in threefry2x32(zeros, zeros)]  # as in the authors' known answers
      ['0x6b200159', '0x99ba4efe']
    """
    schedule = (key[0], key[1], key[0] ^ key[1] ^ jnp.uint32(_PARITY))
    x0, x1 = counter[0] + schedule[0], counter[1] + schedule[1]
    for r in range(rounds):
        distance = _ROTATIONS[r % 8]
        x0 = x0 + x1
        x1 = ((x1 << jnp.uint32(distance)) | (x1 >> jnp.uint32(32 - distance))) ^ x0
        if r % 4 == 3:
            injection = r // 4 + 1
            x0 = x0 + schedule[injection % 3]
            x1 = x1 + schedule[(injection + 1) % 3] + jnp.uint32(injection)
    return x0, x1
