"""The traveling salesman problem: the shortest closed tour through n cities.

Integer instances have exact int32 distances on the device, equal to TSPLIB's (Reinelt, "TSPLIB: a
traveling salesman problem library", 1991), read from a matrix or computed from coordinates. Other
instances have float32 distances. `build` makes instances.

The same rules in 64 bits on the host, GEO included, are in `datasets.distances`; the tests compare
the two.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxopt_search.backends import floats
from jaxopt_search.backends.memory import Pairs, load, load_pair
from jaxopt_search.backends.rows import Block, Tile
from jaxopt_search.checks import check_permutation
from jaxopt_search.datasets import distances
from jaxopt_search.problems import lower_bounds, padding
from jaxopt_search.problems.host import SAME, Original, Units
from jaxopt_search.pytrees import pytree, static

Place: TypeAlias = Any
"""Where a city is: its number if distances are in a matrix, else its two coordinates."""

MAX_DISTANCE = 1_300_000
"""Distances up to here are rounded exactly on the device, in int32, by each of `SCALES`."""
SCALES = 1, 2, 4, 8
"""By which multiples of 1, 1/2, 1/4 or 1/8 become whole numbers; 16 would be too much for ATT."""


class Ties(NamedTuple):
    """Pairs of cities that are to stay neighbors, whatever the distance between them.

    Attributes:
      number: [capacity] int32; two cities are tied if their numbers differ by 1.
      worth: [] by how much shorter a tour counts for each pair of neighbors that are tied, of the
        dtype of distances.
    """

    number: jax.Array
    worth: jax.Array


@pytree
@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class TSP(padding.SizedProblem):
    """A TSP instance on the device. Build it with `tsp`, `tsp_from_coords`, `tsp_from_instance`.

    A solution is a tour, [capacity] int32: the city at each position. Its cost is its length.

    Attributes:
      matrix: [capacity * capacity] distances, int32 or float32, row by row of n; None with
        coordinates.
      coords: [capacity] coordinates, times `scale`, float32 for the metric `"EUCLID"`, else whole
        numbers, packed if all are below 2**16; None with a matrix.
      num_entries: [] int32 the number of cities, if there is room for more (see `padding`).
      ties: cities that are to stay neighbors, of a part of another instance; None for none.
      capacity: the length of solutions: the number of cities, or more.
      metric: `"MATRIX"`, or the rule that gives distances from coordinates.
      scale: by which `coords` are multiplied, one of `SCALES`; 1 with a matrix and for `"EUCLID"`.
      is_symmetric: whether all distances are the same in both directions.
      device_units: how `device_cost` counts.
      host: the instance as it was given.
    """

    matrix: jax.Array | None = dataclasses.field(default=None, repr=False)
    coords: Pairs | None = dataclasses.field(default=None, repr=False)
    num_entries: jax.Array | None = None
    ties: Ties | None = None
    capacity: int = static()
    metric: str = static()
    scale: int = static(default=1)
    is_symmetric: bool = static()
    device_units: Units = static(default=SAME)
    host: Original = static(repr=False)

    @property
    def lighter(self) -> str:
        """How to build it in less memory."""
        if self.matrix is None:
            return ""
        return "if distances follow from coordinates, tsp_from_coords(..., storage='coordinates')"

    @property
    def is_trivial(self) -> bool:
        """Whether all tours have the same length."""
        return int(self.n) <= (3 if self.is_symmetric else 2)

    def fields_with_room(self, capacity: int) -> dict[str, Any]:
        matrix = padding.put_with_room(self.matrix, capacity**2)
        return {"matrix": matrix, "coords": padding.put_with_room(self.coords, capacity)}

    def distances_on_host(self) -> np.ndarray:
        """Returns the matrix of distances as on the device, [n, n], of a problem that has one."""
        n = int(self.n)
        return np.asarray(self.matrix)[: n * n].reshape(n, n)

    def lower_bound(self) -> int | float | None:
        """Returns a length that no tour is below, of up to 1000 cities: see `lower_bounds`."""
        if int(self.n) > lower_bounds.MOST_CITIES:
            return None
        if self.matrix is not None:
            bound = lower_bounds.of_tours(self.distances_on_host(), self.is_symmetric)
            return self.host.in_full(bound)
        if (coords := self.host.coords) is None:
            return None
        metric = "EXACT_2D" if self.metric == "EUCLID" else self.metric
        return lower_bounds.of_tours(distances.distance_matrix(coords, metric), True)

    def picture(self, tour: np.ndarray, coords: Any = None) -> Callable[[Any], Any] | None:
        given = self.host.as_given
        is_path = given is not None and given.is_path
        if coords is None:
            coords = self.host.coords
            if given is not None and (is_path or given.coords is not None):
                coords = given.coords
        if coords is None:
            return None
        from jaxopt_search.results import plotting

        return functools.partial(plotting.plot_tour, coords, tour, is_open=is_path)

    def device_cost(self, tour: jax.Array) -> jax.Array:
        """Returns the length in the device's units, [] int32 or float32; mostly as `cost`."""
        position = lax.iota(jnp.int32, self.capacity)
        # Unlike a roll, this takes no pass of its own.
        following = lax.pad(tour, tour.dtype.type(0), [(-1, 1, 0)])
        following = jnp.where(position == self.n - 1, tour[0], following)
        lengths = self.distance(tour, following)
        if self.num_entries is not None:
            lengths = jnp.where(position < self.n, lengths, jnp.zeros_like(lengths))
        return floats.total(lengths)

    def row_costs(self, block: Block, tours: Any) -> jax.Array:
        """Returns the lengths of several tours, [R]; portable.

        Args:
          block: of rows of the table.
          tours: [P, n] int32 buffer, a table of tours by positions.
        """

        def lengths(tile: Tile) -> jax.Array:
            following = jnp.where(tile.column == self.n - 1, 0, tile.column + 1)
            lengths = self.distance(tile.get(tours), load(tours, (tile.row, following)))
            if self.num_entries is None:
                return lengths
            return jnp.where(tile.column < self.n, lengths, jnp.zeros_like(lengths))

        return block.sums([lengths(tile) for tile in block.tiles])

    def distance(self, a: jax.Array, b: jax.Array) -> jax.Array:
        """Returns the distance from city `a` to city `b`; portable.

        Args:
          a: int32 cities, any shape.
          b: int32 cities of the same shape.
        """
        return self.between(self.place(a), self.place(b))

    def place(self, city: jax.Array) -> Place:
        """Returns the places of cities, of the shape of `city`; portable.

        Args:
          city: int32, any shape.
        """
        place = city if self.coords is None else load_pair(self.coords, city)
        return place if self.ties is None else (place, load(self.ties.number, city))

    def between(self, a: Place, b: Place) -> jax.Array:
        """Returns the distances from cities at places to others, as `distance`; portable."""
        if self.ties is not None:
            (a, number), (b, other) = a, b
            distance = dataclasses.replace(self, ties=None).between(a, b)
            return jnp.where(jnp.abs(number - other) == 1, -self.ties.worth, distance)
        if self.matrix is not None:
            return load(self.matrix, a * self.n + b)
        (ax, ay), (bx, by) = a, b
        return DISTANCES[self.metric](ax - bx, ay - by, self.scale)


