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
from references import swaps

import jaxopt_search as js
from jaxopt_search.backends import random


def course(problem, search, num_steps, state=None):
    """Returns the assignments, [num_steps + 1, n], and best costs of one search, step by step."""
    state = start(problem, search) if state is None else state
    locations, best, accepted = map(np.asarray, scan(problem, search, state, num_steps))
    return np.concatenate([[state.representation.location], locations]), best, accepted


@functools.partial(jax.jit, static_argnums=3)
def scan(problem, search, state, num_steps):
    def step(state, i):
        stream = random.Stream(own_key(), i, i.astype(jnp.int32))
        state, info = search.step(stream, None, problem, state)
        return state, (state.representation.location, state.best_cost, info.accepted)

    return jax.lax.scan(step, state, jnp.arange(num_steps, dtype=jnp.uint32))[1]


def own_key():
    return random.search_key(random.as_key(7), jnp.uint32(0), jnp.uint32(0))


@jax.jit
def start(problem, search):
    return search.init(problem, problem.init(jax.random.key(1)))


def draws(problem, search, num_steps):
    """Returns the tenures, [num_steps, 2], that a run of `course` draws."""
    low, high = search.tenure or (int(np.floor(0.9 * problem.n)), int(np.ceil(1.1 * problem.n)))

    def at(i):
        words = random.Stream(own_key(), i, i).words(jnp.uint32(0), 2)
        return jnp.stack([low + random.below(word, high - low + 1) for word in words])

    return np.asarray(jax.vmap(at)(jnp.arange(num_steps, dtype=jnp.uint32)))


def slow_tabu(problem, assignment, tenures, age):
    """Yields the assignments of Taillard's tabu search, written from its description."""
    n = problem.n
    until = {(u, place): -1 - (u * n + place) for u in range(n) for place in range(n)}
    cost = best = problem.host.cost(assignment)
    for now, tenure in enumerate(tenures):
        ranked = []
        for number, after, cost_after in swaps(problem, assignment):
            last = until[divmod(number, n)]
            if cost_after < best or last < now - age:
                key = (0, cost_after - cost)
            elif last < now:
                key = (1, cost_after - cost)
            else:
                key = (2, last)
            ranked.append((*key, number, after, cost_after))
        _, _, number, after, cost_after = min(ranked, key=lambda one: one[:3])
        first, other = number // n, list(assignment).index(number % n)
        until[first, assignment[first]] = now + tenure[0]
        until[other, assignment[other]] = now + tenure[1]
        assignment, cost, best = after, cost_after, min(best, cost_after)
        yield assignment, best


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
    locations, best, accepted = course(problem, search, 250)
    age = settings.get("aspiration_age", 5 * n * n)
    tenures = draws(problem, search, 250)
    slow = list(slow_tabu(problem, locations[0], tenures, age))
    np.testing.assert_array_equal(locations[1:], [assignment for assignment, _ in slow])
    np.testing.assert_array_equal(best, [cost for _, cost in slow])
    assert accepted.all()


def test_steps_may_count_beyond_all_bounds():
    """Times count modulo 2**32: the course at the wrap is that at the start."""
    problem, search = small_qap(6, symmetric=False), js.tabu_search(js.SwapTable())
    state, expected = start(problem, search), course(problem, search, 250)
    for shift in (2**31 - 100, 2**32 - 100):
        shift = jnp.asarray(shift, jnp.uint32).astype(jnp.int32)
        late = state._replace(now=state.now + shift, until=state.until + shift)
        chex.assert_trees_all_equal(course(problem, search, 250, state=late), expected)


def test_of_equals_each_is_as_likely():
    """All 15 swaps of six facilities cost nothing: each is made as often, none again and again."""
    zero = np.zeros((6, 6), int)
    search = js.tabu_search(js.SwapTable(), tenure=0, aspiration_age=2**30, ties="random")
    locations, _, _ = course(js.qap(zero, zero), search, 3000)
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
