"""Cooling schedules match literal tables, and anything callable will do."""

import jax.numpy as jnp
import numpy as np
import optax
import pytest
from ways import FASTEST

import jaxopt_search as js
from jaxopt_search.searches import schedules


@pytest.mark.parametrize(
    ("step", "expected"),
    [(0, 100.0), (4, 100.0), (5, 50.0), (9, 50.0), (10, 25.0), (52, 100 / 1024), (10**6, 0.0)],
)
def test_geometric_cools_once_per_temperature(step, expected):
    """start * alpha**(step // steps_per_temperature), down to zero without NaN."""
    schedule = schedules.geometric(100.0, 0.5, 5)
    found = schedules.temperature(schedule, jnp.int32(step))
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_a_schedule_may_start_later():
    """At its first step it has the first temperature; before, it was hotter by the same rule."""
    schedule = schedules.geometric(100.0, 0.5, 5, first_step=20)
    found = [float(schedules.temperature(schedule, jnp.int32(s))) for s in (10, 19, 20, 24, 25)]
    np.testing.assert_allclose(found, [400.0, 200.0, 100.0, 100.0, 50.0], rtol=1e-5)


def test_a_schedule_may_start_over():
    """After each period, counted from its first step, on the device as on the host."""
    schedule = schedules.geometric(100.0, 0.5, 5, first_step=20, period=12)
    steps, expected = (20, 25, 31, 32, 37, 44), [100.0, 50.0, 25.0, 100.0, 50.0, 100.0]
    np.testing.assert_allclose([schedule(jnp.int32(step)) for step in steps], expected, rtol=1e-5)
    np.testing.assert_allclose([schedule.on_host(step) for step in steps], expected, rtol=1e-5)


def test_any_schedule_of_optax_steers_a_run():
    """By name, joined, warmed up: the acceptance falls to none as the temperature does."""
    cooling = optax.join_schedules(
        [optax.warmup_cosine_decay_schedule(10.0, 900.0, 10, 60), optax.constant_schedule(0.0)],
        [60],
    )
    distances = np.random.default_rng(0).integers(1, 1000, (9, 9))
    search = js.simulated_annealing(js.Relocate(), cooling)
    problem = js.tsp(distances * (1 - np.eye(9, dtype=int)))
    state = js.run(0, problem, search, num_searches=8, max_steps=400, implementation=FASTEST)
    done = js.advance(problem, search, state, 100, implementation=FASTEST)
    np.testing.assert_array_equal(done.searches.best_cost, state.searches.best_cost)
    assert (np.asarray(done.searches.cost) <= np.asarray(state.searches.cost)).all()
    assert np.asarray(state.info.accepted).all()


@pytest.mark.parametrize(
    "schedule",
    [
        2.5,
        optax.constant_schedule(2.5),
        lambda step: 2.5,
        lambda step: jnp.full((1,), 2.5),
        optax.piecewise_constant_schedule(5.0, {3: 0.5}),
    ],
)
def test_numbers_and_functions_are_schedules(schedule):
    """Whatever a schedule returns becomes one float32."""
    value = schedules.temperature(schedules.as_schedule(schedule), jnp.int32(7))
    assert value.dtype == jnp.float32
    assert value.shape == ()
    assert float(value) == 2.5


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: schedules.as_schedule("hot"), TypeError, "expected a number or a function"),
        (lambda: schedules.geometric(float("inf"), 0.9), ValueError, "start is inf, expected"),
        (lambda: schedules.geometric(1.0, 1.1), ValueError, "alpha is 1.1, expected"),
        (lambda: schedules.geometric(1.0, 0.9, 0), ValueError, "steps_per_temperature is 0, exp"),
        (lambda: schedules.cosine(0.0, 10), ValueError, "start is 0.0, expected"),
        (lambda: schedules.warm_restarts(1.0, 10, 0), ValueError, "num_cycles is 0, expected"),
    ],
)
def test_what_is_no_schedule_is_refused(make, error, message):
    """By name, before a run starts."""
    with pytest.raises(error, match=message):
        make()
