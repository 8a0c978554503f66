"""Arrays of pairs, read together where they fit into one word.

Random accesses are what limits the speed of moves on a GPU, so that one in place of two counts.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxopt_search.backends.memory import load

PACKED_BELOW = 2**16


class Pairs(NamedTuple):
    """[n] pairs of numbers.

    Attributes:
      first: [n] int32 or float32; if packed, uint32 with the first number in the lower half of the
        bits and the second one in the upper half.
      second: [n], of the same dtype; None if packed.
    """

    first: jax.Array
    second: jax.Array | None

    @property
    def size(self) -> int:
        """n."""
        return self.first.shape[0]


def pack(first: Any, second: Any) -> Pairs:
    """Returns pairs of integers from 0 to 2**16 - 1, packed; of JAX or of NumPy."""
    upper = second.astype(np.uint32) << np.uint32(16)
    return Pairs(first.astype(np.uint32) | upper, None)


def load_pair(pairs: Pairs, index: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns the two numbers at `index`, int32 or float32; portable."""
    first = load(pairs.first, index)
    if pairs.second is not None:
        return first, load(pairs.second, index)
    lower, upper = first & jnp.uint32(PACKED_BELOW - 1), first >> jnp.uint32(16)
    return lower.astype(jnp.int32), upper.astype(jnp.int32)
