"""Tours built on the host: near the shortest, for any kind of instance.

Greedy edges, as by hand; 2-opt and Or-opt, each of which does what it says, until none helps.
"""

import itertools

import numpy as np
import pytest
from cases import coords_tsp, matrix_tsp
from probes import edges

import jaxopt_search as js
from jaxopt_search.problems.tsp import candidates
from jaxopt_search.problems.tsp.construction import constructed_tour, greedy_tour
from jaxopt_search.problems.tsp.descent import ArrayTour, descend


@pytest.mark.parametrize(
    ("make", "most"),
    [
        (lambda seed: js.datasets.grid_tsp(10, 20, seed=seed), 1.06),
        (lambda seed: js.datasets.grid_tsp(37, 40, seed=seed), 1.07),
        (lambda seed: js.datasets.planted_tsp(60, seed=seed), 1.06),
    ],
)
def test_it_is_near_the_optimum(make, most):
    """On average of some instances."""
    instances = [make(seed) for seed in range(4)]
    tours = [constructed_tour(js.tsp_from_instance(each)) for each in instances]
    ratios = [
        each.tour_length(tour) / each.best_known
        for each, tour in zip(instances, tours, strict=True)
    ]
    assert np.mean(ratios) < most


@pytest.mark.parametrize("n", [1, 2, 3, 5, 40])
@pytest.mark.parametrize(
    "make",
    [
        coords_tsp,
        matrix_tsp,
        lambda n: matrix_tsp(n, symmetric=False),
        lambda n: js.tsp(np.zeros((n, n))),
        lambda n: js.tsp(-np.arange(n * n).reshape(n, n), allow_negative=True),
        lambda n: js.tsp_from_coords(np.ones((n, 2))),
        lambda n: matrix_tsp(n).padded(),
    ],
)
def test_any_instance_has_one(make, n):
    """Also of few cities, of equal places, on a line, or with room for more; the same each time."""
    problem = make(n)
    tour = constructed_tour(problem)
    assert tour.dtype == np.int32
    assert sorted(tour) == list(range(n))
    np.testing.assert_array_equal(tour, constructed_tour(problem))


def test_a_forbidden_edge_is_avoided():
    """Where that is easy."""
    matrix = 1.0 + np.abs(np.subtract.outer(np.arange(12), np.arange(12)))
    matrix[3, 4] = matrix[4, 3] = np.inf
    problem = js.tsp(matrix, forbidden="inf")
    assert problem.host.is_feasible(constructed_tour(problem))


def by_hand(matrix):
    """Returns the length of the tour of the shortest edges that close no cycle and leave none."""
    n = len(matrix)
    group, degree, total = list(range(n)), [0] * n, 0
    for i, j in zip(*np.unravel_index(np.argsort(matrix, axis=None), (n, n)), strict=True):
        if i != j and degree[i] < 2 and degree[j] < 2 and group[i] != group[j]:
            group = [group[i] if one == group[j] else one for one in group]
            degree[i], degree[j], total = degree[i] + 1, degree[j] + 1, total + matrix[i, j]
    first, last = (city for city in range(n) if degree[city] < 2)
    return total + matrix[first, last]


@pytest.mark.parametrize("num_candidates", [3, 29])
@pytest.mark.parametrize("problem", [matrix_tsp(30), matrix_tsp(30, dtype=np.float64)])
def test_the_shortest_edges_come_first(problem, num_candidates):
    """As by hand with all edges at hand; with few candidates, not much longer."""
    matrix = problem.distances_on_host().astype(float)
    near = candidates.neighbors(problem, num_candidates)
    tour = greedy_tour(problem, near, lambda a, b: matrix[a, b])
    assert sorted(tour) == list(range(30))
    length, expected = matrix[tour, np.roll(tour, -1)].sum(), by_hand(matrix)
    assert length == pytest.approx(expected, rel=0 if num_candidates == 29 else 0.25)


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


@pytest.mark.parametrize(("n", "num_seeds"), [(5, 20), (9, 40), (14, 10)])
def test_no_move_makes_it_shorter(n, num_seeds):
    """With all other cities as candidates."""
    for seed in range(num_seeds):
        rng = np.random.default_rng(seed)
        points = rng.random(n) + 1j * rng.random(n)
        matrix = np.abs(points[:, None] - points)
        near = np.argsort(matrix + 1000 * np.eye(n), axis=1)[:, : n - 1]
        start = rng.permutation(n)
        tour = descend(start, near, lambda a, b, matrix=matrix: matrix[a, b])
        assert sorted(tour) == list(range(n))
        assert length(matrix, tour) <= length(matrix, start)
        found = min(length(matrix, other) for other in neighbors_of(tour))
        assert found >= length(matrix, tour) - 1e-6
