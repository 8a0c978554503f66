"""TSP: 2-opt and Or-opt moves that join a city to one of its candidates, on an array tour.

Croes, "A method for solving traveling-salesman problems", 1958; Or, "Traveling salesman-type
combinatorial problems and their relation to the logistics of regional blood banking", 1976;
candidate lists as in Johnson, McGeoch, "The traveling salesman problem: a case study in local
optimization", 1997.
"""

import dataclasses
import functools
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search.backends import memory, tables
from jaxopt_search.backends.memory import load
from jaxopt_search.backends.random import below
from jaxopt_search.checks import check_count, check_option, check_suits
from jaxopt_search.neighborhoods import array_tour
from jaxopt_search.neighborhoods.array_tour import ArrayTour, wrap, wrap_before, wrap_behind
from jaxopt_search.problems.tsp import traced
from jaxopt_search.problems.tsp.problem import TSP, Place
from jaxopt_search.pytrees import pytree
from jaxopt_search.types import ByElement, Span, Words, null_delta

MAX_SEGMENT = 3
"""The longest segment that Or-opt moves."""

KINDS = 4 * MAX_SEGMENT
"""Of moves that join a city to a candidate."""

# Their lengths, and whether the city is the end of its segment and comes in front of its candidate.
_MOVES = [
    (length, is_end, is_before)
    for length in range(MAX_SEGMENT + 1)
    for is_end in (False, True)[: max(length, 1)]
    for is_before in (False, True)
]


class EdgeMove(NamedTuple):
    """A 2-opt or an Or-opt move, by positions in the tour.

    2-opt reverses the path from `first` + 1 to `after`. Or-opt takes out the segment of `length`
    cities from `first` on and puts it behind `after`.

    Attributes:
      first: int32.
      after: int32.
      length: int32, 1 to `MAX_SEGMENT`; 0 for 2-opt.
      is_reversed: bool, whether the segment is reversed.
    """

    first: jax.Array
    after: jax.Array
    length: jax.Array
    is_reversed: jax.Array


