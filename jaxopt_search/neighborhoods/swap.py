"""Exchange the entries at two positions of a permutation: moves for any permutation problem."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxopt_search.random import below


class Positions(NamedTuple):
    """Two different positions, int32 scalars."""

    first: jax.Array
    second: jax.Array


@dataclasses.dataclass(frozen=True)
class Swap:
    """All n (n - 1) / 2 swaps, n >= 2, without a price of their own: see `FullEvaluation`."""

    num_words = 2

    def propose(self, problem: Any, solution: jax.Array, words: tuple[jax.Array, ...]) -> Positions:
        n = solution.shape[0]
        first = below(words[0], n)
        second = below(words[1], max(n - 1, 1))
        return Positions(first, second + (second >= first).astype(jnp.int32))

    def apply(self, problem: Any, solution: jax.Array, move: Positions) -> jax.Array:
        pair = jnp.stack(move)
        return solution.at[pair].set(solution[pair[::-1]])
