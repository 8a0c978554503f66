"""TSP instances and candidate lists made on the device, as inside `jit` and `vmap`."""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxopt_search.backends.memory import Pairs, load_pair
from jaxopt_search.checks import check_places
from jaxopt_search.problems import bounds, matrix_input
from jaxopt_search.problems.host import ON_DEVICE
from jaxopt_search.problems.tsp import candidates
from jaxopt_search.problems.tsp.candidates import SAME_PLACE, Kind
from jaxopt_search.problems.tsp.problem import TSP

_CHOSEN = np.int32(2**30)  # no city has this many chosen ones near it
_MIXER = np.uint32(0x9E3779B1)  # odd, so that products differ


def of_coords(coords: Any, metric: str, storage: str) -> TSP:
    """Returns the TSP of Euclidean distances between places, [n, 2]; see `tsp_from_coords`."""
    if metric != "EUCLID":
        raise ValueError(f"metric is {metric!r}, expected 'EUCLID' for coords that are traced")
    matrix_input.traced_numbers(coords, "coords")
    points = jnp.asarray(coords)
    check_places(points, "coords")
    # Before they are rounded to float32, which large ones that are close together do not survive.
    points = points - points.min(axis=0, keepdims=True)
    if points.dtype == jnp.int32:
        points = points.astype(jnp.uint32)  # of any distance from one another
    problem = of_arrays(points.astype(jnp.float32))
    if storage != "matrix":
        return problem
    bounds.check_matrix_of(len(points), "storage='coordinates'")
    cities = lax.iota(jnp.int32, len(points))
    return of_arrays(jax.vmap(functools.partial(_distances, problem))(cities).ravel())


def of_arrays(
    arrays: jax.Array, num_cities: jax.Array | None = None, is_symmetric: bool = True
) -> TSP:
    """Returns the TSP of Euclidean distances between places, or of given distances.

    Args:
      arrays: places, [capacity, 2] float32 close to 0; or distances, [capacity * capacity] int32 or
        float32, row by row of `num_cities`.
      num_cities: [] int32, this many first ones count; None for all.
    """
    is_matrix = arrays.ndim == 1
    return TSP(
        matrix=arrays if is_matrix else None,
        coords=None if is_matrix else Pairs(arrays[:, 0], arrays[:, 1]),
        num_entries=num_cities,
        capacity=math.isqrt(len(arrays)) if is_matrix else len(arrays),
        metric="MATRIX" if is_matrix else "EUCLID",
        is_symmetric=is_symmetric,
        host=ON_DEVICE,
    )


def of_matrix(distances: Any, is_symmetric: bool, dtype: str | None) -> TSP:
    """Returns the TSP of a matrix of distances, [n, n]; see `tsp`."""
    matrix = matrix_input.traced_square(distances, "distances", dtype)
    bounds.check_matrix_of(len(matrix), "tsp_from_coords")
    matrix = jnp.where(jnp.eye(len(matrix), dtype=bool), jnp.zeros_like(matrix), matrix)
    return of_arrays(matrix.ravel(), is_symmetric=is_symmetric)


def is_on_device_only(problem: TSP) -> bool:
    """Returns whether the host does not know the instance, be it for now or ever."""
    return matrix_input.is_traced(problem) or problem.host is ON_DEVICE


def candidate_lists(problem: TSP, num: int, kind: Kind) -> Any:
    """Returns candidates of each city, [capacity, num]: made on the host if it has the instance."""
    if is_on_device_only(problem):
        return neighbors(problem, num, kind)
    return candidates.with_room(problem, candidates.neighbors(problem, num, kind), num)


def neighbors(problem: TSP, num_candidates: int, kind: Kind) -> jax.Array:
    """Returns candidates of each city, [capacity, K] int32, as `candidates.neighbors` does.

    They are spread by distances alone, and the nearest come first. Where there are fewer other
    cities, the city stands for the rest.

    Args:
      num_candidates: K at most; n - 1 if there are fewer other cities.
      kind: `"nearest"` or `"spread"`.
    """
    num = max(min(num_candidates, problem.capacity - 1), 1)
    cities = lax.iota(jnp.int32, problem.capacity)

    def of(city: jax.Array) -> jax.Array:
        is_other = (cities < problem.n) & (cities != city)
        away = jnp.where(is_other, _distances(problem, city).astype(jnp.float32), jnp.inf)
        # Of cities at the same place, the next one around a ring; at another place, any.
        ahead = (cities - city).astype(jnp.uint32)
        ahead = jnp.where(cities > city, ahead, ahead + jnp.uint32(problem.capacity))
        turn = jnp.where(away > 0, ahead * _MIXER, ahead)

        def choose(covers: jax.Array, _: None) -> tuple[jax.Array, jax.Array]:
            least = covers.min()
            nearest = jnp.where(covers == least, away, jnp.inf)
            is_nearest = (covers == least) & (nearest == nearest.min())
            first = jnp.argmax(is_nearest).astype(jnp.int32)
            between = _distances(problem, first).astype(jnp.float32)
            is_there = is_nearest & ((between == 0) | (cities == first))
            other = jnp.argmin(jnp.where(is_there, turn, jnp.uint32(2**32 - 1)))
            other = other.astype(jnp.int32)
            is_same = (between == 0) & (away != 0)
            is_covered = between < SAME_PLACE * away if kind == "spread" else is_same
            if problem.coords is not None:
                is_covered |= (between == 0) & (away == 0)
            covers += num * is_covered.astype(jnp.int32)
            if kind == "spread":
                covers += (between < away).astype(jnp.int32)
            return covers.at[other].set(_CHOSEN), jnp.where(least < _CHOSEN, other, city)

        covers = jnp.where(is_other, jnp.int32(0), _CHOSEN)
        chosen = lax.scan(choose, covers, None, length=num)[1]
        return chosen[jnp.argsort(away[chosen])]

    return jax.vmap(of)(cities)


def points_of(problem: TSP) -> jax.Array | None:
    """Returns the places of the cities, times `scale`, [n, 2] float32, if the device has them."""
    if problem.coords is None:
        return None
    cities = lax.iota(jnp.int32, problem.capacity)
    return jnp.stack(load_pair(problem.coords, cities), axis=1).astype(jnp.float32)


def _distances(problem: TSP, city: jax.Array) -> jax.Array:
    """Returns the distances from a city to all, [capacity]."""
    cities = lax.iota(jnp.int32, problem.capacity)
    return problem.distance(jnp.full_like(cities, city), cities)
