"""Generated instances: known optima by exhaustive search, the G-set's graphs, equal seeds."""

import numpy as np
import pytest
from probes import refuses, shortest
from qaps import cheapest

from jaxopt_search.datasets import (
    GraphInstance,
    clustered_tsp,
    grid_tsp,
    mycielski_graph,
    planar_union,
    planted_qap,
    planted_tsp,
    queen_graph,
    random_graph,
    random_qubo,
    toroidal_grid,
    uniform_qap,
    uniform_tsp,
)
from jaxopt_search.datasets.generators import drawing
from jaxopt_search.datasets.instances import digest


@pytest.mark.parametrize(
    ("rows", "columns", "spacing"),
    [(2, 2, 10), (2, 3, 7), (3, 2, 1), (3, 4, 5), (3, 3, 1), (3, 3, 2), (3, 3, 10), (3, 5, 7)],
)
def test_grid_optimum(rows, columns, spacing):
    """The stated optimum is the optimum for both parities, whatever rounding does to diagonals."""
    instance = grid_tsp(rows, columns, spacing=spacing, seed=4)
    assert instance.is_optimal
    assert shortest(instance.distances()) == instance.best_known


@pytest.mark.parametrize(("n", "seed"), [(3, 0), (4, 1), (5, 2), (8, 3), (9, 4), (10, 5), (11, 6)])
def test_planted_tour_is_optimal(n, seed):
    """No tour beats the hidden one, and the matrix is a positive symmetric one."""
    instance = planted_tsp(n, seed=seed)
    assert instance.is_optimal
    assert shortest(instance.distances()) == instance.best_known
    assert (instance.matrix + np.eye(n, dtype=np.int64) > 0).all()


@pytest.mark.parametrize(
    ("rows", "columns"), [(1, 2), (1, 5), (2, 2), (2, 3), (3, 2), (7, 1), (1, 7), (2, 4)]
)
def test_planted_assignment_is_optimal(rows, columns):
    """No assignment beats the hidden one, under several draws of the weights."""
    for seed in range(10 if rows * columns < 8 else 3):
        instance = planted_qap(rows, columns, seed=seed)
        assert instance.is_optimal
        assert cheapest(instance.flow, instance.distance) == instance.best_known


GENERATORS = {
    "uniform-30-s{}": lambda seed: uniform_tsp(30, seed=seed),
    "clustered-300-c3-s{}": lambda seed: clustered_tsp(300, seed=seed),
    "planted-12-s{}": lambda seed: planted_tsp(12, seed=seed),
    "uniform-qap-9-s{}": lambda seed: uniform_qap(9, seed=seed),
    "planted-qap-3x4-s{}": lambda seed: planted_qap(3, 4, seed=seed),
}


@pytest.mark.parametrize("name", GENERATORS)
def test_the_seed_decides(name):
    """One seed gives one instance, another seed another; the name tells all parameters."""
    make = GENERATORS[name]
    first, again, other = make(7), make(np.int64(7)), make(8)
    assert digest(first) == digest(again) != digest(other)
    assert (first.name, other.name) == (name.format(7), name.format(8))


def test_uniform_qap_follows_taillard():
    """Entries cover 0..99, matrices are symmetric and have a zero diagonal."""
    instance = uniform_qap(60, seed=0)
    for matrix in (instance.flow, instance.distance):
        assert (matrix.min(), matrix.max()) == (0, 99)
        np.testing.assert_array_equal(matrix, matrix.T)
        assert not matrix.diagonal().any()


GSET = {
    "G1": (lambda: random_graph(800, 0.06, seed=8001), "2c17dd015cc1d400b57669741a726ead"),
    "G11": (lambda: toroidal_grid(100, 8, seed=8001), "35da56dac686f57ec33f052ce79f5dd6"),
    "G13": (lambda: toroidal_grid(25, 32, seed=8003), "9bbd122d1323b76bf3486200e4a4f5c5"),
    "G18": (
        lambda: planar_union(800, 0.99, (8001, 8002), weights=(-1, 1), seed=8001),
        "b89a7655937cf984cc34c36669bcd0dc",
    ),
    "G23": (lambda: random_graph(2000, 0.01, seed=2002), "786ef5b3b69e587b5b56eeb1530d2668"),
    "G51": (lambda: planar_union(1000, 1, (10001, 10002)), "e0d7bc0dcc496ea29c4c5b4de723f71f"),
    "G81": (lambda: toroidal_grid(200, 100, seed=200001), "1cc861c2abe8cb9173b0e204273edb91"),
}


