"""SciPy's `quadratic_assignment`, which comes with JAX."""

import time
from importlib import metadata
from typing import Any, Protocol

import numpy as np
from scipy import optimize

Points = list[tuple[float, int]]


class Instance(Protocol):
    """What is asked of an instance, such as a `QAPInstance`.

    Attributes:
      flow, distance: [n, n] int64.
    """

    flow: np.ndarray
    distance: np.ndarray


class SciPy:
    """SciPy's `quadratic_assignment`, from random starts until the time is over."""

    unit, first, compiles = "seconds", None, False
    runs_on = "1 process"
    method = "faq"

    def __init__(self):
        self.name = f"scipy-{self.method}"
        self.version = metadata.version("scipy")

    def prepare(self, instance: Instance) -> tuple[np.ndarray, np.ndarray]:
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
