"""Exchanges: who continues from whom, by table; and that the solutions arrive."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from exchanges.shared import HIGHEST, apply, states_and_tours, stream_of

import jaxopt_search as js
from jaxopt_search import datasets
from jaxopt_search.backends import random


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


def test_broadcast_puts_every_search_on_the_best_solution():
    """All continue from the best tour of any; the costs fit; no search forgets its best."""
    problem, search, state = states_and_tours()
    before = jax.vmap(search.best_cost)(state.searches)
    rule = js.broadcast_best(every=1)
    after, ancestor = apply(rule, problem, search, state)
    solution, cost = js.best(problem, search, state)
    tours = jax.jit(jax.vmap(search.current, in_axes=(None, 0)))(problem, after)
    np.testing.assert_array_equal(tours, np.broadcast_to(solution, tours.shape))
    np.testing.assert_array_equal(after.cost, np.full(5, cost))
    np.testing.assert_array_equal(ancestor, np.full(5, before.argmin()))
    np.testing.assert_array_equal(jax.vmap(search.best_cost)(after), np.full(5, before.min()))


def test_exchanges_come_every_given_number_of_steps():
    """A run with an exchange every 7 steps is runs of 7 steps with an exchange between."""
    problem, search, _ = states_and_tours()
    rule = js.broadcast_best(every=7)
    whole = js.run(0, problem, search, num_searches=5, max_steps=20, exchange=rule)
    state = js.init(0, problem, search, num_searches=5)
    for length in (7, 7, 6):
        state = js.advance(problem, search, state, length)
        if length == 7:
            searches, ancestor = apply(rule, problem, search, state)
            state = state._replace(searches=searches, ancestor=ancestor)
    chex.assert_trees_all_equal(whole.searches, state.searches)


def test_settings_are_checked():
    """A period is a positive int32."""
    for rule in (js.broadcast_best, js.ring, functools.partial(js.resample, 1.0), js.recombine):
        for every in (0, 1.5, 2**31):
            with pytest.raises(ValueError, match=f"every is {every}, expected an integer from 1"):
                rule(every=every)
    with pytest.raises(ValueError, match="group_size is 0, expected"):
        js.broadcast_best(every=1, group_size=0)
    for options in ({"share": 1.5}, {"share": -0.1}, {"alike": 2}, {"reach": 0}):
        with pytest.raises(ValueError, match=next(iter(options))):
            js.recombine(every=5, **options)


@pytest.mark.parametrize(
    ("num_searches", "reach"), [(1, None), (2, None), (4, None), (6, 2), (3, 9)]
)
def test_recombination_draws_another_search(num_searches, reach):
    """The first one is left alone and gives nothing; the others have each other, equally often, or
    those that come next in their ring."""
    rule, size, num_draws = js.recombine(every=1, reach=reach), num_searches + 3, 600
    costs = jnp.zeros(size, jnp.int32)
    streams = random.Stream(
        random.as_key(1), jnp.arange(num_draws, dtype=jnp.uint32), jnp.int32(10)
    )
    donors = jax.vmap(rule.donors, in_axes=(random.Stream(None, 0, None), None, None))(
        streams, costs, jnp.int32(num_searches)
    )
    donors = np.asarray(donors)[:, :num_searches]
    assert (donors[:, 0] == -1).all()
    for own in range(1, num_searches):
        ring = [*range(own + 1, num_searches), *range(1, own)]
        others = ring[:reach] or [own]
        found = np.bincount(donors[:, own], minlength=size)
        assert found[others].sum() == num_draws
        share = 1 / len(others)
        error = (num_draws * share * (1 - share)) ** 0.5
        assert (np.abs(found[others] - num_draws * share) <= 5 * error).all()


def qap_searches(num_searches, steps=5):
    problem = js.qap_from_instance(datasets.uniform_qap(12, seed=0))
    search = js.tabu_search(js.SwapTable())
    return problem, search, js.run(0, problem, search, num_searches=num_searches, max_steps=steps)


def bests_of(problem, search, searches):
    return jax.device_get(_bests_of(problem, search, searches))


@jax.jit
def _bests_of(problem, search, searches):
    return jax.vmap(lambda one: (search.best(problem, one), search.best_cost(one)))(searches)


def test_children_have_the_values_of_both_parents():
    """With a share of 0 a child is its own parent, with 1 the other one, so both are perturbed; in
    between it differs from either. No search forgets its best, and costs fit."""
    problem, search, state = qap_searches(8)
    bests, costs = bests_of(problem, search, state.searches)
    recombined = jax.jit(lambda rule: apply(rule, problem, search, state)[0])
    for share in (0.0, 0.5, 1.0):
        rule = js.recombine(every=1, share=share)
        donors = np.asarray(rule.donors(stream_of(state), jnp.asarray(costs), jnp.int32(8)))
        after = recombined(rule)
        children = np.asarray(after.representation.location)
        assert (np.sort(children, axis=1) == np.arange(12)).all()
        np.testing.assert_array_equal(after.cost, [problem.host.cost(one) for one in children])
        np.testing.assert_array_equal(bests_of(problem, search, after)[1], costs)
        same = np.stack([children == bests, children == bests[donors]]).mean(axis=2)[:, 1:]
        assert (same < 1).all()
        if share != 0.5:
            assert (same[int(share)] >= 0.5).all()
        elif (bests[donors] != bests)[1:].mean() > 0.5:
            assert (same > 0).mean() > 0.8


@jax.tree_util.register_static
class OneParent(js.Crossover):
    """Children that equal one of the parents, by the first bit of their keys."""

    def child(self, key, problem, own, given, share):
        takes_own = jax.random.bits(key) >> 31
        return jnp.where(takes_own == 1, own, given)


def test_what_merges_is_the_best_and_a_current_solution():
    """Of a search, of itself and, for about half, of another one; no search forgets its best."""
    problem, search, state = qap_searches(8, steps=30)
    bests, costs = bests_of(problem, search, state.searches)
    now = np.asarray(state.searches.representation.location)
    rule = js.merge(every=1, crossover=OneParent())
    donors = np.asarray(rule.donors(stream_of(state), jnp.asarray(costs), jnp.int32(8)))
    assert 0 < (donors == np.arange(8)).sum() < 8 and donors.min() >= 0 and donors.max() < 8
    after, _ = apply(rule, problem, search, state)
    found = np.asarray(after.representation.location)
    is_own, is_given = ((found == one).all(axis=1) for one in (bests, now[donors]))
    assert (is_own | is_given).all() and is_own.any() and is_given.any()
    np.testing.assert_array_equal(bests_of(problem, search, after)[1], costs)
    alone = rule.donors(stream_of(state), jnp.asarray(costs[:3]), jnp.int32(1))
    assert alone[0] == 0


@pytest.mark.parametrize("alike", [None, 0.9])
def test_generations(alike):
    """Children take the places of their parents; the first search continues from the best."""
    problem, search, state = qap_searches(8, steps=30)
    bests, costs = bests_of(problem, search, state.searches)
    rule = js.recombine(every=1, alike=alike, generational=True)
    after, _ = jax.jit(lambda: apply(rule, problem, search, state))()
    children, found = bests_of(problem, search, after)
    np.testing.assert_array_equal(found, [problem.host.cost(one) for one in children])
    assert found[0] == costs.min() and (found[1:] > costs[1:]).any()
    np.testing.assert_array_equal(after.representation.location[0], bests[np.argmin(costs)])
    assert (children[1:] != bests[1:]).any(axis=1).all()
    assert after.now[0] == 30 and (after.now[1:] == 0).all()


@pytest.mark.parametrize(
    ("costs", "num_searches", "expected"),
    [
        ([9, 1, 1, 1, 2, 2], 6, True),
        ([1, 1, 1, 2, 2, 2], 6, False),
        ([1, 2, 2, 2, 3, 3], 6, True),
        ([1, 2, 2, HIGHEST], 3, True),
        ([1, 2, HIGHEST], 2, False),
        ([1], 1, False),
    ],
)
def test_all_start_anew_where_many_are_alike(costs, num_searches, expected):
    """Three of five are 0.6; the first search and padding do not count; one alone is not alike."""
    rule = js.recombine(every=1)
    assert bool(rule.starts_anew(jnp.asarray(costs), jnp.int32(num_searches))) == expected


def test_what_starts_anew_is_random_and_the_best_is_kept():
    """The first search has the best of all, and the others have forgotten theirs."""
    problem, search, state = qap_searches(6, steps=200)
    rule = js.recombine(every=1, alike=0.0)
    _, costs = bests_of(problem, search, state.searches)
    alike = jnp.full(6, costs.min(), jnp.int32).at[0].set(costs.max() + 1)
    assert bool(rule.starts_anew(alike, jnp.int32(6)))
    best = jax.tree.map(lambda leaf: leaf[np.argmin(costs)], state.searches)
    same = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (6, *leaf.shape)), best)
    first = jax.tree.map(lambda leaf: leaf[np.argmax(costs)], state.searches)
    searches = jax.tree.map(lambda all_, one: all_.at[0].set(one), same, first)
    state = state._replace(searches=searches)
    after, ancestor = jax.jit(lambda: apply(rule, problem, search, state))()
    bests, found = bests_of(problem, search, after)
    assert found[0] == costs.min()
    assert (found[1:] > costs.min()).all()
    assert len(np.unique(bests[1:], axis=0)) == 5
    np.testing.assert_array_equal(ancestor, [1, 1, 2, 3, 4, 5])
    np.testing.assert_array_equal(after.now[1:], 0)
