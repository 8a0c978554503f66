"""Generated instances: known optima against exhaustive search, and the same seed, the same data."""

import itertools

import numpy as np
import pytest

from jaxopt_search.datasets import (
    TSPInstance,
    clustered_tsp,
    grid_tsp,
    planted_qap,
    planted_tsp,
    uniform_qap,
    uniform_tsp,
)


def shortest_tour(distance):
    """Returns the optimum by dynamic programming over subsets (Held and Karp, 1962)."""
    m = len(distance) - 1  # the last city is where tours start
    length = np.full((1 << m, m), 2**62, np.int64)
    length[1 << np.arange(m), np.arange(m)] = distance[m, :m]
    for subset in range(1, 1 << m):
        for city in range(m):
            rest = subset & ~(1 << city)
            if subset >> city & 1 and rest:
                length[subset, city] = (length[rest] + distance[:m, city]).min()
    return int((length[-1] + distance[:m, m]).min())


def cheapest_assignment(instance):
    """Returns the optimum by listing all permutations."""
    n = instance.n
    p = np.array(list(itertools.permutations(range(n))))
    cost = np.zeros(len(p), np.int64)
    for i, j in itertools.product(range(n), repeat=2):
        cost += instance.flow[i, j] * instance.distance[p[:, i], p[:, j]]
    return int(cost.min())


@pytest.mark.parametrize(
    ("rows", "columns", "spacing"),
    [(2, 2, 10), (2, 3, 7), (3, 2, 1), (3, 4, 5), (3, 3, 1), (3, 3, 2), (3, 3, 10), (3, 5, 7)],
)
def test_grid_optimum(rows, columns, spacing):
    """The stated optimum is the optimum for both parities, whatever rounding does to diagonals."""
    instance = grid_tsp(rows, columns, spacing=spacing, seed=4)
    assert instance.is_optimal
    assert shortest_tour(instance.distances()) == instance.best_known


@pytest.mark.parametrize(("n", "seed"), [(3, 0), (4, 1), (5, 2), (8, 3), (9, 4), (10, 5), (11, 6)])
def test_planted_tour_is_optimal(n, seed):
    """No tour beats the hidden one, and the matrix is a positive symmetric one."""
    instance = planted_tsp(n, seed=seed)
    assert instance.is_optimal
    assert shortest_tour(instance.distances()) == instance.best_known
    assert (instance.matrix + np.eye(n, dtype=np.int64) > 0).all()


def test_planted_tour_is_not_found_greedily():
    """Nearest neighbor from every city stays clearly above the hidden optimum."""
    instance = planted_tsp(100, seed=0)
    lengths = []
    for start in range(instance.n):
        tour, left = [start], set(range(instance.n)) - {start}
        while left:
            tour.append(min(left, key=lambda city: instance.matrix[tour[-1], city]))
            left.remove(tour[-1])
        lengths.append(instance.tour_length(tour))
    assert min(lengths) > 1.03 * instance.best_known


@pytest.mark.parametrize(
    ("rows", "columns"), [(1, 2), (1, 5), (2, 2), (2, 3), (3, 2), (7, 1), (1, 7), (2, 4)]
)
def test_planted_assignment_is_optimal(rows, columns):
    """No assignment beats the hidden one, under several draws of the weights."""
    for seed in range(10 if rows * columns < 8 else 3):
        instance = planted_qap(rows, columns, seed=seed)
        assert instance.is_optimal
        assert cheapest_assignment(instance) == instance.best_known


def test_planted_assignment_is_hidden():
    """The order in which facilities are numbered does not give the optimum away."""
    instance = planted_qap(4, 5, seed=0)
    assert instance.cost(np.arange(20)) > 1.2 * instance.best_known


