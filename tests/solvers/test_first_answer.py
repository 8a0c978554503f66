"""solve_tsp and solve_qap from the first moment: no result is worse than a construction."""

import time

import jax
import numpy as np
import pytest
from ways import needs_cpu

import jaxopt_search as js
from jaxopt_search.problems.qap.construction import constructed_assignment
from jaxopt_search.problems.tsp.construction import constructed_tour
from jaxopt_search.solvers import tsp

GRID = js.datasets.grid_tsp(8, 8, spacing=10, seed=3)
FEW = {"num_searches": 3, "devices": 1}


@pytest.mark.parametrize("kind", ["coordinates", "matrix", "asymmetric"])
def test_a_tour_is_never_worse_than_the_constructed_one(kind):
    """Of coordinates, of a matrix, of one that is asymmetric; also without a step."""
    matrix = GRID.distances()
    if kind == "asymmetric":
        matrix = matrix + np.random.default_rng(0).integers(0, 3, matrix.shape)
    problem = js.tsp_from_instance(GRID) if kind == "coordinates" else js.tsp(matrix)
    near = tsp.candidates_of(problem, 12) if problem.is_symmetric else None
    expected = problem.host.cost(constructed_tour(problem, near))
    results = [js.solve_tsp(problem, max_steps=steps, **FEW) for steps in (0, 40)]
    assert results[1].fun <= results[0].fun <= expected
    assert results[0].costs[0] == expected
    assert len({tuple(tour) for tour in results[0].solutions.tolist()}) == 3


@pytest.mark.parametrize(("method", "fixed"), [("tabu", None), ("annealing", [[2, 7]])])
def test_an_assignment_is_never_worse_than_the_constructed_one(method, fixed):
    """By both methods, also with a facility that is fixed; without a step, it is that one."""
    instance = js.datasets.uniform_qap(12, seed=0)
    problem = js.qap(instance.flow, instance.distance, partial_match=fixed)
    expected = problem.host.cost(constructed_assignment(problem))
    results = [js.solve_qap(problem, max_steps=steps, method=method, **FEW) for steps in (0, 5)]
    assert results[0].fun == expected
    assert results[1].fun <= expected
    assert len({tuple(each) for each in results[0].solutions.tolist()}) == 3


def test_no_time_at_all():
    """With time for hardly a step, both are within 10 % of the optimum."""
    assert js.solve_tsp(GRID, max_seconds=0.01, target=None, **FEW).gap <= 0.1
    instance = js.datasets.planted_qap(3, 4, seed=0)
    assert js.solve_qap(instance, max_seconds=0.01, **FEW).gap <= 0.1


@needs_cpu
def test_a_slow_compiler_takes_no_time_from_the_search():
    """The limit counts seconds of search only, and the answer is as good as ever."""
    slept = []

    def sleep(event, seconds, **_):
        if event.endswith("backend_compile_duration"):
            slept.append(time.sleep(0.4))

    jax.monitoring.register_event_duration_secs_listener(sleep)
    try:
        result = js.solve_tsp(GRID, max_seconds=1, target=None, num_searches=5, devices=1)
    finally:
        jax.monitoring.unregister_event_duration_listener(sleep)
    assert slept
    assert result.compile_seconds >= 0.4
    assert result.nit > 0
    assert result.elapsed - result.compile_seconds < 4
    assert result.gap <= 0.1
