"""The genetic algorithm: one generation by slow code, starts and restarts."""

import collections

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import small_qap
from references import another, below, slow_ox, slow_pmx, stream_at

import jaxopt_search as js


@jax.jit
def island(problem, search, seed=0):
    key = jax.random.key(seed)
    return search.init_with(key, problem, problem.init(jax.random.key(seed)))


def slow_generation(problem, search, state, words):
    """Figure 3 of the paper, one individual after the other."""
    n, size = problem.n, search.population_size
    population, costs = np.asarray(state.population), np.asarray(state.costs)
    children, num_mutated = [], 0
    words = [np.asarray(word).tolist() for word in words]
    for i in range(size):
        w = [word[i] for word in words]
        parent, other = population[i], population[another(w[0], i, size)]
        cut = below(w[1], n)
        start, end = sorted((cut, another(w[2], cut, n)))
        mask = [start <= k < end for k in range(n)]
        if search.crossover == "pmx":
            child = slow_pmx(parent, other, mask)
        else:
            child = slow_ox(parent, other, mask, end)
        if w[3] >> 8 < float(search.mutation_rate) * 2**24:
            a = below(w[4], n)
            b = another(w[5], a, n)
            child[a], child[b] = child[b], child[a]
            num_mutated += 1
        children.append(child)
    new = [problem.host.cost(np.asarray(child)) for child in children]
    rows = [
        (child, cost) if cost < old_cost else (old, old_cost)
        for child, cost, old, old_cost in zip(children, new, population, costs, strict=True)
    ]
    return np.array([row for row, _ in rows]), np.array([cost for _, cost in rows]), num_mutated


@pytest.mark.slow
@pytest.mark.parametrize(("crossover", "n"), [("pmx", 9), ("ox", 9)])
def test_a_generation_is_that_of_the_paper(crossover, n):
    """Word for word the same, over some generations; children never lose to worse parents."""
    problem = small_qap(n, symmetric=False)
    search = js.genetic(population_size=30, crossover=crossover, mutation_rate=0.3, alike=None)
    state, step, num_mutated = island(problem, search), jax.jit(search.step), 0
    for generation in range(6):
        stream = stream_at(generation)
        words = stream.words(jnp.arange(30, dtype=jnp.uint32), 6)
        population, costs, mutated = slow_generation(problem, search, state, words)
        num_mutated += mutated
        before, (state, info) = state, step(stream, None, problem, state)
        np.testing.assert_array_equal(state.population, population)
        np.testing.assert_array_equal(state.costs, costs)
        assert int(info.accepted) == (costs != np.asarray(before.costs)).sum()
        assert int(state.best_cost) == costs.min() == problem.host.cost(np.asarray(state.best))
    assert abs(num_mutated - 0.3 * 180) < 5 * (180 * 0.3 * 0.7) ** 0.5


def test_a_child_that_is_as_good_leaves_its_parent_in_place():
    """Where all cost the same, nothing changes but the children."""
    problem, search = js.qap(*np.zeros((2, 7, 7), int)), js.genetic(population_size=12, alike=None)
    state = island(problem, search)
    after, info = jax.jit(search.step)(stream_at(1), None, problem, state)
    assert (np.asarray(after.children) != np.asarray(state.population)).any()
    np.testing.assert_array_equal(after.population, state.population)
    np.testing.assert_array_equal(after.tables.positions, state.tables.positions)
    assert int(info.accepted) == 0


def test_an_island_starts_with_the_given_permutation_and_random_others():
    """They differ from one another and between islands and seeds; positions are uniform."""
    problem, search = small_qap(9), js.genetic(population_size=100)
    given = problem.init(jax.random.key(0))
    starts = jnp.broadcast_to(given, (4, 9))
    states = [js.init(seed, problem, search, num_searches=4, solutions=starts) for seed in (0, 1)]
    rows = np.concatenate([np.asarray(state.searches.population) for state in states])
    assert rows.shape == (8, 100, 9)
    assert (rows[:, 0] == np.asarray(given)).all()
    rows = rows[:, 1:].reshape(-1, 9)
    assert len(np.unique(rows, axis=0)) > 780
    counts = np.stack([np.bincount(rows[:, k], minlength=9) for k in range(9)])
    assert (np.abs(counts - 792 / 9) < 5 * (792 / 9 * 8 / 9) ** 0.5).all()
    # Of four queens' 24 placements, nearly all first individuals are alike; populations are not.
    state = js.init(0, small_qap(4), js.genetic(population_size=16), num_searches=60)
    assert len(np.unique(np.asarray(state.searches.population).reshape(60, -1), axis=0)) == 60


