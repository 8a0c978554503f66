"""Numbers, schedules and settings that are out of range: one line that names the argument."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from probes import annealing, countdown, line, refuses, small_tsp

import jaxopt_search as js
from jaxopt_search.checks import highest_cost_that_meets

HUGE = 10**400
POINTS = [[0, 0], [3, 1], [1, 5], [4, 4], [2, 2]]
ONES = np.ones((5, 5), int)
SOLVERS = {
    "tsp": lambda **options: js.solve_tsp(POINTS, **options),
    "stacked": lambda **options: js.solve_tsp([POINTS], **options),
    "annealing": lambda **options: js.solve_qap(ONES, ONES, method="annealing", **options),
    "solve": lambda **options: js.solve(line(), countdown(), 0, **options),
}


@pytest.mark.parametrize("value", [math.nan, -1], ids=str)
@pytest.mark.parametrize(
    ("limit", "expected"), [("max_steps", "an integer from 0"), ("max_seconds", "a number >= 0")]
)
@pytest.mark.parametrize("name", SOLVERS)
def test_bad_numbers_of_steps_and_seconds(name, limit, expected, value):
    """By all solvers, also where the other limit is given."""
    with refuses(ValueError, f"{limit} is {value!r}, expected {expected}"):
        SOLVERS[name](**{"max_seconds": 0.2} | {limit: value})


def test_numbers_beyond_all_floats():
    """Seconds beyond all floats count as infinite."""
    run = {"num_searches": 2, "max_steps": 9}
    result = js.solve(line(), countdown(), 0, max_seconds=HUGE, **run)
    assert (result.nit, result.fun) == (9, 11)
    for dtype in (jnp.int32, jnp.float32):
        problem = line(dtype=dtype)
        met = js.solve(problem, countdown(), 0, target=HUGE, **run)
        assert (met.nit, met.success) == (0, True)
        missed = js.solve(problem, countdown(), 0, target=-HUGE, **run)
        assert (missed.nit, missed.success) == (9, False)
    assert highest_cost_that_meets(HUGE, np.int32) == 2**31 - 1
    assert highest_cost_that_meets(-HUGE, np.float32) == -math.inf
    assert highest_cost_that_meets(2**80, np.int32, 2**60, 2**20 - 5) == 5


@pytest.mark.parametrize("offset", [0.1, 0.75, -0.25, 1e6 / 3])
@pytest.mark.parametrize("cost", [-7, 0, 12])
def test_targets_of_integers_with_a_fractional_offset(offset, cost):
    """What is in full a little below a cost, met by the next lower one; a run looped forever."""
    full = cost + offset
    for target, expected in (
        (full, cost),
        (full + 0.9, cost),
        (np.nextafter(full, -np.inf), cost - 1),
    ):
        assert highest_cost_that_meets(target, np.int32, 1, offset) == expected


def test_schedules_that_cannot_be_traced():
    """A schedule in plain Python is told what to be written in."""
    for schedule in (
        lambda step: 10.0 if step < 5 else 1.0,
        lambda step: 10.0 * np.exp(-np.asarray(step) / 50),
    ):
        with refuses(TypeError, "schedule takes the step for a number, expected one written in"):
            annealing(schedule)


def test_schedule_that_raises():
    """What a schedule raises comes out as it is."""
    error = ZeroDivisionError("mine")

    def schedule(step):
        raise error

    for make in (annealing, lambda schedule: js.resample(schedule, every=5)):
        with pytest.raises(ZeroDivisionError) as caught:
            make(schedule)
        assert caught.value is error


def test_solvers_on_traced_data():
    """They say so on arrays that are traced, by `vmap`, too."""
    points = jnp.asarray(POINTS, jnp.float32)
    for call in (
        lambda: jax.jit(lambda points: js.solve_tsp(points, max_steps=1).fun)(points),
        lambda: jax.vmap(lambda points: js.solve_tsp(points, max_steps=1).fun)(points[None]),
        lambda: jax.jit(lambda flow: js.solve_qap(flow, ONES, max_steps=1).fun)(ONES),
        lambda: jax.jit(lambda: js.solve_nqueens(8).num_found)(),
        lambda: jax.jit(lambda: js.solve_tsp(small_tsp(), max_steps=1).fun)(),
    ):
        with refuses(RuntimeError, "inside jit or vmap; use run there"):
            call()
