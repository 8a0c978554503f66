"""Different valid placements of queens, as they are found."""

import itertools
from typing import Any, NamedTuple

import numpy as np

from jaxopt_search.checks import check_count
from jaxopt_search.driver.results import MESSAGES
from jaxopt_search.problems.queens import symmetry
from jaxopt_search.problems.queens.symmetry import Distinct
from jaxopt_search.results import Status

_MAX_INT16 = 2**15 - 1
_AT_ONCE = 256  # placements that are checked together

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


class Counts(NamedTuple):
    """How many placements were found: different ones, and all of them."""

    different: int
    found: int


def _attack(queens: np.ndarray) -> bool:
    """Returns whether queens attack in any of the placements [B, n], or are off the board."""
    n = queens.shape[1]
    if queens.size and not 0 <= queens.min() <= queens.max() < n:
        return True
    row = np.arange(n, dtype=np.int32)
    lines = (np.sort(queens + steps, axis=1) for steps in (0 * row, row, -row))
    return any((one[:, 1:] == one[:, :-1]).any() for one in lines)


class PlacementSet:
    """The placements found so far: those that are wanted, and what was found with the last one."""

    def __init__(self, wanted: int, distinct: Distinct, n: int):
        self.distinct: Distinct = distinct
        self.wanted, self.n = wanted, n
        self.num_found, self._seen = 0, dict[int, None]()  # the numbers of `_queens`
        known = ALL if distinct == "raw" else CLASSES
        self.total = known[n - 1] if n <= len(known) else None
        self._queens = np.empty((0, n), dtype_of(n))

    def add(self, queens: np.ndarray, words: np.ndarray) -> None:
        """Takes down placements [B, n] with their fingerprints [B, 2]."""
        new, size = [], len(self._seen)
        for place, number in enumerate(symmetry.as_numbers(words).tolist()):
            if number not in self._seen:
                self._seen[number] = None
                new.append(place)
        self.num_found += len(queens)
        self._make_room(size, len(self._seen))
        self._queens[size : len(self._seen)] = queens[new]

    def _make_room(self, old: int, size: int) -> None:
        """Grows by half or more, so that placements which are never found take no memory."""
        if size > len(self._queens):
            room = max(size, min(old * 3 // 2, self.wanted))
            more = np.empty((room, self.n), dtype_of(self.n))
            more[:old] = self._queens[:old]
            self._queens = more

    @property
    def counts(self) -> Counts:
        """How many there are by now."""
        return Counts(len(self._seen), self.num_found)

    def kept(self, counts: Counts) -> tuple[np.ndarray, np.ndarray]:
        """Returns the first ones, with those beyond what is wanted, and their numbers before."""
        numbers = itertools.islice(self._seen, counts.different)
        return (
            np.fromiter(numbers, np.uint64, counts.different),
            self._queens[: counts.different],
        )

    def shapes_of(self, counts: Counts) -> tuple[np.ndarray, np.ndarray]:
        """Returns arrays like those of `kept`, which take no memory."""
        size = check_count("different", counts.different, 0, None)
        queens = np.zeros((), dtype_of(self.n))
        return np.broadcast_to(np.uint64(0), size), np.broadcast_to(queens, (size, self.n))

    def recall(self, numbers: np.ndarray, queens: np.ndarray, counts: Counts) -> None:
        """Continues from what was kept."""
        for first in range(0, len(queens), _AT_ONCE):
            if _attack(queens[first : first + _AT_ONCE]):
                raise ValueError("in one of its placements queens attack")
        self._seen = dict.fromkeys(numbers.tolist())
        self._queens, self.num_found = queens, counts.found

    def status(self) -> Status:
        """Returns `TARGET` if there are as many as are wanted, `EXHAUSTED` if there are no more."""
        size = len(self._seen)
        if size >= self.wanted:
            return Status.TARGET
        return Status.EXHAUSTED if size == self.total else Status.RUNNING

    def standing(self, step: int, seconds: float, status: Status) -> Standing:
        """Returns where a run stands that has made `step` steps."""
        return Standing(len(self.solutions), self.wanted, step, seconds, status)

    @property
    def solutions(self) -> np.ndarray:
        """The different ones that are wanted, [B, n]."""
        return self._queens[: min(len(self._seen), self.wanted)]

    def message(self, status: Status) -> str:
        """Returns how the run ended."""
        number = len(self.solutions)
        kind = "classes of placements" if self.distinct == "symmetry" else "placements"
        if status == Status.EXHAUSTED:
            return f"{MESSAGES[status]}: {self.n} queens have {number} valid {kind}"
        return f"{number} of {self.wanted} {kind} were found; {MESSAGES[status]}"
