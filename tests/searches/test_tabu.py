"""Tabu search: its course by a slow reference, what it forbids, and edges of its settings."""

import collections
import functools
import itertools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import matrices, small_qap
from probes import refuses
from references import course, slow_tabu, stream_at, undoing_swaps

import jaxopt_search as js
from jaxopt_search.backends import random


@jax.jit
def start(problem, search):
    return search.init(problem, problem.init(jax.random.key(1)))


def draws(problem, search, num_steps):
    """Returns the tenures, [num_steps, 2], that a run of `course` draws."""
    low, high = search.tenure or (int(np.floor(0.9 * problem.n)), int(np.ceil(1.1 * problem.n)))

    def at(i):
        words = stream_at(i).words(jnp.uint32(0), 2)
        return jnp.stack([low + random.below(word, high - low + 1) for word in words])

    return np.asarray(jax.vmap(at)(jnp.arange(num_steps, dtype=jnp.uint32)))


@pytest.mark.parametrize(
    ("n", "symmetric", "settings"),
    [
        (2, True, {}),
        (6, False, {}),
        (6, False, {"tenure": (2, 9), "aspiration_age": 20}),
        (6, False, {"tenure": 10**6}),
    ],
    ids=str,
)
def test_the_course_is_that_of_a_slow_reference(n, symmetric, settings):
    """250 steps: forbidden, allowed, aspired by cost and by age, and all of them forbidden."""
    problem = small_qap(n, symmetric=symmetric)
    search = js.tabu_search(js.SwapTable(), **settings)
    state, age = start(problem, search), settings.get("aspiration_age", 5 * n * n)
    states, info = course(problem, search, state, 250)
    tenures = draws(problem, search, 250)
    first = np.asarray(state.representation.location)
    cost, until = problem.host.cost(first), {entry: -1 - entry for entry in range(n * n)}
    own_moves = functools.partial(undoing_swaps, problem)
    slow = slow_tabu(first, cost, until, own_moves, lambda now, _: tenures[now], age)
    locations, best = zip(*itertools.islice(slow, 250), strict=True)
    np.testing.assert_array_equal(states.representation.location, locations)
    np.testing.assert_array_equal(states.best_cost, best)
    assert info.accepted.all()


def test_steps_may_count_beyond_all_bounds():
    """Times count modulo 2**32: the course at the wrap is that at the start."""
    problem, search = small_qap(6, symmetric=False), js.tabu_search(js.SwapTable())
    state = start(problem, search)
    expected, _ = course(problem, search, state, 250)
    for shift in (2**31 - 100, 2**32 - 100):
        shift = jnp.asarray(shift, jnp.uint32).astype(jnp.int32)
        late = state._replace(now=state.now + shift, until=state.until + shift)
        found, _ = course(problem, search, late, 250)
        unshifted = found._replace(now=found.now - shift, until=found.until - shift)
        chex.assert_trees_all_equal(unshifted, expected)


def test_of_equals_each_is_as_likely():
    """All 15 swaps of six facilities cost nothing: each is made as often, none again and again."""
    zero = np.zeros((6, 6), int)
    search = js.tabu_search(js.SwapTable(), tenure=0, aspiration_age=2**30, ties="random")
    problem = js.qap(zero, zero)
    states, _ = course(problem, search, start(problem, search), 3000)
    locations = np.asarray(states.representation.location)
    pairs = [tuple(np.nonzero(a != b)[0].tolist()) for a, b in itertools.pairwise(locations)]
    made = collections.Counter(pairs)
    repeats = sum(one == other for one, other in itertools.pairwise(pairs))
    # Six standard deviations of a binomial number of 3000 with a chance of 1 in 15.
    assert len(made) == 15
    assert all(abs(number - 200) < 82 for number in [*made.values(), repeats])


def test_one_facility():
    """There is no move."""
    problem, search = small_qap(1), js.tabu_search(js.SwapTable())
    state = js.run(0, problem, search, num_searches=2, max_steps=40)
    assert not np.asarray(state.info.accepted).any()


def test_swaps_priced_in_full_give_the_same_searches():
    """Any permutation problem will do; of a QAP, with what is fixed, states end up the same."""
    problem = js.qap(*matrices(6, symmetric=False), partial_match=[[1, 3]])
    options = {"num_searches": 3, "max_steps": 60}
    expected = js.run(5, problem, js.tabu_search(js.SwapTable()), **options)
    search = js.tabu_search(js.Swap())
    found = js.run(5, problem, search, implementation="xla", **options)
    solutions = found.searches.representation.solution
    chex.assert_trees_all_equal(solutions, expected.searches.representation.location)
    chex.assert_trees_all_equal(found.info, expected.info)
    assert search.evaluations_per_step(problem) == 10


def test_what_it_refuses():
    """Negative and swapped numbers, and neighborhoods that do not enumerate their moves."""
    table = js.SwapTable()
    with refuses(ValueError, "tenure is -1"):
        js.tabu_search(table, tenure=-1)
    with refuses(ValueError, "tenure is 3, expected an integer from 5"):
        js.tabu_search(table, tenure=(5, 3))
    with refuses(ValueError, "aspiration_age is 'never'"):
        js.tabu_search(table, aspiration_age="never")
    with refuses(ValueError, "ties is 'last', expected one of first, random"):
        js.tabu_search(table, ties="last")
    with refuses(TypeError, "neighborhood is a QueenSwap, expected a js.Enumerable"):
        js.tabu_search(js.QueenSwap())
