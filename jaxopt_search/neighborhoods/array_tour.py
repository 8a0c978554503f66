"""A tour as an array with the position of every city: reversals and shifts, by lanes.

Positions are cyclic: they wrap around at n, the number of cities. Behind them there may be room,
which stays as it is. A change cuts the cycle into two parts; the shorter one is rewritten, tile by
tile.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search.backends import memory
from jaxopt_search.backends.memory import load, store
from jaxopt_search.checks import check_suits
from jaxopt_search.problems import permutation
from jaxopt_search.problems.tsp.problem import TSP
from jaxopt_search.types import Neighborhood, Span

Size: TypeAlias = int | jax.Array
"""A number of cities, [] int32 if it is not static."""

_COPIED = 4 * memory.LANES  # cities at once, for whose memory a thread then waits only once


class ArrayTour(NamedTuple):
    """A tour of cities.

    Attributes:
      city: [capacity] int32, the city at each position: the solution.
      position: [capacity] int32, its inverse; None in a snapshot.
    """

    city: jax.Array
    position: jax.Array | None


class ArrayTourMoves(Neighborhood):
    """What neighborhoods of a TSP share whose representation is an `ArrayTour`."""

    num_words = 2
    is_portable = True
    space = "permutation"

    def init(self, problem: TSP, solution: jax.Array) -> ArrayTour:
        check_suits(type(self).__name__, "a TSP", problem, isinstance(problem, TSP))
        return ArrayTour(solution, permutation.inverse(solution))

    def solution(self, problem: TSP, snapshot: ArrayTour) -> jax.Array:
        return snapshot.city

    def snapshot(self, tour: ArrayTour) -> ArrayTour:
        return tour._replace(position=None)

    def elements(self, problem: TSP) -> tuple[int, Size]:
        """Returns for how many cities there is room, and how many there are."""
        return problem.capacity, problem.n

    def copy_span(
        self, to: ArrayTour, source: ArrayTour, span: Span, where: jax.Array
    ) -> ArrayTour:
        if not memory.is_alone():  # then all searches copy as much as one that copies all
            return memory.copy(to, source, where)
        capacity, cities = to.city.shape[0], memory.settled(source.city)
        low, size = span.low, jnp.maximum(jnp.minimum(span.high, capacity) - span.low, 0)

        def copy_one(index: jax.Array, is_inside: jax.Array, to: ArrayTour) -> ArrayTour:
            at = jnp.minimum(low + index, capacity - 1)
            return _put(to, at, load(cities, at), is_inside)

        return memory.each_index(jnp.where(where, size, 0), capacity, copy_one, to, tile=_COPIED)


def wrap(position: jax.Array, n: Size) -> jax.Array:
    """Returns `position`, between -n and 2n - 1, modulo n; portable."""
    return _least_unsigned(position, position + n, position - n)


def wrap_before(position: jax.Array, n: Size) -> jax.Array:
    """Returns `position`, between -n and n - 1, modulo n; portable."""
    return _least_unsigned(position, position + n)


def wrap_behind(position: jax.Array, n: Size) -> jax.Array:
    """Returns `position`, between 0 and 2n - 1, modulo n; portable."""
    return _least_unsigned(position, position - n)


def _least_unsigned(*positions: jax.Array) -> jax.Array:
    # As unsigned numbers, positions out of range are larger than all in range.
    least = functools.reduce(jnp.minimum, (each.astype(jnp.uint32) for each in positions))
    return least.astype(jnp.int32)


def reverse(
    tour: ArrayTour, n: Size, first: jax.Array, last: jax.Array, where: jax.Array
) -> ArrayTour:
    """Returns the tour with the path from position `first` to `last` reversed; portable.

    Reversing the rest of the cycle instead gives the same edges.

    Args:
      n: the number of cities.
      first: [] int32.
      last: [] int32, cyclically at or after `first`.
      where: [] bool; the tour is unchanged where it does not hold.
    """
    return _reverse_path(tour, n, *reversed_path(n, first, last), where)


def reversed_path(n: Size, first: jax.Array, last: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns the first position that `reverse` changes, and how many it does."""
    inside = wrap_before(last - first, n) + 1
    is_inside = inside <= n - inside
    low = jnp.where(is_inside, first, wrap_behind(last + 1, n))
    return low, jnp.minimum(inside, n - inside)


def _reverse_path(
    tour: ArrayTour, n: Size, low: jax.Array, size: jax.Array, where: jax.Array
) -> ArrayTour:
    """Returns the tour with the path of `size` cities from position `low` on reversed."""
    high = wrap(low + size - 1, n)
    num_pairs = jnp.where(where, size >> 1, 0)

    # Half of the lanes fill the left part, the others the right one.
    tile = _tile()
    lane = memory.lanes(2 * tile)
    is_left, lane = lane < tile, lane & (tile - 1)

    def swap_tile(pair: jax.Array, tour: ArrayTour) -> ArrayTour:
        here = wrap(jnp.where(is_left, low + pair, high - pair), n)
        cities = load(tour.city, wrap(low + high - here, n))
        return _put(tour, here, cities, pair < num_pairs)

    return _by_tiles(num_pairs, lane, n, swap_tile, tour)


