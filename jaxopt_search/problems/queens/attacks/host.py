"""Counting attacking pairs on threads of the host: functions from a numpy placement to an int.

A thread compares some queens with all behind them; NumPy does that without holding Python's lock.

Source: "Parallel schemes of the N-Queens fitness function on CPU and GPU", Algorithms 2 to 6.
"""

import functools
import itertools
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from jaxopt_search.checks import num_cores

_RANGES_PER_THREAD = 8
_ROWS = 64
"""Rows that are compared in one go; their attacks on a column add up in a byte."""


def threads(queens: np.ndarray, num_threads: int | None = None) -> int:
    """Counts on threads that take blocks of rows in turns.

    Args:
      queens: [n] integers.
      num_threads: None for the number of cores.
    """
    num_threads = num_threads or num_cores()
    blocks, attacks = _blocks(0, len(queens)), _attacks(queens)

    def part(first: int) -> int:
        return sum(attacks(*block) for block in blocks[first::num_threads])

    return sum(_pool(num_threads).map(part, range(num_threads)))


def range_reduce(queens: np.ndarray, num_threads: int | None = None) -> int:
    """Counts by ranges of rows with equally many pairs, which idle threads take, and adds up."""
    n, num_threads = len(queens), num_threads or num_cores()
    parts, attacks = num_threads * _RANGES_PER_THREAD, _attacks(queens)
    # Row i has n - 1 - i pairs, so that a share s of all is done after n - n sqrt(1 - s) rows.
    bounds = (n * (1 - np.sqrt(1 - np.arange(parts + 1) / parts))).astype(int).tolist()

    def part(ends: tuple[int, int]) -> int:
        return sum(attacks(*block) for block in _blocks(*ends))

    return sum(_pool(num_threads).map(part, itertools.pairwise(bounds)))


def fork_join(queens: np.ndarray, threshold: int = 64, num_threads: int | None = None) -> int:
    """Counts by halving the rows until at most `threshold` are left, and joins the halves in pairs.

    A half is left to an idle thread; if none has begun it when it is needed, it is done at once.
    The thread that calls is one of the `num_threads`.
    """
    num_threads, attacks = num_threads or num_cores(), _attacks(queens)
    pool = _pool(num_threads - 1) if num_threads > 1 else None

    def task(first: int, last: int) -> int:
        if last - first <= threshold:
            return sum(attacks(*block) for block in _blocks(first, last))
        middle = (first + last) // 2
        if pool is None:
            return task(first, middle) + task(middle, last)
        forked: Future[int] = pool.submit(task, first, middle)
        own = task(middle, last)
        return own + (task(first, middle) if forked.cancel() else forked.result())

    return task(0, len(queens))


def _blocks(first: int, last: int) -> list[tuple[int, int]]:
    """Returns the rows from `first` to `last` in blocks that are compared in one go."""
    return [(start, min(start + _ROWS, last)) for start in range(first, last, _ROWS)]


def _attacks(queens: np.ndarray) -> Callable[[int, int], int]:
    """Returns a function that counts how often queens of a block attack queens behind them."""
    place = np.arange(len(queens), dtype=queens.dtype)
    diagonals = queens + place, queens - place
    own_of_thread = threading.local()

    def room(rows: int, columns: int) -> np.ndarray:
        """Returns an array that the thread has used before: new memory would be cleared first."""
        if not hasattr(own_of_thread, "room"):
            own_of_thread.room = np.empty(_ROWS * (len(queens) + 8), bool)
        return own_of_thread.room[: rows * columns].reshape(rows, columns)

    def count(first: int, last: int) -> int:
        # Eight columns are summed up as one word, which takes no lock and an eighth of the time.
        behind = len(queens) - last
        alike = room(last - first, -(-behind // 8) * 8)
        alike[:, behind:] = False
        attacks = 0
        for diagonal in diagonals:
            own = diagonal[first:last, None]
            np.equal(own, diagonal[last:], out=alike[:, :behind])
            columns = np.add.reduce(alike.view(np.uint64), axis=0).view(np.uint8)
            among = np.triu(own == diagonal[first:last], 1)
            attacks += int(columns.sum(dtype=np.int64)) + int(np.count_nonzero(among))
        return attacks

    return count


HOST: dict[str, Callable[..., int]] = {
    "threads": threads,
    "range_reduce": range_reduce,
    "fork_join": fork_join,
}


@functools.cache
def _pool(num_threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(num_threads, thread_name_prefix="jaxopt_search")
