"""Graph coloring: costs, moves and input held against plain loops; searches on it."""

import functools
import itertools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import PricedLabeling, labeling, random_graph
from probes import refuses
from references import course, slow_tabu, stream_at
from scipy import stats
from ways import KERNEL

import jaxopt_search as js
from jaxopt_search.successors import vectors

PATH = [[0, 1], [1, 2], [2, 3]]


def conflicts(matrix, coloring):
    pairs = itertools.combinations(range(len(coloring)), 2)
    return sum(int(matrix[i][j]) * bool(coloring[i] == coloring[j]) for i, j in pairs)


@pytest.mark.parametrize(("n", "share"), [(1, 0.0), (5, 0.0), (7, 0.5), (6, 1.0)])
def test_costs_and_tallies_are_those_of_plain_loops(n, share):
    """Of no edge, all edges and half of them, with an isolated vertex at the end or not."""
    matrix = random_graph(n, share, seed=3)
    problem = js.graph_coloring(matrix, 3)
    colorings = np.random.default_rng(0).integers(0, 3, (6, n)).astype(np.int32)
    costs = [conflicts(matrix, one) for one in colorings]
    assert jax.jit(jax.vmap(problem.cost))(colorings).tolist() == costs
    assert [problem.host.cost(one) for one in colorings] == costs
    tallies = jax.jit(jax.vmap(problem.tally))(colorings)
    for one, coloring in zip(tallies.neighbors, colorings, strict=True):
        counted = [[sum(matrix[v] & (coloring == c)) for c in range(3)] for v in range(n)]
        np.testing.assert_array_equal(one, counted)


def test_all_forms_of_input_make_one_problem():
    """Edges in any order and twice, and matrices of any dtype."""
    matrix = np.zeros((4, 4), int)
    for i, j in PATH:
        matrix[i, j] = matrix[j, i] = 1
    first = js.graph_coloring(PATH, 2)
    for given in (np.flip(PATH), [*PATH, [2, 1]], matrix, matrix.astype(bool), matrix.tolist()):
        chex.assert_trees_all_equal(first, js.graph_coloring(given, 2))
    assert js.graph_coloring(PATH, 2, num_vertices=6).n == 6
    assert js.graph_coloring([], 2, num_vertices=3).n == 3
    assert js.graph_coloring([[0, 0], [0, 0]], 1).n == 2


FIXED = [[8, 2], [0, 1], [4, 0]]


@pytest.mark.parametrize(("name", "has_weights"), [("tabu", True), ("swaps", False)])
def test_fixed_colors_and_weights_count(name, has_weights):
    """Costs are of the whole graph, whoever makes the steps; each search ends in its own cost."""
    matrix = random_graph(11, 0.6)
    matrix[0, 4] = matrix[4, 0] = 1  # between two that are fixed
    if has_weights:
        matrix = matrix * (np.arange(11) + np.arange(11)[:, None])
        edges = np.argwhere(np.triu(matrix))
        given = np.concatenate([edges, edges[:1, ::-1]]), 3
        weights = np.append(matrix[tuple(edges.T)], 5)
        matrix[tuple(edges[0])] += 5  # given twice, they add up
        problem = js.graph_coloring(*given, weights=weights, fixed=FIXED)
    else:
        problem = js.graph_coloring(matrix, 3, fixed=FIXED)
    colorings = np.random.default_rng(0).integers(0, 3, (20, problem.n)).astype(np.int32)
    costs = [conflicts(matrix, whole) for whole in problem.host.own(colorings)]
    assert jax.jit(jax.vmap(problem.cost))(colorings).tolist() == costs
    assert [problem.host.cost(one) for one in colorings] == costs
    initial = np.full(11, 2)
    initial[[8, 0, 4]] = 2, 1, 0
    result = js.solve(problem, SEARCHES[name](), 0, max_steps=60, initial=initial)
    searches = result.state.searches
    current = jax.vmap(problem.cost)(searches.representation.solution)
    np.testing.assert_array_equal(current, searches.cost)
    assert result.x[[8, 0, 4]].tolist() == [2, 1, 0]
    assert result.fun == conflicts(matrix, result.x)
    if name == "tabu":
        assert result.fun == best_of_all(problem)


def test_random_graphs_of_a_kind_share_compiled_code():
    """They differ in edges and degrees, and yet in no shape or static number."""
    kinds = [js.graph_coloring(random_graph(120, 0.5, seed), 9) for seed in range(4)]
    shapes = [jax.tree.map(jnp.shape, kind) for kind in kinds]
    assert len({int(kind.graph.weights.sum()) for kind in kinds}) > 1
    assert len({jax.tree.structure(kind) for kind in kinds}) == 1
    assert all(jax.tree.leaves(shape) == jax.tree.leaves(shapes[0]) for shape in shapes)


