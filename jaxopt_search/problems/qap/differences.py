"""What a swap of two facilities changes is made of: entries of both matrices and their differences.

Where both matrices are symmetric, one difference stands for the two directions.
"""

import functools
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search.backends import floats
from jaxopt_search.backends.memory import load
from jaxopt_search.problems.qap.problem import QAP

Parts: TypeAlias = tuple[jax.Array, ...]
"""Flows that leave and flows that come, or distances; of symmetric matrices flows both ways."""


def square(problem: QAP, matrix: jax.Array) -> jax.Array:
    """Returns a matrix as [capacity, capacity], with zeros from n on."""
    n, size = problem.n, problem.capacity
    if problem.num_entries is None:
        return matrix.reshape(n, n)
    row, column = (lax.broadcasted_iota(jnp.int32, (size, size), axis) for axis in (0, 1))
    entry = load(matrix, row * n + column)
    return jnp.where((row < n) & (column < n), entry, jnp.zeros_like(entry))


def differences(
    problem: QAP, matrix: Any, pair: tuple[jax.Array, jax.Array], k: jax.Array
) -> Parts:
    """Returns the entry of the first of `pair` minus the second's, in column and row `k`.

    Where matrices are symmetric, one of the two.
    """
    n, (i, j) = problem.n, pair
    coming = load(matrix, i * n + k) - load(matrix, j * n + k)
    if problem.is_symmetric:
        return (coming,)
    return load(matrix, k * n + i) - load(matrix, k * n + j), coming


def product(flow: Parts, distance: Parts) -> jax.Array:
    """Returns the sum of flows times distances."""
    return functools.reduce(jnp.add, map(floats.product, flow, distance))


def second_difference(problem: QAP, matrix: Any, i: jax.Array, j: jax.Array) -> jax.Array:
    """Returns what the entries within `i` and `j` are more than those between them."""

    def entry(i: jax.Array, j: jax.Array) -> jax.Array:
        return load(matrix, i * problem.n + j)

    return entry(i, i) + entry(j, j) - entry(i, j) - entry(j, i)
