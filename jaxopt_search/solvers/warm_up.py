"""Compiling ahead of the first call: `warm_up`."""

import time
from typing import Any

import numpy as np

from jaxopt_search.checks import check_count
from jaxopt_search.engine.devices import refuse_tracers
from jaxopt_search.solvers.qap import solve_qap
from jaxopt_search.solvers.queens import solve_nqueens
from jaxopt_search.solvers.tsp import solve_tsp


def warm_up(solver: Any, *instance: Any, **options: Any) -> float:
    """Compiles what later calls of a solver need, and returns the seconds that took.

    Later calls share these programs if their instances are of the same kind (coordinates or matrix,
    symmetric or not, integers or floats) and of the same class of sizes: up to 16, 24, 32, 48, 64,
    96, 128 cities and so on, but a large tour, which is searched in regions, only with those of as
    many cities; of a QAP on a CPU, up to each multiple of 8, or of a tenth of the size. Seeds,
    targets, and limits may be any. With `enable_compilation_cache` before, later processes need not
    compile either.

    Args:
      solver: `solve_tsp`, `solve_qap` or `solve_nqueens`.
      instance: an instance like those to come, as the solver takes it; or only a size, which stands
        for coordinates, or for symmetric matrices of integers.
      options: of the solver, as in later calls; limits and checkpoints aside.

    Raises:
      ValueError: if there is no such solver, and as the solver.
      TypeError: as the solver.

    Example:
      >>> import jaxopt_search as js
      >>> seconds = js.warm_up(js.solve_nqueens, 8)
      >>> js.solve_nqueens(7).solutions.shape
      (1, 7)
    """
    refuse_tracers(*instance, caller="warm_up")
    if not any(solver is known for known in _STAND_INS):
        raise ValueError(
            f"solver is {getattr(solver, '__name__', solver)!r}, expected solve_tsp, solve_qap or"
            " solve_nqueens"
        )
    began = time.perf_counter()
    if len(instance) == 1 and isinstance(instance[0], int | float | np.generic):
        instance = _STAND_INS[solver](check_count("size", instance[0]))
    solver(*instance, **options | {"max_steps": 0, "max_seconds": None} | _NO_FILES)
    return time.perf_counter() - began


def _facilities(n: int) -> tuple[np.ndarray, ...]:
    upper = np.triu(np.random.default_rng(0).integers(1, 10, (2, n, n)), 1)
    return tuple(upper + upper.transpose(0, 2, 1))


_NO_FILES = {"checkpoint": None, "resume": None}
_STAND_INS = {
    solve_tsp: lambda n: (np.random.default_rng(0).random((n, 2)),),
    solve_qap: _facilities,
    solve_nqueens: lambda n: (n,),
}
