"""Children of two tours by edge assembly (EAX), without a loop over cities.

Nagata, Kobayashi, "A powerful genetic algorithm using edge assembly crossover for the traveling
salesman problem", 2013. Where two tours differ, their edges form closed walks that take an edge of
one and an edge of the other by turns, AB-cycles. A child is a tour in which some of these walks
have changed hands, its parts joined where it fell apart. Here all walks of a pair of tours are
followed at once, by pointer doubling.

An edge has two ends. City c has end 2c of the edge to the city after it, and end 2c + 1 of the edge
from the city before it; the mate of an end is the other end of its edge.
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search.checks import check_count, check_suits
from jaxopt_search.portable import floats, random
from jaxopt_search.problems import permutation
from jaxopt_search.problems.tsp import candidates as candidate_lists
from jaxopt_search.problems.tsp.problem import TSP
from jaxopt_search.pytrees import pytree
from jaxopt_search.types import null_delta

_MOST_JOINS = 32
_JOINED_AT = 64  # cities of a part at which it may be joined to another
_WHOLE = 30  # the edges of two tours of float instances add up to 2**29 to 2**30 units


@pytree
@dataclasses.dataclass(frozen=True, kw_only=True)
class EdgeAssembly:
    """Build it with `edge_assembly`.

    Attributes:
      candidates: [n, K] int32, cities near each city, at which parts of a tour are joined.
    """

    candidates: jax.Array

    compiles_apart = True

    def child(
        self, key: jax.Array, problem: TSP, own: jax.Array, given: jax.Array, share: jax.Array
    ) -> jax.Array:
        """Returns a shorter tour than `own`, or `own` itself.

        It is made of edges of `own` and `given`, and of edges that join its parts. Each AB-cycle
        that makes `own` shorter changes hands with probability `share`, and at least one does, if
        there are any.

        Args:
          key: typed.
          own, given: [n] int32 tours.
          share: [] float32, 0 to 1.

        Returns:
          [n] int32.
        """
        check_suits("EdgeAssembly", "a TSP", problem, isinstance(problem, TSP))
        coin, draw = permutation.words(key, problem.n)
        walks = _walks(own, given, coin & 1 != 0)
        gain = _gains(problem, walks)
        is_better = gain < 0
        chance = jnp.where(is_better, random.uniform(draw[walks.number >> 1]), jnp.inf)
        is_taken = is_better & (chance <= jnp.maximum(share, chance.min()))
        mate = jnp.where(is_taken, walks.given, walks.own)
        child, is_tour = _tour(_joined(problem, self.candidates, mate))
        is_shorter = problem.cost(child) < problem.cost(own)
        return jnp.where(is_tour & is_taken.any() & is_shorter, child, own)


def edge_assembly(problem: TSP, *, num_candidates: int = 8) -> EdgeAssembly:
    """Returns the edge assembly crossover (EAX) of tours, for `recombine`.

    Among Nagata and Kobayashi's variants this lies at random between EAX-Single and EAX-Rand: it
    takes a share of the AB-cycles, and none that makes the tour longer. Parts are joined as in
    their work, the smallest first, by the best 2-opt move to a candidate, but from at most 64
    cities of the part. A child takes O(n log n) operations, O(log n) of them in sequence.

    Args:
      problem: of symmetric distances.
      num_candidates: K, how many nearest cities may join parts of a tour.

    Raises:
      ValueError: for asymmetric distances, or a number out of range.

    Example:
      >>> import jaxopt_search as js
      >>> problem = js.tsp_from_instance(js.datasets.grid_tsp(6, 6, spacing=10))
      >>> search = js.simulated_annealing(js.two_opt(problem), 2.0, moves_per_search=8)
      >>> exchange = js.recombine(every=100, alike=None, crossover=js.edge_assembly(problem))
      >>> js.solve(problem, search, 0, num_searches=16, max_steps=2000, exchange=exchange).fun
      360
    """
    check_suits("edge_assembly", "a TSP", problem, isinstance(problem, TSP))
    if not problem.is_symmetric:
        raise ValueError("problem has asymmetric distances, expected symmetric ones")
    num_candidates = check_count("num_candidates", num_candidates)
    lists = candidate_lists.neighbors(problem, num_candidates, "nearest")
    return EdgeAssembly(candidates=jnp.asarray(lists))


class _Walks(NamedTuple):
    """The AB-cycles of two tours, by ends of the first.

    Attributes:
      own: [2n] int32, the mate of each end.
      given: [2n] int32, its mate if its AB-cycle changes hands.
      number: [2n] int32, the number of its AB-cycle: one of its ends. An edge of both tours is an
        AB-cycle of its own.
    """

    own: jax.Array
    given: jax.Array
    number: jax.Array


def _walks(own: jax.Array, given: jax.Array, coin: jax.Array) -> _Walks:
    """Returns the AB-cycles of two tours.

    At each city the walk changes from an edge of one tour to one of the other. If they share an
    edge there, it is paired with itself, else the pairs are by `coin`, [n] bool.
    """
    mate, others = _mates(own), _mates(given)
    after, before = mate[0::2] >> 1, mate[1::2] >> 1
    others_after, others_before = others[0::2] >> 1, others[1::2] >> 1
    is_along = (after == others_after) | (before == others_before)
    is_against = (after == others_before) | (before == others_after)
    is_crossed = jnp.where(is_along | is_against, is_against, coin)
    partner = lax.iota(jnp.int32, mate.size) ^ jnp.repeat(is_crossed.astype(jnp.int32), 2)
    # From an end over to the other tour, along its edge, and back.
    beyond = partner[others[partner]]
    least = _least_on_cycle(beyond[mate])
    return _Walks(mate, beyond, jnp.minimum(least, least[mate]))


def _mates(tour: jax.Array) -> jax.Array:
    """Returns the mate of each end of a tour, [2n] int32."""
    after, before = jnp.roll(tour, -1), jnp.roll(tour, 1)
    mates = jnp.zeros((tour.size, 2), jnp.int32)
    return mates.at[tour].set(jnp.stack([2 * after + 1, 2 * before], axis=1)).ravel()


def _least_on_cycle(following: jax.Array) -> jax.Array:
    """Returns the least number on the cycle of each number under a permutation, [m] int32."""
    least = jnp.minimum(lax.iota(jnp.int32, following.size), following)

    def double(_: jax.Array, carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        least, ahead = carry
        return jnp.minimum(least, least[ahead]), ahead[ahead]

    rounds = (following.size - 1).bit_length() - 1
    return lax.fori_loop(0, rounds, double, (least, following[following]))[0]


def _gains(problem: TSP, walks: _Walks) -> jax.Array:
    """Returns how much longer the tour gets if the AB-cycle of each end changes hands, [2n]."""
    city = lax.iota(jnp.int32, walks.own.size) >> 1
    lost, won = problem.distance(city, walks.own >> 1), problem.distance(city, walks.given >> 1)
    if jnp.issubdtype(lost.dtype, jnp.floating):
        # Sums of integers are the same in any order.
        whole = floats.total(jnp.abs(lost) + jnp.abs(won)) / 2  # each edge has two ends
        units = floats.power_of_two(_WHOLE, whole)
        lost, won = (jnp.round(part * units).astype(jnp.int32) for part in (lost, won))
    change = won - lost  # once at either end of an edge
    return jnp.zeros_like(change).at[walks.number].add(change)[walks.number]


def _joined(problem: TSP, candidates: jax.Array, mate: jax.Array) -> jax.Array:
    """Returns the mates of ends after the parts that a tour fell into are joined, [2n] int32.

    The smallest part is joined to another one by the best 2-opt move, until there is only one.
    """
    n = problem.n
    least = _least_on_cycle(_onward(mate))
    part = jnp.minimum(least[0::2], least[1::2]) >> 1
    size = jnp.zeros(n, jnp.int32).at[part].add(1)

    def is_apart(carry: tuple[jax.Array, ...]) -> jax.Array:
        number, _, _, size = carry
        return (number < _MOST_JOINS) & (size.max() < n)

    def join(carry: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        number, mate, part, size = carry
        smallest = jnp.argmin(jnp.where(size > 0, size, n + 1)).astype(jnp.int32)
        is_in = part == smallest
        city = jnp.searchsorted(jnp.cumsum(is_in), jnp.arange(1, _JOINED_AT + 1))
        city = jnp.minimum(city, n - 1).astype(jnp.int32)
        side = lax.iota(jnp.int32, 2)
        end = 2 * city[:, None, None, None] + side[None, None, :, None]
        near_end = 2 * candidates[city][:, :, None, None] + side[None, None, None, :]
        end, near_end = jnp.broadcast_arrays(end, near_end)
        mates, near_mates = mate[end], mate[near_end]

        def length(end: jax.Array, other: jax.Array) -> jax.Array:
            return problem.distance(end >> 1, other >> 1)

        change = length(end, near_end) + length(mates, near_mates)
        change = change - length(end, mates) - length(near_end, near_mates)
        is_move = is_in[end >> 1] & ~is_in[near_end >> 1]
        change = jnp.where(is_move, change, null_delta(change.dtype)).ravel()
        best = jnp.argmin(change)
        one, other, mate_of_one, mate_of_other = (
            ends.ravel()[best] for ends in (end, near_end, mates, near_mates)
        )
        is_joined = change[best] < null_delta(change.dtype)
        where = jnp.stack([one, other, mate_of_one, mate_of_other])
        new = jnp.stack([other, one, mate_of_other, mate_of_one])
        into = jnp.where(is_joined, part[other >> 1], smallest)
        return (
            jnp.where(is_joined, number + 1, _MOST_JOINS),
            mate.at[where].set(jnp.where(is_joined, new, mate[where])),
            jnp.where(is_in, into, part),
            size.at[smallest].set(0).at[into].add(size[smallest]),
        )

    return lax.while_loop(is_apart, join, (jnp.int32(0), mate, part, size))[1]


def _tour(mate: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns the tour from city 0 on, and whether the ends make one; if not, it means nothing."""
    n = mate.size // 2
    number = lax.iota(jnp.int32, mate.size)
    is_last = number == 1  # at city 0, on the way back
    following = jnp.where(is_last, number, _onward(mate))

    def double(_: jax.Array, carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        left, ahead = carry
        return left + left[ahead], ahead[ahead]

    start = ((~is_last).astype(jnp.int32), following)
    left, ahead = lax.fori_loop(0, n.bit_length(), double, start)
    does_arrive = ahead == 1
    left = jnp.sum(jnp.where(does_arrive, left, 0).reshape(n, 2), axis=1, dtype=jnp.int32)
    position = jnp.where(left == 0, 0, n - left)
    cities = lax.iota(jnp.int32, n)
    is_tour = jnp.sum(does_arrive, dtype=jnp.int32) == n
    return jnp.zeros(n, jnp.int32).at[position].set(cities, mode="drop"), is_tour


def _onward(mate: jax.Array) -> jax.Array:
    """Returns for each end at which a walk arrives the next one, [2n] int32."""
    return mate[lax.iota(jnp.int32, mate.size) ^ 1]
