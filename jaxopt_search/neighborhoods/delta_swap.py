"""Swaps of two entries of a permutation, priced by the problem's own delta."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from jaxopt_search.backends import memory
from jaxopt_search.backends.memory import load, store
from jaxopt_search.checks import check_suits
from jaxopt_search.neighborhoods.swap import Positions, Swap
from jaxopt_search.types import Neighborhood, null_delta


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class DeltaSwap(Neighborhood):
    """All n (n - 1) / 2 swaps of a problem with `swap_delta(permutation, first, second)`.

    In a QAP two facilities exchange their locations, at O(n) a price. Other problems are refused
    unless they have `swap_delta`. The representation is the permutation itself.

    Example:
      >>> import jaxopt_search as js
      >>> flow, distance = [[0, 5, 2], [5, 0, 3], [2, 3, 0]], [[0, 8, 15], [8, 0, 13], [15, 13, 0]]
      >>> problem, assignment = js.qap(flow, distance), jnp.array([1, 0, 2])
      >>> swap = Positions(jnp.int32(0), jnp.int32(1))
      >>> int(problem.cost(assignment)), int(DeltaSwap().delta(problem, assignment, swap))
      (222, -4)
    """

    num_words = 2
    is_portable = True
    space = "permutation"

    def init(self, problem: Any, solution: jax.Array) -> jax.Array:
        suits = problem.swap_delta is not None
        check_suits("DeltaSwap", "one with swap_delta", problem, suits)
        return solution

    def solution(self, problem: Any, snapshot: jax.Array) -> jax.Array:
        return snapshot

    def snapshot(self, representation: jax.Array) -> jax.Array:
        return representation

    def propose(
        self, problem: Any, representation: jax.Array, words: tuple[jax.Array, ...]
    ) -> Positions:
        return Swap().propose(problem, representation, words)

    def delta(self, problem: Any, representation: jax.Array, move: Positions) -> jax.Array:
        change = problem.swap_delta(representation, move.first, move.second)
        number = problem.num_entries
        number = representation.shape[0] if number is None else number
        is_null = jnp.full_like(change, number < 2, bool)
        return jnp.where(is_null, null_delta(change.dtype), change)

    def commit(
        self, problem: Any, representation: jax.Array, move: Positions, accept: jax.Array
    ) -> jax.Array:
        first, second = load(representation, move.first), load(representation, move.second)
        memory.barrier()
        representation = store(representation, move.first, second, accept)
        return store(representation, move.second, first, accept)