def exchange_paths(tour: ArrayTour, n: Size, move: Any, where: jax.Array) -> ArrayTour:
    """Returns the tour with two neighboring paths in each other's place; portable.

    Reversing both paths and then the two as one exchanges them.

    Args:
      n: the number of cities.
      move: a `three_opt.PathExchange` of scalars.
      where: [] bool; the tour is unchanged where it does not hold.
    """
    low, left, right = exchanged_paths(n, move)

    def reverse_one(number: jax.Array, tour: ArrayTour) -> ArrayTour:
        start = jnp.where(number == 1, wrap_behind(low + left, n), low)
        length = jnp.where(number == 0, left, jnp.where(number == 1, right, left + right))
        return _reverse_path(tour, n, start, length, where)

    return memory.fori_loop(jnp.where(where, jnp.int32(3), jnp.int32(0)), reverse_one, tour)


def exchanged_paths(n: Size, move: Any) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Returns the first position that `exchange_paths` changes, and the sizes of both paths.

    The rest of the cycle is a third path, and exchanging any two of the three gives the same cycle:
    the longest one stays.
    """
    before, size, next_size = move
    first = wrap_behind(before + 1, n)
    rest = n - size - next_size
    second, third = wrap(first + size, n), wrap(first + size + next_size, n)
    stays, goes_first = (rest >= size) & (rest >= next_size), next_size >= size
    low = jnp.where(stays, first, jnp.where(goes_first, third, second))
    left = jnp.where(stays, size, jnp.where(goes_first, rest, next_size))
    return low, left, jnp.where(stays, next_size, jnp.where(goes_first, size, rest))


def move_segment(
    tour: ArrayTour, n: Size, move: Any, where: jax.Array, max_length: int
) -> ArrayTour:
    """Returns the tour with a short segment moved elsewhere; portable.

    Args:
      n: the number of cities.
      move: a `two_opt.EdgeMove` of scalars.
      where: [] bool; the tour is unchanged where it does not hold.
      max_length: of segments, static.
    """
    first, after, length, is_reversed = move
    lane = memory.lanes(max_length)
    in_segment = jnp.where(is_reversed, length - 1 - lane, lane)
    in_segment = jnp.clip(in_segment, 0, length - 1)
    segment = load(tour.city, wrap(first + in_segment, n))
    is_behind, number = _shifted(n, move)
    num_moved = jnp.where(where, number, 0)
    sign = jnp.where(is_behind, jnp.int32(1), jnp.int32(-1))
    source = jnp.where(is_behind, wrap_behind(first + length, n), wrap_before(first - 1, n))
    target = jnp.where(is_behind, first, wrap(first + length - 1, n))

    def shift_tile(index: jax.Array, tour: ArrayTour) -> ArrayTour:
        cities = load(tour.city, wrap(source + sign * index, n))
        return _put(tour, wrap(target + sign * index, n), cities, index < num_moved)

    tour = _by_tiles(num_moved, memory.lanes(_tile()), n, shift_tile, tour)
    start = wrap_behind(jnp.where(is_behind, first + number, after + 1), n)
    return _put(tour, wrap_behind(start + lane, n), segment, where & (lane < length))


def _shifted(n: Size, move: Any) -> tuple[jax.Array, jax.Array]:
    """Returns whether `move_segment` shifts the cities behind the segment, and how many it shifts.

    The cities between the segment and its new place move up by its length: either the ones behind
    it or the ones before it.
    """
    behind = wrap_before(move.after - move.first, n) + 1 - move.length
    before = n - move.length - behind
    return behind <= before, jnp.minimum(behind, before)


def rewritten_path(n: Size, move: Any) -> tuple[jax.Array, jax.Array]:
    """Returns the first position that `move_segment` changes, and how many it does."""
    is_behind, number = _shifted(n, move)
    low = jnp.where(is_behind, move.first, wrap_behind(move.after + 1, n))
    return low, number + move.length


def span_of(n: Size, low: jax.Array, size: jax.Array) -> Span:
    """Returns the positions of a path of `size` cities from `low` on: all if it wraps around."""
    wraps = low + size > n
    return Span(jnp.where(wraps, 0, low), jnp.where(wraps, jnp.int32(n), low + size))


def _put(tour: ArrayTour, index: jax.Array, cities: jax.Array, where: jax.Array) -> ArrayTour:
    city, position = store(tour.city, index, cities, where), tour.position
    if position is not None:
        position = store(position, cities, index, where)
    return ArrayTour(city, position)


def _by_tiles(
    count: jax.Array,
    lane: jax.Array,
    n: Size,
    change: Callable[[jax.Array, ArrayTour], ArrayTour],
    tour: ArrayTour,
) -> ArrayTour:
    """Returns the tour after `change(index, tour)` for all indices below `count`, in order.

    The last tile reaches beyond `count`: `change` masks what it writes.

    Args:
      lane: [lanes] int32, which index of its tile each lane handles.
    """

    def tile(number: jax.Array, tour: ArrayTour) -> ArrayTour:
        index = jnp.minimum(number * _tile() + lane, n - 1)
        return change(index, tour)

    num_tiles = lax.div(count + _tile() - 1, jnp.int32(_tile()))
    return memory.fori_loop(num_tiles, tile, tour)


def _tile() -> int:
    """Returns how many elements are rewritten at once: few, where a lane takes its turn."""
    return 8 if memory.is_native() else memory.LANES
