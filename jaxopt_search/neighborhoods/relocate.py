"""TSP: take one city out of the tour and put it back elsewhere, O(1) on a doubly linked list.

The move of Lam, Tsoi, Luk, "Parallel neighbourhood search on many-core platforms", section 4.2.
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search.backends.memory import load, store
from jaxopt_search.backends.random import below
from jaxopt_search.checks import check_suits
from jaxopt_search.problems.tsp.problem import TSP
from jaxopt_search.types import Neighborhood, Words, null_delta


class LinkedTour(NamedTuple):
    """A tour as a doubly linked list.

    Attributes:
      successor: [capacity] int32, the city after each city.
      predecessor: [capacity] int32, the city before each city; None in a snapshot.
    """

    successor: jax.Array
    predecessor: jax.Array | None


class Relocation(NamedTuple):
    """Puts `city` between `after` and the successor of `after`.

    Attributes:
      city: int32.
      after: int32, neither `city` nor its predecessor.
    """

    city: jax.Array
    after: jax.Array


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Relocate(Neighborhood):
    """All n (n - 2) relocations of a TSP, of symmetric or asymmetric distances.

    With 2 cities or fewer there are none, and proposals are null moves.

    Example:
      >>> import jaxopt_search as js
      >>> problem, hood = js.tsp_from_instance(js.datasets.grid_tsp(2, 3)), Relocate()
      >>> tour, move = hood.init(problem, jnp.arange(6)), Relocation(jnp.int32(5), jnp.int32(2))
      >>> int(hood.delta(problem, tour, move))
      -10
      >>> hood.solution(problem, hood.commit(problem, tour, move, jnp.bool_(True))).tolist()
      [0, 1, 2, 5, 3, 4]
    """

    num_words = 2
    is_portable = True
    space = "permutation"

    def init(self, problem: TSP, solution: jax.Array) -> LinkedTour:
        check_suits("Relocate", "a TSP", problem, isinstance(problem, TSP))
        after, before = jnp.roll(solution, -1), jnp.roll(solution, 1)
        last, position = problem.n - 1, lax.iota(jnp.int32, problem.capacity)
        after = jnp.where(position == last, solution[0], after)
        before = jnp.where(position == 0, solution[last], before)
        empty = jnp.zeros_like(solution)
        return LinkedTour(empty.at[solution].set(after), empty.at[solution].set(before))

    def solution(self, problem: TSP, snapshot: LinkedTour) -> jax.Array:
        """Ranks the list from city 0 by pointer doubling (Wyllie, 1979): O(log n) gathers."""
        cities = lax.iota(jnp.int32, problem.capacity)
        is_last = snapshot.successor == 0
        following = jnp.where(is_last, cities, snapshot.successor)
        distance_to_last = jnp.where(is_last, 0, 1).astype(jnp.int32)
        for _ in range((problem.capacity - 1).bit_length()):
            distance_to_last = distance_to_last + distance_to_last[following]
            following = following[following]
        position = jnp.where(cities < problem.n, problem.n - 1 - distance_to_last, cities)
        return jnp.zeros_like(cities).at[position].set(cities)

    def snapshot(self, tour: LinkedTour) -> LinkedTour:
        return tour._replace(predecessor=None)

    def propose(self, problem: TSP, tour: LinkedTour, words: Words) -> Relocation:
        city = below(words[0], problem.n)
        before = load(tour.predecessor, city)
        # Count through the cities that are neither `city` nor `before`.
        others = problem.n - 2
        others = max(others, 1) if problem.num_entries is None else jnp.maximum(others, 1)
        after = below(words[1], others)
        after = after + (after >= jnp.minimum(city, before)).astype(jnp.int32)
        after = after + (after >= jnp.maximum(city, before)).astype(jnp.int32)
        return Relocation(city, after)

    def delta(self, problem: TSP, tour: LinkedTour, move: Relocation) -> jax.Array:
        city, after = move
        before, behind, next_to_after = _surroundings(tour, move)
        distance = problem.distance
        gained = distance(before, behind) + distance(after, city) + distance(city, next_to_after)
        lost = distance(before, city) + distance(city, behind) + distance(after, next_to_after)
        change = gained - lost
        return jnp.where(problem.n > 2, change, null_delta(change.dtype))

    def commit(
        self, problem: TSP, tour: LinkedTour, move: Relocation, accept: jax.Array
    ) -> LinkedTour:
        city, after = move
        before, behind, next_to_after = _surroundings(tour, move)
        successor, predecessor = tour
        for left, right in ((before, behind), (after, city), (city, next_to_after)):
            successor = store(successor, left, right, accept)
            predecessor = store(predecessor, right, left, accept)
        return LinkedTour(successor, predecessor)


def _surroundings(tour: LinkedTour, move: Relocation) -> tuple[jax.Array, jax.Array, jax.Array]:
    return (
        load(tour.predecessor, move.city),
        load(tour.successor, move.city),
        load(tour.successor, move.after),
    )
