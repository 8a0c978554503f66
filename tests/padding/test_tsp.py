"""A TSP with room for more cities is the same instance: tours, lengths, searches, bit for bit."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from padding.same import check_course, check_same
from probes import refuses
from ways import KERNEL, needs_cpu

import jaxopt_search as js
from jaxopt_search.backends import rows
from jaxopt_search.problems import padding


def points(n):
    return np.random.default_rng(n).integers(0, 300, (n, 2))


def matrix(n, is_symmetric, more=0):
    distances = np.random.default_rng(n).integers(1, 1000, (n, n)) + more
    return np.triu(distances, 1) + np.triu(distances, 1).T if is_symmetric else distances


KINDS = {
    "EUCLID": lambda n: js.tsp_from_coords(points(n) + 0.3, storage="coordinates"),
    "EUC_2D": lambda n: js.tsp_from_coords(points(n), metric="EUC_2D", storage="coordinates"),
    "integers": lambda n: js.tsp(matrix(n, True)),
    "asymmetric floats": lambda n: js.tsp(matrix(n, False, 0.3)),
}


@functools.cache
def instance(kind, n):
    return KINDS[kind](n)


@jax.jit
def made(problem, keys):
    """Returns random tours and others near them, and all that tells their lengths."""
    starts = jax.vmap(problem.init)(keys)
    near = jax.vmap(problem.perturb)(keys, starts)
    in_rows = rows.by_rows(near.shape, lambda block, _: problem.row_costs(block, near), None)
    return (starts, near), jax.vmap(problem.device_cost)(starts), in_rows


@pytest.mark.parametrize(
    ("kind", "n"),
    [("EUC_2D", 13), ("integers", 13), ("asymmetric floats", 13), ("asymmetric floats", 2)],
)
def test_tours_and_lengths(kind, n):
    """What is behind the cities is neither drawn nor moved nor measured."""
    problem = instance(kind, n)
    keys = jax.random.split(jax.random.key(n), 20)
    tours, *lengths = made(problem, keys)
    for each, found in zip(tours, (lengths[0], lengths[1]), strict=True):
        expected = [problem.host.cost(tour) for tour in np.asarray(each)]
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    padded = problem.padded(20)
    assert (int(padded.n), padded.capacity) == (n, 20)
    of_more, *rest = made(padded, keys)
    chex.assert_trees_all_equal(lengths, rest)
    for own, filled in zip(tours, of_more, strict=True):
        np.testing.assert_array_equal(filled[:, :n], own)
        np.testing.assert_array_equal(filled[:, n:], np.tile(np.arange(n, 20), (20, 1)))


def two_opt(problem):
    """Asks for ten candidates, also where there are fewer cities."""
    return js.simulated_annealing(js.two_opt(problem), 40.0, moves_per_search=3)


RELOCATIONS = js.simulated_annealing(js.Relocate(), 40.0, moves_per_search=3)


@needs_cpu
@pytest.mark.parametrize(
    ("search", "implementation", "kind", "capacity"),
    [
        (two_opt, KERNEL, "integers", 16),
        (RELOCATIONS, "native", "asymmetric floats", 20),
    ],
)
def test_searches_take_the_same_course(search, implementation, kind, capacity):
    """Whole states, whatever runs them."""
    check_course(instance(kind, 9), capacity, search, implementation)


@needs_cpu
@pytest.mark.parametrize(
    ("search", "n"),
    [(two_opt, 4), (RELOCATIONS, 3)],
)
def test_few_cities(search, n):
    """Where moves are none, or meet their own surroundings."""
    check_course(instance("EUCLID", n), 16, search, "native", num_steps=100)


def test_results_are_those_of_the_instance():
    """Of 13 cities, in its units and without what is behind; starts may be of either length."""
    problem, options = instance("EUCLID", 13), {"num_searches": 4, "max_steps": 90, "devices": 1}
    capacity = 20

    def solve(problem, **more):
        exchange = js.recombine(every=20, alike=None, crossover=js.edge_assembly(problem))
        return js.solve(problem, two_opt(problem), 3, exchange=exchange, **options, **more)

    starts = np.random.default_rng(0).permuted(np.tile(np.arange(13), (4, 1)), axis=1)
    expected = solve(problem, initial=starts)
    assert (np.asarray(expected.ancestors) != np.arange(4)).any()
    for given in (starts, padding.filled(starts, capacity)):
        found = solve(problem.padded(capacity), initial=given)
        check_same(expected.state, found.state)
        np.testing.assert_array_equal(found.solutions, expected.solutions)
        np.testing.assert_array_equal(found.costs, expected.costs)
        assert (found.x.tolist(), found.fun) == (expected.x.tolist(), expected.fun)
        assert found.problem.cost(found.x) == problem.cost(expected.x)
    with pytest.raises(ValueError, match="solution has shape"):
        problem.cost(expected.x[1:])


def test_what_the_host_keeps():
    """Exact lengths and starts are of the user's cities; there is room, and only once."""
    problem = instance("EUC_2D", 6)
    padded, tour = problem.padded(20), np.random.default_rng(0).permutation(6)
    assert padded.host.cost(np.r_[tour, 6:20]) == problem.host.cost(tour)
    np.testing.assert_array_equal(padded.host.check(tour, "x"), np.r_[tour, 6:20])
    np.testing.assert_array_equal(padded.host.own(np.r_[tour, 6:20]), tour)
    for start in (np.r_[tour, 7, 6, 8:20], np.arange(7), np.r_[0, tour[1:], 6:20][::-1]):
        with refuses(ValueError, "x "):
            padded.host.check(start, "x")
    with refuses(ValueError, "capacity is 5, expected an integer from 6"):
        problem.padded(5)
    with refuses(ValueError, "problem is padded already"):
        padded.padded(30)
    sizes = (1, 16, 17, 33, 49, 65, 100, 129, 1000)
    found = [padding.capacity_for(n) for n in sizes]
    assert found == [16, 16, 24, 48, 64, 96, 128, 192, 1024]
    assert padding.capacity_for(1000, 8) == 1024 and padding.capacity_for(900, 8) == 960
    for kind in KINDS:  # one class, one program
        shapes = [jax.tree.map(jnp.shape, instance(kind, n).padded()) for n in (2, 13)]
        chex.assert_trees_all_equal(*shapes)
