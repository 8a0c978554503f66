"""The order and the periods of what happens between steps, and what padding has no part in."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
from cases import small_qap
from probes import at_step, countdown, line, walk

import jaxopt_search as js
from jaxopt_search.backends import random
from jaxopt_search.engine import outcome
from jaxopt_search.engine.state import MAX_PATIENCE


def start(*numbers, search=None):
    """Returns the problem, the search and the start of one that lowers its number by 1 a step."""
    problem, search = line(), countdown() if search is None else search
    solutions = jnp.asarray(numbers, jnp.int32)
    state = js.init(0, problem, search, num_searches=len(numbers), solutions=solutions)
    return problem, search, state


def test_stop_tests_are_counted_from_the_start_of_the_run():
    """Also where the first calls have none, of a length that is no multiple of the period."""
    for first in (1, 3, 4, 6):
        problem, search, state = start(20)
        state = js.advance(problem, search, state, first, check_every=4)
        state = js.advance(problem, search, state, 100, target=13, check_every=4)
        assert (int(state.status), int(state.step)) == (js.Status.TARGET, 8)


def test_an_exchange_after_a_billion_steps_without_one():
    """Steps since the last exchange are counted no further than that."""
    problem, search, state = start(20, 30)
    state = state._replace(since=state.since._replace(exchange=jnp.int32(MAX_PATIENCE - 5)))
    state = js.advance(problem, search, state, 20)
    assert state.since.exchange == MAX_PATIENCE
    state = js.advance(problem, search, state, 1, exchange=js.broadcast_best(every=5))
    assert state.ancestor.tolist() == [0, 0]


def test_a_target_beyond_int32():
    """Is met by any cost, also as an array."""
    problem, search, _ = start(20)
    target = np.array(2**33)
    state = js.run(0, problem, search, num_searches=1, max_steps=9, target=target, check_every=1)
    assert int(state.status) == js.Status.TARGET


def test_a_run_that_is_continued_makes_up_for_no_stop_test():
    """Without a limit to test, `solve` as good as never asks; then tests are where they were."""
    run = functools.partial(js.solve, line(), countdown(), num_searches=1, check_every=4)
    before = run(key=0, max_steps=6)
    result = run(key=None, state=before.state, max_steps=100, target=13)
    assert (result.status, result.nit) == (js.Status.TARGET, 8)


def test_limits_that_were_not_asked_for_end_no_run():
    """A patience beside a target, a target beside a patience."""
    run = functools.partial(js.solve, line(), countdown(15), 0, num_searches=1, check_every=2)
    missed, impatient = run(target=10, max_steps=50), run(patience=20, max_steps=50)
    assert (missed.status, missed.nit, missed.fun) == (js.Status.MAX_STEPS, 50, 15)
    assert (impatient.status, impatient.fun) == (js.Status.PATIENCE, 15)


def test_padding_reaches_no_target():
    """The run continues until a search does, which is the first finisher, by its global index."""
    problem, search, state = start(20, 17, 5)
    state = state._replace(index=jnp.asarray([7, 8, -1], jnp.int32), device_best=jnp.int32(17))
    state = js.advance(problem, search, state, 4, target=10, check_every=1)
    assert (int(state.status), int(state.step)) == (js.Status.RUNNING, 4)
    assert int(outcome.first_hit(state)[1]) == -1
    state = js.advance(problem, search, state, 9, target=10, check_every=1)
    count, winner = outcome.first_hit(state)
    assert (int(state.status), int(count.low), int(winner)) == (js.Status.TARGET, 7, 8)
    assert int(outcome.packed(problem, search, state)[1]) == 10


def test_padding_keeps_no_run_from_its_end():
    """All others are at local optima."""
    problem, search = small_qap(8), js.hill_climbing(js.SwapTable())
    end = js.solve(problem, search, 0, num_searches=1, devices=1).x
    solutions = jnp.stack([jnp.asarray(end), jnp.roll(jnp.asarray(end), 1)])
    state = js.init(0, problem, search, num_searches=2, solutions=solutions)
    state = state._replace(index=jnp.asarray([0, -1], jnp.int32))
    state = js.advance(problem, search, state, 1, check_every=1)
    assert state.searches.is_done.tolist() == [True, False]
    assert int(state.status) == js.Status.LOCAL_OPTIMA


def test_a_target_goes_before_local_optima():
    """A run of which a stop test finds both has reached its target."""
    problem, search = small_qap(8), js.hill_climbing(js.SwapTable())
    options = {"num_searches": 4, "check_every": 100, "devices": 1}
    lowest = js.solve(problem, search, 0, **options).fun
    result = js.solve(problem, search, 0, target=lowest, **options)
    assert (result.status, result.success, result.nit) == (js.Status.TARGET, True, 100)


def test_the_stop_test_comes_before_an_exchange():
    """So a run ends at local optima from which an exchange of the same step would lead away."""
    problem, search = small_qap(8), js.hill_climbing(js.SwapTable())
    rule = js.broadcast_best(every=50)
    result = js.solve(
        problem, search, 0, num_searches=4, exchange=rule, check_every=50, max_steps=500, devices=1
    )
    assert (result.status, result.nit) == (js.Status.LOCAL_OPTIMA, 50)


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Drawing(js.Exchange):
    """An exchange after every step, in which each search has any donor."""

    every = np.int32(1)

    def donors(self, stream, costs, num_searches):
        index = jnp.arange(costs.size, dtype=jnp.uint32)
        return random.below(stream.words(index, 1)[0], costs.size)


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Telling(Drawing):
    """An exchange whose children are what was drawn for them, less what was for their donors."""

    def donors(self, stream, costs, num_searches):
        index = jnp.arange(costs.size, dtype=jnp.uint32)
        return (stream.words(index, 1)[0] >> 24).astype(jnp.int32) % costs.size

    def combine(self, words, problem, own, given, implementation):
        return (words[0] >> 24).astype(jnp.int32) % 64


def test_children_have_words_of_their_own():
    """Which donor a search has says nothing about the child that it makes, or about other ones."""
    problem, search, state = start(*[200] * 64)
    state = js.advance(problem, search, state, 1, exchange=Telling())
    children, donors = np.asarray(state.searches.number), np.asarray(state.ancestor)
    assert (children != donors).mean() > 0.5
    assert len(set(children.tolist())) > 16


def test_each_epoch_draws_anew():
    """The low word of the step repeats after 2**32 steps; what is drawn does not."""
    problem, search, state = start(*[20] * 64, search=walk())
    ends = [
        js.advance(problem, search, at_step(state, epoch << 32 | 3), 1, exchange=Drawing())
        for epoch in (0, 1)
    ]
    for name in ("ancestor", "info"):
        first, second = (np.asarray(jax.tree.leaves(getattr(end, name))[0]) for end in ends)
        assert (first != second).mean() > 0.1
