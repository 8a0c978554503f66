"""What bad, odd and tiny QAP instances get."""

import jax.numpy as jnp
import numpy as np
import pytest
from probes import MATRIX_OF_FOUR as FLOW
from probes import changed, refuses

import jaxopt_search as js
from jaxopt_search.problems.qap.build import qap

DISTANCE = np.array([[0, 1, 2, 3], [1, 0, 4, 2], [2, 4, 0, 1], [3, 2, 1, 0]])


def solve(problem, **options):
    search = js.simulated_annealing(js.Swap(), 30.0)
    options = {"max_steps": 200, "num_searches": 4} | options
    return js.solve(problem, search, 0, **options)


@pytest.mark.parametrize("name", ["flow", "distance"])
@pytest.mark.parametrize(
    ("matrix", "kind", "text"),
    [
        (changed(2, 3, np.nan), ValueError, "[2,3] is NaN, expected a finite number"),
        (np.ones((5, 3)), ValueError, " has shape (5, 3), expected (n, n)"),
        (np.where(np.eye(4) > 0, "x", FLOW.astype(object)), TypeError, " has dtype object"),
    ],
)
def test_bad_matrix_is_refused(matrix, kind, text, name):
    """A flow or a distance that is no matrix is refused by name, value and expectation."""
    with refuses(kind, name + text):
        qap(**({"flow": FLOW, "distance": DISTANCE} | {name: matrix}))


@pytest.mark.parametrize(
    ("flow", "distance", "text"),
    [
        (FLOW * (2**31 - 1) + 1, DISTANCE, "beyond int32 (2147483647); use dtype='float32'"),
        (FLOW * 2**54 + 1, DISTANCE * 2**54 + 1, "beyond int32"),
        (FLOW, DISTANCE[:3, :3], "distance has shape (3, 3), expected (4, 4) as flow has"),
        (FLOW / 3, DISTANCE * 1e307, "entries of distance reach 4e+307, expected 9.86"),
        (FLOW * 1e-200, DISTANCE, "for float32; multiply by a constant"),
        (FLOW * 1e25, DISTANCE * 1e25, "products of flow and distance reach"),
        (FLOW / 3 + 1e6, DISTANCE, "entries of flow reach from 100000"),
    ],
)
def test_pairs_of_matrices_that_do_not_go_together(flow, distance, text):
    """Of different sizes, or with products that int32 or float32 cannot hold."""
    with refuses(ValueError, text):
        qap(flow, distance)


def test_truth_values_as_flow():
    """An adjacency matrix is a flow of zeros and ones; distances are not truth values."""
    for flow in (FLOW > 4, jnp.asarray(FLOW > 4)):
        problem = qap(flow, DISTANCE)
        np.testing.assert_array_equal(problem.flow, (FLOW > 4).ravel())
        assert problem.flow.dtype == jnp.int32
    with refuses(TypeError, "distance has dtype bool"):
        qap(FLOW, DISTANCE > 1)


def test_nearly_symmetric():
    """Relative asymmetries of 1e-7 are averaged out with a note; one of 1e-3 is data."""
    flow, distance = FLOW + 0.25, DISTANCE + 0.25
    flow[0, 1] *= 1 + 1e-7
    problem = qap(flow, distance)
    assert problem.is_symmetric
    assert "symmetrized" in problem.host.note
    distance[1, 2] *= 1 + 1e-3
    problem = qap(flow, distance)
    assert (problem.is_symmetric, problem.host.note) == (False, "")


def test_common_divisor():
    """Integers beyond int32 with a common divisor are solved exactly, in units."""
    f, d = 10**9, 10**12
    problem = qap(FLOW * f, DISTANCE * d)
    assert problem.host.unit == f * d
    result = solve(problem)
    assert result.fun == f * d * solve(qap(FLOW, DISTANCE)).fun
    assert result.fun == f * d * int((FLOW * DISTANCE[np.ix_(result.x, result.x)]).sum())


def test_diagonals_count():
    """Known by hand, facility 1 with flow 5 to itself belongs where that costs least."""
    flow, distance = np.diag([0, 5, 0]), np.diag([7, 3, 4])
    result = solve(qap(flow, distance))
    assert (result.fun, result.x[1]) == (15, 1)


@pytest.mark.parametrize(
    ("flow", "distance", "fun"),
    [
        ([[3]], [[5]], 15),
        ([[1, 0], [0, 2]], [[4, 0], [0, 3]], 10),
        ([[0, 2, 4], [8, 0, 9], [1, 7, 0]], np.ones((3, 3)), 31),
    ],
    ids=["n=1 diagonal", "n=2 diagonal", "n=3 equal"],
)
def test_tiny_instances(flow, distance, fun):
    """One facility needs no step; two and three get the exact answer."""
    result = solve(qap(flow, distance), max_steps=50)
    assert (result.fun, result.status) == (fun, js.Status.MAX_STEPS)
    assert sorted(result.x.tolist()) == list(range(len(flow)))
    assert result.nit == (0 if len(flow) == 1 else 50)
