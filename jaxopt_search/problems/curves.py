"""TSP: tours along a space-filling curve, from which many searches start, each in its own place.

Platzman, Bartholdi, "Spacefilling curves and the planar travelling salesman problem", 1989; the
curve is that of Hilbert, "Ueber die stetige Abbildung einer Linie auf ein Flaechenstueck", 1891. In
the order in which it passes them, evenly spread cities make a tour about 1.4 times as long as the
shortest.
"""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search import random
from jaxopt_search.checks import check_count
from jaxopt_search.problems.tsp import TSP

_BITS = 16  # of a place along one axis


def curve_tours(problem: TSP, key: Any, num_tours: int) -> jax.Array:
    """Returns tours along Hilbert's curve, [num_tours, n] int32.

    The plane is turned and shifted at random for each of them, so that they differ. As `initial` of
    `solve`, they spare its searches the long way from a random tour.

    Args:
      problem: with coordinates.
      key: an integer seed or a `jax.random.key`.
      num_tours: how many.

    Raises:
      ValueError: if the problem has no coordinates, or `num_tours` is no positive integer.

    Example:
      >>> import jaxopt_search as js
      >>> problem = js.tsp_from_instance(js.datasets.grid_tsp(4, 4, spacing=10))
      >>> search = js.simulated_annealing(js.two_opt(problem), 2.0, moves_per_search=8)
      >>> tours = curve_tours(problem, key=0, num_tours=4)
      >>> js.solve(problem, search, 0, num_searches=4, initial=tours, max_steps=1000).fun
      160
    """
    num_tours, coords = check_count("num_tours", num_tours), problem.host.coords
    if coords is None:
        raise ValueError("problem has no coordinates, expected some to lay a curve through")
    low, high = coords.min(axis=0), coords.max(axis=0)
    points = jnp.asarray(coords - (low + high) / 2, jnp.float32)
    return tours_through(points, random.as_key(key), num_tours)


@functools.partial(jax.jit, static_argnames="num_tours")
def tours_through(points: jax.Array, key: random.Key, num_tours: int) -> jax.Array:
    """Returns what `curve_tours` does, of [n, 2] float32 points."""
    index = lax.iota(jnp.uint32, num_tours)
    keys = jax.vmap(random.start_key, in_axes=(None, 0))(key, index)
    return jax.vmap(_tour_through, in_axes=(None, 0))(points, keys)


def _tour_through(points: jax.Array, key: jax.Array) -> jax.Array:
    turn, *shift = jax.random.uniform(key, (3,))
    cos, sin = jnp.cos(2 * math.pi * turn), jnp.sin(2 * math.pi * turn)
    x, y = points.T
    turned = jnp.stack([cos * x - sin * y, sin * x + cos * y])
    turned = turned - turned.min(axis=1, keepdims=True)
    extent = turned.max()
    # Half of the square that the curve fills, anywhere in it.
    square = (turned / jnp.where(extent > 0, extent, 1) + jnp.stack(shift)[:, None]) / 2
    places = (square * 2**_BITS).astype(jnp.uint32)
    return jnp.argsort(_along_curve(*jnp.minimum(places, 2**_BITS - 1))).astype(jnp.int32)


def _along_curve(x: jax.Array, y: jax.Array) -> jax.Array:
    """Returns how far along Hilbert's curve places are, uint32; `x` and `y` are of `_BITS` bits."""

    def descend(
        level: jax.Array, carry: tuple[jax.Array, jax.Array, jax.Array]
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        x, y, distance = carry
        shift = jnp.uint32(_BITS - 1) - level.astype(jnp.uint32)
        is_right, is_up = (x >> shift) & 1, (y >> shift) & 1
        distance = (distance << 2) | ((3 * is_right) ^ is_up)
        # In its lower quarters the curve is mirrored; on the right, along the other diagonal.
        is_flipped = (is_up == 0) & (is_right == 1)
        x, y = (jnp.where(is_flipped, ~along, along) for along in (x, y))
        return jnp.where(is_up == 0, y, x), jnp.where(is_up == 0, x, y), distance

    return lax.fori_loop(0, _BITS, descend, (x, y, jnp.zeros_like(x)))[2]
