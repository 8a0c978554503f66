# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
"""Tours by the ends of their edges: many tours side by side, without a loop over cities.

An edge has two ends. City c has end 2c of the edge to the city after it, and end 2c + 1 of the edge
from the city before it; the mate of an end is the other end of its edge.

Cities and ends of S tours are numbered through: the first city of tour s has number s * capacity.
So one index reads an array of all, which takes XLA fewer passes to compile than two. Cities behind
those of a padded problem are their own neighbors.
"""

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search.backends import loops, memory
from jaxopt_search.problems.tsp.problem import TSP


def mates(problem: TSP, tours: jax.Array) -> jax.Array:
    """Returns the mate of each end of tours [2, S, n], [2, S, n, 2] int32."""
    n, position = problem.n, lax.broadcasted_iota(jnp.int32, tours.shape, 2)
    start = numbers(tours) - position
    place = tours.ravel().at[(tours + start).ravel()].set(position.ravel(), **memory.IN_BOUNDS)
    place = place.reshape(tours.shape)
    after = jnp.where(place == n - 1, 0, place + 1)
    before = jnp.where(place == 0, n - 1, place - 1)
    there = jnp.stack([after, before], axis=3)
    there = jnp.where(place[..., None] < n, there, place[..., None])
    city = at(tours, there + start[..., None]) + first_city(problem, there[0])[None]
    return 2 * city + 1 - lax.broadcasted_iota(jnp.int32, there.shape, 3)


def tours(problem: TSP, mate: jax.Array) -> jax.Array:
    """Returns the tours from city 0 on, [S, n] int32; if one is in parts, it means nothing."""
    position = lax.broadcasted_iota(jnp.int32, mate.shape[:2], 1)
    first = first_city(problem, mate)[:, :, 0]

    def double(power: jax.Array, carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        end, ahead = carry
        return jnp.where((position >> power) & 1 == 1, at(ahead, end), end), at(ahead, ahead)

    # Each position is as many steps from city 0, at which a walk arrives by end 1.
    start = jnp.broadcast_to(2 * first + 1, position.shape), mate[:, :, ::-1]
    end = loops.fori_loop(0, _doublings(mate), double, start)[0]
    return jnp.where(position < problem.n, (end >> 1) - first, position)


def least_on_cycle(following: jax.Array, value: jax.Array) -> jax.Array:
    """Returns the least value on the cycle of each end, [S, n, 2]; none is longer than n."""

    def double(_: jax.Array, carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        least, ahead = carry
        return jnp.minimum(least, at(least, ahead)), at(ahead, ahead)

    return loops.fori_loop(0, _doublings(following), double, (value, following))[0]


def _doublings(ends: jax.Array) -> int:
    """Returns how often one step is doubled until it is n steps or more."""
    return (ends.shape[1] - 1).bit_length()


def sums(number: jax.Array, values: jax.Array) -> jax.Array:
    """Returns the sum of the values [S, n, 2] of each number."""
    sums = jnp.zeros(values.size, values.dtype)
    return sums.at[number.ravel()].add(values.ravel(), **memory.IN_BOUNDS).reshape(values.shape)


def at(table: jax.Array, number: jax.Array) -> jax.Array:
    """Returns the entries of a table of all tours with these numbers."""
    return table.ravel().at[number].get(**memory.IN_BOUNDS)


def rows(cities: jax.Array, number: jax.Array) -> jax.Array:
    """Returns what is known of the cities of these numbers, [..., 4]."""
    return cities.reshape(-1, cities.shape[2]).at[number].get(**memory.IN_BOUNDS)


def numbers(table: jax.Array) -> jax.Array:
    """Returns the numbers of the entries of a table."""
    return lax.iota(jnp.int32, table.size).reshape(table.shape)


def first_city(problem: TSP, table: jax.Array) -> jax.Array:
    """Returns the number of the first city of each tour, [S, 1, ...], for a table [S, ...]."""
    shape = (len(table), *(1 for _ in table.shape[1:]))
    return problem.capacity * lax.broadcasted_iota(jnp.int32, shape, 0)
