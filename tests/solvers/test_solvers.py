"""solve_tsp: any kind of input, sensible temperatures, and it keeps to its limits."""

import numpy as np
import pytest
from cases import coords_tsp
from scipy.sparse.csgraph import minimum_spanning_tree

import jaxopt_search as js
from jaxopt_search import Status
from jaxopt_search.solvers import scales, tsp


@pytest.mark.parametrize("kind", ["instance", "problem", "coords", "matrix", "list"])
def test_any_kind_of_input(kind):
    """An instance, a TSP, coordinates, a matrix and nested lists; fun is a tour's exact length."""
    instance = js.datasets.grid_tsp(3, 4, spacing=7, seed=0)
    data = {
        "instance": instance,
        "problem": js.tsp_from_instance(instance),
        "coords": instance.coordinates,
        "matrix": instance.distances(),
        "list": instance.distances().tolist(),
    }[kind]
    result = js.solve_tsp(data, max_steps=4000, target=instance.best_known, devices=1)
    assert sorted(result.x.tolist()) == list(range(12))
    assert result.fun == pytest.approx(instance.best_known)
    if kind != "coords":
        assert isinstance(result.fun, int)


def test_an_asymmetric_tour_is_annealed_to_the_optimum():
    """Of one-way streets, shortest through blocks; the constructed tour is longer."""
    rng, cities = np.random.default_rng(0), np.arange(36)
    xy = np.stack([cities // 6, cities % 6], axis=1)
    matrix = 100 * np.abs(xy[:, None] - xy).sum(axis=2) + rng.integers(0, 9, (36, 36))
    results = [js.solve_tsp(matrix, max_steps=steps, devices=1) for steps in (0, 3000)]
    assert results[1].fun < results[0].fun
    assert results[1].fun <= 1.01 * 3724  # as LKH finds


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_temperatures_follow_the_scale_of_the_distances(scale):
    """An instance a million times as large is solved as well: within 3 % of the grid's optimum."""
    instance = js.datasets.grid_tsp(6, 6, spacing=10, seed=1)
    result = js.solve_tsp(instance.coordinates * scale, max_steps=3000, devices=1)
    assert result.fun <= 1.03 * instance.best_known * scale


@pytest.mark.parametrize(
    ("matrix", "expected"),
    [
        (np.array([[0, 3, 4], [3, 0, 5], [4, 5, 0]]), 4.0),
        (np.zeros((5, 5), int), 1.0),
        (-np.ones((5, 5), int), 1.0),
        (np.repeat(np.repeat([[0, 4], [4, 0]], 5, axis=0), 5, axis=1), 4.0),
        (np.zeros((1, 1)), 1.0),
    ],
)
def test_near_distance(matrix, expected):
    """The mean of the three nearest elsewhere, and never 0 or less."""
    for measure in (scales.near_distance, scales.near_distance_on_device):
        assert float(measure(js.tsp(matrix, allow_negative=True))) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("coords", "expected"),
    [
        ([[0, 0], [8, 0], [1, 0], [3, 0]], 10**0.5),  # 1, 2 and 5
        ([[0, 0], [0, 3], [4, 0]], 12.5**0.5),
        ([[2, 2]] * 5, 0.0),
        ([[7, 1]], 0.0),
    ],
)
def test_tree_edge(coords, expected):
    """Root mean squares of edges, by hand."""
    assert float(scales.tree_edge(js.tsp_from_coords(coords))) == pytest.approx(expected)


def test_tree_edge_is_that_of_the_shortest_tree():
    """As SciPy finds it."""
    distances = np.random.default_rng(0).integers(1, 500, (40, 40))
    distances = np.triu(distances, 1) + np.triu(distances, 1).T
    expected = np.sqrt(np.square(minimum_spanning_tree(distances).data).mean())
    found = float(scales.tree_edge(js.tsp(distances)))
    assert found == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("n", "seconds", "expected"),
    [
        (5, 1, 8),
        (100, 1, 8),
        (200, 1, 12),
        (1002, 1, 8),
        (1002, 10, 32),
        (5934, 1, 4),
        (5934, 10, 14),
        (10**5, 1, 1),
        (100, 0.01, 2),
    ],
)
def test_as_many_tours_are_constructed_as_there_is_time(n, seconds, expected):
    """By the limit, not by the clock."""
    assert tsp._num_tours(n, seconds) == expected


@pytest.mark.parametrize("storage", ["coordinates", "matrix"])
@pytest.mark.parametrize(
    ("metric", "n"),
    [
        ("EUCLID", 300),
        ("EUC_2D", 30),
        ("CEIL_2D", 30),
        ("ATT", 30),
        *(("EUCLID", n) for n in (1, 2, 4)),
    ],
)
def test_scales_on_the_host_are_those_of_the_device(metric, n, storage):
    """Up to rounding."""
    places = np.random.default_rng(n).integers(0, 2000, (n, 2)) + 0.3 * (metric == "EUCLID")
    problem = js.tsp_from_coords(places, metric=metric, storage=storage)
    for name in ("near_distance", "tree_edge"):
        found, expected = (getattr(scales, name + end)(problem) for end in ("", "_on_device"))
        assert found == pytest.approx(float(expected), rel=1e-5)


