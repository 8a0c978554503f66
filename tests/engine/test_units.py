"""Costs and targets are the problem's own, whatever the device counts in."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import LinearOrdering

import jaxopt_search as js
from jaxopt_search.problems.host import Units

RNG = np.random.default_rng(0)
CASES = {
    "an offset": lambda: js.qubo(RNG.integers(-9, 9, (12, 12)) + 0.5, offset=1e6),
    "a unit of terms": lambda: js.qubo(RNG.integers(-9, 9, (12, 12)) * 10**10),
}


@pytest.mark.parametrize("name", CASES)
def test_costs_and_targets_are_the_problems_own(name):
    """What is read is the cost of the solution, and a run ends once it is at most the target."""
    problem = CASES[name]()
    search = js.simulated_annealing(js.Flip(), 0.0)
    options = {"num_searches": 4, "max_steps": 60, "check_every": 1}

    @jax.jit
    def run(problem, target):
        state = js.run(0, problem, search, target=target, **options)
        solution, cost = js.best(problem, search, state)
        return state, solution, cost, problem.cost(solution)

    state, solution, *costs = run(problem, jnp.float32(-np.inf))
    exact = problem.host.cost(np.asarray(solution))
    np.testing.assert_allclose([*costs, state.best_cost], float(exact), rtol=2**-22)
    assert state.status == js.Status.MAX_STEPS
    for target, ends in ((exact, True), (exact - abs(exact) * 1e-4, False)):
        found = js.run(0, problem, search, target=target, **options)
        assert found.status == (js.Status.TARGET if ends else js.Status.MAX_STEPS)
        assert found.step > 0
    # A target that is traced is compared with costs as they are read.
    state, _, cost, _ = run(problem, costs[0])
    assert (state.status, cost) == (js.Status.TARGET, costs[0])


def test_large_costs_that_cancel():
    """Of an offset and a cost on the device, what little is left is right to the last digit."""
    for offset, cost in ((2**31 + 7, -(2**31) + 1), (-(2**33) - 3, 5), (12_345_678_901, -99)):
        units = Units(1, offset)
        found = jax.jit(units.in_full)(jnp.int32(cost))
        assert found == np.float32(cost + offset)
        assert units.highest_below(found, jnp.dtype("int32")) >= cost


def test_a_problem_may_have_units_of_its_own():
    """They mean nothing to the library beside a plain `cost`."""

    @js.pytree
    class Distances(LinearOrdering):
        units = "km"

    problem = Distances(jnp.asarray(RNG.integers(1, 100, (9, 9)), jnp.int32), 9)
    result = js.solve(problem, js.hill_climbing(js.FullEvaluation(js.Swap())), 0, max_steps=1)
    assert result.fun == problem.cost(result.x)
