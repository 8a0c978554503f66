"""`warm_up`: what it compiles is all that later calls of a solver need."""

import jax
import numpy as np
import pytest
from cases import matrices
from probes import refuses

import jaxopt_search as js


def cities(n):
    return (np.random.default_rng(n).random((n, 2)),)


CASES = {
    "tsp": (js.solve_tsp, cities),
    "qap": (js.solve_qap, matrices),
    "nqueens": (js.solve_nqueens, lambda n: (n,)),
}


@pytest.mark.parametrize(("solver", "instance_of"), CASES.values(), ids=CASES)
def test_later_calls_compile_nothing(solver, instance_of, compiled, tmp_path):
    """Of other sizes of the class, with other seeds and limits; and no checkpoint is written."""
    options = {"devices": 1, "num_searches": 3}
    assert js.warm_up(solver, 20, **options) > 0
    assert "jit(_advance)" in compiled
    compiled.clear()
    for n, limits in ((24, {"max_steps": 200}), (20, {"max_seconds": 0.02})):
        result = solver(*instance_of(n), key=n, **limits, **options)
        assert result.solutions.shape[1] == n
        assert result.nit > 0
    js.warm_up(solver, 20, **options, max_seconds=1, checkpoint=tmp_path / "run.npz", resume=True)
    assert not compiled and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ((js.solve, 5), ValueError, "solver is 'solve', expected solve_tsp, solve_qap or solve_nq"),
        (("solve_tsp", 5), ValueError, "solver is 'solve_tsp', expected solve_tsp, solve_qap or"),
        (([js.solve_tsp], 5), ValueError, "solver is [<function solve_tsp"),
        ((js.solve_tsp, 0), ValueError, "size is 0"),
        ((js.solve_qap, 2.5), ValueError, "size is 2.5"),
        ((js.solve_tsp, np.zeros((3, 4))), ValueError, "distances has shape (3, 4)"),
        ((js.solve_tsp,), TypeError, "solve_tsp() missing"),
    ],
)
def test_wrong_calls(arguments, error, text, compiled):
    """Are refused in one line, before anything is compiled."""
    with refuses(error, text):
        js.warm_up(*arguments)
    assert not compiled


@pytest.mark.parametrize(
    "instance",
    [js.datasets.grid_tsp(4, 5, spacing=10), js.tsp_from_coords(*cities(5)), [[0, 0], [3, 4]]],
)
def test_instances_are_no_sizes(instance):
    """They get to the solver as they are."""
    with refuses(ValueError, "devices is 0"):
        js.warm_up(js.solve_tsp, instance, devices=0)


def test_sizes_that_are_traced():
    with refuses(RuntimeError, "warm_up"):
        jax.jit(lambda n: js.warm_up(js.solve_tsp, n))(5)
