"""Robust tabu search (Taillard 1991) compiled for one core: the sequential baseline on the QAP.

A table of deltas is kept as in `compiled_qap.py` and searched row by row, so that the compiler
makes vector instructions of both; for symmetric matrices with zero diagonals. It needs numba, from
the extra `peers`.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from experiments.multistart import compiled_qap


class Search(NamedTuple):
    """The state of a search; arrays are written in place.

    Attributes:
      assignment, best: [n] int64, the current one and the best.
      near: [n, n] the distances between the locations of facilities.
      deltas: [n, n] of the swaps i < j.
      until: [n, n] int32, the last step at which facility i is forbidden at the location of j.
      soonest: [n, n] int32, the lower one of `until[i, j]` and `until[j, i]`.
      numbers: [4] int64: steps made, the current cost, the best cost, the state of the generator.
    """

    assignment: np.ndarray
    best: np.ndarray
    near: np.ndarray
    deltas: np.ndarray
    until: np.ndarray
    soonest: np.ndarray
    numbers: np.ndarray


def start(flow: np.ndarray, distance: np.ndarray, seed: int) -> Search:
    """Returns a search at a random assignment; matrices as `symmetric` returns them."""
    n = len(flow)
    assignment = np.random.default_rng(seed).permutation(n)
    cost = compiled_qap.cost(flow, distance, assignment)
    near = np.ascontiguousarray(distance[np.ix_(assignment, assignment)])
    mixed = flow @ near
    own = np.diagonal(mixed)
    changes = 2 * (mixed + mixed.T - own[:, None] - own[None, :] + 2 * flow * near)
    deltas = np.triu(changes, 1)
    until = (-1 - np.arange(n * n, dtype=np.int32).reshape(n, n))[:, assignment].copy()
    numbers = np.array([0, cost, cost, 1 + seed % (2**31 - 2)], np.int64)
    soonest = np.minimum(until, until.T)
    return Search(assignment, assignment.copy(), near, deltas, until, soonest, numbers)


def build(compile_fn: Callable[[Any], Any]) -> Any:
    """Returns `advance(flow, distance, search, num_steps, target)`, which returns its steps."""
    _, swap = compiled_qap.build_table(compile_fn)
    find, forbid = compile_fn(_find), compile_fn(_forbid)

    @compile_fn
    def advance(flow, distance, search, num_steps, target):
        assignment, best, near, deltas, until, soonest, numbers = search
        n = len(assignment)
        shortest, spread = math.floor(0.9 * n), math.ceil(1.1 * n) - math.floor(0.9 * n) + 1
        far, age = 1 << (8 * deltas.itemsize - 2), 5 * n * n
        keys = np.empty(n, deltas.dtype)
        limits = np.empty(4, deltas.dtype)
        limits[0] = far
        for made in range(num_steps):
            if numbers[2] <= target:
                return made
            now = numbers[0]
            limits[1] = max(numbers[2] - numbers[1], -far)
            limits[2], limits[3] = now, now - age
            r, s, key = find(deltas, soonest, keys, limits)
            numbers[0] += 1
            if key == far:
                continue
            numbers[1] += deltas[r, s]
            for k in range(2):
                numbers[3] = numbers[3] * 48271 % (2**31 - 1)  # Park, Miller, Stockmeyer, 1993
                keys[k] = now + shortest + numbers[3] % spread
            forbid(until, soonest, r, s, keys[0], keys[1])
            assignment[r], assignment[s] = assignment[s], assignment[r]
            if numbers[1] < numbers[2]:
                numbers[2] = numbers[1]
                best[:] = assignment
            swap(flow, near, deltas, r, s)
        return num_steps

    return advance


def _find(deltas, soonest, keys, limits):
    """Returns the swap to make, and its key: its delta, less `far` if it aspires.

    That is the lowest, the first of equals: of those that aspire, by age or as a new best;
    without one, of those that are not forbidden; the key is `far` where all are.
    """
    far, gain, now, oldest = limits[0], limits[1], limits[2], limits[3]
    r, best = 0, far
    for i in range(len(deltas) - 1):
        row, last = deltas[i, i + 1 :], soonest[i, i + 1 :]
        for j in range(len(row)):
            key = row[j] if last[j] < now else far
            keys[j] = row[j] - far if (last[j] < oldest) | (row[j] < gain) else key
        low = far
        for j in range(len(row)):
            low = min(low, keys[j])
        if low < best:
            r, best = i, low
    row, last = deltas[r, r + 1 :], soonest[r, r + 1 :]
    for j in range(len(row)):
        key = row[j] if last[j] < now else far
        if (row[j] - far if (last[j] < oldest) | (row[j] < gain) else key) == best:
            return r, r + 1 + j, best
    return r, r, far


def _forbid(until, soonest, r, s, first, second):
    """Exchanges facilities r and s, and forbids each the place it leaves."""
    for i in range(len(until)):
        until[i, r], until[i, s] = until[i, s], until[i, r]
    until[r, s], until[s, r] = first, second
    for u in (r, s):
        for i in range(len(until)):
            soonest[i, u] = soonest[u, i] = min(until[i, u], until[u, i])
