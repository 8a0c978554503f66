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

from jaxopt_search.checks import check_count
from jaxopt_search.portable import floats, random
from jaxopt_search.problems import permutation
from jaxopt_search.problems.tsp.problem import TSP

_BITS = 16  # of a place along one axis
_CELL_BITS = 15
_TURN_BITS, _UNIT_BITS = 10, 14
_MOST_ON_HOST = 2**20  # positions of tours; of more, the device has computed them sooner
_IN_CACHE = 2**14
# Of the angles by which the plane may be turned, in units of 2**-14 * sqrt(2), towards 0: turned,
# it fits into half of the square.
_COSINES = (
    2**_UNIT_BITS / math.sqrt(2) * np.cos(2 * math.pi * np.arange(2**_TURN_BITS) / 2**_TURN_BITS)
).astype(np.int32)


def curve_tours(problem: TSP, key: Any, num_tours: int) -> jax.Array:
    """Returns tours along Hilbert's curve, [num_tours, n] int32.

    The plane is turned and shifted at random for each of them, so that they differ. As `initial` of
    `solve`, they save its searches the long way from a random tour.

    Args:
      problem: with coordinates.
      key: an integer seed or a `jax.random.key`.
      num_tours: how many.

    Raises:
      ValueError: if the problem has no coordinates, or `num_tours` is not a positive integer.

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
    points = (coords - (low + high) / 2).astype(np.float32)
    if num_tours * len(points) > _MOST_ON_HOST:
        return tours_through(jnp.asarray(points), random.as_key(key), num_tours)
    return jnp.asarray(_tours_on_host(points, random.as_key(key), num_tours))


def _tours_on_host(points: np.ndarray, key: random.Key, num_tours: int) -> np.ndarray:
    """Like `tours_through`, without anything to compile."""
    words = random.start_words(key, np.arange(num_tours, dtype=np.uint32), 3)
    from_low = points - points.min(axis=0)
    exponent = _CELL_BITS - np.frexp(from_low.max())[1]
    cells = (from_low * np.float32(2.0 ** min(exponent, 127))).astype(np.int32)
    rows = max(_IN_CACHE // len(points), 1)
    tours = []
    for few in np.split(words, range(rows, num_tours, rows)):
        carry = _places(np, cells, few[:, :, None])
        for shift in reversed(range(_BITS)):
            carry = _descend(np, np.uint32(shift), *carry)
        # Places and cities in one number: numbers are sorted sooner than places by index.
        both = carry[2].astype(np.uint64) << np.uint64(32) | np.arange(len(points), dtype=np.uint64)
        tours.append(np.sort(both, axis=1).astype(np.uint32).astype(np.int32))
    return np.concatenate(tours)


@functools.partial(jax.jit, static_argnames="num_tours")
def tours_through(
    points: jax.Array, key: random.Key, num_tours: int, num_cities: jax.Array | None = None
) -> jax.Array:
    """Like `curve_tours`, but through [capacity, 2] float32 points.

    Args:
      num_cities: [] int32, so many first points count, and the others lie among them; None for all.
    """
    index = lax.iota(jnp.uint32, num_tours)
    keys = jax.vmap(random.start_key, in_axes=(None, 0))(key, index)
    words, _ = jax.vmap(permutation.words, in_axes=(0, None))(keys, 3)
    from_low = points - points.min(axis=0, keepdims=True)
    cells = (from_low * floats.power_of_two(_CELL_BITS, from_low.max())).astype(jnp.int32)
    along = _along_curve(*_places(jnp, cells, words[:, :, None])[:2])
    cities = lax.broadcasted_iota(jnp.int32, along.shape, 1)
    if num_cities is not None:
        along = jnp.where(cities < num_cities, along, jnp.uint32(2**32 - 1))
    return lax.sort((along, cities), num_keys=1)[1]


def _places(xp: Any, cells: Any, words: Any) -> tuple[Any, Any, Any]:
    """Returns places in the square of the curve, and 0; by integers, which are never rounded.

    Args:
      xp: NumPy, or its like of JAX.
      cells: [n, 2] int32, below 2**15.
      words: [T, 3, 1] uint32, by which the plane is turned and shifted.

    Returns:
      Three times uint32 [T, n]: two coordinates, of `_BITS` bits, and zeros.
    """
    angle = (words[:, 0] >> xp.uint32(32 - _TURN_BITS)).astype(xp.int32)
    cosines = xp.asarray(_COSINES)
    cos, sin = cosines[angle], cosines[(angle + 3 * len(_COSINES) // 4) % len(_COSINES)]
    x, y = cells[None, :, 0], cells[None, :, 1]
    # A quarter to half of the sides of the square that the curve fills, anywhere in it.
    shifts = (words[:, 1:] >> xp.uint32(32 - _CELL_BITS)).astype(xp.int32)

    def place(turned: Any, shift: Any) -> Any:
        turned = (turned - turned.min(axis=1, keepdims=True)) >> _UNIT_BITS
        return (turned + shift).astype(xp.uint32)

    first = place(cos * x - sin * y, shifts[:, 0])
    return first, place(sin * x + cos * y, shifts[:, 1]), xp.zeros_like(first)


def _along_curve(x: jax.Array, y: jax.Array) -> jax.Array:
    """Returns how far along Hilbert's curve places are, uint32; `x` and `y` are of `_BITS` bits."""

    def descend(level: jax.Array, carry: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        shift = jnp.uint32(_BITS - 1) - jnp.asarray(level, jnp.uint32)
        return _descend(jnp, shift, *carry)

    return lax.fori_loop(0, _BITS, descend, (x, y, jnp.zeros_like(x)))[2]


def _descend(xp: Any, shift: Any, x: Any, y: Any, distance: Any) -> tuple[Any, Any, Any]:
    """Returns where places are in the quarters of a square, whose number is put to the distance."""
    is_right, is_up = (x >> shift) & 1, (y >> shift) & 1
    distance = (distance << 2) | ((3 * is_right) ^ is_up)
    # In its lower quarters the curve is mirrored; on the right, along the other diagonal.
    flip = xp.where(is_up < is_right, xp.uint32(2**32 - 1), xp.uint32(0))
    x, y = x ^ flip, y ^ flip
    is_low = is_up == 0
    return xp.where(is_low, y, x), xp.where(is_low, x, y), distance
