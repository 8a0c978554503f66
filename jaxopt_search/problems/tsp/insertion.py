"""TSP: Or-opt that turns no segment around, on the host by NumPy, for asymmetric distances.

Kanellakis, Papadimitriou, "Local search for the asymmetric traveling salesman problem", 1980, on
moves that keep the direction; Or, "Traveling salesman-type combinatorial problems and their
relation to the logistics of regional blood banking", 1976.
"""

import numpy as np

_MAX_SEGMENT = 3
_MAX_ROUNDS = 100
_LEAST_GAIN = 1e-7  # of the longest edge of the start, which rounding stays below
_ROWS = 256  # segments whose moves to all places are in memory at once


def descend(tour: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Returns a tour that moving a segment of up to three cities makes no shorter, [n] int64.

    Each round prices all moves, O(n * n), and makes the best one of each segment, best first, if
    the edges that it replaces are still there.

    Args:
      tour: [n], the start, which is never better.
      matrix: [n, n] from city to city.
    """
    least = _LEAST_GAIN * float(np.abs(matrix[tour, np.roll(tour, -1)]).max())
    for _ in range(_MAX_ROUNDS):
        links = _Links(tour)
        if not sum(links.make(*move) for move in _moves(tour, matrix, least)):
            break
        tour = links.tour()
    return tour


class _Links:
    """A tour as the city after each city and before it."""

    def __init__(self, tour: np.ndarray):
        after, before = np.empty_like(tour), np.empty_like(tour)
        after[tour], before[tour] = np.roll(tour, -1), np.roll(tour, 1)
        self.after, self.before = after.tolist(), before.tolist()

    def make(self, first: int, last: int, front: int, behind: int, left: int, right: int) -> bool:
        """Moves a segment if the edges that this replaces are still there; returns whether."""
        after, before = self.after, self.before
        if before[first] != front or after[last] != behind or after[left] != right:
            return False
        city = first
        for _ in range(_MAX_SEGMENT):
            if city in (left, last):
                break
            city = after[city]
        if city != last or last == left:
            return False
        after[front], before[behind] = behind, front
        after[left], before[first] = first, left
        after[last], before[right] = right, last
        return True

    def tour(self) -> np.ndarray:
        """Returns the cities in order, [n] int64."""
        tour = [0]
        for _ in range(len(self.after) - 1):
            tour.append(self.after[tour[-1]])
        return np.array(tour)


def _moves(tour: np.ndarray, matrix: np.ndarray, least: float) -> list[tuple[int, ...]]:
    """Returns the moves that gain, best first: segment, its neighbors, and its new ones."""
    n, gains, moves = len(tour), [], []
    following = np.roll(tour, -1)
    length = matrix[tour, following].astype(np.float64)
    for size in range(1, min(_MAX_SEGMENT, n - 2) + 1):
        for low in range(0, n, _ROWS):
            at = np.arange(low, min(low + _ROWS, n))
            first, last = tour[at], tour[(at + size - 1) % n]
            before, behind = tour[at - 1], tour[(at + size) % n]
            taken = length[at - 1] + length[(at + size - 1) % n] - matrix[before, behind]
            gain = length - matrix[:, first][tour].T - matrix[last][:, following]
            for shift in range(-1, size):
                gain[np.arange(len(at)), (at + shift) % n] = -np.inf
            place = gain.argmax(axis=1)
            gains.append(taken + gain[np.arange(len(at)), place])
            moves.append((first, last, before, behind, tour[place], following[place]))
    gain = np.concatenate(gains)
    (index,) = np.nonzero(gain > least)
    index = index[np.argsort(-gain[index], kind="stable")]
    parts = [np.concatenate(part)[index].tolist() for part in zip(*moves, strict=True)]
    return list(zip(*parts, strict=True))
