"""Schedules that are negative, not finite or no schedules at all, and that are traced."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from probes import annealing, refuses, small_tsp

import jaxopt_search as js


@pytest.mark.parametrize(
    ("schedule", "text"),
    [
        (-1.0, "temperature is -1.0, expected a finite number >= 0"),
        (lambda step: 10.0 - step, "temperature -40.0 at step 50"),
        (lambda step: jnp.sqrt(10.0 - step), "temperature nan at step 50"),
        (lambda step: jnp.ones(2), "float32 of shape (2,), expected one real number"),
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
