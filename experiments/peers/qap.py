"""Solvers of the quadratic assignment problem, for `__main__`: how each is called.

SciPy's `quadratic_assignment` comes with JAX. The compiled tabu search is ours and needs numba.
"""

import time
from collections.abc import Sequence
from importlib import metadata
from typing import Any

import numpy as np
from scipy import optimize

import jaxopt_search as js
from experiments import common, one_core
from experiments.multistart import compiled_qap, compiled_tabu
from experiments.peers.solver import Ours, Points, Solver
from jaxopt_search.datasets.instances import QAPInstance

_STEPS_BETWEEN_LOOKS = 2_000_000
"""Swaps that the compiled search prices before it looks at the clock."""


def instances(names: Sequence[str] | None, data: str | None) -> list[QAPInstance]:
    """Returns QAPLIB instances by name; without names, a generated one with a known optimum."""
    planted = js.datasets.planted_qap(5, 6, seed=0)
    if names is None:
        return [planted]
    return common.find_instances(names, data, planted.name, lambda: planted)


def cost(instance: QAPInstance, assignment: Sequence[int]) -> int:
    """Returns the exact cost of an assignment.

    Raises:
      ValueError: if it is not a permutation.
    """
    if sorted(assignment) != list(range(instance.n)):
        raise ValueError(f"the assignment is no permutation of 0 to {instance.n - 1}")
    return instance.cost(np.asarray(assignment))


class JaxoptSearch(Ours):
    """`js.solve_qap` with its defaults."""

    call = staticmethod(js.solve_qap)


class SciPy(Solver):
    """SciPy's `quadratic_assignment`, from random starts until the time is over."""

    runs_on = "1 process"
    method = "faq"

    def __init__(self):
        self.name = f"scipy-{self.method}"
        self.version = metadata.version("scipy")

    def prepare(self, instance: QAPInstance) -> tuple[np.ndarray, np.ndarray]:
        """Returns the matrices."""
        return instance.flow, instance.distance

    def solve(self, data: Any, seed: int, limit: float, target: int) -> tuple[Any, Points]:
        """Returns the best assignment of all starts, and the course to it."""
        began, generator = time.perf_counter(), np.random.default_rng(seed)
        best, points = None, []
        while best is None or (time.perf_counter() - began < limit and best[0] > target):
            found = self._once(*data, generator)
            if best is None or found.fun < best[0]:
                best = int(found.fun), found.col_ind
            points.append((time.perf_counter() - began, best[0]))
        return best[1], points

    def _once(self, flow: np.ndarray, distance: np.ndarray, generator: Any) -> Any:
        options = {"P0": "randomized", "rng": generator}
        return optimize.quadratic_assignment(flow, distance, method="faq", options=options)


class SciPyTwoOpt(SciPy):
    """The same by `2opt`."""

    method = "2opt"

    def _once(self, flow: np.ndarray, distance: np.ndarray, generator: Any) -> Any:
        options = {"rng": generator}
        return optimize.quadratic_assignment(flow, distance, method="2opt", options=options)


class SciPyBoth(SciPy):
    """The same by `faq`, improved by `2opt`."""

    method = "faq-2opt"

    def _once(self, flow: np.ndarray, distance: np.ndarray, generator: Any) -> Any:
        found = super()._once(flow, distance, generator)
        guess = np.stack([np.arange(len(flow)), found.col_ind], axis=1)
        options = {"partial_guess": guess, "rng": generator}
        return optimize.quadratic_assignment(flow, distance, method="2opt", options=options)


class CompiledTabu(Solver):
    """Taillard's robust tabu search, compiled by numba: one search from a random start."""

    name = "compiled tabu"

    def __init__(self):
        self._advance = one_core.compiled(compiled_tabu.build)
        self.version = f"numba {metadata.version('numba')}"

    def prepare(self, instance: QAPInstance) -> tuple[np.ndarray, np.ndarray]:
        """Returns matrices with which costs are twice as high; compiles."""
        data = compiled_qap.symmetric(instance.flow, instance.distance)
        self._advance(*data, compiled_tabu.start(*data, 0), 1, -1)
        return data

    def solve(self, data: Any, seed: int, limit: float, target: int) -> tuple[Any, Points]:
        """Returns the best assignment and the course to it."""
        began = time.perf_counter()
        search = compiled_tabu.start(*data, seed)
        num_swaps = len(search.best) * (len(search.best) - 1) // 2
        steps = max(1, _STEPS_BETWEEN_LOOKS // max(num_swaps, 1))
        points: Points = []
        while not points or (time.perf_counter() - began < limit and points[-1][1] > target):
            self._advance(*data, search, steps, 2 * target)
            points.append((time.perf_counter() - began, int(search.numbers[2]) // 2))
        return search.best, points


SOLVERS = {
    "jaxopt_search": JaxoptSearch,
    "scipy-faq": SciPy,
    "scipy-2opt": SciPyTwoOpt,
    "scipy-faq-2opt": SciPyBoth,
    "compiled tabu": CompiledTabu,
}
