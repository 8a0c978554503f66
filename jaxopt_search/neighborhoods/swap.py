"""Exchange the entries at two positions of a permutation: moves for any permutation problem."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxopt_search import capabilities
from jaxopt_search.neighborhoods.full_evaluation import Entries
from jaxopt_search.portable.memory import load
from jaxopt_search.portable.random import below


class Positions(NamedTuple):
    """Two different positions, int32 scalars."""

    first: jax.Array
    second: jax.Array


@dataclasses.dataclass(frozen=True)
class Swap:
    """All n (n - 1) / 2 swaps, n >= 2, without a price of their own: see `FullEvaluation`.

    If the problem has `free`, [m] int32 with m >= 2, only these m positions are swapped.
    """

    num_words = 2
    space = "permutation"

    def propose(self, problem: Any, solution: jax.Array, words: tuple[jax.Array, ...]) -> Positions:
        free, n = _positions(problem, solution)
        first = below(words[0], n)
        if isinstance(n, int):
            second = below(words[1], max(n - 1, 1))
            second = second + (second >= first).astype(jnp.int32) if n > 1 else first
        else:
            second = below(words[1], jnp.maximum(n - 1, 1))
            second = jnp.minimum(second + (second >= first).astype(jnp.int32), n - 1)
        if free is not None:
            first, second = load(free, first), load(free, second)
        return Positions(first, second)

    def num_moves(self, problem: Any, solution: jax.Array) -> int:
        _, n = _positions(problem, solution)
        return n * (n - 1) // 2

    def shape(self, problem: Any, solution: jax.Array) -> tuple[int, int]:
        """Returns the shape of a table of positions by their entries; a swap stands there twice."""
        return solution.shape[0], solution.shape[0]

    def move_at(
        self, problem: Any, solution: jax.Array, row: jax.Array, column: jax.Array
    ) -> tuple[Positions, jax.Array]:
        """Returns the swap that brings entry `column` to position `row`, and whether it is one."""
        second = jnp.argmax(solution == column).astype(jnp.int32)
        is_swap = row != second
        free, _ = _positions(problem, solution)
        if free is not None:
            is_swap &= (free == row).any() & (free == second).any()
        return Positions(row, second), is_swap

    def undone(self, problem: Any, solution: jax.Array, move: Positions) -> Entries:
        return tuple((position, solution[position]) for position in move)

    def apply(self, problem: Any, solution: jax.Array, move: Positions) -> jax.Array:
        pair = jnp.stack(move)
        return solution.at[pair].set(solution[pair[::-1]])


def _positions(problem: Any, solution: jax.Array) -> tuple[jax.Array | None, Any]:
    """Returns the positions that may change, None for the first ones, and how many they are."""
    free, num_entries = capabilities.free(problem), capabilities.num_entries(problem)
    if free is None and num_entries is not None:
        return None, num_entries
    return free, (solution if free is None else free).shape[0]
