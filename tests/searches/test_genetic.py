"""The genetic algorithm: one generation by slow code, restarts, and the first to finish."""

import collections
import dataclasses
import functools
import itertools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import coords_tsp, linear_ordering, small_qap
from probes import Clashes, clashes, refuses
from references import slow_ox, slow_pmx

import jaxopt_search as js
from jaxopt_search.portable import random

KERNEL = "triton" if jax.default_backend() == "gpu" else "interpret"
KEY = random.Key(jnp.uint32(7), jnp.uint32(8))


def stream_at(step):
    return random.Stream(KEY, jnp.uint32(step), jnp.int32(step))


def island(problem, search, seed=0):
    key = jax.random.key(seed)
    return search.init_with(key, problem, problem.init(jax.random.key(seed)))


def another(word, number, size):
    other = below(word, size - 1)
    return other + (other >= number)


def below(word, size):
    return word * size >> 32


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
@pytest.mark.parametrize(("crossover", "n"), [("pmx", 2), ("pmx", 9), ("ox", 9)])
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


def test_islands_of_a_tiny_problem_have_populations_of_their_own():
    """Whose first individuals are nearly all alike: four queens have 24 placements."""
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


@pytest.mark.parametrize(
    ("num_alike", "is_anew", "fixed"),
    [(6, True, None), (5, False, None), (6, True, [[2, 4], [0, 0]])],
)
def test_an_island_starts_anew_where_six_of_ten_are_alike(num_alike, is_anew, fixed):
    """All of it, at random, at the right time only; the best of all is remembered."""
    matrices = np.random.default_rng(0).integers(0, 1000, (2, 8, 8))  # few costs are equal
    problem = js.qap(*matrices, partial_match=fixed)
    search = js.genetic(population_size=10, restart_every=50)
    states = (island(problem, search, seed) for seed in range(50))
    state = next(state for state in states if len(np.unique(state.costs)) == 10)
    order = jnp.argsort(state.costs)
    source = order[jnp.where(jnp.arange(10) < num_alike, 0, jnp.arange(10))]
    population, costs = state.population[source], state.costs[source]
    tables = search.operators.tables(population)
    state = state._replace(population=population, tables=tables, costs=costs)
    never = js.genetic(population_size=10, alike=None)
    step, step_without = jax.jit(search.step), jax.jit(never.step)

    def population_after(search_step, number):
        after, _ = search_step(stream_at(number), None, problem, state)
        assert int(after.best_cost) <= int(state.best_cost)
        assert problem.host.cost(np.asarray(after.best)) == int(after.best_cost)
        np.testing.assert_array_equal(after.costs, jax.vmap(problem.cost)(after.population))
        return np.asarray(after.population)

    at_50 = population_after(step, 50)
    without = population_after(step_without, 50)
    np.testing.assert_array_equal(population_after(step, 49), population_after(step_without, 49))
    if not is_anew:
        np.testing.assert_array_equal(at_50, without)
        return
    old = {tuple(row) for row in np.asarray(state.population)}
    assert not old & {tuple(row) for row in at_50}
    assert (population_after(step, 100) != at_50).any()
    assert (np.sort(at_50) == np.arange(8)).all()
    for facility, location in fixed or []:
        assert (at_50[:, facility] == location).all()


def test_new_individuals_are_uniform():
    """Each of the six orders of three is as frequent among those of many restarts."""
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


def test_restarts_come_every_so_many_generations():
    """Every island is alike by so little a share; in one chunk or several."""
    problem = small_qap(7)
    search = js.genetic(population_size=6, alike=0.01, restart_every=10)
    state = js.init(0, problem, search, num_searches=3)
    starts = [state]
    for num_steps in (10, 1, 9, 1):
        state = js.advance(problem, search, state, num_steps)
        starts.append(state)
    at_once = js.advance(problem, search, starts[0], 21)
    chex.assert_trees_all_equal(at_once.searches, state.searches)
    lowest = [np.asarray(one.searches.costs).min(axis=1) for one in starts]
    # Costs only fall, but for those that start anew in generations 11 and 21.
    assert (lowest[1] <= lowest[0]).all()
    assert (lowest[2] > lowest[1]).any()
    assert (lowest[3] <= lowest[2]).all()
    assert (lowest[4] > lowest[3]).any()


