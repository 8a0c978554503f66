"""Schedules that are zero, negative, infinite or no schedules at all."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from probes import annealing, refuses, small_tsp

import jaxopt_search as js
from jaxopt_search.engine import outcome
from jaxopt_search.searches import schedules


def test_zero_temperature_is_hill_climbing():
    """At temperature 0 no cost rises; from a local optimum nothing is accepted."""
    problem = small_tsp()
    search = js.simulated_annealing(js.Relocate(), lambda step: jnp.zeros(1), keep_best="standard")
    state = js.init(0, problem, search, num_searches=4)
    before = state.searches.cost
    for _ in range(30):
        state = js.advance(problem, search, state, 1)
        cost, accepted = state.searches.cost, state.info.accepted
        assert (cost <= before).all()
        assert ((accepted == 1) | (cost == before)).all()
        before = cost
    far = js.advance(problem, search, state, 1000)
    end = js.advance(problem, search, far, 200)
    np.testing.assert_array_equal(end.searches.cost, far.searches.cost)
    np.testing.assert_array_equal(outcome.all_best(problem, search, end)[1], end.searches.cost)


def test_schedule_that_reaches_zero():
    """A schedule that underflows to 0 makes no NaN, for float costs either."""
    points = np.random.default_rng(1).random((8, 2))
    problem, search = js.tsp_from_coords(points), annealing(js.geometric(1.0, 1e-30))
    result = js.solve(problem, search, 0, num_searches=4, max_steps=300)
    assert float(schedules.temperature(search.acceptance.schedule, jnp.int32(2))) == 0
    assert math.isfinite(result.fun)
    assert np.isfinite(result.state.searches.cost).all()


@pytest.mark.parametrize(
    ("schedule", "text"),
    [
        (-1.0, "temperature is -1.0, expected a finite number >= 0"),
        (lambda step: 10.0 - step, "temperature -40.0 at step 50"),
        (lambda step: jnp.sqrt(10.0 - step), "temperature nan at step 50"),
        (lambda step: jnp.ones(2), "float32 of shape (2,), expected one real number"),
        (lambda step: None, "schedule returns"),
    ],
)
def test_bad_schedule_is_refused(schedule, text):
    """A schedule that is negative, not finite or no number is refused by value."""
    with refuses(ValueError, text):
        js.solve(small_tsp(), annealing(schedule), 0, max_steps=100)


def test_temperatures_may_be_traced():
    """A sweep by `vmap` finds what runs with numbers find."""
    problem, temperatures = small_tsp(9), np.array([0.5, 30.0, 2000.0], np.float32)

    def found(temperature):
        schedule = js.geometric(temperature, 0.9, 5)
        state = js.run(1, problem, annealing(schedule), num_searches=2, max_steps=40)
        return state.searches.cost

    swept = jax.jit(jax.vmap(found))(temperatures)
    np.testing.assert_array_equal(swept, [found(float(one)) for one in temperatures])
