"""Different valid placements of queens, as they are found."""

from typing import Any, NamedTuple

import numpy as np

from jaxopt_search.driver.results import MESSAGES
from jaxopt_search.problems.queens import symmetry
from jaxopt_search.problems.queens.symmetry import Distinct
from jaxopt_search.results import Status

_MAX_INT16 = 2**15 - 1

# How many placements there are (Sloane's A000170) and how many classes under symmetry (A002562).
ALL = (1, 0, 0, 2, 10, 4, 40, 92, 352, 724, 2680, 14200, 73712, 365596, 2279184, 14772512)
CLASSES = (1, 0, 0, 1, 2, 1, 6, 12, 46, 92, 341, 1787, 9233, 45752, 285053, 1846955)


def dtype_of(n: int) -> Any:
    """Returns the dtype in which placements of n queens are kept."""
    return np.int16 if n <= _MAX_INT16 else np.int32


class Standing(NamedTuple):
    """Where a run stands, to be shown.

    Attributes:
      found: different placements.
      wanted: placements asked for.
      step: steps made.
      seconds: of search.
      status: `RUNNING`, or why the run ends.
    """

    found: int
    wanted: int
    step: int
    seconds: float
    status: Status


class PlacementSet:
    """The placements found so far, of those that are wanted."""

    def __init__(self, wanted: int, distinct: Distinct, n: int):
        self.wanted, self.distinct, self.n = wanted, distinct, n
        self.num_found, self._size, self._seen = 0, 0, set[int]()
        known = ALL if distinct == "raw" else CLASSES
        self.total = known[n - 1] if n <= len(known) else None
        self._queens = np.empty((0, n), dtype_of(n))

    def add(self, queens: np.ndarray, words: np.ndarray) -> None:
        """Takes down placements [B, n] with their fingerprints [B, 2]."""
        new = []
        for place, number in enumerate(symmetry.as_numbers(words).tolist()):
            if number not in self._seen:
                self._seen.add(number)
                new.append(place)
        self.num_found += len(queens)
        new = new[: self.wanted - self._size]
        self._make_room(self._size + len(new))
        self._queens[self._size : self._size + len(new)] = queens[new]
        self._size += len(new)

    def _make_room(self, size: int) -> None:
        """Grows by half or more, so that placements which are never found take no memory."""
        if size > len(self._queens):
            room = min(max(size, self._size * 3 // 2), self.wanted)
            more = np.empty((room, self.n), dtype_of(self.n))
            more[: self._size] = self.solutions
            self._queens = more

    def status(self) -> Status:
        """Returns `TARGET` if there are as many as are wanted, `EXHAUSTED` if there are no more."""
        if self._size >= self.wanted:
            return Status.TARGET
        return Status.EXHAUSTED if self._size == self.total else Status.RUNNING

    def standing(self, step: int, seconds: float, status: Status) -> Standing:
        """Returns where a run stands that has made `step` steps."""
        return Standing(self._size, self.wanted, step, seconds, status)

    @property
    def solutions(self) -> np.ndarray:
        """The different ones, [B, n]."""
        return self._queens[: self._size]

    def message(self, status: Status) -> str:
        """Returns how the run ended."""
        number = self._size
        kind = "classes of placements" if self.distinct == "symmetry" else "placements"
        if status == Status.EXHAUSTED:
            return f"{MESSAGES[status]}: {self.n} queens have {number} valid {kind}"
        return f"{number} of {self.wanted} {kind} were found; {MESSAGES[status]}"
