"""How large changes of cost are in an instance, from which temperatures follow."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxopt_search.backends import floats
from jaxopt_search.problems.qap.problem import QAP
from jaxopt_search.problems.tsp.problem import TSP

SAMPLED_CITIES = _SAMPLED_SWAPS = 256


@jax.jit
def near_distance(problem: TSP) -> jax.Array:
    """Returns the mean distance from some cities to their three nearest, [] float32.

    Cities at distance 0 are left out. Always above 0: where that is not, as with negative
    distances, the mean absolute distance is taken, or 1.
    """
    n, cities = problem.n, lax.iota(jnp.int32, problem.capacity)
    number = jnp.minimum(n, SAMPLED_CITIES)
    place = cities[: min(SAMPLED_CITIES, problem.capacity)]
    some = place * jnp.maximum(1, n // SAMPLED_CITIES)
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
def tree_edge(problem: TSP) -> jax.Array:
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
