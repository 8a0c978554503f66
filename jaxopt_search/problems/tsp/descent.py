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


class Move(NamedTuple):
    """Removes the edge between `city` and `away` and joins `city` to `near`.

    Attributes:
      city, away, near, beyond: `beyond` is the city next to `near` from which that is parted.
      last: the other end of the segment that Or-opt takes out, from `city` on; `_NONE` for 2-opt.
      behind: the city that follows it.
    """

    city: int
    away: int
    near: int
    beyond: int
    last: int
    behind: int


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

    def make(self, move: Move) -> bool:
        """Makes a move if the edges that it replaces are still there, and returns whether."""
        city, away, near, beyond, last, behind = move
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
        for move in _moves(current, looking, near, to_near, distance, least):
            touched.update(move if current.make(move) else (move.city, move.near))
        looking = np.array(sorted(touched - {_NONE}), np.int64)
        if not len(looking):
            break
    return current.city


class _Joins(NamedTuple):
    """Edges to put in, `head` to `other`, each of which is parted from one of its neighbors.

    Attributes:
      head, other: [R, P] cities.
      back, front: [R, P] 0 if that is the one before them, n if it is the one after them.
      joined: [P] lengths of the edges.
    """

    head: np.ndarray
    back: np.ndarray
    other: np.ndarray
    front: np.ndarray
    joined: np.ndarray


def _moves(
    tour: ArrayTour,
    cities: np.ndarray,
    near: np.ndarray,
    to_near: np.ndarray,
    distance: Distance,
    least: float,
) -> list[Move]:
    """Returns the best move for each of some cities, each side of it and each candidate.

    Only where the candidate is nearer than the city on that side: nearly every move that gains puts
    in an edge that is shorter than one taken out next to it. Those that gain most come first, and
    all gain more than `least`.
    """
    n = len(near)
    # The neighbors of each city: those before, then those after it.
    sides = np.concatenate([tour.city[tour.position - 1], tour.city[(tour.position + 1) % n]])
    length = distance(np.tile(np.arange(n), 2), sides)
    side, row, rank = np.nonzero(to_near[cities] < length.reshape(2, n)[:, cities, None])
    city, this, that = cities[row], side * n, n - side * n
    near, joined = near[city, rank], to_near[city, rank]
    # The segment of Or-opt starts at the city, or at the candidate, and goes to either side of the
    # other one. 2-opt is of the first kind.
    joins = _Joins(
        head=np.stack([city, city, near, near]),
        back=np.stack([this, this, this, that]),
        other=np.stack([near, near, city, city]),
        front=np.stack([this, that, this, this]),
        joined=joined,
    )
    gains = _gains(joins, sides, length, distance)
    best = gains.argmax(axis=0)
    gain = np.take_along_axis(gains, best[None], axis=0)[0]
    (index,) = np.nonzero(gain > least)
    index = index[np.argsort(-gain[index], kind="stable")]
    return _as_moves(joins, sides, best[index], index)


def _gains(joins: _Joins, sides: np.ndarray, length: np.ndarray, distance: Distance) -> np.ndarray:
    """Returns what the moves of joins gain, [1 + R * MAX_SEGMENT, P].

    First 2-opt of the first joins, then Or-opt of all of them, with segments of each size.

    Args:
      sides, length: [2 n] neighbors of cities, and how far they are.
    """
    head, back, other, front, joined = joins
    away, beyond = sides[back + head], sides[front + other]
    kept = length[back + head] + length[front + other] - joined
    last, ahead, is_wrong, gains = head, len(sides) // 2 - back, other == away, list[np.ndarray]()
    for size in range(MAX_SEGMENT):
        last = sides[ahead + last] if size else head
        behind = sides[ahead + last]
        is_wrong = is_wrong | (last == other) | (last == beyond) | (behind == away)
        gain = kept + length[ahead + last] - distance(away, behind) - distance(last, beyond)
        gains.append(np.where(is_wrong, -np.inf, gain))
    two_opt = kept[:1] - distance(away[:1], beyond[:1])
    return np.concatenate([two_opt, *np.stack(gains, axis=1)])


def _as_moves(
    joins: _Joins, sides: np.ndarray, number: np.ndarray, index: np.ndarray
) -> list[Move]:
    """Returns moves of joins, by their numbers among those that `_gains` prices."""
    row, size = np.divmod(np.maximum(number - 1, 0), MAX_SEGMENT)
    head, back, other, front = (part[row, index] for part in joins[:4])
    last, ahead = head, len(sides) // 2 - back
    for reached in range(MAX_SEGMENT - 1):
        last = np.where(reached < size, sides[ahead + last], last)
    segment = (np.where(number > 0, part, _NONE) for part in (last, sides[ahead + last]))
    parts = head, sides[back + head], other, sides[front + other], *segment
    return list(map(Move, *(part.tolist() for part in parts)))