@pytree
@dataclasses.dataclass(frozen=True, kw_only=True)
class TwoOpt(array_tour.ArrayTourMoves, ByElement):
    """2-opt and Or-opt moves of a TSP. Build it with `two_opt`; other problems are refused.

    Attributes:
      candidates: [capacity, K] int32, the cities to join each city to; itself for null moves.
    """

    candidates: jax.Array

    def propose(self, problem: TSP, tour: ArrayTour, words: Words) -> EdgeMove:
        """Draws a city, one of its candidates, and a move that puts them next to each other.

        2-opt and Or-opt are equally likely.
        """
        n, bits = problem.n, words[1]
        num = self.candidates.shape[1]
        city, rank = tables.row_and_column(below(words[0], n * num), num)
        near = load(self.candidates, (city, rank))
        at, near_at = load(tour.position, city), load(tour.position, near)
        is_or_opt, is_before, is_end = _bit(bits, 0), _bit(bits, 1), _bit(bits, 2)
        length = 1 + below(bits, min(MAX_SEGMENT, problem.capacity))  # by the upper bits
        length = jnp.where(is_or_opt, length, 0)
        return _joining(n, at, near_at, length, is_before, is_end)

    def num_moves_of(self, problem: TSP) -> int:
        return KINDS * self.candidates.shape[1]

    def promising(self, problem: TSP, tour: ArrayTour, element: jax.Array) -> jax.Array:
        """Returns the number of moves to candidates up to the last one that is near enough.

        That is nearer than one of the city's neighbors: else the edge that is put in saves nothing.
        """
        n, num = problem.n, self.candidates.shape[1]
        at, here = load(tour.position, element), problem.place(element)

        def away(city: jax.Array) -> jax.Array:
            return problem.between(here, problem.place(city))

        around = wrap_before(at - 1, n), wrap_behind(at + 1, n)
        before, behind = (away(load(tour.city, each)) for each in around)
        rank = jnp.minimum(memory.lanes(num), num - 1)
        is_near = away(load(self.candidates, (element, rank))) < jnp.maximum(before, behind)
        return KINDS * jnp.max(jnp.where(is_near, rank + 1, 0))

    def best_of(
        self, problem: TSP, tour: ArrayTour, element: jax.Array
    ) -> tuple[EdgeMove, jax.Array]:
        """Returns the best move of a city, of several the first one, and its change.

        A lane prices all moves to a candidate, which have most distances in common. In a kernel
        there are lanes enough for each to price a move.
        """
        if memory.is_in_kernel():
            return super().best_of(problem, tour, element)
        n, num, distance = problem.n, self.candidates.shape[1], problem.between
        lane = memory.lanes(num)
        near = load(self.candidates, (element, jnp.minimum(lane, num - 1)))
        at, near_at = load(tour.position, element), load(tour.position, near)

        def beside(position: jax.Array, offset: int) -> Place:
            offset_in_tour = jnp.clip(offset, 1 - n, n - 1)
            return problem.place(load(tour.city, wrap(position + offset_in_tour, n)))

        own, there = problem.place(element), problem.place(near)
        around = {k: beside(at, k) for k in range(-MAX_SEGMENT, MAX_SEGMENT + 1) if k} | {0: own}
        edges = {k: distance(around[k], around[k + 1]) for k in range(-MAX_SEGMENT, MAX_SEGMENT)}
        sides = [beside(near_at, offset) for offset in (1, -1)]
        joined, cuts = distance(own, there), [distance(there, side) for side in sides]
        best, kind = jnp.full_like(joined, null_delta(joined.dtype)), jnp.zeros_like(lane)
        for number, (length, is_end, is_before) in enumerate(_MOVES):
            if length > problem.capacity:
                continue
            side, cut = sides[is_before], cuts[is_before]
            if length:
                # The segment's first city and its last one, of which the other is this one.
                first, last = (1 - length, 0) if is_end else (0, length - 1)
                put_in = distance(around[first + last], side)
                closed = distance(around[first - 1], around[last + 1])
                change = joined + put_in + closed - (edges[first - 1] + cut + edges[last])
            else:
                put_in = distance(around[-1 if is_before else 1], side)
                change = joined + put_in - (edges[-1 if is_before else 0] + cut)
            kinds = jnp.int32(length), jnp.bool_(is_before), jnp.bool_(is_end)
            is_better = (change < best) & ~_is_null(_joining(n, at, near_at, *kinds), n)
            best, kind = jnp.where(is_better, change, best), jnp.where(is_better, number, kind)
        is_promising = KINDS * lane < self.promising(problem, tour, element)
        best = jnp.where(is_promising, best, null_delta(best.dtype))
        delta = jnp.min(best)
        number = jnp.min(jnp.where(best == delta, KINDS * lane + kind, KINDS * num - 1))
        return self.moves_of(problem, tour, element, number)[0], delta

    def moves_of(
        self, problem: TSP, tour: ArrayTour, element: jax.Array, number: jax.Array
    ) -> tuple[EdgeMove, jax.Array]:
        """Returns the moves that join a city to one of its candidates, all kinds for each."""
        n, rank = problem.n, lax.div(number, jnp.int32(KINDS))
        num = self.candidates.shape[1]
        near = load(self.candidates, (element, jnp.minimum(rank, num - 1)))
        at, near_at = load(tour.position, element), load(tour.position, near)
        # Two of 2-opt, two with each city alone, and four with each longer segment.
        kind = number - rank * KINDS
        length = jnp.where(kind < 4, kind >> 1, (kind >> 2) + 1)
        is_end = (kind >= 4) & ((kind & 2) != 0)
        move = _joining(n, at, near_at, length, (kind & 1) != 0, is_end)
        return move, (rank < num) & (length <= min(MAX_SEGMENT, problem.capacity))

    def touched(self, problem: TSP, tour: ArrayTour, move: EdgeMove) -> tuple[jax.Array, ...]:
        n, (first, after, length, _) = problem.n, move
        is_or_opt = length > 0
        cut = first - is_or_opt.astype(jnp.int32)
        tail = first + jnp.where(is_or_opt, length - 1, 0)
        places = (
            wrap_before(cut, n),
            wrap_behind(cut + 1, n),
            wrap_behind(tail, n),
            wrap_behind(tail + 1, n),
            after,
            wrap_behind(after + 1, n),
        )
        return tuple(load(tour.city, place) for place in places)

    def delta(self, problem: TSP, tour: ArrayTour, move: EdgeMove) -> jax.Array:
        n, distance = problem.n, problem.between
        first, after, length, is_reversed = move
        is_or_opt = length > 0

        def at(position: jax.Array) -> Place:
            return problem.place(load(tour.city, position))

        # Or-opt: `before`, the segment from `head` to `tail`, `behind`. 2-opt: the edge from
        # `before` to `head` is cut, and the others are set so that two of six distances cancel.
        cut = first - is_or_opt.astype(jnp.int32)
        before, head = at(wrap_before(cut, n)), at(wrap_behind(cut + 1, n))
        tail = _where(is_or_opt, at(wrap(first + length - 1, n)), before)
        behind = _where(is_or_opt, at(wrap_behind(first + length, n)), before)
        left, right = at(after), at(wrap_behind(after + 1, n))
        to_left = _where(is_or_opt, _where(is_reversed, tail, head), before)
        to_right = _where(is_or_opt & ~is_reversed, tail, head)
        gained = distance(left, to_left) + distance(to_right, right) + distance(before, behind)
        lost = distance(before, head) + distance(left, right) + distance(tail, behind)
        change = gained - lost
        return jnp.where(_is_null(move, n), null_delta(change.dtype), change)

    def commit(self, problem: TSP, tour: ArrayTour, move: EdgeMove, accept: jax.Array) -> ArrayTour:
        n, is_or_opt = problem.n, move.length > 0
        start = wrap_behind(move.first + 1, n)
        tour = array_tour.reverse(tour, n, start, move.after, accept & ~is_or_opt)
        return array_tour.move_segment(tour, n, move, accept & is_or_opt, MAX_SEGMENT)

    def span(self, problem: TSP, tour: ArrayTour, move: EdgeMove) -> Span:
        n, is_or_opt = problem.n, move.length > 0
        path = array_tour.reversed_path(n, wrap_behind(move.first + 1, n), move.after)
        both = zip(array_tour.rewritten_path(n, move), path, strict=True)
        return array_tour.span_of(n, *(jnp.where(is_or_opt, *each) for each in both))


