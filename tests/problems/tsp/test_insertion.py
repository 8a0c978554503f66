"""Or-opt that keeps the direction, on the host."""

import itertools

import numpy as np
import pytest

from jaxopt_search.problems.tsp import insertion


def length(matrix, tour):
    return matrix[tour, np.roll(tour, -1)].sum()


def neighbors_of(tour):
    """Yields all tours with a segment of one to three cities elsewhere."""
    for shift, size in itertools.product(range(len(tour)), (1, 2, 3)):
        segment, rest = np.split(np.roll(tour, shift), [size])
        for place in range(len(rest)):
            yield [*rest[:place], *segment, *rest[place:]]


@pytest.mark.parametrize("n", [3, 4, 5, 8, 13])
def test_no_segment_is_better_elsewhere(n):
    """Up to three cities, of distances that depend on the direction."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        matrix, start = rng.integers(-20, 100, (n, n)), rng.permutation(n)
        tour = insertion.descend(start, matrix)
        assert sorted(tour) == list(range(n))
        assert length(matrix, tour) <= length(matrix, start)
        assert min(length(matrix, other) for other in neighbors_of(tour)) >= length(matrix, tour)


def test_blocks_of_rows_change_nothing(monkeypatch):
    """The moves of all segments are found, however few are priced at once."""
    rng = np.random.default_rng(0)
    matrix, start = rng.integers(0, 1000, (40, 40)), rng.permutation(40)
    whole = insertion.descend(start, matrix)
    monkeypatch.setattr(insertion, "_ROWS", 7)
    np.testing.assert_array_equal(insertion.descend(start, matrix), whole)
