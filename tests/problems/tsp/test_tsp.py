"""TSP instances: distances on the device equal TSPLIB's, costs are exact, inputs are understood."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxopt_search as js
from jaxopt_search.datasets import distances as metrics
from jaxopt_search.problems.tsp import build
from jaxopt_search.problems.tsp.problem import DISTANCES, MAX_DISTANCE, SCALES

ROUNDED = ["EUC_2D", "CEIL_2D", "ATT"]


def device_distance(metric, dx, dy, scale):
    distance = jax.jit(DISTANCES[metric], static_argnums=2)
    return np.asarray(distance(jnp.asarray(dx), jnp.asarray(dy), scale))


def host_distance(metric, dx, dy, scale):
    points = np.stack([dx, dy], axis=-1) / scale
    return metrics.EDGE_WEIGHTS[metric](points, np.zeros_like(points))


def squared_distances_near_every_change(metric, scale):
    """Returns dx, dy, times a scale, at whose length the rounded distance changes."""
    rng = np.random.default_rng(0)
    roots = np.unique(np.concatenate([np.arange(1, 2000), rng.integers(1, 400_000, 4000)]))
    pairs = []
    for root in roots.tolist():
        whole = root * root * scale**2
        turning = {
            "EUC_2D": ((2 * root + 1) * scale) ** 2 // 4,
            "CEIL_2D": whole,
            "ATT": 10 * whole,
        }
        for away in range(-2 * scale, 2 * scale + 1):
            squared = max(turning[metric] + away, 1)
            pair = two_squares(squared)
            if pair is not None and squared <= (scale * MAX_DISTANCE) ** 2:
                pairs.append(pair)
    return np.array([*pairs, *triples(scale)], np.int32).T


def triples(scale):
    """Returns long dx, dy of whole lengths up to the largest, and their neighbors."""
    most = scale * MAX_DISTANCE // 5 - 1
    short = np.concatenate([np.arange(most - 500, most), np.arange(9000, 9500)])
    return [(3 * k + i, 4 * k + j) for k in short.tolist() for i in (-1, 0, 1) for j in (-1, 0, 1)]


def two_squares(squared):
    """Returns dx, dy with dx**2 + dy**2 == squared, if a short search finds them."""
    for dx in range(int(squared**0.5), max(int(squared**0.5) - 40, 0), -1):
        rest = squared - dx * dx
        root = round(rest**0.5)
        if rest >= 0 and root * root == rest:
            return dx, root
    return None


@pytest.mark.parametrize("scale", [1, 2, max(SCALES)])
@pytest.mark.parametrize("metric", ROUNDED)
def test_rounding_is_exact_where_it_turns_over(metric, scale):
    """On both sides of every change of the rounded distance, up to the largest squares."""
    dx, dy = squared_distances_near_every_change(metric, scale)
    assert dx.size > 1000
    expected = host_distance(metric, dx, dy, scale)
    np.testing.assert_array_equal(device_distance(metric, dx, dy, scale), expected)


@pytest.mark.parametrize("name", ["burma14", "att48", "gr17", "rd100", "dsj1000"])
def test_tours_of_tsplib_files_cost_what_the_host_says(data_dir, name):
    """GEO, ATT, EXPLICIT, fractional, CEIL_2D and plain instances, from both kinds of storage."""
    instance = js.datasets.load(name, data_dir=data_dir)
    tour = np.random.default_rng(0).permutation(instance.n).astype(np.int32)
    for storage in ("auto", "matrix"):
        problem = js.tsp_from_instance(instance, storage=storage)
        expected = instance.tour_length(tour)
        assert int(cost_of(problem, tour)) == expected == problem.host.cost(tour)


@jax.jit
def cost_of(problem, tour):
    return problem.cost(tour)


@pytest.mark.parametrize("scale", [1, 2, max(SCALES)])
@pytest.mark.parametrize("spread", [5000, 20_000])
def test_storage_changes_no_distance(spread, scale):
    """All pairs of an instance of integers, or of halves, and so on, by matrix and coordinates."""
    coords = np.random.default_rng(1).integers(-spread * scale, spread * scale, (60, 2)) / scale
    pairs = np.array(list(itertools.product(range(60), repeat=2)), np.int32).T
    for metric in ROUNDED:
        problems = [
            js.tsp_from_coords(coords, metric=metric, storage=storage)
            for storage in ("matrix", "coordinates")
        ]
        first, second = (np.asarray(p.distance(*jnp.asarray(pairs))) for p in problems)
        np.testing.assert_array_equal(first, second)


def test_float_coordinates_far_from_the_origin_keep_their_precision():
    """Distances of a few units around (1e7, 1e7), where float32 itself has steps of 1."""
    coords = np.random.default_rng(0).uniform(0, 10, (20, 2))
    tour = jnp.arange(20, dtype=jnp.int32)
    for storage in ("matrix", "coordinates"):
        far = js.tsp_from_coords(coords + 1e7, storage=storage)
        near = js.tsp_from_coords(coords, storage=storage)
        np.testing.assert_allclose(cost_of(far, tour), cost_of(near, tour), rtol=1e-5)


def test_a_matrix_of_euclidean_distances_is_whole():
    """Also where it is computed in several blocks of rows."""
    coords = np.random.default_rng(0).uniform(0, 100, (300, 2))
    expected = np.hypot(*np.moveaxis(coords[:, None] - coords, -1, 0))
    found = build.matrix_in_full(js.tsp_from_coords(coords))
    np.testing.assert_array_almost_equal_nulp(found, expected, 2)
    np.testing.assert_array_equal(found, found.T)


def test_coordinates_that_float32_cannot_round_go_through_a_matrix():
    """Coordinates that are tenths, or of finer fractions, or far apart, are exact all the same."""
    rng = np.random.default_rng(0)
    numbers = rng.integers(0, 10**6, (30, 2))
    for coords in (rng.uniform(0, 1000, (30, 2)), numbers, numbers / 10, numbers / 16):
        problem = js.tsp_from_coords(coords, metric="EUC_2D")
        assert problem.metric == "MATRIX"
        tour = rng.permutation(30)
        assert int(problem.cost(jnp.asarray(tour, jnp.int32))) == metrics.tour_length(
            coords, "EUC_2D", tour
        )
        with pytest.raises(ValueError, match="storage is 'coordinates', expected 'matrix'"):
            js.tsp_from_coords(coords, metric="EUC_2D", storage="coordinates")


def test_degrees_give_kilometers_along_a_great_circle():
    problem = js.tsp_from_coords([[0, 0], [0, 90], [90, 0]], metric="HAVERSINE")
    assert int(problem.distance(jnp.int32(0), jnp.int32(1))) == 10007
    assert problem.host.cost(np.arange(3)) == pytest.approx(3 * 6371.0088 * np.pi / 2)


def test_places_in_space():
    """A cube's corners are a tour of eight edges."""
    corners = [[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)]
    problem = build.as_tsp(corners, metric="EUCLID")
    assert problem.host.cost(np.array([0, 1, 3, 2, 6, 7, 5, 4])) == 8


def test_degrees_begin_with_the_latitude():
    """Others are refused by name."""
    with pytest.raises(ValueError, match=r"coords\[1,0\] is 120, expected latitudes"):
        js.tsp_from_coords([[0, 0], [120, 10]], metric="HAVERSINE")


def test_edges_may_be_missing():
    """None, NaN and infinity are no edges, if the user says so; the way out is named."""
    gaps = [[0, 1, None, 4], [1, 0, 2, np.nan], [np.inf, 2, 0, 3], [4, None, 3, 0]]
    problem = build.as_tsp(gaps, forbidden="inf")
    assert problem.host.cost(np.arange(4)) == 10 and problem.host.is_feasible(np.arange(4))
    assert not problem.host.is_feasible(np.array([0, 2, 1, 3]))
    with pytest.raises(ValueError, match=r"distance\[0,2\] is NaN, .*forbidden='inf'"):
        js.solve_tsp(gaps, max_steps=1)
