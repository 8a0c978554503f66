"""Islands of the genetic algorithm in runs: kernels, devices, migration, memetic search."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import linear_ordering, small_qap
from probes import costs_of
from references import stream_at, swaps

import jaxopt_search as js


@jax.jit
def island(problem, search):
    return search.init_with(jax.random.key(0), problem, problem.init(jax.random.key(0)))


@pytest.mark.slow
def test_migration():
    """An island that gets a better permutation loses its worst, and nothing else."""
    problem, search = small_qap(9), js.genetic(population_size=8, alike=None)
    state = island(problem, search)
    solution = problem.init(jax.random.key(5))
    after = search.adopt(problem, state, solution)
    worst = int(np.argmax(state.costs))
    changed = (np.asarray(after.population) != np.asarray(state.population)).any(axis=1)
    assert changed.sum() == 1
    assert changed[worst]
    np.testing.assert_array_equal(after.population[worst], solution)


@pytest.mark.slow
def test_shuffling_spreads_all_individuals():
    """None is lost or doubled, and islands are mixed evenly."""
    problem, search = small_qap(9), js.genetic(population_size=12, alike=None)
    before, after = (
        js.run(0, problem, search, num_searches=6, max_steps=4, exchange=exchange).searches
        for exchange in (None, js.shuffle(every=4))
    )

    def sorted_rows(states):
        rows = np.asarray(states.population).reshape(-1, 9)
        return rows[np.lexsort(rows.T)]

    np.testing.assert_array_equal(sorted_rows(after), sorted_rows(before))
    np.testing.assert_array_equal(costs_of(problem, after.population), after.costs)
    islands = {
        tuple(row): k for k, rows in enumerate(np.asarray(before.population)) for row in rows
    }
    found = [[islands[tuple(row)] for row in rows] for rows in np.asarray(after.population)]
    counts = np.stack([np.bincount(row, minlength=6) for row in found])
    assert (counts.max(axis=0) < 8).all()  # of 12, of which two are expected on each island
    assert (after.best_cost <= before.best_cost).all()


def test_what_is_refused():
    """To shuffle searches without islands, and a crossover that moves what is fixed."""
    problem, search = small_qap(5), js.tabu_search(js.SwapTable())
    with pytest.raises(TypeError, match="search is a TabuSearch, expected one that has islands"):
        js.solve(problem, search, 0, max_steps=4, exchange=js.shuffle(every=2))
    problem = js.qap(*np.ones((2, 5, 5), int), partial_match=[[2, 4]])
    with pytest.raises(ValueError, match="crossover is 'ox', expected 'pmx'"):
        js.solve(problem, js.genetic(crossover="ox"), 0, num_searches=2, max_steps=6)


@pytest.mark.slow
def test_a_local_search_improves_the_children():
    """Each child becomes the best that is found from it, which no swap improves."""
    problem = small_qap(8)
    local_search = js.tabu_search(js.SwapTable())
    search = js.genetic(population_size=12, local_search=local_search, local_steps=40)
    assert "local search" in js.why_not_portable(problem, search)
    assert search.evaluations_per_step(problem) == 12 * (1 + 40 * 28)
    state = island(problem, search)
    step = jax.jit(search.step)
    after, _ = step(stream_at(3), None, problem, state)
    children = np.asarray(after.children)
    assert (np.sort(children) == np.arange(8)).all()
    np.testing.assert_array_equal(after.child_costs, costs_of(problem, after.children))
    for child in children:
        cost = problem.host.cost(child)
        assert all(cost_after >= cost for _, _, cost_after in swaps(problem, child))
    better = np.asarray(after.child_costs) < np.asarray(state.costs)
    np.testing.assert_array_equal(np.asarray(after.population)[better], children[better])
    again, _ = step(stream_at(4), None, problem, state)
    assert (np.asarray(again.children) != children).any()


def test_with_a_local_search_a_run_ends_at_its_hit():
    """Stop tests come after every generation, and not after every hundredth."""
    problem = small_qap(9)
    climbing = js.hill_climbing(js.SwapTable())
    memetic = js.genetic(population_size=8, local_search=climbing, local_steps=2)
    target = js.solve(problem, memetic, 0, num_searches=4, max_steps=60).fun
    result = js.solve(problem, memetic, 1, num_searches=4, target=target, max_steps=50_000)
    assert result.success and result.nit == result.first_hit.step


def test_a_problem_without_costs_of_rows_runs_through_xla():
    """A user's own, priced by its `cost`; a kernel is refused with the reason."""
    problem, search = linear_ordering(6), js.genetic(population_size=12)
    assert js.why_not_portable(problem, search) == "LinearOrdering has no row_costs"
    assert js.why_not_portable(small_qap(5), search) == ""
    result = js.solve(problem, search, 0, num_searches=3, max_steps=100)
    orders = jnp.asarray(list(itertools.permutations(range(6))), jnp.int32)
    assert result.fun == costs_of(problem, orders).min()


def test_a_population_too_large_for_its_random_words():
    problem, search = small_qap(9), js.genetic(population_size=2**15)
    with pytest.raises(ValueError, match="population_size is 32768, expected at most 16777 for"):
        jax.eval_shape(search.init, small_qap(999, symmetric=True), jnp.arange(999))
    assert jax.eval_shape(search.init, problem, jnp.arange(9)).costs.shape == (2**15,)
