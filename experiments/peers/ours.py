"""Our own one-liners as solvers for `__main__`."""

import time
from collections.abc import Callable
from typing import Any

import jax

import jaxopt_search as js
from experiments import common
from jaxopt_search.engine.devices import Devices, find_devices


class Ours:
    """A function such as `js.solve_tsp` with its defaults, in `call`."""

    name, unit, compiles = "jaxopt_search", "seconds", True
    first = 0.05
    devices: Devices = "all"
    call: Callable[..., js.Result]

    def __init__(self):
        devices = find_devices(self.devices)
        self.version = common.version()
        self.runs_on = f"{len(devices)} x {devices[0].device_kind}"

    def prepare(self, instance: Any) -> Any:
        """Returns the instance as it is."""
        return instance

    def solve(
        self, data: Any, seed: int, limit: float, target: int
    ) -> tuple[Any, list[tuple[float, int]]]:
        """Returns a solution and the course to it.

        The clock of the history starts with the search: the preparations of the call, and what it
        compiles, are added.
        """
        began = time.perf_counter()
        result = self.call(data, key=seed, max_seconds=limit, target=target, devices=self.devices)
        before = time.perf_counter() - began - result.elapsed + result.compile_seconds
        common.unless_interrupted(result)
        return result.x, [(before + record.seconds, record.best) for record in result.history]

    def forget(self) -> None:
        """Makes the next call compile."""
        jax.clear_caches()
