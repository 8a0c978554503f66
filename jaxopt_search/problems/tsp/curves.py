"""TSP: tours along a space-filling curve, from which many searches start, each in its own place.

Platzman, Bartholdi, "Spacefilling curves and the planar travelling salesman problem", 1989, with
the curve of Hilbert, "Ueber die stetige Abbildung einer Linie auf ein Flaechenstueck", 1891. In the
order in which it passes them, evenly spread cities make a tour about 1.4 times as long as the
shortest.
"""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxopt_search.backends import floats, random
from jaxopt_search.checks import check_count, check_suits
from jaxopt_search.problems import permutation
from jaxopt_search.problems.tsp import traced
from jaxopt_search.problems.tsp.problem import TSP

_BITS = 16  # of a place along one axis
_CELL_BITS = 15
_TURN_BITS, _UNIT_BITS = 10, 14
# Of the angles by which the plane may be turned, in units of 2**-14 * sqrt(2), towards 0: turned,
# it fits into half of the square.
_COSINES = (
    2**_UNIT_BITS / math.sqrt(2) * np.cos(2 * math.pi * np.arange(2**_TURN_BITS) / 2**_TURN_BITS)
).astype(np.int32)


def curve_tours(key: Any, problem: TSP, num_tours: int) -> jax.Array:
    """Returns tours along Hilbert's curve, [num_tours, n] int32.

    The plane is turned and shifted at random for each of them, so that they differ. As `initial` of
    `solve`, they save its searches the long way from a random tour.

    Args:
      key: an integer seed or a `jax.random.key`.
      problem: with coordinates; it may be traced if the device has them.
      num_tours: how many.

    Raises:
      ValueError: if the problem has no coordinates, or `num_tours` is not a positive integer.

    Example:
      >>> import jaxopt_search as js
      >>> problem = js.tsp_from_instance(js.datasets.grid_tsp(4, 4, spacing=10))
      >>> search = js.simulated_annealing(js.two_opt(problem), 2.0, moves_per_search=8)
      >>> tours = curve_tours(0, problem, num_tours=4)
      >>> js.solve(problem, search, 0, num_searches=4, initial=tours, max_steps=1000).fun
      160
    """
    check_suits("curve_tours", "a TSP", problem, isinstance(problem, TSP))
    num_tours, points = check_count("num_tours", num_tours), _points(problem)
    if points is None:
        raise ValueError("problem has no coordinates, expected some to lay a curve through")
    return tours_through(points, random.as_key(key), num_tours, problem.num_entries)


def _points(problem: TSP) -> jax.Array | None:
    """Returns the places of the cities, [capacity, 2] float32, if there are any."""
    if traced.is_on_device_only(problem):
        return traced.points_of(problem)
    coords = problem.host.coords
    if coords is None:
        return None
    low, high = coords.min(axis=0), coords.max(axis=0)
    return jnp.asarray(coords - (low + high) / 2, jnp.float32)


@functools.partial(jax.jit, static_argnames="num_tours")
def tours_through(
    points: jax.Array, key: random.Key, num_tours: int, num_cities: jax.Array | None = None
) -> jax.Array:
    """Like `curve_tours`, but through [capacity, 2] float32 points.

    Args:
      num_cities: [] int32, how many first points count; the others lie among them. None for all.
    """
    index = lax.iota(jnp.uint32, num_tours)
    keys = jax.vmap(random.start_key, in_axes=(None, 0))(key, index)
    return jax.vmap(tour_through, in_axes=(None, 0, None))(cells_of(points), keys, num_cities)


def cells_of(points: jax.Array) -> jax.Array:
    """Returns the places of [n, 2] float32 points on a grid, int32 below 2**15."""
    from_low = points - points.min(axis=0, keepdims=True)
    return (from_low * floats.power_of_two(_CELL_BITS, from_low.max())).astype(jnp.int32)


def tour_through(
    cells: jax.Array, key: jax.Array, num_cities: jax.Array | None = None
) -> jax.Array:
    """Returns a tour along a curve, turned and shifted at random, [capacity] int32.

    By integers, so that it is never rounded.

    Args:
      cells: [capacity, 2] int32, as `cells_of` returns them.
      key: typed.
      num_cities: as in `tours_through`.
    """
    turn, *shift = permutation.words(key, 3)[0]
    angle = (turn >> jnp.uint32(32 - _TURN_BITS)).astype(jnp.int32)
    cosines = jnp.asarray(_COSINES)
    cos, sin = cosines[angle], cosines[(angle + 3 * len(_COSINES) // 4) % len(_COSINES)]
    x, y = cells.T
    turned = jnp.stack([cos * x - sin * y, sin * x + cos * y])
    turned = (turned - turned.min(axis=1, keepdims=True)) >> _UNIT_BITS
    # A quarter to half of the sides of the square that the curve fills, anywhere in it.
    shifts = jnp.stack([random.below(word, 2**_CELL_BITS) for word in shift])
    along = _along_curve(*(turned + shifts[:, None]).astype(jnp.uint32))
    cities = lax.iota(jnp.int32, along.size)
    if num_cities is not None:
        along = jnp.where(cities < num_cities, along, jnp.uint32(2**32 - 1))
    return lax.sort((along, cities), num_keys=1)[1]


def _along_curve(x: jax.Array, y: jax.Array) -> jax.Array:
    """Returns how far along Hilbert's curve places are, uint32; `x` and `y` are of `_BITS` bits."""

    def descend(
        level: jax.Array, carry: tuple[jax.Array, jax.Array, jax.Array]
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        x, y, distance = carry
        shift = jnp.uint32(_BITS - 1) - jnp.asarray(level, jnp.uint32)
        is_right, is_up = (x >> shift) & 1, (y >> shift) & 1
        distance = (distance << 2) | ((3 * is_right) ^ is_up)
        # In its lower quarters the curve is mirrored; on the right, along the other diagonal.
        is_flipped = (is_up == 0) & (is_right == 1)
        x, y = (jnp.where(is_flipped, ~along, along) for along in (x, y))
        return jnp.where(is_up == 0, y, x), jnp.where(is_up == 0, x, y), distance

    return lax.fori_loop(0, _BITS, descend, (x, y, jnp.zeros_like(x)))[2]
