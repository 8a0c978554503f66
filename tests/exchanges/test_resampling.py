"""Resampling: copies in proportion to weights, fair on average, at any temperatures."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from exchanges.shared import HIGHEST, apply, states_and_tours, stream_of

import jaxopt_search as js
from jaxopt_search.backends import random


@jax.jit
def donors_of(rule, stream, costs):
    """Returns the donors of searches without padding."""
    return rule.donors(stream, costs, jnp.int32(costs.size))


def copies(donors, num_searches):
    """Returns how many searches continue from each one."""
    own = np.arange(len(donors))
    sources = np.where(donors < 0, own, donors)[:num_searches]
    return np.bincount(sources, minlength=num_searches)


@pytest.mark.parametrize(
    ("costs", "num_searches"),
    [
        ([5, 3, 4], 3),
        ([7], 1),
        ([2, 2, 2, 2], 4),
        ([9, 1, HIGHEST, HIGHEST], 2),
        ([0] + [99] * 9, 10),
    ],
)
def test_resampling_copies_in_proportion(costs, num_searches):
    """Each search gets its share rounded up or down, survivors stay, padding gets nothing."""
    rule = js.resample(js.geometric(2.0, 0.5, 10), every=10)
    costs = np.asarray(costs, np.int32)
    weights = np.exp(-(1 / 1.0 - 1 / 2.0) * (costs[:num_searches] - costs.min()))
    share = weights / weights.sum() * num_searches
    drawn = jax.jit(rule.donors)
    for counter in range(20):
        stream = random.Stream(random.as_key(1), jnp.uint32(counter), jnp.int32(10))
        donors = np.asarray(drawn(stream, jnp.asarray(costs), jnp.int32(num_searches)))
        found = copies(donors, num_searches)
        assert found.sum() == num_searches
        assert (np.abs(found - share) < 1 + 1e-4).all()
        for donor in donors[:num_searches]:
            assert donor < 0 or donors[donor] < 0  # who is copied has survived


def test_resampling_is_fair_on_average():
    """Over many draws the mean number of copies is the share, within its standard error."""
    rule, num_draws = js.resample(js.geometric(3.0, 0.5, 10), every=10), 4000
    costs = np.asarray([4, 0, 7, 3, 3, 1], np.int32)
    key = random.as_key(int(np.random.default_rng().integers(2**31)))
    streams = random.Stream(key, jnp.arange(num_draws, dtype=jnp.uint32), jnp.int32(10))
    axes = random.Stream(None, 0, None)
    donors = jax.vmap(donors_of, in_axes=(None, axes, None))(rule, streams, jnp.asarray(costs))
    found = np.stack([copies(row, 6) for row in np.asarray(donors)])
    weights = np.exp(-(1 / 1.5 - 1 / 3) * costs)
    error = 0.5 / num_draws**0.5  # a number rounded up or down varies by 1/2 at most
    assert (np.abs(found.mean(axis=0) - 6 * weights / weights.sum()) < 5 * error).all()


def test_resampling_passes_on_current_solutions():
    """Copies have the donor's current tour and cost; the best of each search is kept."""
    problem, search, state = states_and_tours(8)
    rule = js.resample(js.geometric(1000.0, 0.01, 30), every=30)
    donors = np.asarray(donors_of(rule, stream_of(state), state.searches.cost))
    assert (donors >= 0).any()
    after, ancestor = apply(rule, problem, search, state)
    source = np.where(donors < 0, np.arange(8), donors)
    np.testing.assert_array_equal(ancestor, source)
    np.testing.assert_array_equal(after.cost, state.searches.cost[source])
    tours = jax.jit(jax.vmap(lambda one: search.current(problem, one)))
    np.testing.assert_array_equal(tours(after), tours(state.searches)[source])
    best = jax.jit(jax.vmap(search.best_cost))
    assert (best(after) <= best(state.searches)).all()


def test_resampling_survives_temperature_zero():
    """At 0 only the best are copied; from 0 to 0 nothing happens."""
    stream = random.Stream(random.as_key(0), jnp.uint32(10), jnp.int32(10))
    costs = jnp.asarray([3, 1, 2, 1], jnp.int32)
    cooled = js.resample(lambda step: jnp.where(step < 10, 1.0, 0.0), every=10)
    assert copies(np.asarray(donors_of(cooled, stream, costs)), 4).tolist() == [0, 2, 0, 2]
    cold = js.resample(0.0, every=10)
    assert donors_of(cold, stream, costs).tolist() == [-1] * 4


def test_searches_that_warm_are_not_resampled():
    """Weights come of cooling only: from a colder temperature to a hotter one all stay."""
    rule = js.resample(lambda step: 1.0 + step, every=10)
    costs = jnp.asarray([3, 1, 2, 90], jnp.int32)
    stream = random.Stream(random.as_key(1), jnp.uint32(3), jnp.int32(10))
    assert donors_of(rule, stream, costs).tolist() == [-1] * 4


def test_weights_come_of_the_temperatures_of_two_exchanges():
    """Not of the first one: where it has stayed the same since the last exchange, all stay."""
    rule = js.resample(lambda step: jnp.where(step < 10, 9.0, 1.0), every=10)
    costs = jnp.asarray([3, 1, 2, 90], jnp.int32)
    for step, is_cooled in ((10, True), (19, True), (20, False), (30, False)):
        stream = random.Stream(random.as_key(1), jnp.uint32(step), jnp.int32(step))
        donors = np.asarray(donors_of(rule, stream, costs))
        assert (donors >= 0).any() == is_cooled


class Drawn(NamedTuple):
    """A stream of one word."""

    word: jax.Array
    step: jax.Array

    def words(self, slot, num_words):
        return (self.word,) * num_words


@pytest.mark.parametrize("word", [0, 2**32 - 1])
def test_copies_add_up_whatever_is_drawn(word):
    """As many as there are searches: a free place has a donor, also where a draw is near to 1."""
    rule = js.resample(js.geometric(2.0, 0.5, 10), every=10)
    stream = Drawn(jnp.uint32(word), jnp.int32(10))
    costs, number = jnp.full(4096, 7, jnp.int32), jnp.int32(4000)
    donors = np.asarray(jax.jit(rule.donors)(stream, costs, number))
    assert (donors < 4000).all()
