# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false
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
import numpy as np
from jax import lax

from jaxopt_search.backends import loops
from jaxopt_search.backends.backend import is_in_kernel

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
    return _threefry2x32(key, counter, rounds, in_loop=is_in_kernel())


class _Turn(NamedTuple):
    """What four rounds begin with.

    Attributes:
      schedule: the three words of the key, the next one first.
      distances: by which to rotate in the next eight rounds.
      words: the two words.
    """

    schedule: tuple[Any, ...]
    distances: tuple[Any, ...]
    words: tuple[jax.Array, jax.Array]


# Traced once for each shape: some hundred operations, drawn from at many places of a step.
@functools.partial(jax.jit, static_argnames=("rounds", "in_loop"), inline=True)
def _threefry2x32(
    key: tuple[Any, Any], counter: tuple[Any, Any], rounds: int, in_loop: bool
) -> tuple[jax.Array, jax.Array]:
    """Like `threefry2x32`.

    Args:
      in_loop: whether four rounds at a time are in a loop, for a kernel. Triton takes longer than
        in proportion to the operations it is given, and LLVM unrolls the loop in the end.
    """
    third = key[0] ^ key[1] ^ jnp.uint32(_PARITY)
    x0, x1 = jnp.broadcast_arrays(counter[0] + key[0], counter[1] + key[1])
    turn = _Turn((key[1], third, key[0]), tuple(map(np.uint32, _ROTATIONS)), (x0, x1))
    whole, further = divmod(rounds, 4)
    if in_loop:
        turn = loops.fori_loop(np.int32(0), np.int32(whole), _four_rounds, turn)
    else:
        for group in range(whole):
            turn = _four_rounds(group, turn)
    return _rounds(turn.words, turn.distances[:further])


def _four_rounds(group: int | jax.Array, turn: _Turn) -> _Turn:
    """Returns the turn after four rounds and the key's next two words."""
    (first, second, third), distances, words = turn
    x0, x1 = _rounds(words, distances[:4])
    words = x0 + first, x1 + second + jnp.uint32(group + 1)
    return _Turn((second, third, first), distances[4:] + distances[:4], words)


def _rounds(
    words: tuple[jax.Array, jax.Array], distances: tuple[Any, ...]
) -> tuple[jax.Array, jax.Array]:
    """Returns the words, of one shape, after a round for each distance.

    By functions of `lax`: operators are those of `jax.numpy`, each with a `jit` to trace.
    """
    x0, x1 = words
    for distance in distances:
        x0 = lax.add(x0, x1)
        left = lax.shift_left(x1, distance)
        right = lax.shift_right_logical(x1, np.uint32(32) - distance)
        x1 = lax.bitwise_xor(lax.bitwise_or(left, right), x0)
    return x0, x1
