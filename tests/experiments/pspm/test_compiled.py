"""Annealing of tours compiled for one core: exact, and true to its temperature.

It runs here as plain Python; numba compiles the same functions.
"""

import numpy as np
import pytest

import jaxopt_search as js
from experiments.pspm import compiled as compiled_tsp


def anneal_tour(temperature, moves=1, refused=compiled_tsp.ANY, steps=300, n=7):
    """Returns a search on random cities, from its start: what it returns, and its tours."""
    instance = js.datasets.uniform_tsp(n, seed=1)
    distance = instance.distances().astype(np.int32)
    tour, words = compiled_tsp.start(n, moves, seed=4)
    start = tour.copy()
    outcome = compiled_tsp.build(lambda fn: fn)(
        distance, tour, words, (temperature, 0.9, 2), steps, moves, refused
    )
    return instance, outcome, start, tour


@pytest.mark.parametrize(
    ("temperature", "moves", "n"), [(1e-9, 1, 7), (1e-9, 12, 7), (5000.0, 3, 30)]
)
def test_tours_keep_exact_books(temperature, moves, n):
    """The length returned is the best tour's; cold, no relocation makes it shorter."""
    instance, (length, accepted, stored), start, tour = anneal_tour(temperature, moves, n=n)
    assert instance.tour_length(tour) == length <= instance.tour_length(start)
    assert accepted > 0
    assert (stored == 0) == (temperature < 1)  # light: not before leaving it for a worse one
    if temperature < 1:
        others = (
            np.insert(np.delete(tour, k), place, tour[k]) for k in range(n) for place in range(n)
        )
        assert min(map(instance.tour_length, others)) == length


def test_hot_every_relocation_of_tours_is_made():
    """And with nothing equal or worse allowed, none but those that shorten."""
    assert anneal_tour(1e12)[1][1] == 600
    assert anneal_tour(1e12, refused=0)[1][1] == anneal_tour(1e-9)[1][1] < 30


def test_the_cheapest_of_twelve_moves_is_put_to_the_test():
    """Colder than any difference, a step of twelve moves shortens twice as fast as one of one."""
    lengths = [anneal_tour(1e-9, moves, steps=10, n=40)[1][0] for moves in (1, 12)]
    assert lengths[1] < lengths[0]