def _euclid(dx: jax.Array, dy: jax.Array, _scale: int) -> jax.Array:
    return jnp.sqrt(floats.product(dx, dx) + floats.product(dy, dy))


def _euc_2d(dx: jax.Array, dy: jax.Array, scale: int) -> jax.Array:
    unit = scale * scale
    r = _near_root(dx, dy, unit)
    rest = dx * dx + dy * dy - unit * r * r
    # At least unit * (r + 1 / 4), which is unit * ((r + 1 / 2)**2 - r**2): a half is rounded up.
    return r + (rest > unit * r + (unit - 1) // 4).astype(jnp.int32)


def _ceil_2d(dx: jax.Array, dy: jax.Array, scale: int) -> jax.Array:
    return _least_root(dx, dy, scale * scale)


def _att(dx: jax.Array, dy: jax.Array, scale: int) -> jax.Array:
    # TSPLIB's rule, "round, and add 1 where that was down", is rounding up.
    return _least_root(dx, dy, 10 * scale * scale)


def _near_root(dx: jax.Array, dy: jax.Array, divisor: int) -> jax.Array:
    """Returns the integer nearest to the root of (dx**2 + dy**2) / divisor, or the one below it.

    Args:
      dx, dy: int32, below 2**24, which float32 holds.
      divisor: such that the root is at most `MAX_DISTANCE`.
    """
    x, y = dx.astype(jnp.float32), dy.astype(jnp.float32)
    # What is taken off, 2**-21 of the root, outweighs all errors, which are half as large. Both
    # together change no root by more than 0.95. Adding 2**23 rounds to an integer, which the lower
    # bits then hold.
    low = jnp.sqrt((x * x + y * y) * jnp.float32((1 - 2**-20) / divisor)) + jnp.float32(2**23)
    return lax.bitcast_convert_type(low, jnp.int32) - jnp.int32(0x4B000000)


def _least_root(dx: jax.Array, dy: jax.Array, divisor: int) -> jax.Array:
    """Returns the least integer with `divisor * r * r >= dx**2 + dy**2`, int32."""
    r, squared = _near_root(dx, dy, divisor), dx * dx + dy * dy
    for _ in range(2):
        r = r + (squared - divisor * r * r > 0).astype(jnp.int32)
    return r


# Distances from differences of coordinates, both times a scale. What the root in float32 is rounded
# to is corrected in int32, so that no backend's sqrt can change a distance. Squares wrap around
# there, but the differences of two that count are below 2**31: they are at most 3 * divisor * root,
# which is 8e8 for ATT.
DISTANCES: dict[str, Callable[[Any, Any, int], jax.Array]] = {
    "EUCLID": _euclid,
    "EUC_2D": _euc_2d,
    "CEIL_2D": _ceil_2d,
    "ATT": _att,
}


class Ends(NamedTuple):
    """Where solutions of the user's begin and end; on the device, all are closed tours.

    Attributes:
      start: the first city; None for any.
      end: the last city of a path, None for any.
      is_path: whether it is one; else `end` does not count.
      is_symmetric: whether a path costs the same both ways.
      coords: [n, 2], for pictures; None for the instance's, and for no picture of paths.
    """

    start: int | None
    end: int | None = None
    is_path: bool = True
    is_symmetric: bool = True
    coords: np.ndarray | None = None

    def __call__(self, tours: np.ndarray) -> np.ndarray:
        """Returns the user's solutions, of [..., n] tours or [..., n + 1] that stand for paths."""
        n = tours.shape[-1]
        if not self.is_path:
            return tours if self.start is None else _turned(tours, self.start)
        paths = _turned(tours, n - 1)[..., 1:]
        if self.is_symmetric:
            is_back = (paths[..., -1] == self.start) | (paths[..., 0] == self.end)
            paths = np.where(is_back[..., None], paths[..., ::-1], paths)
        rows = paths.reshape(-1, n - 1)
        is_off = np.zeros(len(rows), bool)
        for ends, city in ((rows[:, 0], self.start), (rows[:, -1], self.end)):
            is_off |= city is not None and ends != city
        for row in np.flatnonzero(is_off).tolist():
            rows[row] = self._joined(rows[row])
        return rows.reshape(paths.shape)

    def _joined(self, path: np.ndarray) -> np.ndarray:
        """Returns a path with the given ends: one with others is closed, and opened there."""
        if self.start is None:
            return np.roll(_turned(path, self.end), -1)
        path = _turned(path, self.start)
        if self.end is None:
            return path
        at = int(np.flatnonzero(path == self.end)[0])
        behind = path[at + 1 :]
        behind = behind[::-1] if self.is_symmetric else behind
        return np.concatenate([path[:1], behind, path[1 : at + 1]])

    def check(self, n: int, values: Any, name: str) -> np.ndarray:
        """Returns the tour on the device, [n + 1], of a path of the user's, or checks one."""
        if np.shape(values) == (n + 1,):
            return check_permutation(values, name, n + 1)
        last = np.int32(n)
        return np.append(self(np.append(check_permutation(values, name, n), last)), last)


def _turned(tours: np.ndarray, first: int | None) -> np.ndarray:
    """Returns tours, [..., n], from a city on."""
    at = np.argmax(tours == first, axis=-1)[..., None]
    return np.take_along_axis(tours, (at + np.arange(tours.shape[-1])) % tours.shape[-1], axis=-1)