@pytest.mark.parametrize(
    ("n", "population_size", "crossover"),
    [(2, 2, "pmx"), pytest.param(35, 70, "ox", marks=pytest.mark.slow)],
)
def test_a_kernel_makes_the_same_generations(n, population_size, crossover):
    """With restarts, bit for bit; rows and columns that do not fill a block."""
    problem = small_qap(n, symmetric=False)
    options = {"crossover": crossover, "keep_best": crossover == "ox"}
    check_the_kernel(problem, population_size=population_size, **options)


@pytest.mark.parametrize(
    "problem",
    [coords_tsp(33), js.qap(*np.ones((2, 9, 9)), partial_match=[[2, 4], [8, 8]])],
    ids=["coordinates", "fixed"],
)
def test_a_kernel_prices_other_problems(problem):
    check_the_kernel(problem, population_size=18)


def check_the_kernel(problem, **options):
    search = js.genetic(**options, alike=0.05, restart_every=7, mutation_rate=0.4)
    start = js.init(3, problem, search, num_searches=2)
    expected, found = (
        js.advance(problem, search, start, 24, implementation=implementation)
        for implementation in ("xla", KERNEL)
    )
    chex.assert_trees_all_equal(expected, found)
    state = found.searches
    np.testing.assert_array_equal(state.costs, jax.vmap(jax.vmap(problem.cost))(state.population))
    assert (np.sort(state.population) == np.arange(problem.n)).all()
    values = jnp.take_along_axis(state.population, state.tables.positions, axis=2)
    assert (np.asarray(values) == np.arange(problem.n)).all()


@pytest.mark.devices(4)
@pytest.mark.slow
def test_the_first_to_finish_is_the_same_on_any_number_of_devices():
    """Which island, after how many generations, and all costs at the end; one island on each."""
    problem = small_qap(8)
    target = js.solve(problem, js.tabu_search(js.SwapTable()), 0, max_steps=300).fun
    search = js.genetic(population_size=12, restart_every=20)
    options = {"num_searches": 4, "max_steps": 4000, "target": target, "check_every": 7}
    alone, spread = (
        js.solve(problem, search, 3, devices=number, **options) for number in (1, 4)
    )
    assert alone.success
    chex.assert_trees_all_equal(alone.state._replace(info=None), spread.state._replace(info=None))
    chex.assert_trees_all_equal(js.first_hit(spread.state), js.first_hit(alone.state))


@pytest.mark.slow
def test_migration_along_a_ring():
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
    result = js.solve(
        problem, search, 0, num_searches=5, max_steps=400, exchange=js.ring(every=20), devices=1
    )
    assert len(np.unique(result.costs)) == 1


@pytest.mark.devices(4)
@pytest.mark.slow
def test_shuffling_spreads_all_individuals():
    """None is lost or doubled, islands are mixed evenly, and devices do not matter."""
    problem, search = small_qap(9), js.genetic(population_size=12, alike=None)
    options = {"num_searches": 6, "max_steps": 4, "exchange": js.shuffle(every=4)}
    results = [js.solve(problem, search, 0, devices=devices, **options) for devices in (1, 4)]
    chex.assert_trees_all_equal(*(result.state._replace(info=None) for result in results))
    before = js.run(0, problem, search, num_searches=6, max_steps=4).searches
    after = results[0].state.searches

    def sorted_rows(states):
        rows = np.asarray(states.population).reshape(-1, 9)
        return rows[np.lexsort(rows.T)]

    np.testing.assert_array_equal(sorted_rows(after), sorted_rows(before))
    np.testing.assert_array_equal(jax.vmap(jax.vmap(problem.cost))(after.population), after.costs)
    islands = {
        tuple(row): k for k, rows in enumerate(np.asarray(before.population)) for row in rows
    }
    found = [[islands[tuple(row)] for row in rows] for rows in np.asarray(after.population)]
    counts = np.stack([np.bincount(row, minlength=6) for row in found])
    assert (counts.max(axis=0) < 8).all()  # of 12, of which two are expected on each island
    assert (after.best_cost <= before.best_cost).all()


