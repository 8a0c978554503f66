"""Graphs to color and to cut: known sizes, chromatic facts, and the very graphs of the G-set."""

import itertools

import numpy as np
import pytest

from jaxopt_search.datasets import (
    GraphInstance,
    mycielski_graph,
    queen_graph,
    random_graph,
    toroidal_grid,
)
from jaxopt_search.datasets.graphs import _Flip
from jaxopt_search.datasets.instances import digest

GSET = {
    "G1": lambda: random_graph(800, 0.06, seed=8001),
    "G5": lambda: random_graph(800, 0.06, seed=8005),
    "G6": lambda: random_graph(800, 0.06, seed=8001, weights=(-1, 1)),
    "G10": lambda: random_graph(800, 0.06, seed=8005, weights=(-1, 1)),
    "G11": lambda: toroidal_grid(100, 8, seed=8001),
    "G12": lambda: toroidal_grid(50, 16, seed=8002),
    "G13": lambda: toroidal_grid(25, 32, seed=8003),
    "G43": lambda: random_graph(1000, 0.02, seed=10001),
}
DIGESTS = {
    "G1": "2c17dd015cc1d400b57669741a726ead",
    "G5": "90bd1ab66ba5af5405aa3ff92d4da3e5",
    "G6": "37de0df633fde276eedc22a4e2a1572b",
    "G10": "7b1be573ce860bb69e0b9d8d781638bb",
    "G11": "35da56dac686f57ec33f052ce79f5dd6",
    "G12": "832658ef7bc380ca0b7c1cf8d484de8d",
    "G13": "9bbd122d1323b76bf3486200e4a4f5c5",
    "G43": "961797b938c1b9817e346b753a9576c7",
}


def fewest_colors(graph):
    """Returns the chromatic number by trying everything, vertex after vertex."""
    adjacent = graph.matrix() != 0

    def extends(colors, k):
        vertex = len(colors)
        if vertex == graph.n:
            return True
        taken = {colors[other] for other in range(vertex) if adjacent[vertex, other]}
        # A color that no vertex has yet is as good as any other such.
        usable = range(min(k, max(colors, default=-1) + 2))
        return any(extends([*colors, c], k) for c in usable if c not in taken)

    return next(k for k in itertools.count(1) if extends([], k))


def test_the_numbers_are_knuths():
    """What the GraphBase's own test of its generator looks at."""
    flip = _Flip(2**31 - 314159)  # -314159 modulo 2**31
    assert flip.below(2**31) == 119318998
    for _ in range(133):
        flip.below(2**31)
    assert flip.below(0x55555555) == 748103812


@pytest.mark.parametrize("name", GSET)
def test_graphs_of_the_g_set_are_made_identically(name):
    """Digests of the published files' edges and weights."""
    assert digest(GSET[name]()) == DIGESTS[name]


@pytest.mark.parametrize(
    ("graph", "n", "edges"),
    [
        (queen_graph(5, 5), 25, 160),
        (queen_graph(6, 6), 36, 290),
        (queen_graph(7, 7), 49, 476),
        (queen_graph(8, 8), 64, 728),
        (queen_graph(8, 12), 96, 1368),
        (queen_graph(9, 9), 81, 1056),
        (mycielski_graph(3), 11, 20),
        (mycielski_graph(4), 23, 71),
        (mycielski_graph(5), 47, 236),
        (mycielski_graph(6), 95, 755),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_sizes_of_dimacs(graph, n, edges):
    assert (graph.n, len(graph.edges)) == (n, edges)
    assert (graph.weights == 1).all()


@pytest.mark.parametrize(
    ("graph", "colors"),
    [(queen_graph(1, 1), 1), (queen_graph(2, 3), 4), (queen_graph(5, 5), 5)]
    + [(mycielski_graph(k), k + 1) for k in (1, 2, 3)],
    ids=lambda value: getattr(value, "name", None),
)
def test_chromatic_numbers(graph, colors):
    assert fewest_colors(graph) == colors


def test_mycielski_graphs_have_no_triangles():
    adjacent = mycielski_graph(5).matrix()
    assert np.trace(adjacent @ adjacent @ adjacent) == 0


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


def test_a_torus_has_four_neighbors_everywhere():
    graph = toroidal_grid(3, 5, seed=0, weights=(1,))
    matrix = graph.matrix()
    assert (matrix.sum(axis=0) == 4).all()
    assert matrix[0, [1, 4, 5, 10]].tolist() == [1, 1, 1, 1]


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
        (lambda: queen_graph(0, 3), "rows is 0"),
        (lambda: queen_graph(1000, 1000), r"rows \* columns is 1000000"),
        (lambda: mycielski_graph(13), "k is 13"),
        (lambda: random_graph(10, 1.5, seed=0), "density is 1.5"),
        (lambda: random_graph(10, float("nan"), seed=0), "density is nan"),
        (lambda: random_graph(10**6, 0.5, seed=0), "number of edges is"),
        (lambda: random_graph(10, 0.5, seed=-1), "seed is -1"),
        (lambda: random_graph(10, 0.5, seed=0, weights=()), "weights is empty"),
        (lambda: random_graph(10, 0.5, seed=0, weights=(0.5,)), "a weight is 0.5"),
        (lambda: toroidal_grid(2, 5, seed=0), "rows is 2"),
        (
            lambda: GraphInstance(name="", n=3, edges=np.array([[1, 0]]), weights=np.array([1])),
            r"without 0 <= i < j < n",
        ),
        (
            lambda: GraphInstance(
                name="", n=3, edges=np.array([[0, 1], [0, 1]]), weights=np.array([1, 1])
            ),
            "a pair twice",
        ),
        (
            lambda: GraphInstance(name="", n=3, edges=np.array([[0, 1]]), weights=np.ones(1)),
            "weights is float64",
        ),
    ],
)
def test_bad_arguments(make, words):
    with pytest.raises(ValueError, match=words):
        make()
