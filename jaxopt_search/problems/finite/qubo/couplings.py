"""Symmetric couplings between binary variables, as a matrix or by lists of neighbors.

What a flip changes for the others is added in one pass over a row: n entries of a matrix, or one
entry of a list for each neighbor.
"""

import dataclasses
import functools
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxopt_search.backends import floats, loops, memory
from jaxopt_search.backends.memory import load, store
from jaxopt_search.problems.padding import list_room, with_room
from jaxopt_search.pytrees import pytree

_TILE = 256  # entries of a row of a matrix that a kernel handles at once


@pytree
@dataclasses.dataclass(frozen=True, eq=False)
class Dense:
    """Couplings as a matrix.

    Attributes:
      matrix: [n, n] int32 or float32, symmetric, 0 on the diagonal.
    """

    matrix: Any

    @property
    def dtype(self) -> Any:
        return self.matrix.dtype

    def sums(self, solution: jax.Array, *, below: bool = False) -> jax.Array:
        """Returns [n], the sums of the couplings of each variable to those that are 1.

        Args:
          solution: [n] int32.
          below: whether only variables of lower numbers count.
        """
        ones = solution.astype(self.dtype)[:, None]
        matrix = jnp.tril(self.matrix, -1) if below else self.matrix
        return floats.matmul(matrix, ones)[:, 0]

    def between(self, first: jax.Array, second: jax.Array) -> jax.Array:
        """Returns the coupling of two different variables, elementwise; portable."""
        return load(self.matrix, (first, second))

    def add_row(self, sums: Any, variable: jax.Array, factor: jax.Array, where: jax.Array) -> Any:
        """Returns the sums plus `factor` times a row, if `where` holds; portable.

        Args:
          sums: [n] buffer.
          variable: [] int32, the row.
          factor: [] -1, 0 or 1, so that products are exact.
          where: [] bool.
        """
        if not memory.is_in_kernel():
            # A slice is read faster than elements by their numbers.
            row = lax.dynamic_index_in_dim(self.matrix, variable, keepdims=False)
            return jnp.where(where, sums + row * factor, sums)
        n = sums.shape[0]

        def add(index: jax.Array, is_inside: jax.Array, sums: Any) -> Any:
            place = jnp.minimum(index, n - 1)
            changed = load(sums, place) + load(self.matrix, (variable, place)) * factor
            return store(sums, place, changed, is_inside & where)

        return memory.each_index(jnp.int32(n), n, add, sums, _TILE)


@functools.partial(
    pytree,
    data_fields=("starts", "neighbors", "values"),
    meta_fields=("max_degree",),
)
@dataclasses.dataclass(frozen=True, eq=False)
class Sparse:
    """Couplings by lists of neighbors, one list after the other.

    Attributes:
      starts: [n + 1] int32, where the list of each variable begins, and where the last one ends.
      neighbors: [m] int32, ascending within a list; behind the last one there is room, so that
        instances of about as many couplings share what is compiled.
      values: [m] int32 or float32, the couplings to them.
      max_degree: the length of the longest list, or the next power of two.
    """

    starts: Any
    neighbors: Any
    values: Any
    max_degree: int

    @property
    def dtype(self) -> Any:
        return self.values.dtype

    def sums(self, solution: jax.Array, *, below: bool = False) -> jax.Array:
        """Like `Dense.sums`; neighbors are added one after the other, always in the same order."""
        variable = lax.iota(jnp.int32, solution.shape[0])
        start, end = self.starts[:-1], self.starts[1:]

        def add(k: jax.Array, sums: jax.Array) -> jax.Array:
            at = start + k
            counts = at < end
            neighbor = load(self.neighbors, at, counts)
            if below:
                counts = counts & (neighbor < variable)
            counts = counts & (load(solution, neighbor, counts) == 1)
            value = load(self.values, at, counts)
            return sums + jnp.where(counts, value, jnp.zeros_like(value))

        return loops.fori_loop(0, self.max_degree, add, jnp.zeros(solution.shape, self.dtype))

    def between(self, first: jax.Array, second: jax.Array) -> jax.Array:
        """Like `Dense.between`; O(log(max_degree)), by bisection of the first one's list."""
        low, end = load(self.starts, first), load(self.starts, first + 1)
        last, high = self.neighbors.shape[0] - 1, end

        def neighbor(at: jax.Array) -> jax.Array:
            return load(self.neighbors, jnp.minimum(at, last))

        for _ in range(self.max_degree.bit_length()):
            middle = (low + high) >> 1
            is_before = (low < high) & (neighbor(middle) < second)
            low, high = jnp.where(is_before, middle + 1, low), jnp.where(is_before, high, middle)
        value = load(self.values, jnp.minimum(low, last))
        is_one = (low < end) & (neighbor(low) == second)
        return jnp.where(is_one, value, jnp.zeros_like(value))

    def add_row(self, sums: Any, variable: jax.Array, factor: jax.Array, where: jax.Array) -> Any:
        """Like `Dense.add_row`; O(degree)."""
        start = load(self.starts, variable)
        degree = load(self.starts, variable + 1) - start

        def add(index: jax.Array, is_inside: jax.Array, sums: Any) -> Any:
            neighbor = load(self.neighbors, start + index, is_inside)
            change = load(self.values, start + index, is_inside) * factor
            changed = load(sums, neighbor, is_inside) + change
            return store(sums, neighbor, changed, is_inside & where)

        return memory.each_index(degree, self.max_degree, add, sums)


Couplings: TypeAlias = Dense | Sparse


def couplings(
    n: int, first: np.ndarray, second: np.ndarray, values: np.ndarray, dtype: Any, is_dense: bool
) -> Couplings:
    """Returns couplings on the device.

    Args:
      first, second: [k] integers, different variables, each pair once.
      values: [k], their couplings.
      dtype: on the device.
    """
    values = values.astype(np.dtype(dtype))
    if is_dense:
        matrix = np.zeros((n, n), values.dtype)
        matrix[first, second] = matrix[second, first] = values
        return Dense(jnp.asarray(matrix))
    rows, columns = np.concatenate([first, second]), np.concatenate([second, first])
    order = np.lexsort((columns, rows))
    degrees = np.bincount(rows, minlength=n)
    room = 2 * list_room(len(first))
    neighbors = with_room(columns[order].astype(np.int32), room)
    both = with_room(np.concatenate([values, values])[order], room)
    starts = np.concatenate([[0], np.cumsum(degrees)]).astype(np.int32)
    max_degree = memory.power_of_two(max(int(degrees.max()), 1))
    return Sparse(*map(jnp.asarray, (starts, neighbors, both)), max_degree=max_degree)
