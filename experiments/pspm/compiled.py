"""Annealing of tours compiled for one core: the sequential baseline of PSPM, SSPM and PSSM.

Light-weight annealing with relocations, as in Lam, Tsoi, Luk, "Parallel neighbourhood search on
many-core platforms", Algorithm 2 and section 4.2: tours as doubly linked lists, moves priced in
O(1), the cheapest of a step put to the Metropolis test. It needs numba, from the extra
`peers`.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from experiments.one_core import xorshift

ANY = 2**31
"""Above all deltas."""


def build(compile_fn: Callable[[Any], Any]) -> Any:
    """Returns `anneal(distance, tour, words, cooling, steps, moves, refused)`.

    Args of `anneal`:
      distance: [n, n] int32, symmetric or not; n >= 4.
      tour: [n] int32, from which to start; it becomes the best tour.
      words: [moves + 1] int64, states of the generators from 1 to 2**32 - 1, written in place.
      cooling: the first temperature, what it is multiplied by for the next, and how many there are.
      steps: at each temperature.
      moves: priced in each step.
      refused: the lowest delta that is never accepted; 0 for descent, `ANY` for annealing.

    It returns the length of the best tour, the moves made, and the times at which the best tour
    was written down.
    """
    draw, price = compile_fn(xorshift), _pricer(compile_fn)
    linked, relocate, write = map(compile_fn, (_linked, _relocate, _write))

    @compile_fn
    def anneal(distance, tour, words, cooling, steps, moves, refused):
        after, before, length = linked(distance, tour)
        best, shortest = after.copy(), length
        cities, places = np.empty(moves, np.int32), np.empty(moves, np.int32)
        deltas = np.empty(moves, np.int32)
        temperature, factor, num_temperatures = cooling
        accepted, stored = 0, 0
        for _ in range(num_temperatures):
            for _ in range(steps):
                price(distance, after, before, words[:moves], cities, places, deltas)
                lane = 0
                for k in range(1, moves):
                    if deltas[k] < deltas[lane]:
                        lane = k
                delta = deltas[lane]
                if delta >= refused:
                    continue
                if delta > 0:
                    if delta > 25 * temperature:
                        continue
                    words[moves] = draw(words[moves])
                    if words[moves] >= 4294967296.0 * math.exp(-delta / temperature):
                        continue
                    if length < shortest:
                        best[:], shortest = after, length
                        stored += 1
                relocate(after, before, cities[lane], places[lane])
                length += delta
                accepted += 1
            temperature *= factor
        if length < shortest:
            best[:], shortest = after, length
        write(best, tour)
        return shortest, accepted, stored

    return anneal


def _pricer(compile_fn: Callable[[Any], Any]) -> Any:
    """Returns what draws a relocation for each lane and prices it."""
    draw = compile_fn(xorshift)

    @compile_fn
    def price(distance, after, before, words, cities, places, deltas):
        n = len(after)
        for lane in range(len(deltas)):
            word = draw(words[lane])
            city = word * n >> 32
            word = draw(word)
            words[lane] = word
            left, right = before[city], after[city]
            # Count through the cities that are neither `city` nor the one before.
            place = word * (n - 2) >> 32
            place += place >= min(city, left)
            place += place >= max(city, left)
            behind = after[place]
            deltas[lane] = (
                distance[left, right]
                + distance[place, city]
                + distance[city, behind]
                - distance[left, city]
                - distance[city, right]
                - distance[place, behind]
            )
            cities[lane], places[lane] = city, place

    return price


def _linked(distance, tour):
    """Returns the cities after and before each city, and the length of the tour."""
    n, length = len(tour), 0
    after, before = np.empty(n, np.int32), np.empty(n, np.int32)
    for k in range(n):
        after[tour[k - 1]], before[tour[k]] = tour[k], tour[k - 1]
        length += distance[tour[k - 1], tour[k]]
    return after, before, length


def _relocate(after, before, city, place):
    """Puts a city behind the one at `place`."""
    left, right, behind = before[city], after[city], after[place]
    after[left], before[right] = right, left
    after[place], before[city] = city, place
    after[city], before[behind] = behind, city


def _write(after, tour):
    """Writes the cities of a linked list into a tour."""
    city = 0
    for k in range(len(tour)):
        tour[k] = city
        city = after[city]


def start(n: int, moves: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns a random tour, [n] int32, and the states of the generators, [moves + 1] int64."""
    generator = np.random.default_rng(seed)
    words = generator.integers(1, 2**32, moves + 1)
    return generator.permutation(n).astype(np.int32), words
