"""Candidate lists: the nearest cities, or some from all directions."""

import jax.numpy as jnp
import numpy as np
import pytest
from cases import coords_tsp, matrix_tsp
from probes import distances_of

import jaxopt_search as js
from jaxopt_search.problems.tsp import candidates, traced


def sorted_distances(problem, lists):
    """Returns [n, K] the distances from each city to its candidates, in their order."""
    n = problem.n
    matrix = np.asarray(problem.matrix).reshape(n, n)
    return matrix[np.arange(n)[:, None], lists]


@pytest.mark.parametrize("num", [4, 50])
def test_nearest_of_a_matrix(num):
    """K others, none nearer left out, nearest first; all n - 1 if K is larger."""
    problem = matrix_tsp(20)
    lists = candidates.neighbors(problem, num)
    assert lists.shape == (20, min(num, 19))
    assert lists.dtype == np.int32
    assert (lists != np.arange(20)[:, None]).all()
    expected = np.asarray(problem.matrix).reshape(20, 20)
    expected = np.sort(np.where(np.eye(20, dtype=bool), 10**6, expected), axis=1)
    np.testing.assert_array_equal(sorted_distances(problem, lists), expected[:, : lists.shape[1]])


@pytest.mark.parametrize("n", [2, 40, 300])
def test_coordinates_give_the_same_distances_as_a_matrix(n):
    """Ties may be broken differently; the distances are the same."""
    stored = {name: coords_tsp(n, storage=name) for name in ("matrix", "coordinates")}
    lists = [candidates.neighbors(problem, 7) for problem in stored.values()]
    found = [sorted_distances(stored["matrix"], rows) for rows in lists]
    np.testing.assert_array_equal(*found)


TABLES = {
    "coordinates": lambda points: js.tsp_from_coords(points, storage="coordinates"),
    "matrix": lambda points: js.tsp(distances_of(points)),
    "device": lambda points: traced.of_arrays(jnp.asarray(points, jnp.float32)),
}


def lists_of(table, points, num, kind="spread"):
    """Returns candidates, [n, num], from the host or from the device."""
    problem = TABLES[table](np.asarray(points, float))
    if table == "device":
        return np.asarray(traced.neighbors(problem, num, kind))
    return candidates.neighbors(problem, num, kind)


@pytest.mark.parametrize(
    ("table", "kind"),
    [("coordinates", "spread"), ("matrix", "nearest"), ("device", "nearest"), ("device", "spread")],
)
def test_cities_at_the_same_place_count_as_one(table, kind):
    """A ring leads through them, and the other candidates are at as many other places."""
    place = np.random.default_rng(0).permutation(np.repeat(np.arange(8), [12, 1, 5, 2, 3, 4, 5, 6]))
    lists = lists_of(table, np.random.default_rng(1).random((8, 2))[place], 6, kind)
    is_own = place[lists] == place[:, None]
    assert (lists != np.arange(38)[:, None]).all()
    np.testing.assert_array_equal(is_own.sum(axis=1), np.bincount(place)[place] > 1)
    others = [row[~own] for row, own in zip(lists, is_own, strict=True)]
    assert all(len(set(place[row])) >= 5 for row in others)
    (following,) = lists[is_own][None]
    cities = np.flatnonzero(is_own.any(axis=1))
    for number in range(8):
        members = cities[place[cities] == number]
        assert set(following[np.isin(cities, members)]) == set(members)


@pytest.mark.parametrize("table", TABLES)
def test_too_few_places_fill_no_list_with_the_city_itself(table):
    """Two places of two cities each, and one city beside a place of three."""
    for places in ([0, 0, 1, 1], [0, 0, 0, 1]):
        lists = lists_of(table, np.stack([places, places], axis=1), 3)
        assert lists.shape == (4, 3)
        assert (lists != np.arange(4)[:, None]).all()
        for city, row in enumerate(lists):
            assert len({places[other] for other in row} - {places[city]}) == 1


@pytest.mark.parametrize("table", TABLES)
def test_candidates_lead_out_of_a_tight_cluster(table):
    """From each of ten clusters to at least two others, though 14 cities are nearer."""
    generator = np.random.default_rng(0)
    points = np.repeat(generator.uniform(0, 10_000, (10, 2)), 15, axis=0)
    lists = lists_of(table, points + generator.uniform(-10, 10, points.shape), 8) // 15
    for number, rows in enumerate(np.split(lists, 10)):
        assert len(set(rows.ravel()) - {number}) >= 2


def test_quadrants_are_served_evenly():
    """From the middle of a cluster, two from each quadrant; the nearest make up the number."""
    points = np.random.default_rng(0).normal(size=(200, 2))
    points[0] = 0
    problem = js.tsp_from_coords(points)
    lists = candidates.neighbors(problem, 10, "spread")
    assert lists.shape == (200, 10)
    for city, row in enumerate(lists):
        others = np.delete(np.arange(200), city)
        difference = points - points[city]
        distance = np.hypot(*difference.T)
        expected = set()
        for right in (True, False):
            for above in (True, False):
                is_inside = (difference[others, 0] >= 0) == right
                is_inside &= (difference[others, 1] >= 0) == above
                inside = others[is_inside]
                expected |= set(inside[np.argsort(distance[inside])][:2].tolist())
        rest = sorted(set(others.tolist()) - expected, key=lambda other: distance[other])
        expected |= set(rest[: 10 - len(expected)])
        assert set(row.tolist()) == expected
        assert (np.diff(distance[row]) >= 0).all()


def clusters():
    generator = np.random.default_rng(0)
    centers = generator.uniform(-1000, 1000, (6, 2))
    return np.concatenate([center + generator.normal(size=(180, 2)) for center in centers])


def grid():
    return np.stack(np.divmod(np.arange(400), 20), axis=1)


@pytest.mark.parametrize("points", [clusters(), grid()], ids=["clusters", "grid"])
def test_candidates_of_many_cities_are_those_among_all(points, monkeypatch):
    """Where a quadrant has its cities far away, the nearest of all do not tell who they are."""
    problem = js.tsp_from_coords(points)
    found = candidates.neighbors(problem, 8, "spread")
    monkeypatch.setattr(candidates, "_ROWS", len(points))
    np.testing.assert_array_equal(found, candidates.neighbors(problem, 8, "spread"))


def test_of_cities_equally_far_the_first_are_candidates():
    """Quadrant by quadrant, from the lower left one on."""
    points = np.array([[0, 0], [1, 1], [-1, 1], [1, -1], [-1, -1], [2, 2], [-2, -2]])
    lists = candidates.neighbors(js.tsp_from_coords(points), 6, "spread")
    assert lists[0].tolist() == [4, 3, 2, 1, 6, 5]
    lists = candidates.neighbors(js.tsp_from_coords(points), 3, "spread")
    assert lists[0].tolist() == [4, 3, 2]