@pytest.mark.parametrize(
    ("graph", "options", "text"),
    [
        ([[0, 1], [2, 2], [0, 2]], {}, "graph has a loop at vertex 2, expected none"),
        ([[1, 2], [2, 3], [3, 1]], {"num_vertices": 3}, "is 3, expected 0 to 2; count from 0"),
        (np.tri(3, k=-1, dtype=int), {}, "graph is asymmetric"),
        ([[0, 2, 0], [2, 0, 1], [0, 1, 0]], {}, "graph has the entry 2, expected 0 or 1"),
        (np.zeros((1, 1)), {"weights": [1]}, "weights is given with a matrix"),
        (PATH, {"weights": [1, 0, 2]}, "weights has 0 or a sum of 3, expected integers of 1"),
        (PATH, {"weights": [1, 2]}, "weights has shape (2,), expected (3,)"),
        (PATH, {"fixed": [[1, 0], [1, 1]]}, "fixed has a vertex twice"),
        (PATH, {"fixed": [[1, 0], [2, 0]]}, "fixed gives neighbors 1 and 2 one color"),
        (PATH, {"num_colors": 2**30}, f"expected an integer from 1 to {(2**31 - 1) // 4}"),
    ],
    ids=str,
)
def test_bad_input_is_refused_in_one_line(graph, options, text):
    with refuses(ValueError, text):
        js.graph_coloring(graph, **{"num_colors": 2, **options})


SEARCHES = {
    "tabu": lambda: js.tabu_search(
        js.Guided(js.successors.ConflictsOnly()), tenure=(0, 3), tenure_per_cost=0.7
    ),
    "swaps": lambda: js.hill_climbing(js.SwapValues(), choose="first"),
}


def test_domains_of_several_sizes_are_searched_in_kernels():
    """Every state, bit for bit, of a problem of a user's own."""
    problem = labeling([3, 1, 4, 2, 3], PricedLabeling)
    search = js.tabu_search(js.Assign(), tenure=2, aspiration_age=9)
    found, expected = (
        js.run(5, problem, search, num_searches=3, max_steps=40, implementation=one)
        for one in (KERNEL, "xla")
    )
    assert np.asarray(found.info.accepted).any()
    chex.assert_trees_all_equal(found, expected)


def best_of_all(problem):
    every = itertools.product(*(range(size) for size in np.asarray(problem.domain_sizes)))
    every = jnp.asarray(list(every), jnp.int32)
    return int(jax.jit(jax.vmap(problem.cost))(every).min())


def test_tabu_search_ends_at_the_brute_force_optimum():
    """Also where moves are priced in full."""
    problem = labeling([3, 1, 4, 2])
    result = js.solve(problem, js.tabu_search(js.Assign(), tenure=1), 0, max_steps=60)
    assert result.fun == best_of_all(problem) == int(problem.cost(jnp.asarray(result.x)))


def test_tabu_on_conflicts_is_tabucol():
    """Step by step the course of a slow TabuCol, with a tenure of 0 to 3 and 3/2 of the cost."""
    matrix = random_graph(9, 0.8, 5)
    problem, k = js.graph_coloring(matrix, 3), 3
    search = js.tabu_search(
        js.Guided(js.successors.ConflictsOnly()),
        tenure=(0, 3),
        tenure_per_cost=1.5,
        aspiration_age=2**30,
    )
    start = jax.jit(lambda key: search.init(problem, problem.init(key)))(jax.random.key(2))
    states, _ = course(problem, search, start, 120)
    words = stream_at(jnp.arange(120)).words(jnp.uint32(0), 2)[0]
    drawn = js.random.below(words, 4).tolist()
    num_moves = []

    def moves(coloring):
        """Yields the moves of vertices in conflict."""
        for v, c in itertools.product(range(9), range(k)):
            if c != coloring[v] and any(matrix[v] & (np.array(coloring) == coloring[v])):
                num_moves.append(v)
                after = [*coloring[:v], c, *coloring[v + 1 :]]
                yield v * k + c, after, conflicts(matrix, after), [v * k + coloring[v]]

    def tenures(now, cost):
        return [drawn[now] + int(1.5 * cost)]

    first = start.representation.solution.tolist()
    until = dict.fromkeys(range(9 * k), -1)
    slow = slow_tabu(first, conflicts(matrix, first), until, moves, tenures, 2**30)
    expected = [coloring for coloring, _ in itertools.islice(slow, 120)]
    np.testing.assert_array_equal(states.representation.solution, expected)
    assert len(num_moves) > 500


@jax.tree_util.register_static
class Weighted(js.successors.LocalHeuristic):
    """Weights whose sum takes more than 32 bits, without `allows`; value 2 is forbidden."""

    is_portable = True

    def rate(self, problem, state, variable, possibility):
        return possibility

    def weight(self, problem, rating, aggregates):
        weight = jnp.uint32(2**31) + jnp.uint32(2**28) * rating.astype(jnp.uint32)
        return jnp.where(rating == 2, jnp.uint32(0), weight)

    def assign(self, problem, state, variable, possibility, where):
        return state


@jax.tree_util.register_static
class OnlyKeep(Weighted):
    """Allows no value."""

    def weight(self, problem, rating, aggregates):
        return jnp.zeros_like(rating, jnp.uint32)


