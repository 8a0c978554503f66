"""TSP instances and candidate lists made on the device, as inside `jit` and `vmap`."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search.portable.packed_pairs import Pairs, load_pair
from jaxopt_search.problems import traced_input
from jaxopt_search.problems.host import ON_DEVICE
from jaxopt_search.problems.matrix_input import check_places
from jaxopt_search.problems.tsp import ranges
from jaxopt_search.problems.tsp.problem import TSP


def of_coords(coords: Any, metric: str, storage: str) -> TSP:
    """Returns the TSP of Euclidean distances between places, [n, 2]; see `tsp_from_coords`."""
    if metric != "EUCLID":
        raise ValueError(f"metric is {metric!r}, expected 'EUCLID' for coords that are traced")
    traced_input.numbers(coords, "coords")
    points = jnp.asarray(coords)
    check_places(points, "coords")
    # Before they are rounded to float32, which large ones that are close together do not survive.
    points = points - points.min(axis=0, keepdims=True)
    if points.dtype == jnp.int32:
        points = points.astype(jnp.uint32)  # of any distance from one another
    problem = of_points(points.astype(jnp.float32))
    if storage != "matrix":
        return problem
    ranges.check_memory(len(points), "storage='coordinates'")
    return _of_square(_all_distances(problem), is_symmetric=True)


def of_points(points: jax.Array, num_cities: jax.Array | None = None) -> TSP:
    """Returns the TSP of Euclidean distances between places.

    Args:
      points: [capacity, 2] float32, from 0 on.
      num_cities: [] int32, this many first ones count; None for all.
    """
    return TSP(
        coords=Pairs(points[:, 0], points[:, 1]),
        num_entries=num_cities,
        capacity=len(points),
        metric="EUCLID",
        is_symmetric=True,
        host=ON_DEVICE,
    )


def of_matrix(distances: Any, is_symmetric: bool, dtype: str | None) -> TSP:
    """Returns the TSP of a matrix of distances, [n, n]; see `tsp`."""
    matrix = traced_input.square(distances, "distances", dtype)
    ranges.check_memory(len(matrix), "tsp_from_coords")
    matrix = jnp.where(jnp.eye(len(matrix), dtype=bool), jnp.zeros_like(matrix), matrix)
    return _of_square(matrix, is_symmetric)


def _of_square(matrix: jax.Array, is_symmetric: bool) -> TSP:
    return TSP(
        matrix=matrix.ravel(),
        capacity=len(matrix),
        metric="MATRIX",
        is_symmetric=is_symmetric,
        host=ON_DEVICE,
    )


def is_on_device_only(problem: TSP) -> bool:
    """Returns whether the host does not know the instance, be it for now or ever."""
    return traced_input.is_traced(problem) or problem.host is ON_DEVICE


def nearest(problem: TSP, num_candidates: int) -> jax.Array:
    """Returns the nearest cities of each, [capacity, K] int32; where there are fewer, the city.

    Args:
      num_candidates: K at most; n - 1 if there are fewer other cities.
    """
    num = max(min(num_candidates, problem.capacity - 1), 1)
    cities = lax.iota(jnp.int32, problem.capacity)

    def of(city: jax.Array) -> jax.Array:
        distances = _distances(problem, city).astype(jnp.float32)
        is_other = (cities < problem.n) & (cities != city)
        distances, near = lax.top_k(jnp.where(is_other, -distances, -jnp.inf), num)
        return jnp.where(jnp.isfinite(distances), near, city)

    return jax.vmap(of)(cities).astype(jnp.int32)


def points_of(problem: TSP) -> jax.Array | None:
    """Returns the places of the cities, [n, 2] float32, if the device has them."""
    if problem.coords is None:
        return None
    cities = lax.iota(jnp.int32, problem.capacity)
    return jnp.stack(load_pair(problem.coords, cities), axis=1).astype(jnp.float32)


def _all_distances(problem: TSP) -> jax.Array:
    cities = lax.iota(jnp.int32, problem.capacity)
    return jax.vmap(lambda city: _distances(problem, city))(cities)


def _distances(problem: TSP, city: jax.Array) -> jax.Array:
    """Returns the distances from a city to all, [capacity]."""
    cities = lax.iota(jnp.int32, problem.capacity)
    return problem.distance(jnp.full_like(cities, city), cities)
