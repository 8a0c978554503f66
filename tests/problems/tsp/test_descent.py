"""2-opt and Or-opt on the host: each does what it says, and at the end none helps."""

import itertools

import numpy as np
import pytest

from jaxopt_search.problems.tsp.descent import ArrayTour, descend


def edges(tour):
    return {frozenset(pair) for pair in zip(tour, np.roll(tour, -1), strict=True)}


@pytest.mark.parametrize("n", [4, 5, 8, 11])
def test_an_exchange_replaces_two_edges(n):
    """Whichever path is the shorter one, also across the end of the array, in both directions."""
    for tour in (np.arange(n), np.random.default_rng(n).permutation(n)):
        for i, j in itertools.permutations(range(n), 2):
            a, b, c, d = (int(tour[k % n]) for k in (i, i + 1, j, j + 1))
            for first, second in (((a, b), (c, d)), ((b, a), (d, c))):
                if len({a, b, c, d}) < 4:
                    continue
                changed = ArrayTour(tour)
                changed.exchange(*first, *second)
                gone, new = {frozenset((a, b)), frozenset((c, d))}, {frozenset((a, c))}
                assert edges(changed.city) == edges(tour) - gone | new | {frozenset((b, d))}
                assert (changed.city[changed.position] == np.arange(n)).all()


def neighbors_of(tour):
    """Yields all tours a 2-opt or Or-opt move away."""
    n = len(tour)
    for low, high in itertools.combinations(range(n), 2):
        yield [*tour[:low], *tour[low : high + 1][::-1], *tour[high + 1 :]]
    for shift, size in itertools.product(range(n), (1, 2, 3)):
        segment, *others = np.split(np.roll(tour, shift), [size])
        rest = others[0]
        for place in range(len(rest)):
            for turned in (segment, segment[::-1]):
                yield [*rest[:place], *turned, *rest[place:]]


def length(matrix, tour):
    return matrix[tour, np.roll(tour, -1)].sum()


@pytest.mark.parametrize(("n", "num_seeds"), [(5, 20), (7, 40), (9, 40), (14, 20), (30, 4)])
def test_no_move_makes_it_shorter(n, num_seeds):
    """With all other cities as candidates."""
    for seed in range(num_seeds):
        rng = np.random.default_rng(seed)
        points = rng.random(n) + 1j * rng.random(n)
        matrix = np.abs(points[:, None] - points)
        near = np.argsort(matrix + 1000 * np.eye(n), axis=1)[:, : n - 1]
        start = rng.permutation(n)
        (tour,) = descend(start[None], near, lambda a, b, matrix=matrix: matrix[a, b])
        assert sorted(tour) == list(range(n))
        assert length(matrix, tour) <= length(matrix, start)
        found = min(length(matrix, other) for other in neighbors_of(tour))
        assert found >= length(matrix, tour) - 1e-6


def test_a_long_tour_is_untangled():
    """Around a circle, from any order."""
    n = 400
    angle = 2 * np.pi * np.arange(n) / n
    x, y = np.cos(angle), np.sin(angle)
    matrix = np.hypot(np.subtract.outer(x, x), np.subtract.outer(y, y))
    near = (np.arange(n)[:, None] + [1, -1, 2, -2, 3, -3]) % n
    start = np.random.default_rng(0).permutation(n)
    (tour,) = descend(start[None], near, lambda a, b: matrix[a, b])
    assert sorted(tour) == list(range(n))
    assert length(matrix, tour) < 0.2 * length(matrix, start)


@pytest.mark.parametrize(("n", "num_tours"), [(4, 3), (9, 1), (9, 7), (60, 30)])
def test_each_tour_is_what_it_would_be_by_itself(n, num_tours):
    """Few cities and many; some tours need more rounds than others."""
    rng = np.random.default_rng(n)
    points = rng.integers(0, 30, n) + 1j * rng.integers(0, 30, n)  # with edges of equal lengths
    matrix = np.abs(points[:, None] - points)
    near = np.argsort(matrix + 1000 * np.eye(n), axis=1)[:, :6]
    starts = np.array([rng.permutation(n) for _ in range(num_tours)])
    starts[num_tours // 2] = descend(starts[:1], near, lambda a, b: matrix[a, b])[0]
    together = descend(starts, near, lambda a, b: matrix[a, b])
    alone = [descend(start[None], near, lambda a, b: matrix[a, b])[0] for start in starts]
    np.testing.assert_array_equal(together, alone)
