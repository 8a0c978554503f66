"""Counting attacking pairs on threads of the host: functions from a numpy placement to an int.

A thread compares some queens with all behind them; NumPy does that without holding Python's lock.
`tune_threads` measures which number of threads is best for which size, and keeps the table for this
machine.

Source: "Parallel schemes of the N-Queens fitness function on CPU and GPU", Algorithms 2 to 6.
"""

import functools
import itertools
import json
import os
import platform
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np

_RANGES_PER_THREAD = 8
_ROWS = 64
"""Rows that are compared in one go; their attacks on a column add up in a byte."""


def threads(queens: np.ndarray, num_threads: int | None = None) -> int:
    """Counts on threads that take blocks of rows in turns.

    Args:
      queens: [n] integers.
      num_threads: None for the number that `tune_threads` found best at about this size, or of
        cores where nothing was measured.
    """
    n = len(queens)
    num_threads = num_threads or best_num_threads(n, load_table())
    blocks, attacks = _blocks(0, n), _attacks(queens)

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


def tune_threads(
    sizes: Sequence[int] = (100, 300, 1000, 3000, 10_000),
    counts: Sequence[int] | None = None,
    repeats: int = 5,
) -> dict[int, dict[int, float]]:
    """Measures `threads`, and keeps for this machine which number of them is best at which size.

    Args:
      sizes: n of the placements.
      counts: numbers of threads to try; None for powers of two up to twice the cores.
      repeats: how many counts are timed, of which the fastest is taken.

    Returns:
      Seconds by size and number of threads. `table_path` says where the best are written.

    Example:
      >>> seconds = tune_threads([50], counts=[1, 2], repeats=1)
      >>> {n: sorted(times) for n, times in seconds.items()}
      {50: [1, 2]}
    """
    counts = counts or [1 << k for k in range((2 * num_cores()).bit_length())]
    seconds: dict[int, dict[int, float]] = {}
    for n in sizes:
        queens = np.random.default_rng(n).permutation(n).astype(np.int32)
        seconds[n] = {count: _fastest(queens, count, repeats) for count in counts}
    best = {str(n): min(times, key=lambda count: times[count]) for n, times in seconds.items()}
    path = table_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(best))
    return seconds


def _fastest(queens: np.ndarray, num_threads: int, repeats: int) -> float:
    threads(queens, num_threads)
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        threads(queens, num_threads)
        times.append(time.perf_counter() - began)
    return min(times)


def table_path() -> Path:
    """Returns the file with this machine's best numbers of threads, in the user's cache folder.

    Example:
      >>> print(table_path())
      /...threads-...json
    """
    folder = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(folder) / "jaxopt_search" / f"threads-{platform.node()}-{num_cores()}.json"


def load_table() -> dict[int, int]:
    """Returns the best number of threads by size; empty if none were measured or can be read."""
    try:
        read = json.loads(table_path().read_text())
        table = {int(n): int(count) for n, count in read.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}
    return table if all(n > 0 and count > 0 for n, count in table.items()) else {}


def best_num_threads(n: int, table: Mapping[int, int]) -> int:
    """Returns the number of threads for the size in `table` that is nearest to `n` as a ratio."""
    if not table:
        return num_cores()
    return table[min(table, key=lambda size: abs(np.log(size / max(n, 1))))]


@functools.cache
def _pool(num_threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(num_threads, thread_name_prefix="jaxopt_search")


def num_cores() -> int:
    """Returns the number of cores that this process may use."""
    is_known = hasattr(os, "sched_getaffinity")
    return len(os.sched_getaffinity(0)) if is_known else os.cpu_count() or 1
