"""TSP: a tour is cut into what passes through regions of the plane, and put together again.

Each region is an instance by itself, of some hundred cities. All are improved at once, and the
next time the plane is cut elsewhere. Karp, "Probabilistic analysis of partitioning algorithms for
the traveling-salesman problem in the plane", 1977, solves regions and joins their tours; here they
are parts of a tour that is there, as in Taillard, Voss, "POPMUSIC: partial optimization
metaheuristic under special intensification conditions", 2002.

A tour enters and leaves a region many times. There, what it does outside of the region is an edge
that is to stay (`problem.Ties`), which keeps it in one piece as long as no other region changes
which of its ends are connected. All of them change at once, and the cycles that this may leave are
joined at the places where it costs least.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search.backends import random
from jaxopt_search.problems import permutation
from jaxopt_search.problems.tsp import curves
from jaxopt_search.problems.tsp.problem import TSP

_NEAR = 8  # cities along a curve in either direction, among which cycles are joined


class Regions(NamedTuple):
    """R regions, as a tour passes through them, with room for m cities each.

    Attributes:
      count: [R] int32 cities of each.
      position: [R, m] int32, where they are in the tour, ascending; anything behind them.
      number: [R, m] int32, as in `problem.Ties`: two are tied if the tour leads from one to the
        other outside of the region.
    """

    count: jax.Array
    position: jax.Array
    number: jax.Array


def cut(along: jax.Array, tour: jax.Array, num_regions: int, room: int) -> Regions:
    """Returns regions of cities that follow one another along a curve, of equally many.

    Each edge belongs to a region: if its cities are of two, to either. A region has all cities of
    its edges. What it has no room for stays as it is.

    Args:
      along: [n] int32 the cities in the order of a space-filling curve.
      tour: [n] int32.
      num_regions: R, at most n.
      room: m.
    """
    n, num = tour.size, num_regions
    index = lax.iota(jnp.int32, n)
    size, rest = divmod(n, num)  # as many regions as `rest` says have a city more
    behind_larger = index - rest * (size + 1)
    by_rank = jnp.where(behind_larger < 0, index // (size + 1), rest + behind_larger // size)
    region = jnp.zeros(n, jnp.int32).at[along].set(by_rank)[tour]
    behind = jnp.roll(region, -1)
    owner = jnp.where((region + behind + index) % 2 == 0, region, behind)  # of the edge behind
    before = jnp.roll(owner, 1)
    # A city is in its own region and in those of its two edges; regions beyond the last are none.
    with_last = jnp.where(before == region, num, before)
    with_next = jnp.where((owner == region) | (owner == before), num, owner)
    members = jnp.concatenate([region, with_last, with_next]), jnp.tile(index, 3)
    members, positions = lax.sort(members, num_keys=2)

    def of(own: jax.Array, first: jax.Array, following: jax.Array) -> Regions:
        count, i = jnp.minimum(following - first, room), lax.iota(jnp.int32, room)
        position = positions[jnp.minimum(first + i, 3 * n - 1)]
        here, there = position[:-1], position[1:]
        is_free = (there == here + 1) & (owner[here] == own) & (i[1:] < count)
        # Tied ones count on by 1, others by 2; behind the last free edge, from below up to -1,
        # which ties the last city to the first one.
        number = jnp.cumsum(jnp.where(is_free, 2, 1), dtype=jnp.int32)
        last = jnp.where(is_free, i[:-1], -1).max()
        return Regions(count, position, jnp.where(i <= last, jnp.pad(number, (1, 0)), i - count))

    first = jnp.searchsorted(members, lax.iota(jnp.int32, num + 1)).astype(jnp.int32)
    return jax.vmap(of)(lax.iota(jnp.int32, num), first[:-1], first[1:])


def neighbors_after(tour: jax.Array, regions: Regions, orders: jax.Array) -> jax.Array:
    """Returns the two neighbors of each city after all regions have changed, [n, 2] int32.

    They may form several cycles.

    Args:
      orders: [R, m] int32, in which order each region passes its cities, by their numbers from 0
        on; a region whose order parts tied cities stays as it is.
    """
    n = tour.size

    def change(region: Regions, order: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Returns which sides of cities change, [2, m], 2 n for none, and their neighbors there."""
        count, position, number = region
        i = lax.iota(jnp.int32, number.size)
        ahead, back = jnp.where(i + 1 < count, i + 1, 0), jnp.where(i > 0, i - 1, count - 1)

        def num_ties(order: jax.Array) -> jax.Array:
            own = number[order]
            return (_is_tie(own[ahead] - own) & (i < count)).sum()

        order = jnp.where(num_ties(order) == num_ties(i), order, i)
        own, city = number[order], tour[position[order]]
        to_one, to_other, one, other = own[back] - own, own[ahead] - own, city[back], city[ahead]
        # A city that is tied to the one before it keeps its neighbor before it in the tour, unless
        # another region changes that; likewise behind.
        is_tied_before = (to_one == -1) | (to_other == -1)
        is_tied_behind = (to_one == 1) | (to_other == 1)
        free = jnp.where(_is_tie(to_one), other, one)
        before = jnp.where(is_tied_behind, free, one)
        behind = jnp.where(is_tied_before, free, other)
        is_in = i < count
        sides = (
            jnp.where(is_in & ~is_tied_before, 2 * city, 2 * n),
            jnp.where(is_in & ~is_tied_behind, 2 * city + 1, 2 * n),
        )
        return jnp.stack(sides), jnp.stack([before, behind])

    beside = jnp.stack([jnp.roll(tour, 1), jnp.roll(tour, -1)], axis=1)
    neighbors = jnp.zeros((n, 2), jnp.int32).at[tour].set(beside).ravel()
    sides, changed = jax.vmap(change)(regions, orders)
    return neighbors.at[sides].set(changed, mode="drop").reshape(n, 2)


