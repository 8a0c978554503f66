"""The traveling salesman problem: the shortest closed tour through n cities.

Integer instances have exact int32 distances on the device, equal to TSPLIB's (Reinelt, "TSPLIB: a
traveling salesman problem library", 1991), read from a matrix or computed from coordinates. Other
instances have float32 distances. `tsp_input` builds instances.
"""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxopt_search.memory import load
from jaxopt_search.problems import permutation
from jaxopt_search.problems.host import Host

MAX_SQUARED = 2_147_000_000
"""Squared distances up to here are rounded exactly on the device, in int32."""


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=("matrix", "x", "y"),
    meta_fields=("n", "metric", "is_symmetric", "host"),
)
@dataclasses.dataclass(frozen=True, kw_only=True)
class TSP:
    """A TSP instance on the device. Build it with `tsp`, `tsp_from_coords`, `tsp_from_instance`.

    Attributes:
      matrix: [n * n] distances, int32 or float32, row by row; None with coordinates.
      x: [n] coordinates, float32 for the metric `"EUCLID"`, else int32; None with a matrix.
      y: likewise.
      n: the number of cities.
      metric: `"MATRIX"`, or the rule that gives distances from coordinates.
      is_symmetric: whether all distances are the same in both directions.
      host: the instance as it was given.
    """

    matrix: jax.Array | None = dataclasses.field(default=None, repr=False)
    x: jax.Array | None = dataclasses.field(default=None, repr=False)
    y: jax.Array | None = dataclasses.field(default=None, repr=False)
    n: int
    metric: str
    is_symmetric: bool
    host: Host = dataclasses.field(repr=False)

    @property
    def is_trivial(self) -> bool:
        """Whether all tours have the same length."""
        return self.n <= (3 if self.is_symmetric else 2)

    def init(self, key: jax.Array) -> jax.Array:
        """Returns a random tour, [n] int32: the city at each position."""
        return permutation.random_permutation(key, self.n)

    def perturb(self, key: jax.Array, tour: jax.Array) -> jax.Array:
        """Returns a tour near `tour`: a random double bridge away."""
        return permutation.exchange_segments(key, tour)

    def cost(self, tour: jax.Array) -> jax.Array:
        """Returns the length of `tour`, [] int32 or float32."""
        lengths = self.distance(tour, jnp.roll(tour, -1))
        return jnp.sum(lengths, dtype=lengths.dtype)

    def distance(self, a: jax.Array, b: jax.Array) -> jax.Array:
        """Returns the distance from city `a` to city `b`; portable.

        Args:
          a: int32 cities, any shape.
          b: int32 cities of the same shape.
        """
        if self.matrix is not None:
            return load(self.matrix, a * self.n + b)
        dx = load(self.x, a) - load(self.x, b)
        dy = load(self.y, a) - load(self.y, b)
        return DISTANCES[self.metric](dx, dy)


def _euclid(dx: jax.Array, dy: jax.Array) -> jax.Array:
    return jnp.sqrt(dx * dx + dy * dy)


def _euc_2d(dx: jax.Array, dy: jax.Array) -> jax.Array:
    squared = dx * dx + dy * dy
    r = jnp.floor(_root(squared) + jnp.float32(0.5)).astype(jnp.int32)
    # r > 0 is the nearest integer to the root where r * (r - 1) < squared <= r * (r + 1).
    r = r - (r * (r - 1) >= jnp.maximum(squared, 1)).astype(jnp.int32)
    return r + (r * (r + 1) < squared).astype(jnp.int32)


def _ceil_2d(dx: jax.Array, dy: jax.Array) -> jax.Array:
    squared = dx * dx + dy * dy
    return _least_root(squared, _root(squared), 1)


def _att(dx: jax.Array, dy: jax.Array) -> jax.Array:
    # TSPLIB's rule, "round, and add 1 where that was down", is rounding up.
    squared = dx * dx + dy * dy
    return _least_root(squared, _root(squared) * jnp.float32(math.sqrt(0.1)), 10)


def _root(squared: jax.Array) -> jax.Array:
    return jnp.sqrt(squared.astype(jnp.float32))


def _least_root(squared: jax.Array, root: jax.Array, divisor: int) -> jax.Array:
    """Returns the least integer r with `divisor * r * r >= squared`."""
    r = jnp.floor(root).astype(jnp.int32)  # at most 2 too low and never too high
    for _ in range(2):
        r = r + (divisor * r * r < squared).astype(jnp.int32)
    return r


# Distances from coordinate differences. A float32 root is off by less than 1/2 up to MAX_SQUARED;
# it is corrected in int32, so that no backend's sqrt can change a rounded distance.
DISTANCES: dict[str, Callable[[Any, Any], jax.Array]] = {
    "EUCLID": _euclid,
    "EUC_2D": _euc_2d,
    "CEIL_2D": _ceil_2d,
    "ATT": _att,
}