def test_only_islands_can_be_shuffled():
    problem, search = small_qap(5), js.tabu_search(js.SwapTable())
    with pytest.raises(TypeError, match="search is a TabuSearch, expected one that has islands"):
        js.solve(problem, search, 0, max_steps=4, exchange=js.shuffle(every=2))


def test_fixed_facilities_stay():
    """Crossover and mutation move the others only."""
    problem = js.qap(*square_matrices(7), partial_match=[[2, 4]])
    result = js.solve(
        problem, js.genetic(population_size=10, mutation_rate=1.0), 0, num_searches=2, max_steps=60
    )
    assert (np.asarray(result.state.searches.population)[:, :, 2] == 4).all()

    with pytest.raises(ValueError, match="crossover is 'ox', expected 'pmx'"):
        js.solve(problem, js.genetic(crossover="ox"), 0, num_searches=2, max_steps=6)


def square_matrices(n):
    problem = small_qap(n)
    return [np.asarray(matrix).reshape(n, n) for matrix in (problem.flow, problem.distance)]


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
    np.testing.assert_array_equal(after.child_costs, jax.vmap(problem.cost)(after.children))
    pairs = list(itertools.combinations(range(8), 2))
    first, second = jnp.array(pairs).T
    for child in after.children:
        assert int(problem.swap_delta(child, first, second).min()) >= 0
    better = np.asarray(after.child_costs) < np.asarray(state.costs)
    np.testing.assert_array_equal(np.asarray(after.population)[better], children[better])
    again, _ = step(stream_at(4), None, problem, state)
    assert (np.asarray(again.children) != children).any()