@jax.jit
def proposals(hood, problem, solution, words):
    return hood.propose(problem, hood.init(problem, solution), words)


@pytest.mark.parametrize("kind", ["wide", "delta"])
def test_draws_follow_the_weights(kind):
    """Chi-square of values for each variable, and of variables; 0 is never drawn."""
    num, k = 40_000, 5
    problem = js.graph_coloring(random_graph(4, 0.9, 2), k)
    solution = jnp.asarray([2, 0, 0, 1], jnp.int32)
    heuristic = Weighted() if kind == "wide" else js.successors.ByDelta()
    rng = np.random.default_rng()
    words = tuple(jnp.asarray(rng.integers(0, 2**32, num, np.uint32)) for _ in range(3))
    move = proposals(js.Guided(heuristic), problem, solution, words)
    counts = np.zeros((4, k))
    np.add.at(counts, (np.asarray(move.variable), np.asarray(move.value)), 1)
    neighbors = np.asarray(problem.tally(solution).neighbors)
    cases = [(counts.sum(axis=1), np.ones(4))]
    for v in range(4):
        if kind == "wide":
            chances = [8, 9, 0, 11, 12]
        else:
            others = np.arange(k) != int(solution[v])
            lowest = neighbors[v][others].min()
            chances = np.where(others, 0.5 ** (neighbors[v] - lowest), 0)
        cases.append((counts[v], np.asarray(chances)))
    for found, chances in cases:
        assert not found[chances == 0].any()
        found, chances = found[chances > 0], chances[chances > 0]
        assert stats.chisquare(found, found.sum() * chances / chances.sum()).pvalue > 1e-9


@functools.partial(jax.jit, static_argnums=0)
def first_of(hood, problem, solution):
    def rank(entry, delta):
        return (delta,)

    return hood.first(problem, hood.init(problem, solution), rank, ())[0]


def test_what_has_no_weight_is_no_move():
    """In the table only what the heuristic allows, by `allows` or by weights."""
    problem = js.graph_coloring(PATH, 3)
    colorings = jnp.asarray([[0, 1, 2, 0], [0, 0, 2, 0]], jnp.int32)
    none = js.null_delta(jnp.int32)
    guided = js.Guided(js.successors.ConflictsOnly())
    found = [first_of(guided, problem, one) for one in colorings]
    assert int(found[0].keys[0]) == none
    climb, start = js.hill_climbing(js.Guided(OnlyKeep())), np.array([[1, 1, 2, 0]])
    kept = js.solve(problem, climb, 0, num_searches=1, initial=start)
    assert kept.x.tolist() == start[0].tolist()
    assert (int(found[1].keys[0]), int(found[1].number)) == (-1, 1)  # vertex 0 gets color 1
    # By weights all but value 2: the last vertex may not get the color it has need of.
    weighted = js.Guided(Weighted())
    found = first_of(weighted, problem, jnp.asarray([0, 1, 0, 0], jnp.int32))
    assert (int(found.keys[0]), int(found.number)) == (-1, 10)


def test_weights_halve_with_each_so_much_cost():
    """With `halving` 3, three steps of the cost weigh alike, and the next three half of it."""
    deltas = jnp.arange(-5, 65, dtype=jnp.int32)
    rating = vectors.ValueRating(deltas, deltas != 0)
    found = js.successors.ByDelta(halving=3).weight(None, rating, (jnp.int32(-5),))
    wanted = [2 ** (20 - min(more // 3, 20)) * (more != 5) for more in range(70)]
    assert found.tolist() == wanted


def test_guides_refuse_what_they_do_not_fit():
    """Other problems, and sizes by which values would be left out or made up in silence."""
    guided = js.hill_climbing(js.Guided(js.successors.ByDelta()))
    with pytest.raises(TypeError, match="a Labeling without assign_delta, expected one with hooks"):
        js.run(0, labeling([2, 3]), guided, num_searches=1, max_steps=1)
    problem, colors = js.graph_coloring([[0, 1], [2, 3]], 3), jnp.zeros((1, 4), jnp.int32)
    states = js.types.Tallied(colors, jax.vmap(problem.tally)(colors))
    for sizes, text in (((5, 3), "num_variables is 5"), ((4, 2), "max_possibilities is 2")):
        with pytest.raises(ValueError, match=text):
            js.successors.generate(0, js.successors.ByDelta(*sizes), problem, states)
    with pytest.raises(TypeError, match="expected a Tallied for ByDelta"):
        js.successors.generate(0, js.successors.ByDelta(4, 3), problem, colors)
    qubo, search = js.qubo([[0.5, 1.0], [1.0, 0.2]]), js.simulated_annealing
    with pytest.raises(TypeError, match="costs of float32, expected int32 for ByDelta"):
        js.solve(qubo, search(js.Guided(js.successors.ByDelta()), 1.0), 0, max_steps=1)
    with pytest.raises(TypeError, match="expected a GraphColoring for ConflictsOnly"):
        guide = js.Guided(js.successors.ConflictsOnly())
        js.solve(js.qubo([[1, 2], [0, 3]]), search(guide, 1.0), 0, max_steps=1)
