"""Many instances at once: what does not depend on their kind."""

import functools
import itertools
import re

import jax
import numpy as np
import pytest

import jaxopt_search as js
from jaxopt_search.backends import portability, random
from jaxopt_search.solvers import stacked
from jaxopt_search.solvers.recipes import Pace
from jaxopt_search.solvers.tsp import tsp_recipe


def of_tours():
    recipe = tsp_recipe(True, "cpu", 40)._replace(num_searches=4, num_candidates=5)
    points = [np.random.default_rng(n).random((n, 2)) for n in (12, 7)]
    return stacked.Tours(recipe, 16), stacked.cities_of(points, np.ones(2), 16)


def of_assignments():
    problems = [js.qap_from_instance(js.datasets.uniform_qap(n, seed=n)) for n in (12, 7)]
    return stacked.Assignments(4, 16), stacked.matrices_of(problems, 16)


@pytest.mark.parametrize("of_kind", [of_tours, of_assignments])
def test_kernels_lower_for_cuda(of_kind):
    """The runs of several instances, exchanges included, lower for an NVIDIA GPU without one."""
    kind, instances = of_kind()
    numbers = np.arange(2, dtype=np.uint32)
    start = functools.partial(stacked.start_all, kind)
    runs = jax.eval_shape(start, random.as_key(0), numbers, instances)
    advance = functools.partial(stacked.advance_all, kind, "triton")
    pace = Pace(0, 1.0, 0.0, np.int32(7))
    text = portability.lower_for_cuda(advance, runs, pace, np.int32(100))
    assert re.search(r"custom_call @\S*triton", text)


@pytest.mark.parametrize(
    ("solve", "instances", "is_trivial"),
    [
        (js.solve_tsp, ([np.zeros((3, 2))],), True),
        (js.solve_tsp, ([np.random.default_rng(0).random((9, 2))],), False),
        (js.solve_qap, ([[[1]]], [[[1]]]), True),
        (js.solve_qap, ([np.ones((9, 9), int)], [np.ones((9, 9), int)]), False),
    ],
)
def test_a_run_without_steps_is_no_success(solve, instances, is_trivial):
    """Unless there is nothing to search for."""
    result = solve(*instances, max_steps=0, num_searches=2, devices=1)
    assert (result.nit, result.success) == (0, is_trivial)


def test_qaps_are_maximized():
    """What is found is the sum itself; its highest value is known by brute force."""
    made = np.random.default_rng(4).integers(0, 30, (2, 6, 6))
    flow, distance = made + made.swapaxes(1, 2)  # symmetric ones share the program from above
    orders = np.array(list(itertools.permutations(range(6))))
    sums = (flow * distance[orders[:, :, None], orders[:, None]]).sum(axis=(1, 2))
    result = js.solve_qap(
        [flow], [distance], maximize=True, max_steps=40, num_searches=2, devices=1
    )
    assert result.fun.tolist() == [sums.max()]
