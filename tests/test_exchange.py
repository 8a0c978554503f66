"""Exchanges: who goes on from whom, by table; and that the solutions get there."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import matrix_tsp

import jaxopt_search as js
from jaxopt_search import exchange
from jaxopt_search.types import null_delta

HIGHEST = int(null_delta(jnp.int32))


@pytest.mark.parametrize(
    ("rule", "costs", "num_searches", "expected"),
    [
        (js.broadcast_best(every=1), [5, 3, 4], 3, [1, 1, 1]),
        (js.broadcast_best(every=1), [3, 3, 3], 3, [0, 0, 0]),
        (js.broadcast_best(every=1), [5], 1, [0]),
        (js.broadcast_best(every=1), [5, 6, HIGHEST, HIGHEST], 2, [0, 0, 0, 0]),
        (js.broadcast_best(every=1, group_size=2), [5, 3, 4, 9], 4, [1, 1, 2, 2]),
        (js.broadcast_best(every=1, group_size=2), [5, 3, 4], 3, [1, 1, 2]),
        (js.broadcast_best(every=1, group_size=1), [5, 3, 4], 3, [0, 1, 2]),
        (js.broadcast_best(every=1, group_size=9), [5, 3, 4], 3, [1, 1, 1]),
        (js.ring(every=1), [5, 3, 4], 3, [2, -1, 1]),
        (js.ring(every=1), [3, 3, 3], 3, [-1, -1, -1]),
        (js.ring(every=1), [5], 1, [-1]),
        (js.ring(every=1), [5, 3, 4, HIGHEST], 3, [2, -1, 1, 2]),
    ],
)
def test_donors(rule, costs, num_searches, expected):
    """Lowest cost wins, the lowest index of equals; padding gives nothing."""
    costs = jnp.asarray(costs, jnp.int32)
    found = rule.donors(None, costs, jnp.int32(num_searches))
    chex.assert_trees_all_equal(found[:num_searches], jnp.asarray(expected[:num_searches]))
    assert found.dtype == jnp.int32


def states_and_tours(num_searches=5):
    problem = matrix_tsp(8)
    search = js.simulated_annealing(js.Relocate(), 200.0)
    state = js.run(0, problem, search, num_searches=num_searches, max_steps=30)
    return problem, search, state


def test_broadcast_puts_every_search_on_the_best_solution():
    """All go on from the best tour of any; the costs fit; no search forgets its best."""
    problem, search, state = states_and_tours()
    before = jax.vmap(search.best_cost)(state.searches)
    rule = js.broadcast_best(every=1)
    after = exchange.apply(rule, None, problem, search, state.searches, state.index, None)
    solution, cost = js.best(problem, search, state)
    tours = jax.vmap(lambda state: search.neighborhood.solution(problem, state.representation))(
        after
    )
    np.testing.assert_array_equal(tours, np.broadcast_to(solution, tours.shape))
    np.testing.assert_array_equal(after.cost, np.full(5, cost))
    np.testing.assert_array_equal(jax.vmap(search.best_cost)(after), np.full(5, before.min()))


def test_ring_leaves_the_better_search_alone():
    """A search whose predecessor is no better keeps its current solution, bit for bit."""
    problem, search, state = states_and_tours()
    after = exchange.apply(
        js.ring(every=1), None, problem, search, state.searches, state.index, None
    )
    costs = jax.vmap(search.best_cost)(state.searches)
    donors = js.ring(every=1).donors(None, costs, jnp.int32(5))
    assert 0 < int((donors < 0).sum()) < 5
    for index, donor in enumerate(donors.tolist()):
        own, new = (
            jax.tree.map(lambda leaf, index=index: leaf[index], states)
            for states in (state.searches, after)
        )
        if donor < 0:
            chex.assert_trees_all_equal(own, new)
        else:
            assert int(new.cost) == int(costs[donor])


def test_exchanges_come_every_so_many_steps():
    """A run with an exchange every 7 steps is runs of 7 steps with an exchange between."""
    problem, search, _ = states_and_tours()
    rule = js.broadcast_best(every=7)
    whole = js.run(0, problem, search, num_searches=5, max_steps=20, exchange=rule)
    state = js.init(0, problem, search, num_searches=5)
    for length in (7, 7, 6):
        state = js.advance(problem, search, state, length)
        if length == 7:
            searches = exchange.apply(
                rule, None, problem, search, state.searches, state.index, None
            )
            state = state._replace(searches=searches)
    chex.assert_trees_all_equal(whole.searches, state.searches)


def test_groups_are_independent_runs():
    """Searches 0 to 3 of two groups do what four searches of one group do alone."""
    problem, search, _ = states_and_tours()
    run = functools.partial(js.run, 0, problem, search, max_steps=100)
    alone = run(num_searches=4, exchange=js.broadcast_best(every=5))
    grouped = run(num_searches=8, exchange=js.broadcast_best(every=5, group_size=4))
    first = jax.tree.map(lambda leaf: leaf[:4], grouped.searches)
    chex.assert_trees_all_equal(alone.searches, first)


@pytest.mark.parametrize("every", [0, -1, 1.5, 2**31])
def test_periods_are_checked(every):
    """A period is a positive int32."""
    for rule in (js.broadcast_best, js.ring):
        with pytest.raises(ValueError, match=f"every is {every}, expected an integer from 1"):
            rule(every=every)
    with pytest.raises(ValueError, match="group_size is 0, expected"):
        js.broadcast_best(every=1, group_size=0)
