"""TSP: 2-opt and Or-opt on the host, by NumPy, down to a tour that no such move makes shorter.

Moves join a city to one of its candidates, as in Johnson, McGeoch, "The traveling salesman problem:
a case study in local optimization", 1997, with "don't look bits" after Bentley, "Fast algorithms
for geometric traveling salesman problems", 1992. Each round prices the moves of all cities whose
surroundings have changed at once, and then makes those, best first, whose edges are still there.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

Distance = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Maps cities and others, of one shape, to their distances, float64."""

_NONE = -1  # stands for a city
MAX_SEGMENT = 3  # cities that Or-opt moves
_MAX_ROUNDS = 100
_LEAST_GAIN = 1e-7  # of the longest edge to a candidate, which rounding stays below


class Moves(NamedTuple):
    """Moves that remove the edge between `city` and `away` and join `city` to `near`, [P] each.

    Attributes:
      gain: by how much each makes the tour shorter.
      city, away, near, beyond: `beyond` is the city next to `near` from which that is parted.
      last: the other end of the segment that Or-opt takes out, from `city` on; `_NONE` for 2-opt.
      behind: the city that follows it.
    """

    gain: np.ndarray
    city: np.ndarray
    away: np.ndarray
    near: np.ndarray
    beyond: np.ndarray
    last: np.ndarray
    behind: np.ndarray

    def best_first(self, least: float) -> list[tuple[int, ...]]:
        """Returns those that gain more than `least`, without their gains."""
        (index,) = np.nonzero(self.gain > least)
        index = index[np.argsort(-self.gain[index], kind="stable")]
        return list(zip(*(part[index].tolist() for part in self[1:]), strict=True))


class ArrayTour:
    """A tour in which paths are reversed.

    Attributes:
      city: [n] the city at each position.
      position: [n] of each city.
    """

    def __init__(self, tour: np.ndarray):
        self.city = np.array(tour, np.int64)
        self.position = np.empty_like(self.city)
        self._numbers = np.arange(len(self.city))
        self.position[self.city] = self._numbers
        # Single entries of a memory view are read twice as fast as those of an array.
        self._city, self._position = self.city.data, self.position.data

    def sides(self, a: int) -> tuple[int, int]:
        """Returns the cities before and after a city."""
        at = self._position[a]
        return self._city[at - 1], self._city[at + 1 - len(self.city)]

    def exchange(self, a: int, b: int, c: int, d: int) -> None:
        """Replaces the edges a-b and c-d by a-c and b-d; a and c are both first in theirs, or last.

        Reverses the shorter path of the two that can be.
        """
        if self.sides(a)[1] != b:
            a, b, c, d = b, a, d, c
        low, high = self._position[b], self._position[c]
        n = len(self.city)
        size = (high - low) % n + 1
        if 2 * size > n:
            low, size = self._position[d], n - size
        if low + size <= n:
            where = slice(low, low + size)
            self.city[where] = path = self.city[where][::-1].copy()
            self.position[path] = self._numbers[where]
        else:
            where = np.arange(low, low + size) % n
            self.city[where] = path = self.city[where[::-1]]
            self.position[path] = where

    def make(self, city: int, away: int, near: int, beyond: int, last: int, behind: int) -> bool:
        """Makes a move if the edges that it replaces are still there, and returns whether."""
        side = self.sides(city).index(away) if away in self.sides(city) else -1
        if side < 0 or beyond not in self.sides(near):
            return False
        if last == _NONE:
            if self.sides(near)[side] != beyond:
                return False
            self.exchange(city, away, near, beyond)
            return True
        if not self._has_segment(city, last, behind, 1 - side, (near, beyond)):
            return False
        if self.sides(near)[side] == beyond:
            self.exchange(city, away, near, beyond)
            self.exchange(away, beyond, behind, last)
        else:
            self.exchange(away, city, near, beyond)
            self.exchange(away, near, behind, last)
            self.exchange(near, last, city, beyond)
        return True

    def _has_segment(
        self, city: int, last: int, behind: int, side: int, others: tuple[int, int]
    ) -> bool:
        """Returns whether a path leads from `city` over `last` to `behind`, without the others."""
        for _ in range(MAX_SEGMENT):
            if city in others:
                return False
            following = self.sides(city)[side]
            if city == last:
                return following == behind
            city = following
        return False


def descend(tour: np.ndarray, near: np.ndarray, distance: Distance) -> np.ndarray:
    """Returns a tour that 2-opt and Or-opt moves to candidates make no shorter, [n] int64.

    Args:
      tour: [n], the start, which is never better.
      near: [n, K] candidates, nearest first.
      distance: symmetric.
    """
    n = len(tour)
    if n < 5:
        return np.array(tour, np.int64)
    to_near = distance(np.broadcast_to(np.arange(n)[:, None], near.shape), near)
    least = _LEAST_GAIN * float(np.abs(to_near).max())
    current, looking = ArrayTour(tour), np.arange(n)
    for _ in range(_MAX_ROUNDS):
        touched: set[int] = set()
        for move in _moves(current, looking, near, to_near, distance).best_first(least):
            touched.update(move if current.make(*move) else move[:3:2])
        looking = np.array(sorted(touched - {_NONE}), np.int64)
        if not len(looking):
            break
    return current.city


def _moves(
    tour: ArrayTour, cities: np.ndarray, near: np.ndarray, to_near: np.ndarray, distance: Distance
) -> Moves:
    """Returns the best move for each of some cities, each side of it and each candidate.

    Only where the candidate is nearer than the city on that side: nearly every move that gains puts
    in an edge that is shorter than one taken out next to it.
    """
    following = tour.city[(tour.position + 1) % len(near)]
    sides = np.stack([tour.city[tour.position - 1], following])  # of each city
    length = distance(np.broadcast_to(np.arange(len(near)), sides.shape), sides)
    side, row, rank = np.nonzero(to_near[cities] < length[:, cities, None])
    city, joined = cities[row], to_near[cities[row], rank]
    near = near[city, rank]
    away, beyond = sides[side, city], sides[side, near]
    gain = length[side, city] + length[side, near] - joined - distance(away, beyond)
    none = np.full_like(city, _NONE)
    best = Moves(gain, city, away, near, beyond, none, none)
    # Either the segment that is moved starts at the city, or at the candidate.
    for (head, back), (other, front) in (
        ((city, side), (near, side)),
        ((city, side), (near, 1 - side)),
        ((near, side), (city, side)),
        ((near, 1 - side), (city, side)),
    ):
        away, beyond = sides[back, head], sides[front, other]
        kept = length[back, head] + length[front, other] - joined
        last, is_wrong = head, other == away
        for size in range(MAX_SEGMENT):
            last = sides[1 - back, last] if size else head
            behind = sides[1 - back, last]
            is_wrong = is_wrong | (last == other) | (last == beyond) | (behind == away)
            gain = kept + length[1 - back, last] - distance(away, behind) - distance(last, beyond)
            gain[is_wrong] = -np.inf
            best = _better(best, Moves(gain, head, away, other, beyond, last, behind))
    return best


def _better(moves: Moves, others: Moves) -> Moves:
    is_better = others.gain > moves.gain
    return Moves(*(np.where(is_better, b, a) for a, b in zip(moves, others, strict=True)))
