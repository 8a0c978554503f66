"""What a solver is, and our own one-liners as solvers."""

from collections.abc import Callable
from typing import Any

import jax

import jaxopt_search as js
from experiments import common
from jaxopt_search.engine.devices import Devices, find_devices

Points = list[tuple[float, int]]
"""What is known of the course to a solution: (seconds since the call, best cost)."""


class Solver:
    """A solver, ours or a peer. Making one imports its package.

    Attributes:
      name, version: of the package.
      runs_on: what it computes on.
      unit: of its limit, "seconds" or "runs".
      first: the first limit of a series; None for one run with the last limit.
      compiles: whether a first call compiles, and is measured apart.
    """

    name: str
    version: str
    runs_on = "1 thread"
    unit = "seconds"
    first: float | None = None
    compiles = False

    def prepare(self, instance: Any) -> Any:
        """Returns an instance in the form that the solver takes.

        Raises:
          ValueError: if it cannot take this instance.
        """
        return instance

    def solve(self, data: Any, seed: int, limit: float, target: int) -> tuple[Any, Points]:
        """Returns a solution and the course to it; it may end early at a cost of `target`."""
        raise NotImplementedError

    def forget(self) -> None:
        """Makes the next call compile."""


class Ours(Solver):
    """A function such as `js.solve_tsp` with its defaults, in `call`."""

    name, first, compiles = "jaxopt_search", 0.05, True
    devices: Devices = "all"
    call: Callable[..., js.Result]

    def __init__(self):
        devices = find_devices(self.devices)
        self.version = common.version()
        self.runs_on = f"{len(devices)} x {devices[0].device_kind}"

    def solve(self, data: Any, seed: int, limit: float, target: int) -> tuple[Any, Points]:
        """Returns a solution and the course to it.

        The clock of the history starts with the search: the preparations of the call, and what it
        compiles, are added.
        """
        options = {"max_seconds": limit, "target": target, "devices": self.devices}
        result, seconds = common.timed(self.call, data, key=seed, **options)
        before = seconds - result.elapsed + result.compile_seconds
        common.unless_interrupted(result)
        return result.x, [(before + record.seconds, record.best) for record in result.history]

    def forget(self) -> None:
        jax.clear_caches()
