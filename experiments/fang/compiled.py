"""Successors compiled for one core: the sequential baseline, as plain loops.

The paper's method for CPUs, which is that for GPUs (its Figure 2): of each state, variable by
variable, all possibilities are rated and their ratings kept, the maximum is found, ratings become
weights, weights are added up in segments, and one possibility is drawn: first its segment, then its
place in it. It draws the same numbers in the same segments as `js.successors`, so that the
successors are the same, bit for bit. It needs numba, from the extra `peers`.

As the paper's kernels are made for a heuristic by templates, a loop is compiled for one size of the
window and one load, which are constants in it.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from experiments.fang.heuristic import division_by

_LANES = 256
_MASK = 0xFFFFFFFF
_ROTATIONS = (13, 15, 26, 6, 17, 29, 16, 24)
_PARITY = 0x1BD11BDA
_GOALS = 8
"""How many distances are computed at once; with more, compilers stop to use vectors."""
_FOR_STATE, _FOR_SUCCESSOR = 6, 7


def build(compile_fn: Callable[[Any], Any], side: int, load: int) -> Any:
    """Returns the compiled loop for a window and a load; see `build`."""
    num = side * side - 1
    size = min(1 << (num - 1).bit_length(), _LANES)
    center, half = num // 2, side // 2
    threefry, rate = compile_fn(_threefry), _rater(compile_fn, side, load)
    add_up, find = _adder(compile_fn, num, size), compile_fn(_find)
    int32 = np.int32

    @compile_fn
    def loop(x, y, goal_x, goal_y, key_0, key_1):
        ratings = np.zeros(num, np.int32)
        totals = np.zeros(size, np.int32)
        for i in range(x.shape[0]):
            own_0, own_1 = threefry(key_0, key_1, i, _FOR_STATE, 20)
            own_0, own_1 = threefry(own_0, own_1, 0, _FOR_SUCCESSOR, 20)
            for v in range(x.shape[1]):
                left, top = int32(x[i, v] - half), int32(y[i, v] - half)
                own_x, own_y = goal_x[v * load :], goal_y[v * load :]
                most = rate(ratings, left, top, own_x, own_y)
                total = add_up(ratings, most, totals)
                high, low = threefry(own_0, own_1, v, 0, 13)
                rest = (high * total + ((low * total) >> 32)) >> 32
                p = find(ratings, most, totals, rest)
                cell = p + (p >= center)
                row = cell // side
                x[i, v] = left + cell - row * side
                y[i, v] = top + row

    return loop


def _rater(compile_fn: Callable[[Any], Any], side: int, load: int) -> Any:
    """Returns what rates all possibilities of a point, and returns the highest rating.

    It takes the goals of the point, of which the first `load` count.
    """
    num = side * side - 1
    center = num // 2
    factor, shift = division_by(side)
    goals = math.gcd(load, _GOALS)
    int32 = np.int32

    @compile_fn
    def distance_to(possibility, left, top, goal_x, goal_y):
        """Returns the sum of the distances of a cell to at most `goals` goals."""
        cell = int32(possibility + (possibility >= center))
        row = int32(int32(cell * factor) >> shift)
        column = int32(cell - int32(row * side))
        distance = int32(0)
        for k in range(goals):
            across = int32(int32(left + column) - goal_x[k])
            along = int32(int32(top + row) - goal_y[k])
            distance = int32(distance + int32(abs(across)) + int32(abs(along)))
        return distance

    @compile_fn
    def rate(ratings, left, top, goal_x, goal_y):
        most = int32(0)
        for first in range(0, load, goals):
            own_x, own_y = goal_x[first : first + goals], goal_y[first : first + goals]
            is_first = first == 0
            for p in range(num):
                rating = distance_to(int32(p), left, top, own_x, own_y)
                before = int32(0) if is_first else ratings[p]
                ratings[p] = int32(before + rating)
                most = max(most, ratings[p])
        return most

    return rate


def _threefry(key_0, key_1, counter_0, counter_1, rounds):
    key_2 = key_0 ^ key_1 ^ _PARITY
    x0, x1 = (counter_0 + key_0) & _MASK, (counter_1 + key_1) & _MASK
    for r in range(rounds):
        distance = _ROTATIONS[r % 8]
        x0 = (x0 + x1) & _MASK
        x1 = (((x1 << distance) | (x1 >> (32 - distance))) & _MASK) ^ x0
        if r % 4 == 3:
            number = r // 4 + 1
            which = number % 3
            first = key_0 if which == 0 else key_1 if which == 1 else key_2
            second = key_1 if which == 0 else key_2 if which == 1 else key_0
            x0 = (x0 + first) & _MASK
            x1 = (x1 + second + number) & _MASK
    return x0, x1


def _adder(compile_fn: Callable[[Any], Any], num: int, size: int) -> Any:
    """Returns what adds the weights of `num` ratings up in `size` segments."""
    blocks = -(-num // size)

    @compile_fn
    def add_up(ratings, most, totals):
        totals[:] = 0
        for b in range(blocks):
            start = b * size
            for lane in range(min(size, num - start)):
                totals[lane] += np.int32(most + 1 - ratings[start + lane])
        total = 0
        for lane in range(size):
            total += int(totals[lane])
        return total

    return add_up


def _find(ratings, most, totals, rest):
    """Returns the possibility that `rest` falls on: first its segment, then its place in it."""
    lane = 0
    while rest >= totals[lane]:
        rest -= int(totals[lane])
        lane += 1
    p = lane
    while rest >= most + 1 - ratings[p]:
        rest -= int(most + 1 - ratings[p])
        p += len(totals)
    return p
