# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
"""Children of two tours by edge assembly (EAX), without a loop over cities.

Nagata, Kobayashi, "A powerful genetic algorithm using edge assembly crossover for the traveling
salesman problem", 2013. Where two tours differ, their edges form closed walks that take an edge of
one and an edge of the other by turns, AB-cycles. A child is a tour in which some of these walks
have changed hands, its parts joined where it fell apart. Here all walks of a pair of tours are
followed at once, by pointer doubling.

`tour_ends` says what the ends of edges are, and how they are numbered.
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxopt_search.backends import floats, memory, random
from jaxopt_search.checks import check_count, check_suits
from jaxopt_search.crossovers import joins, tour_ends
from jaxopt_search.problems import permutation
from jaxopt_search.problems.tsp import candidates as candidate_lists
from jaxopt_search.problems.tsp import traced
from jaxopt_search.problems.tsp.problem import TSP
from jaxopt_search.pytrees import pytree
from jaxopt_search.types import Crossover

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
        is_better = tour_ends.at(_gains(problem, walks), walks.number) < 0
        chance = random.uniform(tour_ends.at(draw, walks.number >> 1))
        chance = jnp.where(is_better, chance, jnp.inf)
        least = chance.min(axis=(1, 2))
        is_taken = is_better & (chance <= jnp.maximum(share, least)[:, None, None])
        differs = least < jnp.inf
        mate = jnp.where(is_taken, walks.given, walks.own)
        mate, is_one = joins.joined(problem, self.candidates, mate)
        tours = jnp.concatenate([tour_ends.tours(problem, mate), own])
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
    mate, others = both = tour_ends.mates(problem, tours)
    after, before, others_after, others_before = (
        (ends >> 1)[:, :, side] for ends in both for side in (0, 1)
    )
    is_along = (after == others_after) | (before == others_before)
    is_against = (after == others_before) | (before == others_after)
    is_crossed = jnp.where(is_along | is_against, is_against, coin)
    # From an end over to the other tour, along its edge, and back.
    there = jnp.where(is_crossed[:, :, None], others[:, :, ::-1], others)
    beyond = there ^ tour_ends.at(is_crossed.astype(jnp.int32), there >> 1)
    # Both ways along a walk have the same number.
    number = tour_ends.least_on_cycle(
        tour_ends.at(beyond, mate), jnp.minimum(tour_ends.numbers(mate), mate)
    )
    return _Walks(mate, beyond, number)


def _gains(problem: TSP, walks: _Walks) -> jax.Array:
    """Returns how much longer a tour gets if an AB-cycle changes hands, [S, n, 2] by its number."""
    city = lax.broadcasted_iota(jnp.int32, walks.own.shape, 1)
    first = tour_ends.first_city(problem, walks.own)
    lost, won = (problem.distance(city, (to >> 1) - first) for to in (walks.own, walks.given))
    if jnp.issubdtype(lost.dtype, jnp.floating):
        # Sums of integers are the same in any order.
        both = (jnp.abs(lost) + jnp.abs(won)).reshape(len(lost), -1)
        whole = floats.total(both) / 2  # each edge has two ends
        units = floats.power_of_two(_WHOLE, whole)[:, None, None]
        lost, won = (jnp.round(part * units).astype(jnp.int32) for part in (lost, won))
    return tour_ends.sums(walks.number, won - lost)  # once at either end of an edge
