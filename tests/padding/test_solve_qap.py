"""`solve_qap`: what it compiles serves all sizes of a class, and its temperatures need nothing."""

import jax
import numpy as np
import pytest
from cases import matrices, small_qap

import jaxopt_search as js
from jaxopt_search.problems.qap.construction import constructed_assignment
from jaxopt_search.solvers import scales


def test_another_size_compiles_nothing(compiled):
    """Nor do another seed, target or limit; the results are those of the instances themselves."""
    options = {"devices": 1, "num_searches": 3}
    jax.clear_caches()  # of what other tests have compiled
    js.solve_qap(*matrices(14), max_steps=40, **options)
    assert "jit(_advance)" in compiled
    compiled.clear()
    for n, key, limits in ((10, 3, {"max_steps": 30}), (13, 1, {"target": 1, "max_steps": 40})):
        result = js.solve_qap(*matrices(n), key, **limits, **options)
        assert result.nit == limits["max_steps"]
        assert sorted(result.x) == list(range(n))
        assert result.fun == small_qap(n).host.cost(result.x)
        assert result.solutions.shape == (3, n)
    assert not compiled


@pytest.mark.parametrize("fixed", [None, [[2, 4], [0, 0]]])
def test_swap_change_is_a_mean_over_swaps(fixed, compiled):
    """Within five standard errors of that of 4000 on the device; padded or not, as is the start."""
    flow, distance = np.random.default_rng(0).integers(-20, 50, (2, 7, 7))
    problem = js.qap(flow, distance, partial_match=fixed)

    def change(key):
        keys = jax.random.split(key)
        pair = jax.random.choice(keys[0], problem.num_free, (2,), replace=False)
        return problem.swap_delta(
            problem.init(keys[1]), *(pair if fixed is None else problem.free[pair])
        )

    changes = np.abs(jax.jit(jax.vmap(change))(jax.random.split(jax.random.key(0), 4000)))
    compiled.clear()
    found = scales.swap_change(problem)
    assert not compiled
    assert found == scales.swap_change(problem.padded(16))
    np.testing.assert_array_equal(
        constructed_assignment(problem), constructed_assignment(problem.padded(16))
    )
    assert abs(found - changes.mean()) < 5 * changes.std() / 256**0.5
