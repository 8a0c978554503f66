# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
"""Children of two tours by edge assembly (EAX).

Nagata, Kobayashi, "A powerful genetic algorithm using edge assembly crossover for the traveling
salesman problem", 2013. Where two tours differ, their edges form closed walks that take an edge of
one and an edge of the other by turns, AB-cycles. A child is a tour in which some of these walks
have changed hands, its parts joined where it fell apart. Here all walks of a pair of tours are
followed at once, by pointer doubling, without a loop over cities.

Tours are told by the ends of their edges. City c has end 2c of the edge to the city after it, and
end 2c + 1 of the edge from the city before it; the mate of an end is the other end of its edge.
Cities and ends of S tours are numbered through: the first city of tour s has number s * capacity.
So one index reads an array of all, which takes XLA fewer passes to compile than two. Cities behind
those of a padded problem are their own neighbors.
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxopt_search.backends import bit_sets, floats, loops, memory, random
from jaxopt_search.checks import check_count, check_suits
from jaxopt_search.problems import permutation
from jaxopt_search.problems.tsp import candidates as candidate_lists
from jaxopt_search.problems.tsp import traced
from jaxopt_search.problems.tsp.problem import TSP
from jaxopt_search.pytrees import pytree
from jaxopt_search.types import Crossover, null_delta

_MOST_JOINS = 32
_JOINED_AT = 64  # cities of a part at which it may be joined to another
_WHOLE = 30  # the edges of two tours of float instances add up to 2**29 to 2**30 units


@pytree
@dataclasses.dataclass(frozen=True, kw_only=True)
class EdgeAssembly(Crossover):
    """Build it with `edge_assembly`.

    Attributes:
      candidates: [capacity, K] int32, cities near each city, at which parts of a tour are joined.
        The city itself stands for none.
    """

    candidates: jax.Array
    takes_long_to_compile = True

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
        return self.children(key[None], problem, own[None], given[None], share)[0]

    def children(
        self, keys: jax.Array, problem: TSP, own: jax.Array, given: jax.Array, share: jax.Array
    ) -> jax.Array:
        """Returns a child of each pair of tours, [S, n] int32, as `child` makes one.

        Args:
          keys: [S] typed.
          own, given: [S, n] int32 tours.
        """
        check_suits("EdgeAssembly", "a TSP", problem, isinstance(problem, TSP))
        coin, draw = jax.vmap(permutation.words, in_axes=(0, None))(keys, problem.capacity)
        walks = _walks(problem, jnp.stack([own, given]), coin & 1 != 0)
        is_better = take_flat(_gains(problem, walks), walks.number) < 0
        chance = random.uniform(take_flat(draw, walks.number >> 1))
        chance = jnp.where(is_better, chance, jnp.inf)
        least = chance.min(axis=(1, 2))
        is_taken = is_better & (chance <= jnp.maximum(share, least)[:, None, None])
        differs = least < jnp.inf
        mate = jnp.where(is_taken, walks.given, walks.own)
        mate, is_one = join_parts(problem, self.candidates, mate)
        tours = jnp.concatenate([tours_of(problem, mate), own])
        cost, own_cost = jnp.split(memory.computed_once(jax.vmap(problem.cost)(tours)), 2)
        is_shorter = is_one & differs & (cost < own_cost)
        # By index: what reads the result does not compute it again, as it would a choice.
        search = lax.iota(jnp.int32, len(own))
        chosen = jnp.where(is_shorter, search, search + len(own))
        return tours.at[chosen].get(**memory.IN_BOUNDS)


def edge_assembly(problem: TSP, *, num_candidates: int = 8) -> EdgeAssembly:
    """Returns the edge assembly crossover (EAX) of tours, for `recombine`.

    Among Nagata and Kobayashi's variants this lies at random between EAX-Single and EAX-Rand: it
    takes a share of the AB-cycles, and none that makes the tour longer. Parts are joined as in
    their work, the smallest first, by the best 2-opt move to a candidate, but from at most 64
    cities of the part. A child takes O(n log n) operations, O(log n) of them in sequence.

    Args:
      problem: of symmetric distances; it may be traced.
      num_candidates: K, at how many cities near each one parts of a tour may be joined.
        They are spread as `two_opt` spreads them, so a traced problem of coordinates may take
        another course than outside.

    Raises:
      ValueError: for asymmetric distances, or a number out of range.

    Example:
      >>> import jaxopt_search as js
      >>> problem = js.tsp_from_instance(js.datasets.grid_tsp(4, 4, spacing=10))
      >>> search = js.simulated_annealing(js.two_opt(problem), 2.0, moves_per_search=8)
      >>> exchange = js.recombine(every=100, alike=None, crossover=js.edge_assembly(problem))
      >>> js.solve(problem, search, 0, num_searches=8, max_steps=500, exchange=exchange).fun
      160
    """
    check_suits("edge_assembly", "a TSP", problem, isinstance(problem, TSP))
    if not problem.is_symmetric:
        raise ValueError("problem has asymmetric distances, expected symmetric ones")
    num_candidates = check_count("num_candidates", num_candidates)
    if traced.is_on_device_only(problem):
        return EdgeAssembly(candidates=traced.neighbors(problem, num_candidates, "spread"))
    lists = candidate_lists.neighbors(problem, num_candidates, "spread")
    if problem.num_entries is not None:
        n, num = lists.shape
        near = np.repeat(np.arange(problem.capacity, dtype=np.int32)[:, None], num_candidates, 1)
        near[:n, :num] = lists
        lists = near
    return EdgeAssembly(candidates=jax.device_put(lists))


class _Walks(NamedTuple):
    """The AB-cycles of pairs of tours, [S, n, 2] by ends of the first.

    Attributes:
      own: int32, the mate of each end.
      given: int32, its mate if its AB-cycle changes hands.
      number: int32, the number of its AB-cycle: the lowest of its ends. An edge of both tours is an
        AB-cycle of its own.
    """

    own: jax.Array
    given: jax.Array
    number: jax.Array


def _walks(problem: TSP, tours: jax.Array, coin: jax.Array) -> _Walks:
    """Returns the AB-cycles of pairs of tours, [2, S, n].

    At each city the walk changes from an edge of one tour to one of the other. If they share an
    edge there, it is paired with itself, else the pairs are by `coin`, [S, n] bool.
    """
    mate, others = both = mates_of(problem, tours)
    after, before, others_after, others_before = (
        (ends >> 1)[:, :, side] for ends in both for side in (0, 1)
    )
    is_along = (after == others_after) | (before == others_before)
    is_against = (after == others_before) | (before == others_after)
    is_crossed = jnp.where(is_along | is_against, is_against, coin)
    # From an end over to the other tour, along its edge, and back.
    there = jnp.where(is_crossed[:, :, None], others[:, :, ::-1], others)
    beyond = there ^ take_flat(is_crossed.astype(jnp.int32), there >> 1)
    # Both ways along a walk have the same number.
    number = least_on_cycle(take_flat(beyond, mate), jnp.minimum(flat_index(mate), mate))
    return _Walks(mate, beyond, number)


def _gains(problem: TSP, walks: _Walks) -> jax.Array:
    """Returns how much longer a tour gets if an AB-cycle changes hands, [S, n, 2] by its number."""
    city = lax.broadcasted_iota(jnp.int32, walks.own.shape, 1)
    first = offset(problem, walks.own)
    lost, won = (problem.distance(city, (to >> 1) - first) for to in (walks.own, walks.given))
    if jnp.issubdtype(lost.dtype, jnp.floating):
        # Sums of integers are the same in any order.
        both = (jnp.abs(lost) + jnp.abs(won)).reshape(len(lost), -1)
        whole = floats.total(both) / 2  # each edge has two ends
        units = floats.power_of_two(_WHOLE, whole)[:, None, None]
        lost, won = (jnp.round(part * units).astype(jnp.int32) for part in (lost, won))
    return sum_by(walks.number, won - lost)  # once at either end of an edge


def join_parts(problem: TSP, candidates: jax.Array, mate: jax.Array) -> tuple[jax.Array, jax.Array]:
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
    ends = flat_index(mate)
    least = least_on_cycle(mate[:, :, ::-1], ends)  # one way, and the other way
    size = take_flat(sum_by(least, jnp.ones_like(least)), least)[:, :, 0]
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
    first = offset(problem, cities)
    members = jax.vmap(bit_sets.members, (0, None))
    own = members(bit_sets.pack(cities[:, :, 2] == part[:, None]), lax.iota(jnp.int32, _JOINED_AT))
    own = jnp.minimum(own, cities.shape[1] - 1) + first[:, :, 0]
    near = candidates.at[own - first[:, :, 0]].get(**memory.IN_BOUNDS) + first
    here, there = take_rows(cities, own), take_rows(cities, near)
    change, sides = _least_change(problem, own, near, here, there)
    of_part = part[:, None, None]
    is_move = (here[:, :, 2:3] == of_part) & (there[:, :, :, 2] != of_part)
    none = null_delta(change.dtype)
    change = jnp.where(is_move, change, none)
    end, other = 2 * own[:, :, None] + (sides >> 1), 2 * near + (sides & 1)
    moves = (leaf.reshape(len(part), -1) for leaf in (change, flat_index(change), end, other))
    least, _, *both = _least(*moves)
    ends = jnp.stack(both)
    rows = take_rows(cities, ends >> 1)
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
        first = offset(problem, one)
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
    number = flat_index(cities)
    after = jnp.where(cities == part, into, cities)  # nothing else is negative
    for one, mate in ((end, other), (other, end), (end_mate, other_mate), (other_mate, end_mate)):
        place = jnp.where(is_one, 4 * (one >> 1) + (one & 1), -1)
        after = jnp.where(number == place, mate, after)
    is_size = lax.broadcasted_iota(jnp.int32, cities.shape, 2) == 3
    parts = cities[:, :, 2:3]
    return jnp.where(is_size & ((parts == part) | (parts == into)), size, after)


def _least(*values: jax.Array) -> tuple[jax.Array, ...]:
    """Returns the values, [S] each of [S, m], where the first is least; of equals, the second."""

    def lower(one: tuple[jax.Array, ...], other: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        is_lower = (one[0] < other[0]) | ((one[0] == other[0]) & (one[1] < other[1]))
        return tuple(jnp.where(is_lower, *pair) for pair in zip(one, other, strict=True))

    last = tuple(null_delta(each.dtype) for each in values)
    return tuple(lax.reduce(values, last, lower, (1,)))


def mates_of(problem: TSP, tours: jax.Array) -> jax.Array:
    """Returns the mate of each end of tours [2, S, n], [2, S, n, 2] int32."""
    n, position = problem.n, lax.broadcasted_iota(jnp.int32, tours.shape, 2)
    start = flat_index(tours) - position
    place = tours.ravel().at[(tours + start).ravel()].set(position.ravel(), **memory.IN_BOUNDS)
    place = place.reshape(tours.shape)
    after = jnp.where(place == n - 1, 0, place + 1)
    before = jnp.where(place == 0, n - 1, place - 1)
    there = jnp.stack([after, before], axis=3)
    there = jnp.where(place[..., None] < n, there, place[..., None])
    city = take_flat(tours, there + start[..., None]) + offset(problem, there[0])[None]
    return 2 * city + 1 - lax.broadcasted_iota(jnp.int32, there.shape, 3)


def tours_of(problem: TSP, mate: jax.Array) -> jax.Array:
    """Returns the tours from city 0 on, [S, n] int32; if one is in parts, it means nothing."""
    position = lax.broadcasted_iota(jnp.int32, mate.shape[:2], 1)
    first = offset(problem, mate)[:, :, 0]

    def double(power: jax.Array, carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        end, ahead = carry
        end = jnp.where((position >> power) & 1 == 1, take_flat(ahead, end), end)
        return end, take_flat(ahead, ahead)

    # Each position is as many steps from city 0, at which a walk arrives by end 1.
    start = jnp.broadcast_to(2 * first + 1, position.shape), mate[:, :, ::-1]
    end = loops.fori_loop(0, _doublings(mate), double, start)[0]
    return jnp.where(position < problem.n, (end >> 1) - first, position)


def least_on_cycle(following: jax.Array, value: jax.Array) -> jax.Array:
    """Returns the least value on the cycle of each end, [S, n, 2]; none is longer than n."""

    def double(_: jax.Array, carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        least, ahead = carry
        return jnp.minimum(least, take_flat(least, ahead)), take_flat(ahead, ahead)

    return loops.fori_loop(0, _doublings(following), double, (value, following))[0]


def _doublings(ends: jax.Array) -> int:
    """Returns how often one step is doubled until it is n steps or more."""
    return (ends.shape[1] - 1).bit_length()


def sum_by(number: jax.Array, values: jax.Array) -> jax.Array:
    """Returns the sum of the values [S, n, 2] of each number."""
    sums = jnp.zeros(values.size, values.dtype)
    return sums.at[number.ravel()].add(values.ravel(), **memory.IN_BOUNDS).reshape(values.shape)


def take_flat(table: jax.Array, number: jax.Array) -> jax.Array:
    """Returns the entries of a table of all tours with these numbers."""
    return table.ravel().at[number].get(**memory.IN_BOUNDS)


def take_rows(cities: jax.Array, number: jax.Array) -> jax.Array:
    """Returns what is known of the cities of these numbers, [..., 4]."""
    return cities.reshape(-1, cities.shape[2]).at[number].get(**memory.IN_BOUNDS)


def flat_index(table: jax.Array) -> jax.Array:
    """Returns the numbers of the entries of a table."""
    return lax.iota(jnp.int32, table.size).reshape(table.shape)


def offset(problem: TSP, table: jax.Array) -> jax.Array:
    """Returns the number of the first city of each tour, [S, 1, ...], for a table [S, ...]."""
    shape = (len(table), *(1 for _ in table.shape[1:]))
    return problem.capacity * lax.broadcasted_iota(jnp.int32, shape, 0)
