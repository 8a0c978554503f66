"""QUBO and maximum cut: costs, moves, bounds and input, held against sums over all pairs."""

import functools
import itertools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from probes import costs_of, refuses
from scipy import sparse

import jaxopt_search as js
from jaxopt_search.checks import MAX_INT32

TRIANGLE = [[0, 1], [1, 2], [0, 2]]


def matrix(n, kind, seed=0):
    """Returns a random asymmetric matrix of which nearly half the entries are 0."""
    rng = np.random.default_rng(seed)
    entries = rng.integers(-50, 51, (n, n)) * (rng.random((n, n)) < 0.6)
    return entries + rng.random((n, n)) * (entries != 0) if kind == "float" else entries


def graph(n, seed=0):
    """Returns a random symmetric matrix of weights, some of them negative, most of them 0."""
    upper = np.triu(matrix(n, "integer", seed), 1)
    return upper + upper.T


def vectors(n):
    """Returns all [2**n, n]; bit i of a vector's number is its entry i."""
    return np.arange(2**n, dtype=np.int32)[:, None] >> np.arange(n, dtype=np.int32) & 1


def cut(weights, side):
    pairs = itertools.combinations(range(len(side)), 2)
    return sum(weights[i][j] for i, j in pairs if side[i] != side[j])


@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize("kind", ["integer", "float"])
def test_costs_and_moves_are_those_of_the_matrix(storage, kind):
    """All 32 vectors of 5 variables; flips and exchanges of values are priced as costs are."""
    given, x = matrix(5, kind), vectors(5)
    problem = js.qubo(given, storage=storage)
    expected = np.array([sum(given[i, j] for i in u for j in u) for u in map(np.flatnonzero, x)])
    assert_close = functools.partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-3)
    assert_same = np.testing.assert_array_equal if kind == "integer" else assert_close
    costs = costs_of(problem, x)
    assert costs.dtype == (jnp.int32 if kind == "integer" else jnp.float32)
    assert_same(costs, expected)
    assert_same([problem.host.cost(one) for one in x], expected)
    for moves in (js.Assign(), js.SwapValues()):
        js.testing.check_neighborhood(moves, problem, has_all_moves=False, implementations=False)


@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_the_cost_of_a_cut_is_minus_its_weight(storage):
    """By definition, for all sides of 6 vertices, on the device and on the host."""
    weights, sides = graph(6), vectors(6)
    problem = js.max_cut(weights, storage=storage)
    expected = [-cut(weights, side) for side in sides]
    np.testing.assert_array_equal(costs_of(problem, sides), expected)
    assert [problem.host.cost(side) for side in sides] == expected


def test_all_forms_of_input_make_one_problem():
    """A matrix, a sparse one, a list; the halves of an asymmetric one; truth values, floats."""
    given = np.array([[1, 2, 0], [0, -3, 4], [5, 0, 0]])
    listed = [(0, 0, 1), (0, 1, 2), (1, 1, -1), (1, 1, -2), (1, 2, 4), (2, 0, 5)]
    numbers = np.array(listed)
    one = js.qubo(given)
    others = [
        js.qubo(given.T.tolist()),
        js.qubo(given.astype(np.float32)),
        js.qubo(sparse.coo_array((numbers[:, 2], numbers[:, :2].T), (3, 3))),
        js.qubo(sparse.dok_matrix(given)),  # which is a dict
        js.qubo(numbers[:, 2], entries=numbers[:, :2]),
    ]
    for other in others:
        chex.assert_trees_all_equal(jax.tree.leaves(one), jax.tree.leaves(other))
    weights = np.ones((3, 3), bool) ^ np.eye(3, dtype=bool)
    triangle = js.max_cut(weights)
    for other in (
        js.max_cut(1, edges=TRIANGLE),
        js.max_cut([1.0, 1.0, 1.0], edges=np.array(TRIANGLE)[:, ::-1], num_vertices=3),
    ):
        chex.assert_trees_all_equal(jax.tree.leaves(triangle), jax.tree.leaves(other))
    assert js.max_cut(1, edges=TRIANGLE, num_vertices=5).n == 5
    assert js.max_cut(1, edges=TRIANGLE, best_known_cut=2).host.best_known == -2


def test_few_edges_take_little_memory():
    """A ring of 3000 vertices and a graph without edges are lists; half of all pairs a matrix."""
    ring = np.stack([np.arange(3000), (np.arange(3000) + 1) % 3000], axis=1)
    problem = js.max_cut(1, edges=ring)
    assert sum(leaf.nbytes for leaf in jax.tree.leaves(problem)) < 100_000
    assert problem.couplings.lists.max_degree == 2
    alone = js.max_cut(1, edges=np.zeros((0, 2), int), num_vertices=4)
    assert all(leaf.size for leaf in jax.tree.leaves(alone))
    assert alone.host.cost(np.array([0, 1, 0, 1])) == int(alone.cost(jnp.int32([0, 1, 0, 1]))) == 0
    assert js.qubo(matrix(20, "integer")).couplings.matrix.shape == (20, 20)


