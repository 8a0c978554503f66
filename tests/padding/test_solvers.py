"""The one-liners: what they compile serves all sizes of a class, and padded problems, too."""

import numpy as np
import pytest
from cases import small_qap
from padding.same import check_same

import jaxopt_search as js

QUICK = {"devices": 1, "num_searches": 4}


KINDS = {
    "asymmetric": lambda n: js.tsp(np.random.default_rng(n).integers(1, 100, (n, n))),
    "qap": small_qap,
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

    def solve(problem, key, **limits):
        if kind == "qap":
            return js.solve_qap(problem, None, key, **limits, **QUICK)
        return js.solve_tsp(problem, key, **limits, **QUICK)

    solve(KINDS[kind](14), 0, max_steps=40)
    compiled.clear()
    for n, key, limits in LATER:
        problem = KINDS[kind](n)
        result = solve(problem, key, **limits)
        is_short = "target" in limits or (n == 2 and kind != "qap")
        assert is_short or result.nit == limits["max_steps"]
        assert sorted(result.x) == list(range(n))
        assert result.fun == problem.host.cost(result.x)
        assert result.solutions.shape == (4, n)
    problem = KINDS[kind](10)
    results = [solve(each, 3, max_steps=60) for each in (problem, problem.padded(16))]
    assert not compiled
    check_same(*(result.state for result in results))
    np.testing.assert_array_equal(*(result.solutions for result in results))