def _is_tie(gap: jax.Array) -> jax.Array:
    return jnp.abs(gap) == 1


def _following(neighbors: jax.Array) -> jax.Array:
    """Returns which way follows each, [2 n] int32; way 2 c + s leads from city c to its side s."""
    way, to = lax.iota(jnp.int32, neighbors.size), neighbors.ravel()
    return 2 * to + (neighbors[to, 0] == way >> 1).astype(jnp.int32)


def cycles(neighbors: jax.Array) -> jax.Array:
    """Returns the lowest city on the cycle of each city, [n] int32.

    Args:
      neighbors: [n, 2] int32 of each city.
    """

    def double(_: Any, carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        lowest, following = carry
        return jnp.minimum(lowest, lowest[following]), following[following]

    own = lax.iota(jnp.int32, neighbors.size) >> 1, _following(neighbors)
    return lax.fori_loop(0, _doublings(neighbors), double, own)[0][::2]


def tour_of(neighbors: jax.Array) -> jax.Array:
    """Returns the tour, [n] int32 from city 0 on, of cities whose neighbors are one cycle."""
    n, way, following = len(neighbors), lax.iota(jnp.int32, neighbors.size), _following(neighbors)
    last = jnp.argmax(following == 0).astype(jnp.int32)

    def double(_: Any, carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        left, following = carry
        return left + left[following], following[following]

    is_last = way == last
    own = (~is_last).astype(jnp.int32), jnp.where(is_last, last, following)
    left, end = lax.fori_loop(0, _doublings(neighbors), double, own)
    at = jnp.where(end == last, n - 1 - left, n)  # those in the other direction end elsewhere
    return jnp.zeros(n, jnp.int32).at[at].set(way >> 1, mode="drop")


def _doublings(neighbors: jax.Array) -> int:
    """Returns how often lengths of paths double until they are as long as any cycle."""
    return (len(neighbors) - 1).bit_length()


def joined(problem: TSP, cells: jax.Array, key: jax.Array, neighbors: jax.Array) -> jax.Array:
    """Returns the neighbors of each city in one cycle, [n, 2] int32.

    Again and again, cycles but the largest one each find the best exchange of an edge and one of
    another cycle for two between them, among cities that are close to one another along a curve.
    Heads and tails decide which are made: of cycles with heads, into cycles with tails.

    Args:
      cells: [n, 2] int32 places of the cities, below 2**15.
      key: typed.
      neighbors: [n, 2] int32, in cycles.
    """
    n, steps = len(neighbors), [step for step in range(-_NEAR, _NEAR + 1) if step]
    pair = lax.iota(jnp.int32, n * len(steps))

    def lowest(values: jax.Array, groups: jax.Array, size: int, most: Any) -> jax.Array:
        return jnp.full(size, most, values.dtype).at[groups].min(values)

    def join(
        carry: tuple[jax.Array, jax.Array, jax.Array],
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        neighbors, label, key = carry
        key, laying, tossing = (jax.random.fold_in(key, number) for number in range(3))
        along = curves.tour_through(cells, laying)
        a = jnp.tile(along, len(steps))
        b = jnp.concatenate([jnp.roll(along, step) for step in steps])

        def price(side: int, other: int) -> jax.Array:
            beyond_a, beyond_b = neighbors[a, side], neighbors[b, other]
            gained = problem.distance(a, b) + problem.distance(beyond_a, beyond_b)
            lost = problem.distance(a, beyond_a) + problem.distance(b, beyond_b)
            return (gained - lost).astype(jnp.float32)

        prices = jnp.stack([price(side, other) for side in range(2) for other in range(2)])
        largest = jnp.zeros(n, jnp.int32).at[label].add(1).argmax().astype(jnp.int32)
        own, others = label[a], label[b]
        is_open = (own != others) & (own != largest)
        delta = jnp.where(is_open, prices.min(axis=0), jnp.inf)
        is_best = is_open & (delta == lowest(delta, own, n, jnp.inf)[own])
        chosen = lowest(jnp.where(is_best, pair, pair.size), own, n, pair.size)
        is_head = random.below(permutation.words(tossing, n)[0], 2) == 1
        is_made = (chosen[own] == pair) & is_head[own] & (~is_head[others] | (others == largest))
        way_a = 2 * a + (prices.argmin(axis=0) >> 1).astype(jnp.int32)
        way_b = 2 * b + (prices.argmin(axis=0) & 1).astype(jnp.int32)
        ways = neighbors.ravel()
        beyond_a, beyond_b = ways[way_a], ways[way_b]
        back_a, back_b = 2 * beyond_a, 2 * beyond_b
        back_a += (ways[back_a + 1] == a).astype(jnp.int32)
        back_b += (ways[back_b + 1] == b).astype(jnp.int32)
        # Of several that want the same edge of another cycle, the first one gets it.
        edge = jnp.minimum(way_b, back_b)
        is_made &= lowest(jnp.where(is_made, pair, pair.size), edge, 2 * n, pair.size)[edge] == pair
        for way, to in ((way_a, b), (way_b, a), (back_a, beyond_b), (back_b, beyond_a)):
            ways = ways.at[jnp.where(is_made, way, 2 * n)].set(to, mode="drop")
        neighbors = ways.reshape(n, 2)
        return neighbors, cycles(neighbors), key

    start = neighbors, cycles(neighbors), key
    return lax.while_loop(lambda carry: (carry[1] != 0).any(), join, start)[0]