def _joining(
    n: array_tour.Size,
    at: jax.Array,
    near_at: jax.Array,
    length: jax.Array,
    is_before: jax.Array,
    is_end: jax.Array,
) -> EdgeMove:
    """Returns the move that puts the city at position `at` next to the one at `near_at`.

    It goes behind that or, if `is_before`, in front of it. In 2-opt, of `length` 0, the partner's
    edge and its own lie on the same side; in Or-opt it is an end of the segment.
    """
    step_back = is_before.astype(jnp.int32)
    first = at - jnp.where(length > 0, jnp.where(is_end, length - 1, 0), step_back)
    return EdgeMove(
        first=wrap_before(first, n),
        after=wrap_before(near_at - step_back, n),
        length=length,
        is_reversed=is_before != is_end,
    )


def _where(condition: jax.Array, place: Place, other: Place) -> Place:
    return jax.tree.map(functools.partial(jnp.where, condition), place, other)


def _bit(bits: jax.Array, number: int) -> jax.Array:
    return (bits >> jnp.uint32(number)) & jnp.uint32(1) != 0


def _is_null(move: EdgeMove, n: array_tour.Size) -> jax.Array:
    """Returns where a move leads to the same cycle or is impossible, bool."""
    first, after, length, is_reversed = move
    gap = wrap_before(after - first, n)
    is_null = (gap < jnp.where(length > 0, length, 2)) | (gap == n - 1)
    is_null = is_null | (n <= 3)
    # With two cities left over, turning the segment in its new place turns the whole cycle.
    return is_null | ((n - length == 2) & (is_reversed | (length == 1)))


def two_opt(
    problem: TSP,
    *,
    num_candidates: int = 10,
    candidates: Literal["nearest", "spread"] = "nearest",
) -> TwoOpt:
    """Returns the 2-opt and Or-opt moves that join a city to one of its candidates.

    A move is priced in O(1). Making it changes up to n / 2 positions, 32 at a time. Or-opt moves
    segments of 1 to 3 cities, in both directions.

    Args:
      problem: of symmetric distances; it may be traced.
      num_candidates: K, cities in the list of each city; n - 1 if there are fewer.
      candidates: `"nearest"`, or `"spread"`: also from directions where cities are farther, for
        clustered instances; by distances alone if the problem is traced, else by quadrants where
        there are coordinates. Cities at the same place count as one.

    Raises:
      ValueError: for asymmetric distances, or options out of range.

    Example:
      >>> import jaxopt_search as js
      >>> problem = js.tsp_from_instance(js.datasets.grid_tsp(4, 4, spacing=10))
      >>> search = js.simulated_annealing(two_opt(problem), 5.0, moves_per_search=8)
      >>> js.solve(problem, search, 0, num_searches=4, max_steps=1000).fun
      160
    """
    check_suits("two_opt", "a TSP", problem, isinstance(problem, TSP))
    if not problem.is_symmetric:
        raise ValueError("problem has asymmetric distances, expected symmetric ones; use three_opt")
    num_candidates = check_count("num_candidates", num_candidates)
    check_option("candidates", candidates, ("nearest", "spread"))
    return TwoOpt(candidates=traced.candidate_lists(problem, num_candidates, candidates))
