"""N-Queens compiled for one core: the sequential baselines of counting and of placing queens.

They need numba, from the extra `peers`.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

_TRIES = 3.08
"""Columns tried per row before the rest of the queens is placed blindly."""
_STUCK = 50
"""Times the number of queens: exchanges tried for one queen before all is placed anew."""


@functools.cache
def counter() -> Callable[[np.ndarray], int]:
    """Returns a function from [n] int32 to the number of attacking pairs, in a double loop.

    Of 32 bits throughout, so that the compiler makes vector instructions of it.

    Raises:
      ImportError: if numba is missing.
    """
    import numba

    @numba.njit
    def count(queens):
        attacks = 0
        for i in range(len(queens) - 1):
            own, behind, found = queens[i], queens[i + 1 :], np.int32(0)
            for k in range(len(behind)):
                if abs(np.int32(behind[k] - own)) == np.int32(k + 1):
                    found += np.int32(1)
            attacks += found
        return attacks

    return count


@functools.cache
def placer() -> Callable[[int, int], tuple[np.ndarray, int]]:
    """Returns `place(n, state)`, which gives a random valid placement, [n] int32, and a new state.

    It is the fourth algorithm of Sosic and Gu, "Efficient local search with conflict minimization:
    a case study of the n-queens problem", 1994: queens are placed row by row where nothing attacks
    them, the few left over blindly; attacked ones are then exchanged with random ones until both
    are free. Without a valid placement, for two and three queens, it does not end.

    Args of `place`:
      n: queens.
      state: of the generator, from 1 to 2**31 - 2.

    Raises:
      ImportError: if numba is missing.
    """
    import numba

    return build_placer(numba.njit)


def build_placer(compile_fn: Callable[[Any], Any]) -> Any:
    """Returns what `placer` does, made by another compiler of plain functions."""

    @compile_fn
    def draw(state, size):
        state = state * 48271 % (2**31 - 1)  # Park, Miller, Stockmeyer, 1993
        return state, state % size

    @compile_fn
    def put(i, column, queens, rising, falling, number):
        """Puts a queen on a square, or takes it away (`number` -1)."""
        queens[i] = column
        rising[i + column] += number
        falling[i - column + len(queens)] += number

    @compile_fn
    def others(i, column, rising, falling, n):
        """Counts the queens on the diagonals of a square."""
        return rising[i + column] + falling[i - column + n]

    @compile_fn
    def exchange(i, k, queens, rising, falling):
        a, b = queens[i], queens[k]
        put(i, a, queens, rising, falling, -1)
        put(k, b, queens, rising, falling, -1)
        put(i, b, queens, rising, falling, 1)
        put(k, a, queens, rising, falling, 1)

    @compile_fn
    def start(n, state):
        queens = np.arange(n).astype(np.int32)
        rising, falling = np.zeros(2 * n, np.int32), np.zeros(2 * n, np.int32)
        placed = 0
        for _ in range(int(_TRIES * n)):
            if placed == n:
                break
            state, k = draw(state, n - placed)
            column = queens[placed + k]
            if others(placed, column, rising, falling, n) == 0:
                queens[placed + k] = queens[placed]
                put(placed, column, queens, rising, falling, 1)
                placed += 1
        for i in range(placed, n):
            state, k = draw(state, n - i)
            column = queens[i + k]
            queens[i + k] = queens[i]
            put(i, column, queens, rising, falling, 1)
        return queens, rising, falling, placed, state

    @compile_fn
    def repair(queens, rising, falling, placed, state):
        """Returns whether all queens are free in the end, and the state."""
        n = len(queens)
        for i in range(placed, n):
            tries = 0
            while others(i, queens[i], rising, falling, n) > 2:
                state, k = draw(state, n)
                if k != i:
                    exchange(i, k, queens, rising, falling)
                    both = others(i, queens[i], rising, falling, n)
                    if max(both, others(k, queens[k], rising, falling, n)) > 2:
                        exchange(i, k, queens, rising, falling)
                tries += 1
                if tries > _STUCK * n:
                    return False, state
        return True, state

    @compile_fn
    def place(n, state):
        while True:
            queens, rising, falling, placed, state = start(n, state)
            is_valid, state = repair(queens, rising, falling, placed, state)
            if is_valid:
                return queens, state

    return place