@pytest.mark.parametrize("keep_best", [False, True])
def test_an_island_that_starts_anew_keeps_its_best_only_where_asked_to(keep_best):
    """As its first individual; the others are new."""
    problem = js.qap(*np.zeros((2, 8, 8), int))  # of which no child is better than its parent
    search = js.genetic(population_size=10, restart_every=5, alike=0.0, keep_best=keep_best)
    state = island(problem, search)
    after, _ = jax.jit(search.step)(stream_at(5), None, problem, state)
    old, new = ({tuple(row) for row in np.asarray(s.population)} for s in (state, after))
    assert old & new == ({tuple(np.asarray(state.best).tolist())} if keep_best else set())
    assert bool((after.population[0] == state.best).all()) is keep_best


def test_an_island_restarts_where_six_of_ten_are_alike():
    """All of it, at random, at the right time only; the best of all is remembered.

    Facilities that are fixed stay, whatever crossover and mutation move.
    """
    fixed = [[2, 4], [0, 0]]
    matrices = np.random.default_rng(0).integers(0, 1000, (2, 8, 8))  # few costs are equal
    problem = js.qap(*matrices, partial_match=fixed)
    search = js.genetic(population_size=10, restart_every=50, mutation_rate=0.9)
    states = (island(problem, search, seed) for seed in range(50))
    start = next(state for state in states if len(np.unique(state.costs)) == 10)
    never = js.genetic(population_size=10, alike=None, mutation_rate=0.9)
    step, step_without = jax.jit(search.step), jax.jit(never.step)

    def with_alike(number):
        order = jnp.argsort(start.costs)
        source = order[jnp.where(jnp.arange(10) < number, 0, jnp.arange(10))]
        population, costs = start.population[source], start.costs[source]
        tables = search.operators.tables(population)
        return start._replace(population=population, tables=tables, costs=costs)

    def population_after(search_step, state, number):
        after, _ = search_step(stream_at(number), None, problem, state)
        assert int(after.best_cost) <= int(state.best_cost)
        assert problem.host.cost(np.asarray(after.best)) == int(after.best_cost)
        population = np.asarray(after.population)
        assert after.costs.tolist() == [problem.host.cost(one) for one in population]
        assert (np.sort(population) == np.arange(8)).all()
        for facility, location in fixed:
            assert (population[:, facility] == location).all()
        return population

    for state, number in ((with_alike(6), 49), (with_alike(5), 50)):  # too early, and too few
        found, same = (population_after(each, state, number) for each in (step, step_without))
        np.testing.assert_array_equal(found, same)
    state = with_alike(6)
    at_50 = population_after(step, state, 50)
    old = {tuple(row) for row in np.asarray(state.population)}
    assert not old & {tuple(row) for row in at_50}
    assert (population_after(step, state, 100) != at_50).any()


def test_new_individuals_are_uniform():
    """Each of the six orders of three is as frequent among many restarts."""
    problem, size = js.qap(*np.zeros((2, 3, 3), int)), 600
    search = js.genetic(population_size=size, alike=0.0, restart_every=1)
    state, step = island(problem, search), jax.jit(search.step)
    counts = collections.Counter()
    for number in range(1, 11):
        # Where all costs are equal, no child takes the place of one that is new.
        after, _ = step(stream_at(number), None, problem, state)
        counts.update(map(tuple, np.asarray(after.population).tolist()))
    assert len(counts) == 6
    expected = 10 * size / 6
    assert all(abs(count - expected) < 5 * (expected * 5 / 6) ** 0.5 for count in counts.values())


@pytest.mark.parametrize(
    "options",
    [
        {"population_size": 1},
        {"mutation_rate": 1.1},
        {"alike": -0.1},
        {"restart_every": 0},
        {"crossover": "cx"},
        {"local_steps": 0},
    ],
)
def test_settings_are_checked(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        js.genetic(**options)
