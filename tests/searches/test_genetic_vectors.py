"""The genetic algorithm on vectors of finite domains: by slow code, statistics and in kernels."""

import dataclasses
import itertools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import Levels, labeling, linear_ordering, small_qap
from probes import refuses
from references import another, below, stream_at
from ways import KERNEL

import jaxopt_search as js

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
    problem = labeling([*domain_sizes[:-1], SIZE])
    sizes = jnp.asarray(domain_sizes, jnp.int32)
    unary, weight = jnp.zeros_like(problem.unary), jnp.zeros_like(problem.weight)
    return dataclasses.replace(problem, domain_sizes=sizes, unary=unary, weight=weight)


@jax.jit
def vector_island(problem):
    """Returns a state that serves all of these searches."""
    key = jax.random.key(0)
    return breeder("uniform", 0.0).init_with(key, problem, jnp.zeros(N, jnp.int32))


def with_population(problem, population):
    """Returns a state of a problem on which all vectors cost the same."""
    population = jnp.asarray(population, jnp.int32)
    return vector_island(problem)._replace(population=population, best=population[0])


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
    problem, search = labeling(SIZES), breeder(crossover, 0.5)
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


def test_vectors_restart_anywhere_in_their_domains():
    """Uniformly, at the right time only; the first is the best, which is kept."""
    problem = free_of_charge(SIZES)
    best = np.array([2, 0, 3, 1, 29, 0, 1, 6, 1])
    search = breeder("one_point", 1.0, restart_every=3, keep_best=True)
    state = with_population(problem, np.broadcast_to(best, (SIZE, N)))
    after, _ = one_step(search, stream_at(4), problem, state)
    np.testing.assert_array_equal(after.population, state.population)
    ends = [one_step(search, stream_at(3 * k), problem, state)[0] for k in range(1, 31)]
    rows = np.stack([np.asarray(end.population) for end in ends])
    assert (rows[:, 0] == best).all()
    rows = rows[:, 1:].reshape(-1, N)
    for variable, size in enumerate(SIZES):
        counts = np.bincount(rows[:, variable], minlength=size)
        assert len(counts) == size
        assert_even(counts)


def test_a_kernel_breeds_the_same_vectors():
    """Bit for bit, restarts included, to the optimum; and it lowers for a GPU."""
    problem = labeling([3, 1, 4, 2, 5, 3, 2, 4, 2, 2, 1])
    options = {"crossover": "one_point", "keep_best": True, "mutation_rate": 0.6}
    search = js.genetic(population_size=20, alike=0.2, restart_every=7, **options)
    assert js.why_not_portable(problem, search) == ""
    start = js.init(3, problem, search, num_searches=2)
    expected, found = (
        js.advance(problem, search, start, 40, implementation=implementation)
        for implementation in ("xla", KERNEL)
    )
    chex.assert_trees_all_equal(expected, found)
    vectors = itertools.product(*map(range, np.asarray(problem.domain_sizes).tolist()))
    costs = jax.jit(jax.vmap(problem.cost))(jnp.array(list(vectors), jnp.int32))
    assert found.searches.best_cost.min() == costs.min()


@pytest.mark.parametrize("crossover", ["uniform", "one_point"])
def test_a_crossover_of_vectors_refuses_permutations(crossover):
    """And what does not say that it is a vector; test_spaces has it the other way round."""
    for problem in (small_qap(5), linear_ordering(5), Levels(jnp.arange(20))):
        with refuses(ValueError, f"problem is a {type(problem).__name__} ", "for Genetic"):
            js.solve(problem, js.genetic(crossover=crossover), 0, num_searches=2, max_steps=5)
