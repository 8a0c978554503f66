"""How large changes of cost are in an instance, from which temperatures follow.

Those of a single TSP are measured on the host, where nothing is compiled for it, unless it has so
many cities that a device is faster; changes of many TSPs at once on the device.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxopt_search.backends import floats
from jaxopt_search.datasets import distances
from jaxopt_search.problems.qap.problem import QAP
from jaxopt_search.problems.tsp.problem import TSP

_SAMPLED_CITIES = _SAMPLED_SWAPS = 256
_MOST_CITIES = 4096
"""Of which the host measures the distances."""


def near_distance(problem: TSP) -> float:
    """Like `near_distance_on_device`, up to rounding."""
    n = int(problem.n)
    if n > _MOST_CITIES:
        return float(near_distance_on_device(problem))
    distances_from, some = _host_rows(problem), np.arange(min(n, _SAMPLED_CITIES))
    some *= max(1, n // _SAMPLED_CITIES)
    rows = np.stack([distances_from(city) for city in some.tolist()])
    rows[np.arange(len(some)), some] = 0
    nearest = np.sort(np.where(rows == 0, np.inf, rows))[:, :3]
    for counted in (nearest[np.isfinite(nearest)], np.abs(rows[rows != 0])):
        if counted.size and (scale := counted.mean(dtype=float).item()) > 0:
            return scale
    return 1.0


def tree_edge(problem: TSP) -> float:
    """Like `tree_edge_on_device`, up to rounding."""
    n, city = int(problem.n), 0
    if n > _MOST_CITIES:
        return float(tree_edge_on_device(problem))
    distances_from, edges = _host_rows(problem), np.zeros(n)
    away, inside = np.full(n, np.inf, np.float32), np.zeros(n, np.float32)
    for number in range(1, n):
        inside[city] = away[city] = np.inf
        np.minimum(away, np.maximum(distances_from(city), inside), out=away)
        city = int(away.argmin())
        edges[number] = away[city]
    return float(np.sqrt(np.square(edges).sum() / max(n - 1, 1)))


def _host_rows(problem: TSP) -> Callable[[int], np.ndarray]:
    """Returns the function that gives the distances from a city as on the device, [n] float32."""
    if problem.matrix is not None:
        matrix = problem.distances_on_host()
        return lambda city: matrix[city].astype(np.float32)
    if problem.metric != "EUCLID":
        points, rule = problem.host.coords, distances.EDGE_WEIGHTS[problem.metric]
        assert points is not None
        return lambda city: rule(points[city], points).astype(np.float32)
    assert problem.coords is not None
    x, y = (np.asarray(part)[: int(problem.n)] for part in problem.coords)
    return lambda city: np.hypot(x - x[city], y - y[city])


@jax.jit
def near_distance_on_device(problem: TSP) -> jax.Array:
    """Returns the mean distance from some cities to their three nearest, [] float32.

    Cities at distance 0 are left out. Always above 0: where that is not, as with negative
    distances, the mean absolute distance is taken, or 1.
    """
    n, cities = problem.n, lax.iota(jnp.int32, problem.capacity)
    number = jnp.minimum(n, _SAMPLED_CITIES)
    place = cities[: min(_SAMPLED_CITIES, problem.capacity)]
    some = place * jnp.maximum(1, n // _SAMPLED_CITIES)
    rows = jax.vmap(lambda city: _distances_from(problem, city))(some)
    is_counted = (place < number)[:, None] & (cities < n)[None]
    is_counted &= rows != 0
    is_other = (some[:, None] != cities[None]) & is_counted
    nearest = -lax.top_k(jnp.where(is_other, -rows, -jnp.inf), min(3, problem.capacity - 1))[0]

    def mean(distances: jax.Array, number: jax.Array) -> jax.Array:
        counted = jnp.where(jnp.isfinite(distances), distances, 0)
        return floats.total(floats.total(counted)) / jnp.maximum(number, 1).astype(jnp.float32)

    near = mean(nearest, jnp.isfinite(nearest).sum(dtype=jnp.int32))
    others = jnp.where(is_other, jnp.abs(rows), 0)
    scale = jnp.where(near > 0, near, mean(others, number * (n - 1)))
    return jnp.where(scale > 0, scale, 1)


@jax.jit
def tree_edge_on_device(problem: TSP) -> jax.Array:
    """Returns the root mean square edge of the shortest tree that joins all cities, [] float32.

    As long as a typical edge of a tour where cities are spread evenly, and much longer where they
    lie in clusters. Prim, "Shortest connection networks and some generalizations", 1957.
    """
    n, is_in = problem.n, -jnp.inf  # stands for the distance of a city in the tree
    cities = lax.iota(jnp.int32, problem.capacity)

    def join(city: jax.Array, away: jax.Array) -> jax.Array:
        distances = jnp.maximum(_distances_from(problem, city), 0)
        return jnp.minimum(away, distances).at[city].set(is_in)

    def join_next(_: jax.Array, carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        away, total = carry
        city = jnp.argmin(jnp.where(away == is_in, jnp.inf, away)).astype(jnp.int32)
        return join(city, away), total + floats.product(away[city], away[city])

    outside = jnp.where(cities < n, jnp.inf, is_in).astype(jnp.float32)
    start = join(jnp.int32(0), outside)
    _, total = lax.fori_loop(0, n - 1, join_next, (start, jnp.float32(0)))
    return jnp.sqrt(total / jnp.maximum(n - 1, 1).astype(jnp.float32))


def _distances_from(problem: TSP, city: jax.Array) -> jax.Array:
    cities = lax.iota(jnp.int32, problem.capacity)
    return problem.distance(jnp.full_like(cities, city), cities).astype(jnp.float32)


def swap_change(problem: QAP) -> float:
    """Returns the mean absolute delta of some random swaps, in the device's units; above 0.

    On the host: of random assignments, a swap each.
    """
    if problem.is_trivial:
        return 1.0
    generator, (flow, distance) = np.random.default_rng(0), problem.matrices_on_host()
    free, location = problem.free_on_host()
    changes: list[float] = []
    for _ in range(_SAMPLED_SWAPS):
        location[free] = generator.permutation(location[free])
        pair = generator.choice(free, 2, replace=False)
        before = _cost_of_pair(flow, distance, location, pair)
        location[pair] = location[pair[::-1]]
        changes.append(float(_cost_of_pair(flow, distance, location, pair) - before))
    return float(np.abs(changes).mean()) or 1.0


def _cost_of_pair(
    flow: np.ndarray, distance: np.ndarray, location: np.ndarray, pair: np.ndarray
) -> Any:
    """Returns the cost of the flows from and to two facilities."""
    dtype = np.float64 if flow.dtype.kind == "f" else np.int64
    every = np.arange(len(flow))

    def cost(first: np.ndarray, second: np.ndarray) -> Any:
        flows = flow[np.ix_(first, second)].astype(dtype)
        return (flows * distance[np.ix_(location[first], location[second])]).sum()

    return cost(pair, every) + cost(every, pair) - cost(pair, pair)