def test_constructed_starts_differ():
    """They are a function of the key, and the searches share them out evenly."""
    problem = coords_tsp(200)
    near = tsp.candidates_of(problem, 12)
    recipe = tsp.tsp_recipe(True, "cpu", 200)._replace(num_searches=40)
    found, same, other = (tsp._tours(problem, recipe, key, near, 1.0).build() for key in (5, 5, 6))
    np.testing.assert_array_equal(found, same)
    assert found.shape == (40, 200)
    assert len({tuple(tour) for tour in found.tolist()}) == 12
    assert [(found == tour).all(axis=1).sum() for tour in found[:12]] == [4] * 4 + [3] * 8
    assert (found[1:12] != other[1:12]).any(axis=1).all()
    np.testing.assert_array_equal(found[0], other[0])


def test_a_limit_of_seconds_is_kept():
    """The run ends in time, its steps fill most of the time, and the tour is good."""
    instance = js.datasets.grid_tsp(6, 6, spacing=10, seed=2)
    result = js.solve_tsp(instance, max_seconds=1.5, target=None, devices=1)
    assert 1.5 <= result.elapsed - result.compile_seconds < 10
    assert (result.success, result.status) == (True, Status.MAX_SECONDS)
    assert result.nit > 200
    assert result.gap <= 0.03


@pytest.mark.parametrize("kind", ["matrices", "instance", "problem"])
def test_any_kind_of_qap(kind):
    """Matrices, an instance and a QAP; the planted optimum is found and fun is exact."""
    instance = js.datasets.planted_qap(2, 4, seed=1)
    data = {
        "matrices": (instance.flow, instance.distance),
        "instance": (instance,),
        "problem": (js.qap_from_instance(instance),),
    }[kind]
    result = js.solve_qap(*data, max_steps=400, devices=1)
    assert sorted(result.x.tolist()) == list(range(8))
    assert result.fun == instance.best_known == instance.cost(result.x)
    assert isinstance(result.fun, int)


def test_solve_qap_minimizes_what_scipy_does():
    """Never worse than SciPy's two methods, on the same orientation of asymmetric matrices."""
    optimize = pytest.importorskip("scipy.optimize")
    flow, distance = np.random.default_rng(0).integers(0, 30, (2, 12, 12))
    result = js.solve_qap(flow, distance, max_steps=2000, devices=1)
    for method in ("faq", "2opt"):
        other = optimize.quadratic_assignment(
            flow, distance, method, {"rng": np.random.default_rng(0)}
        )
        assert result.fun <= other.fun
    assert result.fun == (flow * distance[np.ix_(result.x, result.x)]).sum()


@pytest.mark.parametrize("n", [1, 2])
def test_tiny_qaps(n):
    """One assignment, or two: the better one."""
    flow, distance = np.arange(n * n).reshape(n, n), np.eye(n)
    assert js.solve_qap(flow, distance, max_steps=10, devices=1).success


def test_a_flow_without_a_distance_is_refused():
    """In one line, by name."""
    with pytest.raises(ValueError, match="distance is None, expected"):
        js.solve_qap(np.eye(3))


@pytest.mark.parametrize(
    ("n", "expected"), [(100, 2112), (1002, 2112), (2392, 528), (5934, 264), (100_000, 132)]
)
def test_fewer_searches_of_many_cities(n, expected):
    """On a GPU the tours of all should fit into its cache."""
    assert tsp.tsp_recipe(True, "gpu", n).num_searches == expected


@pytest.mark.parametrize(("n", "expected"), [(4, 128), (1002, 128), (2392, 32), (10**6, 16)])
def test_fewer_searches_of_many_cities_on_a_cpu(n, expected):
    """As many as can be cooled in about ten seconds."""
    assert tsp.tsp_recipe(True, "cpu", n).num_searches == expected


@pytest.mark.parametrize(
    "kind", ["coordinates", "matrix", pytest.param("batch", marks=pytest.mark.slow)]
)
def test_copies_of_cities_are_solved_like_the_places_once(kind):
    """20 places with 9 copies each, more than a city has candidates: at most 1 % too long."""
    points = np.repeat(np.random.default_rng(0).uniform(0, 1, (20, 2)), 9, axis=0)
    data = points[None] if kind == "batch" else points
    if kind == "matrix":
        data = np.hypot(*np.moveaxis(points[:, None] - points, 2, 0))
    result = js.solve_tsp(data, max_steps=1000, num_searches=32)
    assert np.max(result.fun) < 1.01 * 4.36442