def test_with_a_local_search_a_run_ends_at_its_hit():
    """Stop tests come after every generation; without one after every hundredth."""
    problem = small_qap(9)
    climbing = js.hill_climbing(js.SwapTable())
    memetic = js.genetic(population_size=8, local_search=climbing, local_steps=2)
    target = js.solve(problem, memetic, 0, num_searches=4, max_steps=60).fun
    for search, interval in ((memetic, 1), (js.genetic(population_size=8), 100)):
        result = js.solve(problem, search, 1, num_searches=4, target=target, max_steps=50_000)
        assert result.success
        assert result.nit == -(-result.first_hit.step // interval) * interval


def test_a_problem_without_costs_of_rows_runs_through_xla():
    """A user's own, priced by its `cost`; a kernel is refused with the reason."""
    problem, search = linear_ordering(6), js.genetic(population_size=12)
    assert js.why_not_portable(problem, search) == "LinearOrdering has no row_costs"
    assert js.why_not_portable(small_qap(5), search) == ""
    other = js.genetic(population_size=12, crossover="ox", keep_best=True)
    assert js.why_not_portable(small_qap(5), other) == ""
    result = js.solve(problem, search, 0, num_searches=3, max_steps=100)
    costs = [int(problem.cost(jnp.array(order))) for order in itertools.permutations(range(6))]
    assert result.fun == min(costs)


def test_a_population_too_large_for_its_random_words():
    problem, search = small_qap(9), js.genetic(population_size=2**15)
    with pytest.raises(ValueError, match="population_size is 32768, expected at most 16777 for"):
        jax.eval_shape(search.init, small_qap(999, symmetric=True), jnp.arange(999))
    assert jax.eval_shape(search.init, problem, jnp.arange(9)).costs.shape == (2**15,)


# Vectors of finite domains

N, SIZE = 9, 30
SIZES = [3, 1, 4, 2, 30, 1, 2, 7, 2]


@jax.jit
def one_step(search, stream, problem, state):
    return search.step(stream, None, problem, state)


def breeder(crossover, rate, restart_every=2**20, **options):
    """Returns a search of which all have one compiled step for a crossover."""
    return js.genetic(
        population_size=SIZE,
        crossover=crossover,
        mutation_rate=rate,
        alike=0.0,
        restart_every=restart_every,
        **options,
    )


def free_of_charge(domain_sizes):
    """Returns a problem on which all vectors cost 0, so that no child replaces its parent."""
    problem = clashes([*domain_sizes[:-1], SIZE])
    sizes = jnp.asarray(domain_sizes, jnp.int32)
    price, weight = jnp.zeros_like(problem.price), jnp.zeros_like(problem.weight)
    return dataclasses.replace(problem, domain_sizes=sizes, price=price, weight=weight)


@jax.jit
def vector_island(problem):
    """Returns a state that serves all of these searches."""
    key = jax.random.key(0)
    return breeder("uniform", 0.0).init_with(key, problem, jnp.zeros(N, jnp.int32))


def with_population(problem, population):
    """Returns a state of a problem on which all vectors cost the same."""
    population = jnp.asarray(population, jnp.int32)
    return vector_island(problem)._replace(population=population, best=population[0])


def children_of(crossover, rate, problem, population, num_steps):
    """Returns [num_steps, P, n], children of the same parents in many generations."""
    search = breeder(crossover, rate)
    state = with_population(problem, population)
    steps = [one_step(search, stream_at(k), problem, state)[0] for k in range(num_steps)]
    return np.stack([np.asarray(after.children) for after in steps])


def assert_even(counts, axis=-1):
    """Checks that all counts along an axis are of events of the same probability."""
    counts = np.asarray(counts, float)
    number, share = counts.sum(axis=axis, keepdims=True), 1 / counts.shape[axis]
    assert (np.abs(counts - number * share) <= 5 * (number * share * (1 - share)) ** 0.5).all()


def slow_vector_generation(problem, costs_of, search, state, stream):
    """One individual after the other, entry by entry."""
    population, costs = np.asarray(state.population).tolist(), np.asarray(state.costs).tolist()
    sizes = np.asarray(problem.domain_sizes).tolist()
    words = np.stack(stream.words(jnp.arange(SIZE, dtype=jnp.uint32), 6), axis=1).tolist()
    slots = SIZE + jnp.arange(SIZE * N, dtype=jnp.uint32)
    masks = (np.asarray(stream.words(slots, 2)[1]) >= 2**31).reshape(SIZE, N)
    children = []
    for i, w in enumerate(words):
        parent, other = population[i], population[another(w[0], i, SIZE)]
        if search.crossover == "uniform":
            child = [b if is_b else a for a, b, is_b in zip(parent, other, masks[i], strict=True)]
        else:
            cut = 1 + below(w[1], N - 1)
            child = parent[:cut] + other[cut:]
        variable = below(w[4], N)
        if w[3] >> 8 < float(search.mutation_rate) * 2**24 and sizes[variable] > 1:
            child[variable] = another(w[5], child[variable], sizes[variable])
        children.append(child)
    new = costs_of(jnp.array(children, jnp.int32)).tolist()
    is_better = [cost < old for cost, old in zip(new, costs, strict=True)]
    rows = [a if is_a else b for a, b, is_a in zip(children, population, is_better, strict=True)]
    return rows, children, is_better


@pytest.mark.parametrize("crossover", ["uniform", "one_point"])
def test_a_generation_of_vectors_is_that_of_slow_code(crossover):
    """Word for word the same, over some generations."""
    problem, search = clashes(SIZES), breeder(crossover, 0.5)
    state, costs_of = vector_island(problem), jax.jit(jax.vmap(problem.cost))
    for generation in range(4):
        stream = stream_at(generation)
        rows, children, is_better = slow_vector_generation(problem, costs_of, search, state, stream)
        state, info = one_step(search, stream, problem, state)
        np.testing.assert_array_equal(state.population, rows)
        np.testing.assert_array_equal(state.children, children)
        np.testing.assert_array_equal(state.costs, costs_of(state.population))
        assert int(info.accepted) == sum(is_better) > 0
        assert int(state.best_cost) == int(state.costs.min()) == int(costs_of(state.best[None])[0])


@pytest.mark.parametrize("crossover", ["uniform", "one_point"])
def test_each_value_of_a_child_is_a_parents(crossover):
    """One other parent each; of it a half at random, or all from an even cut on."""
    own = np.arange(SIZE)[:, None]
    children = children_of(
        crossover, 0.0, free_of_charge([SIZE] * N), np.broadcast_to(own, (SIZE, N)), 60
    )
    is_own = children == own
    other = np.where(is_own, -1, children).max(axis=2, keepdims=True)
    assert (is_own | (children == other)).all()
    if crossover == "uniform":
        counts = np.stack([is_own.sum(axis=(0, 1)), (~is_own).sum(axis=(0, 1))])
        assert_even(counts, axis=0)
        together = (is_own[..., 1:] == is_own[..., :-1]).sum(axis=(0, 1))
        assert_even(np.stack([together, 60 * SIZE - together]), axis=0)
    else:
        cut = is_own.sum(axis=2)
        assert (is_own == (np.arange(N) < cut[..., None])).all()
        assert_even(np.bincount(cut.ravel(), minlength=N)[1:])
        assert cut.min() == 1
        assert cut.max() == N - 1


def test_mutation_draws_another_value_of_one_variable():
    """Any variable and any other value alike; one with a single value keeps it."""
    parent = np.array([2, 0, 0, 1, 17, 0, 0, 3, 1])
    same = np.broadcast_to(parent, (SIZE, N))
    problem = free_of_charge(SIZES)
    children = children_of("one_point", 1.0, problem, same, 80).reshape(-1, N)
    is_changed = children != parent
    assert (children >= 0).all()
    assert (children < np.array(SIZES)).all()
    assert (is_changed.sum(axis=1) <= 1).all()
    num_changed = is_changed.sum(axis=0)
    is_alone = np.array(SIZES) == 1
    assert (num_changed[is_alone] == 0).all()
    share, number = 1 / N, len(children)
    bound = 5 * (number * share * (1 - share)) ** 0.5
    assert (np.abs(num_changed[~is_alone] - number * share) < bound).all()
    for variable in np.flatnonzero(~is_alone):
        values = children[is_changed[:, variable], variable]
        counts = np.bincount(values, minlength=SIZES[variable])
        assert_even(np.delete(counts, parent[variable]))
    rarely = children_of("one_point", 0.25, problem, same, 20).reshape(-1, N)
    mutated = (rarely != parent).any(axis=1).mean() * N / (N - is_alone.sum())
    assert abs(mutated - 0.25) < 5 * (0.25 / len(rarely)) ** 0.5


@pytest.mark.parametrize("keep_best", [False, True])
def test_vectors_restart_anywhere_in_their_domains(keep_best):
    """Uniformly, at the right time only; the first is the best if that is kept."""
    problem = free_of_charge(SIZES)
    best = np.array([2, 0, 3, 1, 29, 0, 1, 6, 1])
    search = breeder("one_point", 1.0, restart_every=3, keep_best=keep_best)
    state = with_population(problem, np.broadcast_to(best, (SIZE, N)))
    after, _ = one_step(search, stream_at(4), problem, state)
    np.testing.assert_array_equal(after.population, state.population)
    ends = [one_step(search, stream_at(3 * k), problem, state)[0] for k in range(1, 31)]
    rows = np.stack([np.asarray(end.population) for end in ends])
    assert (rows[:, 0] == best).all() == keep_best
    rows = rows[:, 1:].reshape(-1, N)
    for variable, size in enumerate(SIZES):
        counts = np.bincount(rows[:, variable], minlength=size)
        assert len(counts) == size
        assert_even(counts)


@pytest.mark.parametrize(("crossover", "keep_best"), [("uniform", False), ("one_point", True)])
def test_a_kernel_breeds_the_same_vectors(crossover, keep_best):
    """Bit for bit, restarts included, to the optimum; and it lowers for a GPU."""
    problem = clashes([3, 1, 4, 2, 5, 3, 2, 4, 2, 2, 1])
    options = {"crossover": crossover, "keep_best": keep_best, "mutation_rate": 0.6}
    search = js.genetic(population_size=20, alike=0.2, restart_every=7, **options)
    assert js.why_not_portable(problem, search) == ""
    start = js.init(3, problem, search, num_searches=2)
    expected, found = (
        js.advance(problem, search, start, 40, implementation=implementation)
        for implementation in ("xla", KERNEL)
    )
    chex.assert_trees_all_equal(expected, found)
    state = found.searches
    np.testing.assert_array_equal(state.costs, jax.vmap(jax.vmap(problem.cost))(state.population))
    assert (np.asarray(state.population) >= 0).all()
    assert (np.asarray(state.population) < np.asarray(problem.domain_sizes)).all()
    vectors = itertools.product(*map(range, np.asarray(problem.domain_sizes).tolist()))
    costs = jax.jit(jax.vmap(problem.cost))(jnp.array(list(vectors), jnp.int32))
    assert int(state.best_cost.min()) == int(costs.min())


@jax.tree_util.register_static
class Reassign:
    """Gives a random variable a random value."""

    num_words = 2

    def propose(self, problem, vector, words):
        variable = random.below(words[0], vector.shape[0])
        return variable, random.below(words[1], problem.domain_sizes[variable])

    def apply(self, problem, vector, move):
        return vector.at[move[0]].set(move[1])


class PricedInFull(Clashes):
    """Clashes without costs of rows."""

    @property
    def row_costs(self):
        raise AttributeError


jax.tree_util.register_dataclass(PricedInFull, ["domain_sizes", "price", "weight"], ["max_domain"])
ANNEALING = js.simulated_annealing(js.FullEvaluation(Reassign()), 0.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("exchange", "local_search", "kind"),
    [(js.ring(every=5), None, PricedInFull), (js.shuffle(every=5), ANNEALING, Clashes)],
    ids=["ring", "shuffle"],
)
def test_islands_of_vectors_learn_from_one_another(exchange, local_search, kind):
    """With costs of rows and without, with a local search and without, to the optimum."""
    problem = kind(**vars(clashes([3, 1, 4, 2, 5, 3, 2])))
    search = js.genetic(
        population_size=10,
        crossover="uniform",
        alike=0.3,
        restart_every=4,
        local_search=local_search,
        local_steps=6,
    )
    reason = "local search" if local_search else "PricedInFull has no row_costs"
    assert reason in js.why_not_portable(problem, search)
    options = {"num_searches": 4, "max_steps": 30, "exchange": exchange}
    result = js.solve(problem, search, 0, devices=1, **options)
    state, costs_of = result.state.searches, jax.jit(jax.vmap(problem.cost))
    np.testing.assert_array_equal(costs_of(state.population.reshape(40, 7)), state.costs.ravel())
    vectors = itertools.product(*map(range, np.asarray(problem.domain_sizes).tolist()))
    costs = costs_of(jnp.array(list(vectors), jnp.int32))
    assert result.fun == int(costs.min())


def test_a_crossover_refuses_solutions_of_another_space():
    """By what a problem says of itself or, if it says nothing, by its random starts."""

    @jax.tree_util.register_static
    class Sides:
        """Says nothing of its solutions, which are 0/1 vectors."""

        def init(self, key):
            return jax.random.bernoulli(key, shape=(20,)).astype(jnp.int32)

        def cost(self, side):
            return side.sum(dtype=jnp.int32)

    run = functools.partial(js.solve, key=0, num_searches=2, max_steps=5)
    for crossover in ("pmx", "ox"):
        search = js.genetic(crossover=crossover)
        for problem, found in [(clashes([2, 2]), "vector"), (Sides(), "may be [")]:
            texts = f"problem is a {type(problem).__name__} whose solutions ", found, "for Genetic"
            with refuses(ValueError, "expected permutations of 0 to n - 1", *texts):
                run(problem, search)
    for crossover in ("uniform", "one_point"):
        search = js.genetic(crossover=crossover)
        for problem in (small_qap(5), linear_ordering(5), Sides()):
            with refuses(ValueError, f"problem is a {type(problem).__name__} ", "for Genetic"):
                run(problem, search)