GENERATORS = {
    "uniform-30-s{}": lambda seed: uniform_tsp(30, seed=seed),
    "uniform-30-size50-s{}": lambda seed: uniform_tsp(30, seed=seed, size=50),
    "clustered-300-c3-s{}": lambda seed: clustered_tsp(300, seed=seed),
    "clustered-30-c4-size900-s{}": lambda seed: clustered_tsp(
        30, seed=seed, num_clusters=4, size=900
    ),
    "grid-4x5-d10-s{}": lambda seed: grid_tsp(4, 5, seed=seed),
    "planted-12-s{}": lambda seed: planted_tsp(12, seed=seed),
    "uniform-qap-9-s{}": lambda seed: uniform_qap(9, seed=seed),
    "planted-qap-3x4-s{}": lambda seed: planted_qap(3, 4, seed=seed),
}


def arrays(instance):
    if isinstance(instance, TSPInstance):
        return instance.distances()
    return np.stack([instance.flow, instance.distance])


@pytest.mark.parametrize("name", GENERATORS)
def test_the_seed_decides(name):
    """One seed gives one instance, another seed another; the name tells all parameters."""
    make = GENERATORS[name]
    first, again, other = make(7), make(np.int64(7)), make(8)
    np.testing.assert_array_equal(arrays(first), arrays(again))
    assert not np.array_equal(arrays(first), arrays(other))
    assert (first.name, other.name) == (name.format(7), name.format(8))


def test_clusters_are_clusters():
    """Cities of clustered instances are much closer to their neighbors than uniform ones."""

    def nearest(instance):
        return np.sort(instance.distances(), axis=1)[:, 1].mean()

    clustered = clustered_tsp(400, seed=0, num_clusters=2)
    assert nearest(clustered) < 0.5 * nearest(uniform_tsp(400, seed=0))


def test_uniform_qap_follows_taillard():
    """Entries cover 0..99, matrices are symmetric and have a zero diagonal."""
    instance = uniform_qap(60, seed=0)
    for matrix in (instance.flow, instance.distance):
        assert (matrix.min(), matrix.max()) == (0, 99)
        np.testing.assert_array_equal(matrix, matrix.T)
        assert not matrix.diagonal().any()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: uniform_tsp(0, seed=0), "n is 0, expected an integer in 1.."),
        (lambda: uniform_tsp(2.5, seed=0), "n is 2.5, expected an integer"),
        (lambda: uniform_tsp(True, seed=0), "n is True, expected an integer"),
        (lambda: uniform_tsp(5, seed=-1), "seed is -1, expected an integer at least 0"),
        (lambda: uniform_tsp(5, seed=None), "seed is None, expected an integer"),
        (lambda: uniform_tsp(5, seed=0, size=10**10), "size is 10000000000, expected"),
        (lambda: clustered_tsp(5, seed=0, num_clusters=6), "num_clusters is 6, expected .* 1..5"),
        (lambda: grid_tsp(1, 5), "rows is 1, expected an integer at least 2"),
        (lambda: grid_tsp(2, 5, spacing=0), "spacing is 0, expected"),
        (lambda: planted_tsp(2, seed=0), "n is 2, expected an integer in 3.."),
        (lambda: uniform_qap(-1, seed=0), "n is -1, expected"),
        (lambda: planted_qap(1, 1, seed=0), r"rows \* columns is 1, expected"),
    ],
)
def test_bad_arguments_are_named(call, message):
    """Errors name the argument, its value and what was expected, in one line."""
    with pytest.raises(ValueError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: uniform_tsp(10**10, seed=0), "n is 10000000000"),
        (lambda: clustered_tsp(10**10, seed=0), "n is 10000000000"),
        (lambda: grid_tsp(10**9, 10**9), r"rows \* columns is 1000000000000000000"),
        (lambda: uniform_qap(10**6, seed=0), "n is 1000000, expected an integer in 1..16384"),
        (lambda: planted_qap(1000, 1000, seed=0), r"rows \* columns is 1000000"),
        (lambda: planted_tsp(10**6, seed=0), "n is 1000000"),
    ],
)
def test_sizes_beyond_memory_are_refused(make, text):
    """In one line, before anything is allocated."""
    with pytest.raises(ValueError, match=text):
        make()
