"""solve_coloring: few colors, from a greedy coloring down to a clique or the end of the time."""

import itertools

import pytest
from probes import refuses

import jaxopt_search as js
from jaxopt_search.solvers.coloring import greedy_coloring

QUICK = {"num_searches": 4, "devices": 1}


def is_proper(graph, coloring):
    low, high = graph.edges.T
    return (coloring[low] != coloring[high]).all()


@pytest.mark.parametrize("density", [0.0, 0.2, 0.7, 1.0])
def test_a_greedy_coloring_is_proper_and_its_clique_is_there(density):
    graph = js.datasets.random_graph(14, density, seed=3)
    problem = js.graph_coloring(graph.edges, 1, num_vertices=14)
    coloring, clique = greedy_coloring(problem)
    assert is_proper(graph, coloring) and clique <= coloring.max() + 1 <= 14
    joined = {frozenset(edge) for edge in graph.edges.tolist()}
    assert any(
        all(frozenset(pair) in joined for pair in itertools.combinations(group, 2))
        for group in itertools.combinations(range(14), clique)
    )


@pytest.mark.parametrize(
    ("graph", "fewest"),
    [(js.datasets.queen_graph(5, 5), 5), (js.datasets.mycielski_graph(3), 4)],
    ids=["clique", "no clique"],
)
def test_the_fewest_colors(graph, fewest):
    """Known chromatic numbers; the second one is above the largest clique, so that steps end it."""
    result = js.solve_coloring(graph, max_steps=300, **QUICK)
    assert result.fun == 0 and is_proper(graph, result.x)
    assert result.x.max() + 1 == fewest


def test_children_of_colorings_find_what_tabu_search_does_not():
    """In as many steps, 14 colors of a random graph of 100 vertices."""
    graph = js.datasets.random_graph(100, 0.5, seed=1)
    how = {"num_searches": 8, "max_steps": 10_000, "devices": 1}
    recombined = js.solve_coloring(graph, 14, **how)
    alone = js.solve_coloring(graph, 14, exchange=None, **how)
    assert recombined.fun == 0 < alone.fun and is_proper(graph, recombined.x)


def test_as_many_colors_as_are_asked_for():
    """Where some are fixed, colors are no mere names, and nothing is recombined."""
    graph = js.datasets.queen_graph(6, 6)
    result = js.solve_coloring(graph, 8, fixed=[[0, 5], [35, 2]], max_steps=5000, **QUICK)
    assert result.fun == 0 and result.success and is_proper(graph, result.x)
    assert (result.x[0], result.x[35]) == (5, 2) and result.x.max() < 8
    assert result.exchange is None


def test_what_takes_a_number_of_colors(tmp_path):
    graph = js.datasets.queen_graph(5, 5)
    result = js.solve_coloring(graph, 4, target=60, **QUICK)
    assert 0 < result.fun <= 60 and result.success
    given = {"fixed": [[0, 1]], "target": 1, "checkpoint": tmp_path / "run.npz"}
    for name, value in given.items():
        with refuses(ValueError, f"{name} is given without num_colors"):
            js.solve_coloring(graph, **{name: value})
