"""Flips are the assignments of binary vectors, in a smaller table."""

import dataclasses

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import agents_and_jobs
from probes import refuses
from ways import FASTEST, KERNEL

import jaxopt_search as js
from jaxopt_search.problems import random_vector


def tabu(problem, neighborhood, implementation, max_steps=100):
    """Returns the searches of a run whose rules do not depend on the shape of the table."""
    search = js.tabu_search(neighborhood, tenure=(2, 9), aspiration_age=2**30)
    options = {"num_searches": 2, "max_steps": max_steps, "implementation": implementation}
    return js.run(3, problem, search, **options).searches


def parts(state):
    return state.representation, state.cost, state.best, state.best_cost


def test_tabu_search_is_that_by_assignments():
    """Solution by solution, also in a kernel; 33 variables fill no rows of the table."""
    problem = agents_and_jobs(2, 33)
    by_flips = tabu(problem, js.Flip(), FASTEST)
    chex.assert_trees_all_equal(parts(by_flips), parts(tabu(problem, js.Assign(), FASTEST)))
    chex.assert_trees_all_equal(by_flips, tabu(problem, js.Flip(), KERNEL))


@js.pytree
@dataclasses.dataclass(frozen=True)
class Apart(js.VectorProblem):
    """A user's own problem: neighbors in a row differ; the last variable has one value."""

    domain_sizes: jax.Array

    max_domain = 2

    def init(self, key):
        return random_vector(key, self.domain_sizes)

    def cost(self, solution):
        return jnp.sum(solution[1:] == solution[:-1], dtype=jnp.int32)


def test_flips_of_a_problem_without_hooks():
    """Priced in full; what has one value stays."""
    problem = Apart(jnp.full(7, 2, jnp.int32).at[6].set(1))
    search = js.tabu_search(js.Flip(), tenure=2)
    result = js.solve(problem, search, 0, num_searches=2, max_steps=30)
    assert (result.fun, result.x.tolist()) == (0, [0, 1, 0, 1, 0, 1, 0])
    assert search.evaluations_per_step(problem) == 6
    assert not np.asarray(result.solutions)[:, 6].any()


def test_only_binary_vectors_are_taken():
    search = js.hill_climbing(js.Flip())
    with pytest.raises(TypeError, match="expected one on vectors with max_domain 2 for Flip"):
        js.solve(agents_and_jobs(3, 4), search, 0, max_steps=1)
    with refuses(ValueError, "expected space = 'vector' for Flip"):
        js.solve(js.tsp(np.ones((4, 4))), search, 0, max_steps=1)
