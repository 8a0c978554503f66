"""N-Queens compiled for one core: the baselines of counting, of annealing and of placing queens.

They need numba, from the extra `peers`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

_MODULUS = 2**31 - 1
_TRIES = 3.08
"""Columns tried per row before the rest of the queens is placed blindly."""
_STUCK = 50
"""Times the number of queens: exchanges tried for one queen before all are placed again."""


def _pairs(queens):
    attacks = 0
    for i in range(len(queens) - 1):
        # Of 32 bits throughout, so that the compiler makes vector instructions of it.
        own, behind, found = queens[i], queens[i + 1 :], np.int32(0)
        for k in range(len(behind)):
            if abs(np.int32(behind[k] - own)) == np.int32(k + 1):
                found += np.int32(1)
        attacks += found
    return attacks


def _diagonals(queens):
    n, attacks = len(queens), 0
    rising, falling = np.zeros(2 * n, np.int32), np.zeros(2 * n, np.int32)
    for i in range(n):
        up, down = queens[i] + i, queens[i] - i + n
        attacks += rising[up] + falling[down]
        rising[up] += 1
        falling[down] += 1
    return attacks


def _nothing(queens):
    return 1 + queens[0]


COMPILED = {"numba": _pairs, "numba_histogram": _diagonals, "numba_nothing": _nothing}
"""How a compiled loop evaluates: by the paper's double loop, in O(n), or not at all."""


def build_counter(compile_fn: Callable[[Any], Any], scheme: str) -> Any:
    """Returns a function from [n] int32 to the number of attacking pairs.

    Args:
      scheme: one of `COMPILED`. "numba_nothing" returns what is no count.
    """
    return compile_fn(COMPILED[scheme])


class Cooling(NamedTuple):
    """The temperature `start * alpha**(step // steps_per_temperature)`."""

    start: float
    alpha: float = 1.0
    steps_per_temperature: int = 1


def build_annealer(compile_fn: Callable[[Any], Any], scheme: str) -> Any:
    """Returns `anneal(queens, attacks, target, cooling, first, last, state)`: annealing by swaps.

    One move a step, evaluated in full; equal cost passes.

    Args of `anneal`:
      queens: [n] int32, changed in place.
      attacks: of `queens`, as `counter` counts.
      target: it ends with at most this many attacks; -1 for no end before `last`.
      cooling: a `Cooling`.
      first, last: the step with which it starts, and the one before which it ends.
      state: of the generator, from 1 to 2**31 - 2.

    Returns of `anneal`:
      Attacks in the end, the step after the last one made, and the new state.
    """
    count, draw = build_counter(compile_fn, scheme), compile_fn(_draw)

    @compile_fn
    def anneal(queens, attacks, target, cooling, first, last, state):
        start, alpha, steps_per_temperature = cooling
        n = len(queens)
        for step in range(first, last):
            if attacks <= target:
                return attacks, step, state
            state, i = draw(state, n)
            state, k = draw(state, n - 1)
            k += k >= i
            queens[i], queens[k] = queens[k], queens[i]
            after = count(queens)
            state, word = draw(state, _MODULUS)
            temperature = start * alpha ** (step // steps_per_temperature)
            if after - attacks <= -temperature * np.log(word / _MODULUS):
                attacks = after
            else:
                queens[i], queens[k] = queens[k], queens[i]
        return attacks, last, state

    return anneal


def _draw(state, size):
    """Returns a new state and a number below `size`; Park, Miller, Stockmeyer, 1993."""
    state = state * 48271 % _MODULUS
    return state, state % size


def build_placer(compile_fn: Callable[[Any], Any]) -> Any:
    """Returns `place(n, state)`, which gives a random valid placement, [n] int32, and a new state.

    It is the fourth algorithm of Sosic and Gu, "Efficient local search with conflict minimization:
    a case study of the n-queens problem", 1994: queens are placed row by row where nothing attacks
    them, the few left over blindly; attacked ones are then exchanged with random ones until both
    are free. Without a valid placement, for two and three queens, it does not end.

    Args of `place`:
      n: queens.
      state: of the generator, from 1 to 2**31 - 2.
    """
    start, repair = _starter(compile_fn), _repairer(compile_fn)

    @compile_fn
    def place(n, state):
        while True:
            queens, rising, falling, placed, state = start(n, state)
            is_valid, state = repair(queens, rising, falling, placed, state)
            if is_valid:
                return queens, state

    return place


def _starter(compile_fn: Callable[[Any], Any]) -> Any:
    """Returns what places the queens, and counts those on the diagonals and those placed freely."""
    draw, put, others = map(compile_fn, (_draw, _put, _others))

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

    return start


def _repairer(compile_fn: Callable[[Any], Any]) -> Any:
    """Returns what exchanges attacked queens until all are free.

    It returns whether they are in the end, and the state of the generator.
    """
    draw, put, others = map(compile_fn, (_draw, _put, _others))

    @compile_fn
    def exchange(i, k, queens, rising, falling):
        a, b = queens[i], queens[k]
        put(i, a, queens, rising, falling, -1)
        put(k, b, queens, rising, falling, -1)
        put(i, b, queens, rising, falling, 1)
        put(k, a, queens, rising, falling, 1)

    @compile_fn
    def repair(queens, rising, falling, placed, state):
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

    return repair


def _put(i, column, queens, rising, falling, number):
    """Puts a queen on a square, or takes it away (`number` -1)."""
    queens[i] = column
    rising[i + column] += number
    falling[i - column + len(queens)] += number


def _others(i, column, rising, falling, n):
    """Counts the queens on the diagonals of a square."""
    return rising[i + column] + falling[i - column + n]
