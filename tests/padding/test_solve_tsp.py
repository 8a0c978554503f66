"""`solve_tsp`: what it compiles serves all sizes of a class, and takes padded problems, too."""

import numpy as np
import pytest
from padding.same import check_same

import jaxopt_search as js

OPTIONS = {"devices": 1, "num_searches": 3}


def points(n):
    return np.random.default_rng(n).integers(0, 300, (n, 2))


def distances(n):
    return np.random.default_rng(n).integers(1, 100, (n, n))


KINDS = {
    "coordinates": lambda n: js.tsp_from_coords(points(n), metric="EUC_2D", storage="coordinates"),
    "matrix": lambda n: js.tsp_from_coords(points(n) + 0.3, storage="matrix"),
    "asymmetric": lambda n: js.tsp(distances(n)),
}


LATER = (
    (10, 3, {"max_steps": 60}),
    (13, 1, {"target": 1, "max_seconds": 0.05}),
    (16, 2, {"target": 10**6, "max_steps": 9}),
    (2, 2, {"max_steps": 5}),
)
"""Sizes, seeds and limits of later calls; all tours of two cities have the same length."""


@pytest.mark.parametrize("kind", KINDS)
def test_another_size_compiles_nothing(kind, compiled):
    """Nor do another seed, target or limit, or the instance padded, which has the same result."""
    js.solve_tsp(KINDS[kind](14), max_steps=40, **OPTIONS)
    assert "jit(_advance)" in compiled
    compiled.clear()
    for n, key, limits in LATER:
        problem = KINDS[kind](n)
        result = js.solve_tsp(problem, key, **limits, **OPTIONS)
        assert "target" in limits or result.nit == (limits["max_steps"] if n > 2 else 0)
        assert sorted(result.x) == list(range(n))
        assert result.fun == problem.host.cost(result.x)
        assert result.solutions.shape == (3, n)
    problem = KINDS[kind](10)
    results = [
        js.solve_tsp(each, 3, max_steps=60, **OPTIONS) for each in (problem, problem.padded())
    ]
    assert not compiled
    check_same(*(result.state for result in results))
    np.testing.assert_array_equal(*(result.solutions for result in results))
