"""Hill climbing and annealing on the QAP compiled for one core, and what tabu search shares.

They are the searches of `runs.searches`, written for a core: a table of deltas whose rows
the compiler handles as vectors, and distances kept in the order of the facilities, so that nothing
is looked up by index. For symmetric matrices with zero diagonals. They need numba, from the extra
`peers`. `compiled_tabu.py` has tabu search.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from experiments.one_core import xorshift


def symmetric(flow: np.ndarray, distance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns symmetric matrices with which all costs are twice as high.

    They are int32 where all deltas fit, else int64.

    Raises:
      ValueError: if neither matrix is symmetric, or if a diagonal is not zero.
    """
    flow, distance = flow.astype(np.int64), distance.astype(np.int64)
    if any(matrix.diagonal().any() for matrix in (flow, distance)):
        raise ValueError("it takes matrices with zero diagonals only")
    if (distance == distance.T).all():
        flow = flow + flow.T
    elif (flow == flow.T).all():
        distance = distance + distance.T
    else:
        raise ValueError("it takes instances with one symmetric matrix at least")
    highest = 8 * int(np.abs(flow).sum(axis=1).max()) * int(np.abs(distance).max())
    dtype = np.int32 if highest < 2**29 else np.int64
    return flow.astype(dtype), distance.astype(dtype)


def cost(flow: np.ndarray, distance: np.ndarray, assignment: np.ndarray) -> int:
    """Returns the cost of an assignment, exactly."""
    near = distance[np.ix_(assignment, assignment)].astype(np.int64)
    return int((flow.astype(np.int64) * near).sum())


def starts(n: int, num_searches: int, seed: int) -> np.ndarray:
    """Returns [num_searches, n] int64, random assignments."""
    generator = np.random.default_rng(seed)
    return generator.permuted(np.tile(np.arange(n), (num_searches, 1)), axis=1)


def build_climber(compile_fn: Callable[[Any], Any]) -> Any:
    """Returns `climb(flow, distance, assignments)`: all to local optima, by best improvement.

    Assignments are [S, n] and are changed in place; it returns the steps made, the last of each
    search, which finds no better neighbor, included.
    """
    start, swap = build_table(compile_fn)

    @compile_fn
    def first_of_lowest(deltas):
        """Returns the swap of the lowest delta, and the delta."""
        r, best = 0, deltas[0, 1]
        for i in range(len(deltas) - 1):
            row = deltas[i, i + 1 :]
            low = row[0]
            for j in range(len(row)):
                low = min(low, row[j])
            if low < best:
                r, best = i, low
        s = r + 1
        while deltas[r, s] != best:
            s += 1
        return r, s, best

    @compile_fn
    def climb(flow, distance, assignments):
        steps = 0
        for k in range(len(assignments)):
            assignment = assignments[k]
            near, deltas = start(flow, distance, assignment)
            change = -1
            while change < 0:
                steps += 1
                r, s, change = first_of_lowest(deltas)
                if change < 0:
                    assignment[r], assignment[s] = assignment[s], assignment[r]
                    swap(flow, near, deltas, r, s)
        return steps

    return climb


def build_annealer(compile_fn: Callable[[Any], Any]) -> Any:
    """Returns `anneal(flow, distance, assignments, hottest, factor, num_steps, moves, seed)`.

    Each step prices up to `moves` random swaps one after the other and makes the first that passes
    the Metropolis test; the temperature of a step is `factor` times the one before.
    Assignments are [S, n] and become the best found. It returns the moves priced and made.
    """
    delta, exchange, draw = map(compile_fn, (_delta, _exchange, xorshift))

    @compile_fn
    def anneal(flow, distance, assignments, hottest, factor, num_steps, moves, seed):
        n, priced, made = len(flow), 0, 0
        for k in range(len(assignments)):
            assignment = assignments[k].copy()
            best = assignments[k]
            near = distance[assignment][:, assignment]
            now, lowest, temperature = 0, 0, hottest
            word = 1 + (seed + k) % 0x7FFFFFFF
            for _ in range(20):
                word = draw(word)
            for _ in range(num_steps):
                for _ in range(moves):
                    word = draw(word)
                    r = word * n >> 32
                    word = draw(word)
                    s = word * (n - 1) >> 32
                    s += s >= r
                    priced += 1
                    change = delta(flow, near, r, s)
                    passes = change <= 0
                    if not passes and change < 25 * temperature:
                        word = draw(word)
                        passes = word < 4294967296.0 * math.exp(-change / temperature)
                    if passes:
                        made += 1
                        now += change
                        assignment[r], assignment[s] = assignment[s], assignment[r]
                        exchange(near, r, s)
                        if now < lowest:
                            lowest = now
                            best[:] = assignment
                        break
                temperature *= factor
        return priced, made

    return anneal


def _delta(flow, near, i, j):
    """Returns the change in cost if facilities i and j exchange their locations, in O(n).

    `near[i, j]` is the distance between the locations of facilities i and j.
    """
    first, second, here, there = flow[i], flow[j], near[i], near[j]
    total = first[j] * here[j] * 2
    for k in range(len(first)):
        total += (first[k] - second[k]) * (there[k] - here[k])
    return 2 * total


def _exchange(near, r, s):
    """Brings the distances up to date after facilities r and s exchanged their locations."""
    for k in range(len(near)):
        near[r, k], near[s, k] = near[s, k], near[r, k]
    for k in range(len(near)):
        near[k, r], near[k, s] = near[k, s], near[k, r]


def build_table(compile_fn: Callable[[Any], Any]) -> tuple[Any, Any]:
    """Returns `start` and `swap`, which make a table of deltas and keep it up to date.

    `start(flow, distance, assignment)` returns the distances in the order of the facilities, and
    [n, n] the changes in cost if facilities i < j exchange their locations.
    """
    delta, exchange = map(compile_fn, (_delta, _exchange))

    @compile_fn
    def start(flow, distance, assignment):
        n = len(flow)
        near = distance[assignment][:, assignment].copy()
        deltas = np.zeros_like(near)
        for i in range(n):
            for j in range(i + 1, n):
                deltas[i, j] = delta(flow, near, i, j)
        return near, deltas

    @compile_fn
    def swap(flow, near, deltas, r, s):
        """Exchanges the locations of facilities r < s: O(1) per swap of two others, O(n) else."""
        n = len(flow)
        x, y = flow[r] - flow[s], near[s] - near[r]
        for i in range(n - 1):
            row, right, below = deltas[i, i + 1 :], x[i + 1 :], y[i + 1 :]
            u, v = x[i], y[i]
            for j in range(len(row)):
                row[j] += 2 * (u - right[j]) * (below[j] - v)
        exchange(near, r, s)
        for k in (r, s):
            for i in range(k):
                deltas[i, k] = delta(flow, near, i, k)
            for j in range(k + 1, n):
                deltas[k, j] = delta(flow, near, k, j)

    return start, swap
