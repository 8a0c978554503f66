"""TSP: 3-opt moves that keep the direction: two neighboring paths of the tour change places.

Kanellakis, Papadimitriou, "Local search for the asymmetric traveling salesman problem", 1980.
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxopt_search.backends import tables
from jaxopt_search.backends.memory import load
from jaxopt_search.backends.random import below
from jaxopt_search.checks import check_count, check_suits
from jaxopt_search.neighborhoods import array_tour
from jaxopt_search.neighborhoods.array_tour import ArrayTour, wrap, wrap_before, wrap_behind
from jaxopt_search.problems.tsp import assignment, traced
from jaxopt_search.problems.tsp.candidates import with_room
from jaxopt_search.problems.tsp.problem import TSP, Place
from jaxopt_search.pytrees import pytree
from jaxopt_search.types import Span, Words, null_delta


class PathExchange(NamedTuple):
    """Exchanges the path behind the position `before` and the path that follows it.

    Attributes:
      before: int32.
      size: int32, cities on the first path.
      next_size: int32, on the second one; a null move where one of them is below 1.
    """

    before: jax.Array
    size: jax.Array
    next_size: jax.Array


class PathExchanges(array_tour.ArrayTourMoves):
    """Moves that exchange neighboring paths, however they are drawn."""

    def delta(self, problem: TSP, tour: ArrayTour, move: PathExchange) -> jax.Array:
        n, distance = problem.n, problem.between
        before, size, next_size = move

        def at(position: jax.Array) -> Place:
            return problem.place(load(tour.city, wrap_behind(position, n)))

        middle = wrap_behind(before + size, n)
        end = wrap(middle + next_size, n)
        left, head, tail = at(before), at(before + 1), at(middle)
        next_head, next_tail, right = at(middle + 1), at(end), at(end + 1)
        gained = distance(left, next_head) + distance(next_tail, head) + distance(tail, right)
        lost = distance(left, head) + distance(tail, next_head) + distance(next_tail, right)
        change = gained - lost
        is_real = (size > 0) & (next_size > 0)
        return jnp.where(is_real, change, null_delta(change.dtype))

    def commit(
        self, problem: TSP, tour: ArrayTour, move: PathExchange, accept: jax.Array
    ) -> ArrayTour:
        return array_tour.exchange_paths(tour, problem.n, move, accept)

    def span(self, problem: TSP, tour: ArrayTour, move: PathExchange) -> Span:
        low, left, right = array_tour.exchanged_paths(problem.n, move)
        return array_tour.span_of(problem.n, low, left + right)

    def touched(self, problem: TSP, tour: ArrayTour, move: PathExchange) -> tuple[jax.Array, ...]:
        """Returns the ends of the edges that `move` takes out."""
        n, (before, size, next_size) = problem.n, move
        middle = wrap_behind(before + size, n)
        ends = before, middle, wrap(middle + next_size, n)
        places = (place for end in ends for place in (end, wrap_behind(end + 1, n)))
        return tuple(load(tour.city, place) for place in places)


@pytree
@dataclasses.dataclass(frozen=True, kw_only=True)
class ThreeOpt(PathExchanges):
    """3-opt moves of a TSP that keep the direction. Build it with `three_opt`.

    Attributes:
      candidates: [capacity, K] int32, as of `TwoOpt`.
    """

    candidates: jax.Array

    def propose(self, problem: TSP, tour: ArrayTour, words: Words) -> PathExchange:
        """Draws a city and the candidate to come behind it, and likewise for the one in between.

        The city that was before the candidate gets one of its own behind it, if the tour stays in
        one piece.
        """
        n, num = problem.n, self.candidates.shape[1]
        city, rank = tables.row_and_column(below(words[0], n * num), num)
        near = load(self.candidates, (city, rank))
        before, at = load(tour.position, city), load(tour.position, near)
        last = load(tour.city, wrap_before(at - 1, n))
        behind = load(self.candidates, (last, below(words[1], num)))
        size = wrap_before(at - before - 1, n)
        sizes = wrap_before(load(tour.position, behind) - before - 1, n)
        return PathExchange(before, size, sizes - size)


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class DoubleBridge(PathExchanges):
    """Exchanges of two short neighboring paths anywhere in a tour: kicks of a local search.

    Three edges change, as in most codes that call it a double bridge; the original changes four.

    Martin, Otto, Felten, "Large-step Markov chains for the traveling salesman problem", 1991; kept
    short as in Applegate, Cook, Rohe, "Chained Lin-Kernighan for large traveling salesman
    problems", 2003. For symmetric distances or others.

    Attributes:
      max_path: the most cities on each of the two paths; fewer than half of the tour in any case.

    Example:
      >>> import jaxopt_search as js
      >>> problem = js.tsp_from_instance(js.datasets.grid_tsp(4, 4, spacing=10))
      >>> search = js.iterated_local_search(js.two_opt(problem), DoubleBridge(5))
      >>> js.solve(problem, search, 0, num_searches=2, max_steps=500).fun
      160
    """

    max_path: int = 30
    num_words = 3

    def __post_init__(self) -> None:
        object.__setattr__(self, "max_path", check_count("max_path", self.max_path))

    def propose(self, problem: TSP, tour: ArrayTour, words: Words) -> PathExchange:
        half = jnp.int32(problem.n - 1) >> 1
        longest = jnp.minimum(half, self.max_path)
        size, next_size = (below(word, longest) + 1 for word in words[1:])
        return PathExchange(below(words[0], problem.n), jnp.minimum(size, half), next_size)


def three_opt(problem: TSP, *, num_candidates: int = 10) -> ThreeOpt:
    """Returns the 3-opt moves that keep the direction, for distances that depend on it.

    Two neighboring paths, of any lengths, change places: none is reversed. Of the three edges that
    this puts in, two lead to candidates. A move is priced in O(1); making it changes up to 2 n / 3
    positions.

    Args:
      problem: of a matrix of distances.
      num_candidates: K, cities in the list of each city: the likeliest ones by dual costs of the
        assignment problem; n - 1 if there are fewer.

    Raises:
      ValueError: if there is no matrix on the host, or `num_candidates` is out of range.

    Example:
      >>> import jaxopt_search as js, numpy as np
      >>> problem = js.tsp(np.random.default_rng(0).integers(1, 100, (12, 12)))
      >>> search = js.simulated_annealing(three_opt(problem), 5.0, moves_per_search=8)
      >>> js.solve(problem, search, 0, num_searches=4, max_steps=1000).fun
      204
    """
    check_suits("three_opt", "a TSP", problem, isinstance(problem, TSP))
    num_candidates = check_count("num_candidates", num_candidates)
    if problem.matrix is None or traced.is_on_device_only(problem):
        raise ValueError("problem has no matrix on the host, expected one built by tsp")
    lists, *_ = assignment.likeliest(problem, num_candidates)
    return ThreeOpt(candidates=with_room(problem, lists, num_candidates))
