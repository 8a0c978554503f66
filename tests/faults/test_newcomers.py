"""What someone tries who is new here: each is one line that says what to do, or just works."""

import dataclasses

import jax
import numpy as np
import pytest
from probes import annealing

import jaxopt_search as js

POINTS = np.random.default_rng(0).random((6, 2))


@dataclasses.dataclass(frozen=True)
class Unregistered(js.Problem):
    def init(self, key):
        return jax.numpy.arange(5)

    def cost(self, solution):
        return jax.numpy.int32(0)


def solve(problem):
    return js.solve(problem, annealing(), max_steps=1)


MISTAKES = {
    "coordinates": (lambda: solve(POINTS), "tsp_from_coords makes of coordinates"),
    "a list of coordinates": (lambda: solve(POINTS.tolist()), "tsp_from_coords makes of"),
    "a TSPInstance": (lambda: solve(js.datasets.grid_tsp(2, 3)), "as tsp_from_instance makes of"),
    "a QAPInstance": (
        lambda: solve(js.datasets.uniform_qap(5, seed=0)),
        "as qap_from_instance makes of",
    ),
    "an unregistered dataclass": (lambda: solve(Unregistered()), "decorate the class with"),
    "a class": (lambda: solve(js.TSP), "problem is the class TSP, expected"),
    "search and problem exchanged": (
        lambda: js.solve(annealing(), js.tsp_from_coords(POINTS), max_steps=1),
        "problem is a SimulatedAnnealing, expected",
    ),
    "places in space": (lambda: js.solve_tsp(np.zeros((5, 3))), "of places in space, pass"),
    "lists of unequal lengths": (lambda: js.solve_tsp([[0, 1], [1, 2, 3]]), "ragged list"),
    "a name": (lambda: js.solve_tsp("rd100"), "data is 'rd100', expected an instance"),
    "nothing": (lambda: js.solve_tsp(None), "expected integers or floats"),
    "flows only": (lambda: js.solve_qap(np.ones((3, 3))), "distance is None, expected an (n, n)"),
    "a number as text": (lambda: js.solve_nqueens("8"), "n is '8', expected an integer"),
    "no limit": (
        lambda: js.solve(js.tsp_from_coords(POINTS), annealing()),
        "no limit is given, expected max_steps, max_seconds, target or patience",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_told_in_one_line(name):
    call, text = MISTAKES[name]
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    assert text in str(caught.value) and "\n" not in str(caught.value)


def test_two_cities_are_coordinates():
    """[[0, 0], [10, 0]] might be a matrix, too; it is two places, and there and back is 20."""
    assert js.solve_tsp([[0, 0], [10, 0]], max_steps=1).fun == 20


def test_a_default_generator_of_another_kind():
    """Seeds give the same course whatever kind of keys JAX makes by default."""
    problem = js.tsp_from_coords(POINTS)

    def course():
        return js.solve(problem, annealing(), 3, num_searches=2, max_steps=20).solutions

    plain = course()
    with jax.default_prng_impl("rbg"):
        np.testing.assert_array_equal(course(), plain)