def test_the_numbers_are_knuths():
    """What the GraphBase's own test of its generator looks at."""
    below = drawing(2**31 - 314159)  # -314159 modulo 2**31
    assert below(2**31) == 119318998
    for _ in range(133):
        below(2**31)
    assert below(0x55555555) == 748103812


@pytest.mark.parametrize("name", GSET)
def test_graphs_of_the_g_set_are_made_identically(name):
    """Digests of the published files' edges and weights."""
    make, expected = GSET[name]
    assert digest(make()) == expected


@pytest.mark.parametrize(
    ("graph", "n", "edges"),
    [
        (queen_graph(5, 5), 25, 160),
        (mycielski_graph(6), 95, 755),
    ],
)
def test_sizes_of_dimacs(graph, n, edges):
    assert (graph.n, len(graph.edges)) == (n, edges)
    assert (graph.weights == 1).all()


def test_random_graphs_follow_their_arguments():
    """Rounded numbers of edges, each weight about equally often, and another graph per seed."""
    graph = random_graph(100, 0.5, seed=1, weights=(-1, 0, 5))
    assert len(graph.edges) == 2475
    counts = [(graph.weights == value).sum() for value in (-1, 0, 5)]
    assert sum(counts) == 2475 and min(counts) > 825 - 6 * 23.5
    assert len(random_graph(4, 0.25, seed=0).edges) == 2  # 1.5, rounded up
    assert len(random_graph(5, 1, seed=0).edges) == 10
    assert digest(graph) != digest(random_graph(100, 0.5, seed=2, weights=(-1, 0, 5)))
    degrees = (random_graph(60, 0.5, seed=3).matrix()).sum(axis=0)
    assert degrees.min() > 10 and degrees.max() < 50


def test_a_matrix_has_the_weights_on_both_sides():
    graph = GraphInstance(
        name="path", n=4, edges=np.array([[0, 1], [1, 3]]), weights=np.array([5, -2])
    )
    expected = np.zeros((4, 4), int)
    expected[0, 1] = expected[1, 0] = 5
    expected[1, 3] = expected[3, 1] = -2
    assert (graph.matrix() == expected).all()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: uniform_tsp(0, seed=0), "n is 0, expected an integer from 1"),
        (lambda: grid_tsp(1, 5), "rows is 1, expected an integer from 2"),
        (lambda: uniform_qap(10**6, seed=0), "n is 1000000, expected an integer from 1 to 16384"),
        (lambda: queen_graph(0, 3), "rows is 0"),
        (lambda: random_graph(10, 1.5, seed=0), "density is 1.5"),
        (lambda: random_graph(10, 0.5, seed=0, weights=(0.5,)), "a weight is 0.5"),
        (lambda: planar_union(10, 1, seeds=()), "seeds is empty"),
        (
            lambda: GraphInstance(name="", n=3, edges=np.array([[1, 0]]), weights=np.array([1])),
            "without 0 <= i < j < n",
        ),
        (
            lambda: GraphInstance(
                name="", n=3, edges=np.array([[0, 1], [0, 1]]), weights=np.array([1, 1])
            ),
            "a pair twice",
        ),
    ],
)
def test_bad_arguments_are_named(make, words):
    """Errors name the argument, its value and what was expected, in one line."""
    with refuses(ValueError, words):
        make()


@pytest.mark.parametrize(("n", "seed"), [(1, 7), (2, 7), (40, 31000)])
@pytest.mark.parametrize("percent", [0, 3, 50, 80, 100])
def test_quadratic_forms_are_drawn_one_number_after_the_other(n, percent, seed):
    """As Palubeckis' program of 2002 does: a diagonal entry, then for each other one or two."""
    state = seed

    def draw():
        nonlocal state
        state = state * 16807 % (2**31 - 1)
        return state / 2**31

    expected = np.zeros((n, n), int)
    for i in range(n):
        expected[i, i] = int(draw() * 201) - 100
        for j in range(i + 1, n):
            if np.float32(draw() * 100) <= percent:
                expected[i, j] = expected[j, i] = int(draw() * 201) - 100
    np.testing.assert_array_equal(random_qubo(n, percent / 100, seed), expected)
