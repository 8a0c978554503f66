"""TSP instances with odd numbers: scales, divisors, forbidden edges."""

import jax.numpy as jnp
import numpy as np
import pytest
from probes import MATRIX_OF_FOUR, annealing, changed, distances_of, refuses, shortest

import jaxopt_search as js
from jaxopt_search.problems.tsp.construction import constructed_tour


def solve(problem, **options):
    options = {"max_steps": 200, "num_searches": 8} | options
    return js.solve(problem, annealing(3.0), 0, **options)


PLACES = np.random.default_rng(0).random((7, 2))


@pytest.mark.parametrize("scale", [1e-300, 1e-20, 1e20, 1e300])
def test_distances_that_float32_cannot_add_up_or_square_are_refused(scale):
    """Of a matrix and of coordinates alike, with what to do about it."""
    text = "expected 9.09495e-13 to 9.22337e+18 for float32; multiply by a constant"
    for make, data in ((js.tsp, distances_of(PLACES)), (js.tsp_from_coords, PLACES)):
        with refuses(ValueError, "distances reach", text):
            make(scale * data)


def test_distances_that_float32_cannot_tell_apart_are_refused():
    """Those between which a number that all share drowns the differences, and no rounding noise."""
    own = distances_of(PLACES)
    text = "distances reach from 1e+09 to 1e+09", "take off what all of them share"
    with refuses(ValueError, *text):
        js.tsp(own + 1e9)
    own[np.arange(7), np.roll(np.arange(7), -1)] = np.inf
    with refuses(ValueError, *text):
        js.tsp(own + 1e9, forbidden="inf")
    assert js.tsp(np.where(own < 0.5, 0.3, 0.1 + 0.2)).is_symmetric


def test_tours_fit_into_int32_though_random_ones_do_not():
    """Searches start where costs are exact, and what leaves that is refused or noticed."""
    points = np.random.default_rng(0).integers(0, 10**8, (60, 2))
    matrix = np.rint(distances_of(points)).astype(np.int64)
    problem, random = js.tsp(matrix), np.random.default_rng(0).permutation(60)
    result = solve(problem)
    exact = matrix[result.solutions, np.roll(result.solutions, -1, axis=-1)].sum(axis=-1)
    np.testing.assert_array_equal(result.costs, exact)
    assert result.fun == exact.min() < 10**8 * 60**0.5
    with refuses(ValueError, "initial costs 2.99", "start from a shorter tour, or use dtype="):
        solve(problem, initial=random)
    with pytest.raises(ValueError, match=r"constructed\[0\] costs 1.8\d*e\+10, .*'float32' for"):
        solve(js.tsp(matrix // 10 + 3 * 10**8))
    with refuses(ValueError, "random solutions that cost more than int32 holds", "genetic"):
        js.solve(problem, js.genetic(population_size=4, crossover="ox"), 0, max_steps=1)
    with refuses(ValueError, "solutions holds 0, expected 8 good ones"):
        js.init(0, problem, annealing(3.0), num_searches=8)
    with pytest.raises(RuntimeError, match="beyond int32: lower its temperature"):
        js.solve(problem, annealing(1e9), 0, max_steps=3000, num_searches=8)


def test_forbidden_edges_of_long_distances():
    """Distances in meters leave room for what a forbidden edge costs."""
    points = np.random.default_rng(0).integers(0, 10**6, (60, 2))
    matrix = np.rint(distances_of(points))
    problem = js.tsp(np.where(matrix < 400_000, matrix, np.inf), forbidden="inf")
    tour, other = constructed_tour(problem), np.random.default_rng(1).permutation(60)
    assert problem.device_cost(jnp.asarray(tour)) <= problem.host.max_feasible
    assert problem.host.cost(tour) == matrix[tour, np.roll(tour, -1)].sum()
    assert problem.device_cost(jnp.asarray(other)) > problem.host.max_feasible
    assert problem.host.is_feasible(tour) and not problem.host.is_feasible(other)


def test_forbidden_edges():
    """+inf forbids an edge; the best tour without it is found and is feasible."""
    matrix = changed(0, 1, np.inf)
    matrix[1, 0] = np.inf
    result = solve(js.tsp(matrix, forbidden="inf"))
    assert result.feasible
    assert (result.fun, type(result.fun)) == (shortest(matrix), int)
    matrix[0, 1:] = np.inf
    result = solve(js.tsp(matrix, forbidden="inf"))
    assert not result.feasible
    assert result.fun == np.inf


def test_the_best_of_what_is_not_feasible_is_kept(tmp_path):
    """Where no feasible tour is found, the best has the fewest forbidden edges; so says a file."""
    n, path = 7, tmp_path / "run.npz"
    matrix = np.full((n, n), np.inf)
    matrix[range(n), np.roll(range(n), -1)] = 1
    matrix[0] = np.inf

    def number(tour):
        return np.isinf(matrix[tour, np.roll(tour, -1)]).sum()

    search, start = js.simulated_annealing(js.Relocate(), 20.0), np.arange(n)[::-1]
    problem = js.tsp(matrix, forbidden="inf")
    options = {"max_steps": 100, "chunk_steps": 20, "num_searches": 4}
    result = js.solve(problem, search, 0, initial=start, checkpoint=path, **options)
    assert number(start) == n
    assert result.fun == np.inf
    assert number(result.x) == min(map(number, result.solutions)) < 4
    assert f"{number(result.x)} forbidden edge" in result.message
    np.testing.assert_array_equal(js.load_best(path)[0], result.x)


def test_target_is_not_met_by_a_forbidden_edge():
    """A generous finite target is not reached by a solution of infinite cost."""
    matrix = np.full((5, 5), np.inf)
    matrix[range(5), np.roll(range(5), -1)] = 1
    starts = np.tile([0, 4, 3, 2, 1], (8, 1))
    result = solve(js.tsp(matrix, forbidden="inf"), target=10**6, initial=starts)
    assert (result.fun, result.success) == (5, True) and result.first_hit.step > 0


def test_common_divisor_and_target():
    """Integers beyond int32 are solved in units; a target between two is met by the lower only."""
    unit = 10**12
    matrix, best = MATRIX_OF_FOUR * unit, unit * int(shortest(MATRIX_OF_FOUR))
    problem = js.tsp(matrix)
    assert solve(problem, target=best + 1).success
    result = solve(problem, target=best - 1)
    assert (result.success, result.status) == (False, js.Status.MAX_STEPS)
    expected = [int(matrix[tour, np.roll(tour, -1)].sum()) for tour in result.solutions]
    assert result.costs.tolist() == expected and result.fun == best
