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
        # Single entries of a memory view are read twice as fast as entries of an array.
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
    now, cities = ArrayTour(tour), np.arange(n)
    for _ in range(_MAX_ROUNDS):
        touched = set[int]()
        for move in _moves(_neighbors(now.city, distance), cities, near, to_near, least):
            touched.update(move if now.make(move) else (move.city, move.near))
        if not touched:
            break
        cities = np.array(sorted(touched - {_NONE}), np.int64)
    return now.city


class Neighbors(NamedTuple):
    """The neighbors of all cities on a tour.

    Attributes:
      sides: [2 n] those before, then those after, each by cities.
      length: [2 n] how far they are.
      distance: maps cities to distances.
    """

    sides: np.ndarray
    length: np.ndarray
    distance: Distance


def _neighbors(city: np.ndarray, distance: Distance) -> Neighbors:
    n, following = len(city), np.roll(city, -1)
    step = distance(city, following)
    sides, length = np.empty(2 * n, np.int64), np.empty(2 * n)
    for here, there in ((following, city), (n + city, following)):
        sides[here], length[here] = there, step
    return Neighbors(sides, length, distance)


class _Join(NamedTuple):
    """An edge to put in for each of P pairs of cities, each of which loses a neighbor.

    Attributes:
      head, other: [P] the cities that it joins.
      back, front: [P] the side on which they lose one: 0 for the neighbor before, n for the next.
    """

    head: np.ndarray
    back: np.ndarray
    other: np.ndarray
    front: np.ndarray


def _moves(
    now: Neighbors, cities: np.ndarray, near: np.ndarray, to_near: np.ndarray, least: float
) -> list[Move]:
    """Returns the best move for each of some cities, each side of it and each candidate.

    Only where the candidate is nearer than the city on that side: nearly every move that gains puts
    in an edge that is shorter than one taken out next to it. Those that gain most come first, and
    all gain more than `least`.
    """
    n = len(near)
    farther = now.length.reshape(2, n)[:, cities, None]
    side, row, rank = np.nonzero(to_near[cities] < farther)
    city, this, that = cities[row], side * n, n - side * n
    near, joined = near[city, rank], to_near[city, rank]
    # The segment of Or-opt starts at the city, or at the candidate, and goes to either side of the
    # other one. 2-opt is of the first kind.
    joins = [
        _Join(city, this, near, this),
        _Join(city, this, near, that),
        _Join(near, this, city, this),
        _Join(near, that, city, this),
    ]
    or_opt = [gain for join in joins for gain in or_opt_gains(now, join, joined)]
    gains = np.stack([two_opt_gains(now, joins[0], joined), *or_opt])
    best = gains.argmax(axis=0)
    gain = np.take_along_axis(gains, best[None], axis=0)[0]
    (index,) = np.nonzero(gain > least)
    index = index[np.argsort(-gain[index], kind="stable")]
    which, size = np.divmod(np.maximum(best[index] - 1, 0), MAX_SEGMENT)
    chosen = _Join(*(np.stack(parts)[which, index] for parts in zip(*joins, strict=True)))
    return _as_moves(now, chosen, np.where(best[index] > 0, size + 1, 0))


def two_opt_gains(now: Neighbors, join: _Join, joined: np.ndarray) -> np.ndarray:
    """Returns the gains of 2-opt, [P]: the two neighbors that are lost are joined, too.

    Args:
      joined: [P] the lengths of the edges that are put in.
    """
    head, back, other, front = join
    away, beyond = now.sides[back + head], now.sides[front + other]
    kept = now.length[back + head] + now.length[front + other] - joined
    return kept - now.distance(away, beyond)


def or_opt_gains(now: Neighbors, join: _Join, joined: np.ndarray) -> list[np.ndarray]:
    """Returns the gains of Or-opt with segments of 1, 2, ... cities, [P] each.

    A segment that begins at `head` is put between `other` and the neighbor that this loses; -inf
    where these are of the segment.
    """
    head, back, other, front = join
    sides, length, _ = now
    away, beyond = sides[back + head], sides[front + other]
    kept = length[back + head] + length[front + other] - joined
    last, ahead, is_wrong, gains = head, len(sides) // 2 - back, other == away, list[np.ndarray]()
    for size in range(MAX_SEGMENT):
        last = sides[ahead + last] if size else head
        behind = sides[ahead + last]
        is_wrong = is_wrong | (last == other) | (last == beyond) | (behind == away)
        gain = kept + length[ahead + last] - now.distance(away, behind) - now.distance(last, beyond)
        gains.append(np.where(is_wrong, -np.inf, gain))
    return gains


def _as_moves(now: Neighbors, join: _Join, size: np.ndarray) -> list[Move]:
    """Returns moves.

    Args:
      size: [P] of the segment of Or-opt; 0 for 2-opt.
    """
    (head, back, other, front), sides = join, now.sides
    last, ahead = head, len(sides) // 2 - back
    for reached in range(1, MAX_SEGMENT):
        last = np.where(reached < size, sides[ahead + last], last)
    segment = (np.where(size > 0, part, _NONE) for part in (last, sides[ahead + last]))
    parts = head, sides[back + head], other, sides[front + other], *segment
    return list(map(Move, *(part.tolist() for part in parts)))
