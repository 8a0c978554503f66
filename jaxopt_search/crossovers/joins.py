# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
"""Parts of tours, joined to one: what edge assembly needs where a child falls apart."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search.backends import bit_sets, loops, memory
from jaxopt_search.crossovers import tour_ends
from jaxopt_search.problems.tsp.problem import TSP
from jaxopt_search.types import null_delta

_MOST_JOINS = 32
_JOINED_AT = 64  # cities of a part at which it may be joined to another


def joined(problem: TSP, candidates: jax.Array, mate: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns the mates of ends after the parts that tours fell into are joined.

    The smallest part is joined to another one by the best 2-opt move, until there is only one.

    Returns:
      [S, n, 2] int32, and [S] bool whether there is only one.
    """

    def is_apart(carry: tuple[jax.Array, ...]) -> jax.Array:
        number, does_continue, _ = carry
        return (number < _MOST_JOINS) & does_continue

    def join(carry: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        number, _, cities = carry
        size, part = _least(cities[:, :, 3], cities[:, :, 2])
        move = _best_join(problem, candidates, cities, part)
        size = jnp.where(move.is_one, size + move.size, size)
        does_continue = jnp.any(move.is_one & (size < problem.n))
        return number + 1, does_continue, _after(cities, part, size, move)

    start = jnp.int32(0), jnp.bool_(True), _cities(problem, mate)
    cities = loops.while_loop(is_apart, join, start)[2]
    return cities[:, :, :2], cities[:, 0, 3] == problem.n


def _cities(problem: TSP, mate: jax.Array) -> jax.Array:
    """Returns what is known of each city, [S, n, 4] int32: its mates, its part, the size of that.

    Parts have negative numbers, in the order of their lowest cities.
    """
    ends = tour_ends.numbers(mate)
    least = tour_ends.least_on_cycle(mate[:, :, ::-1], ends)  # one way, and the other way
    size = tour_ends.at(tour_ends.sums(least, jnp.ones_like(least)), least)[:, :, 0]
    city = lax.broadcasted_iota(jnp.int32, size.shape, 1)
    size = jnp.where(city < problem.n, size, 2 * problem.capacity)
    part = (least[:, :, 0] >> 1) - size.size
    return jnp.stack([mate[:, :, 0], mate[:, :, 1], part, size], axis=2)


class _Join(NamedTuple):
    """A 2-opt move for each tour that joins two parts of it, leaves [S].

    Attributes:
      is_one: whether there is one; else the others mean nothing.
      end, other: ends of both parts that get to be mates.
      end_mate, other_mate: their mates so far, which get to be mates, too.
      part, size: of the other part.
    """

    is_one: jax.Array
    end: jax.Array
    other: jax.Array
    end_mate: jax.Array
    other_mate: jax.Array
    part: jax.Array
    size: jax.Array


def _best_join(problem: TSP, candidates: jax.Array, cities: jax.Array, part: jax.Array) -> _Join:
    """Returns how to join a part of each tour, [S], at the least cost; of equals, the first."""
    first = tour_ends.first_city(problem, cities)
    own = _members(cities[:, :, 2] == part[:, None]) + first[:, :, 0]
    near = candidates.at[own - first[:, :, 0]].get(**memory.IN_BOUNDS) + first
    here, there = tour_ends.rows(cities, own), tour_ends.rows(cities, near)
    change, sides = _least_change(problem, own, near, here, there)
    of_part = part[:, None, None]
    is_move = (here[:, :, 2:3] == of_part) & (there[:, :, :, 2] != of_part)
    none = null_delta(change.dtype)
    change = jnp.where(is_move, change, none)
    end, other = 2 * own[:, :, None] + (sides >> 1), 2 * near + (sides & 1)
    moves = (
        leaf.reshape(len(part), -1) for leaf in (change, tour_ends.numbers(change), end, other)
    )
    least, _, *both = _least(*moves)
    ends = jnp.stack(both)
    rows = tour_ends.rows(cities, ends >> 1)
    mates = jnp.where(ends & 1 == 1, rows[:, :, 1], rows[:, :, 0])
    return _Join(least < none, *ends, *mates, *rows[1, :, 2:].T)


def _least_change(
    problem: TSP, own: jax.Array, near: jax.Array, here: jax.Array, there: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Returns how much longer tours get if cities are joined to ones near them, at the best sides.

    Args:
      own: [S, M] cities.
      near: [S, M, K] others.
      here, there: what is known of both.

    Returns:
      [S, M, K] the change, and int32 twice the side of the city plus that of the other.
    """

    def distance(one: jax.Array, other: jax.Array) -> jax.Array:
        one, other = jnp.broadcast_arrays(one, other)
        first = tour_ends.first_city(problem, one)
        return problem.distance(one - first, other - first)

    own = own[:, :, None]
    mate, near_mate = here[:, :, None, :2] >> 1, there[:, :, :, :2] >> 1
    joined, lost = distance(own, near), distance(own[..., None], mate)
    near_lost = distance(near[..., None], near_mate)
    mates_joined = distance(mate[..., None], near_mate[..., None, :])
    changes = [
        joined + mates_joined[..., side, near_side] - lost[..., side] - near_lost[..., near_side]
        for side in (0, 1)
        for near_side in (0, 1)
    ]
    least, sides = changes[0], jnp.zeros_like(near)
    for number, change in enumerate(changes[1:], start=1):
        sides = jnp.where(change < least, number, sides)
        least = jnp.minimum(change, least)
    return least, sides


def _after(cities: jax.Array, part: jax.Array, size: jax.Array, join: _Join) -> jax.Array:
    """Returns what is known of cities after a part of each tour, [S], is joined to another one.

    Args:
      size: [S] of both together, or of the part if there is no move.
    """
    part, size, is_one, *ends, into, _ = (leaf[:, None, None] for leaf in (part, size, *join))
    into = jnp.where(is_one, into, part)
    end, other, end_mate, other_mate = ends
    number = tour_ends.numbers(cities)
    after = jnp.where(cities == part, into, cities)  # nothing else is negative
    for one, mate in ((end, other), (other, end), (end_mate, other_mate), (other_mate, end_mate)):
        place = jnp.where(is_one, 4 * (one >> 1) + (one & 1), -1)
        after = jnp.where(number == place, mate, after)
    is_size = lax.broadcasted_iota(jnp.int32, cities.shape, 2) == 3
    parts = cities[:, :, 2:3]
    return jnp.where(is_size & ((parts == part) | (parts == into)), size, after)


def _members(is_in: jax.Array) -> jax.Array:
    """Returns the first 64 of the cities of each row that are in a set, [S, 64] int32.

    Args:
      is_in: [S, n] bool. Where there are fewer, any cities fill the rest.
    """
    bits = bit_sets.pack(is_in)
    counts = lax.population_count(bits).astype(jnp.int32)
    upto = jnp.cumsum(counts, axis=1, dtype=jnp.int32)
    rank = lax.broadcasted_iota(jnp.int32, (len(bits), _JOINED_AT), 1)
    word = jnp.sum((upto[:, None] <= rank[:, :, None]).astype(jnp.int32), axis=2, dtype=jnp.int32)
    word = jnp.minimum(word, bits.shape[1] - 1)
    at = word + bits.shape[1] * lax.broadcasted_iota(jnp.int32, word.shape, 0)
    left = rank - tour_ends.at(upto - counts, at)
    bit = lax.broadcasted_iota(jnp.uint32, (1, 1, bit_sets.BITS), 2)
    upto_bit = tour_ends.at(bits, at)[:, :, None] & ((jnp.uint32(2) << bit) - 1)
    num_upto = lax.population_count(upto_bit).astype(jnp.int32)
    bit = jnp.sum((num_upto <= left[:, :, None]).astype(jnp.int32), axis=2, dtype=jnp.int32)
    return jnp.minimum(word * bit_sets.BITS + bit, is_in.shape[1] - 1)


def _least(*values: jax.Array) -> tuple[jax.Array, ...]:
    """Returns the values, [S] each of [S, m], where the first is least; of equals, the second."""

    def lower(one: tuple[jax.Array, ...], other: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        is_lower = (one[0] < other[0]) | ((one[0] == other[0]) & (one[1] < other[1]))
        return tuple(jnp.where(is_lower, *pair) for pair in zip(one, other, strict=True))

    last = tuple(null_delta(each.dtype) for each in values)
    return tuple(lax.reduce(values, last, lower, (1,)))