def test_bounds_are_tight_and_sums_may_wrap():
    """The largest weights that fit give exact costs; one more is refused, or counted in units."""
    path = [[0, 1], [1, 2]]
    problem = js.max_cut([MAX_INT32 - 3, 2], edges=path)
    costs = costs_of(problem, vectors(3))
    assert costs.tolist() == [problem.host.cost(side) for side in vectors(3)]
    assert min(costs.tolist()) == -MAX_INT32 + 1
    js.testing.check_neighborhood(js.Assign(), problem, implementations=False)
    with refuses(ValueError, "weights gives costs from -2.14748e+09 to 0", "dtype='float32'"):
        js.max_cut([MAX_INT32 - 2, 2], edges=path)
    large = js.max_cut([3 * 10**16, 2 * 10**16], edges=path)
    assert large.host.unit == 10**16
    assert large.host.in_full(int(large.device_cost(jnp.int32([0, 1, 0])))) == -5 * 10**16
    assert large.host.cost(np.array([0, 1, 0])) == -5 * 10**16
    with refuses(ValueError, "matrix gives costs from 0 to 9e+18", "beyond int32"):
        js.qubo([[9 * 10**18 + 1, 2], [0, 3]])
    largest = js.qubo([[-3 * 2**60, 2**61], [2**61, -(2**60)]])
    ones = np.ones(2, np.int32)
    assert (largest.host.unit, largest.host.cost(ones)) == (2**60, 0)
    inexact = js.qubo([[9 * 10**18 + 1, 2], [0, 3]], dtype="float32")
    assert inexact.linear.dtype == jnp.float32


PLAIN = js.datasets.GraphInstance(name="", n=2, edges=np.array([[0, 1]]), weights=np.array([1]))


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: js.qubo([[1.0, np.nan], [0, 0]]), "matrix[0,1] is NaN"),
        (lambda: js.qubo([[1e-300]]), "numbers in matrix reach 1e-300"),
        (lambda: js.qubo(np.ones((2, 3))), "matrix has shape (2, 3), expected (n, n)"),
        (lambda: js.qubo(np.eye(2), num_variables=2), "num_variables is 2 without entries"),
        (lambda: js.qubo([[0.5]], dtype="int32"), "dtype is 'int32', expected None or"),
        (lambda: js.qubo([1], entries=[[0, 10**9]]), "expected at most 1 GiB"),
        (lambda: js.max_cut(1, edges=[[0, 1], [1, 1]]), "weights has a loop at vertex 1"),
        (lambda: js.max_cut(1, edges=[[0, 1], [1, 0]]), "edges hold 0-1 twice"),
        (lambda: js.qubo({("a", "b"): 1}, num_variables=3), "num_variables is given with a dict"),
        (lambda: js.max_cut(PLAIN, num_vertices=3), "num_vertices is given with a graph"),
        (lambda: js.graph_coloring(PLAIN, 1, num_vertices=3), "num_vertices is given with a graph"),
    ],
)
def test_bad_input_is_refused_in_one_line(make, text):
    with refuses(ValueError, text):
        make()


class OtherGraph:
    """A graph of networkx, as far as it is asked."""

    def __init__(self, nodes, edges, is_directed=False):
        self.nodes, self._edges, self.is_directed = nodes, edges, lambda: is_directed

    def number_of_nodes(self):
        return len(self.nodes)

    def edges(self, data, default):
        assert (data, default) == ("weight", 1)
        return self._edges


def test_graphs_of_other_libraries():
    """Weights count, and nodes are numbered in their order; so it is with an instance."""
    graph = OtherGraph("xyz", [("z", "x", 5), ("x", "y", 2)])
    problem = js.max_cut(graph)
    assert [problem.host.cost(np.array(side)) for side in ([0, 0, 1], [0, 1, 0])] == [-5, -2]
    coloring = js.graph_coloring(graph, 2)
    assert [int(coloring.cost(jnp.array(one))) for one in ([0, 1, 1], [0, 1, 0])] == [0, 1]
    instance = js.datasets.GraphInstance(
        name="", n=3, edges=np.array([[0, 1], [0, 2]]), weights=np.array([2, 5])
    )
    assert js.max_cut(instance).host.cost(np.array([0, 0, 1])) == -5
    with pytest.raises(ValueError, match="graph is directed"):
        js.max_cut(OtherGraph("xy", [("x", "y", 1)], is_directed=True))


def test_sparse_instances_of_about_one_size_share_programs():
    """Their lists have room: neither shapes nor static parts tell them apart."""
    pairs, kinds = np.argwhere(np.triu(np.ones((30, 30)), 1)), set()
    for seed in (0, 1, 2):
        edges = np.random.default_rng(seed).permutation(pairs)[: 41 + seed]
        problem = js.max_cut(1, edges=edges, num_vertices=30, storage="sparse")
        kinds.add((jax.tree.structure(problem), *map(jnp.shape, jax.tree.leaves(problem))))
    assert len(kinds) == 1
