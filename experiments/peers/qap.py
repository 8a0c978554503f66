"""Solvers of the quadratic assignment problem, for `__main__`: how each is called.

SciPy's `quadratic_assignment` (see `experiments.packages.qap`) comes with JAX. The compiled tabu
search is ours and needs numba.
"""

import time
from collections.abc import Sequence
from importlib import metadata
from typing import Any

import numpy as np

import jaxopt_search as js
from experiments import common, one_core
from experiments.multistart import compiled_tabu
from experiments.packages.qap import SciPy, SciPyBoth, SciPyTwoOpt
from experiments.peers.ours import Ours
from jaxopt_search.datasets.instances import QAPInstance

Points = list[tuple[float, int]]

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


class CompiledTabu:
    """Taillard's robust tabu search, compiled by numba: one search from a random start."""

    name, unit, first, compiles = "compiled tabu", "seconds", None, False
    runs_on = "1 thread"

    def __init__(self):
        self._advance = one_core.compiled(compiled_tabu.build)
        self.version = f"numba {metadata.version('numba')}"

    def prepare(self, instance: QAPInstance) -> tuple[np.ndarray, np.ndarray]:
        """Returns matrices with which costs are twice as high; compiles."""
        data = compiled_tabu.symmetric(instance.flow, instance.distance)
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
