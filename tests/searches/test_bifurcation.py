"""Simulated bifurcation: its steps beside plain NumPy, and optima by brute force."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from probes import refuses

import jaxopt_search as js

N = 14
COUPLINGS = np.random.default_rng(0).integers(-9, 10, (N, N))


def driven(matrix, position, momentum, num_steps, form):
    """Returns positions after some steps of a drive, by the equations of Goto et al. for spins."""
    both = np.triu(matrix, 1) + np.tril(matrix, -1).T
    coupling = -(both + both.T) / 4
    field = -(np.diag(matrix) / 2 + (both + both.T).sum(axis=1) / 4)
    scale = 0.5 * np.sqrt(N - 1) / np.sqrt((coupling**2).sum())
    for step in range(num_steps):
        pushing = np.where(position > 0, 1.0, -1.0) if form == "discrete" else position
        force = scale * (coupling @ pushing + field)
        momentum = momentum + 0.7 * (-(1 - step / 40) * position + force)
        position = position + 0.7 * momentum
        momentum = np.where(np.abs(position) > 1, 0.0, momentum)
        position = np.clip(position, -1, 1)
    return position


@pytest.mark.parametrize("form", ["discrete", "ballistic"])
@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_steps_are_those_of_the_paper(form, storage):
    problem = js.qubo(COUPLINGS, storage=storage)
    search = js.simulated_bifurcation(num_steps=40, time_step=0.7, form=form)
    start = np.random.default_rng(1).integers(0, 2, N, np.int32)
    state = js.init(0, problem, search, num_searches=1, solutions=start[None])
    state = js.advance(problem, search, state, 8)
    wanted = driven(COUPLINGS, 0.1 * (2.0 * start - 1), np.zeros(N), 8, form)
    np.testing.assert_allclose(state.searches.position[0], wanted, atol=1e-4)
    solution = np.asarray(state.searches.solution[0])
    np.testing.assert_array_equal(solution, wanted > 0)
    assert int(state.searches.cost[0]) == problem.host.cost(solution)


def test_drives_end_at_the_optimum_of_small_instances():
    """The best of several drives, each of which starts anew."""
    every = np.array(list(itertools.product([0, 1], repeat=N)))
    for seed, form in enumerate(["discrete", "ballistic"]):
        matrix = np.random.default_rng(10 + seed).integers(-9, 10, (N, N))
        lowest = np.einsum("bi,ij,bj->b", every, matrix, every).min()
        search = js.simulated_bifurcation(num_steps=60, form=form)
        result = js.solve(js.qubo(matrix), search, 0, num_searches=8, max_steps=240)
        assert result.fun == lowest


@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize("unit", [2.0**-100, 2.0**95])
def test_units_make_no_difference(unit, storage):
    """Also where squares of couplings are no float32."""

    def drive(unit):
        problem = js.qubo(COUPLINGS * unit, dtype="float32", storage=storage)
        search = js.simulated_bifurcation(num_steps=20)
        state = js.init(0, problem, search, num_searches=3)
        return js.advance(problem, search, state, 20).searches.position

    np.testing.assert_array_equal(drive(unit), drive(1.0))


def test_a_drive_begins_at_random_places_close_to_the_middle():
    problem, search = js.qubo(COUPLINGS), js.simulated_bifurcation(num_steps=8, time_step=1e-6)
    state = js.init(0, problem, search, num_searches=200)
    state = js.advance(problem, search, state, 9)
    found = np.asarray(state.searches.position)
    assert np.abs(found).max() <= 0.1001 and abs(found.mean()) < 5 * 0.1 / np.sqrt(3 * found.size)
    assert found.std() == pytest.approx(0.1 / np.sqrt(3), rel=0.05)


def test_another_solution_is_adopted():
    problem, search = js.qubo(COUPLINGS), js.simulated_bifurcation()
    state = js.init(0, problem, search, num_searches=1)
    one, other = jax.tree.map(lambda leaf: leaf[0], state.searches), jnp.ones(N, jnp.int32)
    after = search.adopt(problem, one, other)
    np.testing.assert_array_equal(search.current(problem, after), other)
    assert int(search.current_cost(after)) == problem.host.cost(np.ones(N, int))
    assert int(after.best_cost) == min(int(one.best_cost), int(after.cost))


def test_what_it_is_not_for():
    with refuses(ValueError, "time_step is 0, expected a number above 0"):
        js.simulated_bifurcation(time_step=0)
    with refuses(TypeError, "simulated_bifurcation", "a QUBO"):
        problem = js.graph_coloring(js.datasets.queen_graph(3, 3), 5)
        js.solve(problem, js.simulated_bifurcation(), num_searches=1, max_steps=1)
