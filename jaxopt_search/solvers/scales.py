"""How large changes of cost are in an instance, from which temperatures follow."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxopt_search.portable import floats, random
from jaxopt_search.problems.qap.problem import QAP
from jaxopt_search.problems.tsp.problem import TSP

_SAMPLED_CITIES = _SAMPLED_SWAPS = 256


@jax.jit
def near_distance(problem: TSP) -> jax.Array:
    """Returns the mean distance from some cities to their three nearest, [] float32.

    Always above 0: where that is not, as with equal places or negative distances, the mean
    absolute distance is taken, or 1.
    """
    n, cities = problem.n, lax.iota(jnp.int32, problem.capacity)
    number = jnp.minimum(n, _SAMPLED_CITIES)
    place = cities[: min(_SAMPLED_CITIES, problem.capacity)]
    some = place * jnp.maximum(1, n // _SAMPLED_CITIES)
    rows = jax.vmap(lambda city: _distances_from(problem, city))(some)
    is_other = (some[:, None] != cities) & (cities < n) & (place < number)[:, None]
    nearest = -lax.top_k(jnp.where(is_other, -rows, -jnp.inf), min(3, problem.capacity - 1))[0]

    def mean(distances: jax.Array, number: jax.Array) -> jax.Array:
        counted = jnp.where(jnp.isfinite(distances), distances, 0)
        return floats.total(floats.total(counted)) / jnp.maximum(number, 1)

    near = mean(nearest, number * jnp.clip(n - 1, 0, 3))
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
    return jnp.sqrt(total / jnp.maximum(n - 1, 1))


def _distances_from(problem: TSP, city: jax.Array) -> jax.Array:
    cities = lax.iota(jnp.int32, problem.capacity)
    return problem.distance(jnp.full_like(cities, city), cities).astype(jnp.float32)


def swap_change(problem: QAP) -> float:
    """Returns the mean absolute delta of some random swaps, in the device's units; above 0."""
    generator = np.random.default_rng(0)
    if problem.is_trivial:
        return 1.0
    free = np.arange(problem.n) if problem.free is None else np.asarray(problem.free)
    pairs = [generator.choice(free, 2, replace=False) for _ in range(_SAMPLED_SWAPS)]
    first, second = jnp.asarray(np.array(pairs, np.int32).T)
    deltas = _swap_deltas(problem, first, second)
    return float(np.abs(np.asarray(deltas, np.float64)).mean()) or 1.0


@jax.jit
def _swap_deltas(problem: QAP, first: jax.Array, second: jax.Array) -> jax.Array:
    """Returns the deltas of swaps, of a random assignment each."""
    index = lax.iota(jnp.uint32, first.shape[0])
    keys = jax.vmap(random.start_key, in_axes=(None, 0))(random.as_key(0), index)
    return jax.vmap(problem.swap_delta)(jax.vmap(problem.init)(keys), first, second)
