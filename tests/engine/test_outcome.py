"""What the host sees of a run, on one device and merged from several."""

import jax
import numpy as np
import pytest
from probes import small_tsp

import jaxopt_search as js
from jaxopt_search.engine import outcome
from jaxopt_search.engine.split import DeviceSplit
from jaxopt_search.engine.state import make_rules
from jaxopt_search.results import Hit, Status

SEARCH = js.simulated_annealing(js.Relocate(), 5.0, moves_per_search=4)


def test_it_is_what_there_is_to_see():
    """It agrees with the functions on the state, also where a device has more searches."""
    problem = small_tsp()
    state = js.init(3, problem, SEARCH, num_searches=7)
    placement = DeviceSplit(tuple(jax.devices()[:3]))
    target = float(js.best(problem, SEARCH, js.advance(problem, SEARCH, state, 60))[1]) + 2
    rules = make_rules(SEARCH, state.best_cost.dtype, target=target, check_every=20)
    placed = placement.steps(problem, SEARCH, placement.split(state), 60, rules)()
    seen, joined = placement.look(problem, SEARCH, placed), placement.join(placed, 7)
    solution, cost = js.best(problem, SEARCH, joined)
    count, winner = js.first_hit(joined)
    np.testing.assert_array_equal(seen.solution, solution)
    for found, expected in zip(
        placement.all_best(seen, 7), outcome.all_best(problem, SEARCH, joined), strict=True
    ):
        np.testing.assert_array_equal(found, expected)
    assert (seen.cost, seen.cost.dtype) == (cost, "int32")
    assert seen.first_hit == Hit(int(count.low), int(winner))
    assert seen.accepted == np.sum(joined.info.accepted)
    assert (seen.step, seen.status) == (int(joined.step), Status.TARGET)


def test_states_of_several_runs_are_refused():
    """What looks at one run says what to do with the states that a vmapped `run` returns."""
    problem = small_tsp()

    def run(key):
        return js.run(key, problem, SEARCH, num_searches=2, max_steps=5)

    states = jax.eval_shape(jax.vmap(run), jax.random.split(jax.random.key(0), 3))
    counts, winners = jax.eval_shape(jax.vmap(js.first_hit), states)
    assert (counts.low.shape, winners.shape) == ((3,), (3,))
    for look in (js.first_hit, lambda states: js.best(problem, SEARCH, states)):
        with pytest.raises(ValueError, match="of several runs, use jax.vmap"):
            jax.eval_shape(look, states)
