"""Robust tabu search (Taillard 1991) compiled for one core: the sequential baseline on the QAP.

Written as a plain loop over the swaps with a table of deltas, O(1) each where that is possible and
O(n) elsewhere; for symmetric matrices with zero diagonals. It needs numba, from the extra `peers`.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Search(NamedTuple):
    """The state of a search; arrays are written in place.

    Attributes:
      assignment, best: [n] int64, the current one and the best.
      deltas: [n, n] int64, of the swaps i < j.
      until: [n, n] int64, for each facility and location the last step at which it is forbidden.
      numbers: [4] int64: steps made, the current cost, the best cost, the state of the generator.
    """

    assignment: np.ndarray
    best: np.ndarray
    deltas: np.ndarray
    until: np.ndarray
    numbers: np.ndarray


def symmetric(flow: np.ndarray, distance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns matrices, int64 and symmetric, with which all costs are twice as high.

    Raises:
      ValueError: if neither matrix is symmetric, or if a diagonal is not zero.
    """
    pair = flow.astype(np.int64), distance.astype(np.int64)
    if any(matrix.diagonal().any() for matrix in pair):
        raise ValueError("it takes matrices with zero diagonals only")
    if (distance == distance.T).all():
        return pair[0] + pair[0].T, pair[1]
    if (flow == flow.T).all():
        return pair[0], pair[1] + pair[1].T
    raise ValueError("it takes instances with one symmetric matrix at least")


def start(flow: np.ndarray, distance: np.ndarray, seed: int) -> Search:
    """Returns a search at a random assignment; matrices as `symmetric` returns them."""
    n = len(flow)
    assignment = np.random.default_rng(seed).permutation(n)
    cost = int((flow * distance[np.ix_(assignment, assignment)]).sum())
    deltas = np.zeros((n, n), np.int64)
    for i in range(n):
        for j in range(i + 1, n):
            deltas[i, j] = _delta(flow, distance, assignment, i, j)
    until = -1 - np.arange(n * n, dtype=np.int64).reshape(n, n)
    numbers = np.array([0, cost, cost, 1 + seed % (2**31 - 2)], np.int64)
    return Search(assignment, assignment.copy(), deltas, until, numbers)


def compiled() -> Any:
    """Returns `advance(flow, distance, search, num_steps, target)`, which returns its steps.

    Raises:
      ImportError: if numba is not installed.
    """
    import numba

    return build(numba.njit)


def build(compile_fn: Callable[[Any], Any]) -> Any:
    """Returns what `compiled` does, made by another compiler of plain functions."""
    delta = compile_fn(_delta)

    @compile_fn
    def advance(flow, distance, search, num_steps, target):
        assignment, best, deltas, until, numbers = search
        n = len(assignment)
        shortest, spread = math.floor(0.9 * n), math.ceil(1.1 * n) - math.floor(0.9 * n) + 1
        age = 5 * n * n
        for made in range(num_steps):
            if numbers[2] <= target:
                return made
            now, cost = numbers[0], numbers[1]
            r, s, kind, lowest = -1, -1, 2, np.int64(2**62)
            for i in range(n - 1):
                for j in range(i + 1, n):
                    first, second = until[i, assignment[j]], until[j, assignment[i]]
                    change = deltas[i, j]
                    is_old = first < now - age or second < now - age
                    if is_old or cost + change < numbers[2]:
                        mine = 0
                    elif first < now or second < now:
                        mine = 1
                    else:
                        continue
                    if mine < kind or (mine == kind and change < lowest):
                        r, s, kind, lowest = i, j, mine, change
            numbers[0] += 1
            if r < 0:
                continue
            for u in (r, s):
                numbers[3] = numbers[3] * 48271 % (2**31 - 1)  # Park, Miller, Stockmeyer, 1993
                until[u, assignment[u]] = now + shortest + numbers[3] % spread
            numbers[1] += lowest
            a, b = assignment[r], assignment[s]
            assignment[r], assignment[s] = b, a
            if numbers[1] < numbers[2]:
                numbers[2] = numbers[1]
                best[:] = assignment
            for i in range(n - 1):
                for j in range(i + 1, n):
                    if i in (r, s) or j in (r, s):
                        deltas[i, j] = delta(flow, distance, assignment, i, j)
                    else:
                        c, d = assignment[i], assignment[j]
                        x = flow[r, i] - flow[r, j] + flow[s, j] - flow[s, i]
                        y = distance[b, d] - distance[b, c] + distance[a, c] - distance[a, d]
                        deltas[i, j] += 2 * x * y
        return num_steps

    return advance


def _delta(flow, distance, assignment, i, j):
    """Returns the change in cost if facilities `i` and `j` exchange their locations, in O(n)."""
    a, b = assignment[i], assignment[j]
    total = 0
    for k in range(len(assignment)):
        if k not in (i, j):
            c = assignment[k]
            total += (flow[i, k] - flow[j, k]) * (distance[b, c] - distance[a, c])
    return 2 * total
