"""Searches for permutations refuse problems with other solutions, in one line."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import Levels, agents_and_jobs
from probes import refuses

import jaxopt_search as js
from jaxopt_search.problems import random_vector

GENETIC = js.genetic(population_size=8)
EXCHANGE = js.recombine(every=10)
MESSAGE = "^problem is a Levels and does not say what its solutions are, .*'perm.* for "


def test_what_does_not_say_that_it_is_a_permutation_is_refused():
    """A genetic algorithm gave x = 0...n-1, with a cost that no solution has, as a success."""
    problem, options = Levels(jnp.arange(20)), {"num_searches": 2}
    with pytest.raises(ValueError, match=MESSAGE + "Genetic"):
        js.solve(problem, GENETIC, 0, max_steps=50, **options)
    with pytest.raises(ValueError, match=MESSAGE + "Genetic"):
        jax.jit(lambda one: js.init(0, one, GENETIC, **options))(problem)
    search = js.simulated_annealing(js.Swap(), 2.0)
    with pytest.raises(ValueError, match=MESSAGE + "(Recombine|FullEvaluation)"):
        js.solve(problem, search, 0, exchange=EXCHANGE, max_steps=50, **options)


@js.pytree
@dataclasses.dataclass(frozen=True)
class Paint(js.VectorProblem):
    """A user's own problem on vectors: each element at its own value, of up to four."""

    domain_sizes: jax.Array
    wanted: jax.Array

    max_domain = 4

    def init(self, key):
        return random_vector(key, self.domain_sizes)

    def cost(self, solution):
        return jnp.sum(jnp.abs(solution - self.wanted), dtype=jnp.int32)


class Half(Paint):
    """Some hooks, but not all."""

    def tally(self, solution):
        return ()


class Floats(Paint):
    def init(self, key):
        return super().init(key).astype(jnp.float32)


class Short(Paint):
    """Solutions are shorter than the domain sizes."""

    def init(self, key):
        return super().init(key)[:4]

    def cost(self, solution):
        return solution[0]


for one in (Half, Floats, Short):
    js.pytree(one)

SIZES, WANTED = jnp.int32([2, 4, 3, 4, 1]), jnp.int32([1, 3, 0, 2, 0])
ASSIGN = js.simulated_annealing(js.Assign(), 0.5)
VECTORS = js.max_cut(1, edges=[[0, 1], [1, 2]])


def test_a_problem_of_a_users_own_on_vectors_needs_domains_only():
    """A start of the user's own is checked, too."""
    options = {"num_searches": 2, "max_steps": 200}
    result = js.solve(Paint(SIZES, WANTED), ASSIGN, 0, **options)
    assert (result.fun, result.x.tolist()) == (0, WANTED.tolist())
    for initial, text in (([0, 0, 3, 0, 0], "initial[2] is 3, expected 0 to 2"), ([0], "shape")):
        with refuses(ValueError, text):
            js.solve(Paint(SIZES, WANTED), ASSIGN, 0, initial=initial, **options)


@pytest.mark.parametrize(
    ("problem", "error", "text"),
    [
        (Half(SIZES, WANTED), TypeError, "a Half with tally but no assign_delta"),
        (Floats(SIZES, WANTED), TypeError, "expected [n] int32"),
        (Short(SIZES, WANTED), TypeError, "whose domain_sizes are int32[5], expected int32[4]"),
        (Paint(SIZES.at[1].set(5), WANTED), ValueError, "a domain of size 5, expected 1 to 4"),
    ],
)
def test_problems_on_vectors_that_are_none_are_refused(problem, error, text):
    """In one line, before anything is compiled."""
    with refuses(error, text):
        js.solve(problem, ASSIGN, 0, num_searches=2, max_steps=5)


@pytest.mark.parametrize(
    ("search", "name"),
    [
        (js.simulated_annealing(js.Swap(), 1.0), "FullEvaluation"),
        (GENETIC, "Genetic"),
        (js.tabu_search(js.SwapTable()), "SwapTable"),
    ],
)
def test_what_is_for_permutations_refuses_vectors(search, name):
    """Each kind of part, in one line that names it; so do exchanges."""
    text = "problem is a QUBO and says space = 'vector', expected space = 'permutation'"
    with refuses(ValueError, text, f"for {name}"):
        js.solve(VECTORS, search, 0, num_searches=2, max_steps=5)
    with refuses(ValueError, "a QUBO", "expected space = 'permutation' for Recombine"):
        js.solve(VECTORS, ASSIGN, 0, num_searches=4, max_steps=5, exchange=EXCHANGE)
    with pytest.raises(ValueError, match="expected space = 'vector' for Assign"):
        js.solve(js.nqueens(5), ASSIGN, 0, num_searches=2, max_steps=5)


@pytest.mark.parametrize(
    "problem",
    [
        js.nqueens(5).padded(8),
        js.graph_coloring([[0, 1], [1, 2], [3, 4]], 3),
        agents_and_jobs(3, 5),
        js.max_cut(5, edges=[[0, 1], [1, 2], [3, 4]]),
    ],
    ids=lambda problem: type(problem).__name__,
)
def test_costs_are_of_whole_solutions(problem):
    """Of a list as well; one entry more or less is refused, where an index would be moved."""
    solution = [0, 1, 1, 0, 1]
    if problem.space == "permutation":
        solution = [0, 1, 4, 2, 3]
    assert problem.cost(solution) == problem.host.cost(np.array(solution))
    for wrong in (solution[:4], [*solution, 0]):
        with pytest.raises(ValueError, match="solution has shape"):
            problem.cost(wrong)
