"""Calls in threads, on devices of their own, that end together."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax

import jaxopt_search as js
from experiments import common
from experiments.jobs import Job
from jaxopt_search.datasets.instances import QAPInstance, TSPInstance

Devices = tuple[jax.Device, ...]


class Call(NamedTuple):
    """What one thread has done.

    Attributes:
      moves_per_second: priced.
      met_at: seconds from the common start until the target was met; None if it was not.
    """

    moves_per_second: float
    met_at: float | None


def groups() -> dict[str, Devices]:
    """Returns the devices of each thread by name: GPUs and cores, or else two halves of the cores.

    Raises:
      ValueError: if there is but one device.
    """
    found, cores = tuple(jax.devices()), tuple(jax.devices("cpu"))
    if found[0].platform != "cpu":
        cores = cores[: max(len(cores) - 1, 1)]
        return {f"{len(one)} x {one[0].device_kind}": one for one in (found, cores)}
    half = len(cores) // 2
    if not half:
        raise ValueError("there is one device, expected a GPU or two CPU devices")
    return {f"{half} x cpu": cores[:half], f"{len(cores) - half} other x cpu": cores[half:]}


def race(
    instance: QAPInstance | TSPInstance,
    teams: Sequence[Devices],
    seed: int,
    seconds: float,
    target: float | None,
) -> list[Call]:
    """Returns what each thread has done when one has met the target, or the time was over.

    Args:
      teams: the devices of each thread.
      seconds: the limit.
      target: None for none.
    """
    solve = js.solve_qap if isinstance(instance, QAPInstance) else js.solve_tsp
    start, is_over = threading.Barrier(len(teams)), threading.Event()

    def call(number: int, devices: Devices) -> Call:
        met: list[float] = []
        start.wait()
        began = time.perf_counter()

        def watch(report: js.Report) -> bool:
            if target is not None and report.fun <= target and not met:
                met.append(time.perf_counter() - began)
                is_over.set()
            return is_over.is_set()

        key = len(teams) * seed + number  # streams of their own
        options = {"target": target, "max_seconds": seconds, "callback": watch}
        result = solve(instance, key=key, devices=devices, **options)
        searched = result.elapsed - result.compile_seconds
        return Call(result.nfev / max(searched, 1e-9), met[0] if met else None)

    with ThreadPoolExecutor(len(teams)) as pool:
        try:
            calls = [pool.submit(call, number, team) for number, team in enumerate(teams)]
            return [one.result() for one in calls]
        finally:
            is_over.set()  # Ctrl-C comes to this thread


def jobs(
    instances: Sequence[QAPInstance | TSPInstance], seconds: float, num_runs: int, gap: float
) -> list[Job]:
    """Returns the runs of each group of devices alone and of all: their speed, then to the target.

    Args:
      gap: how far the target is above the best known cost, relative to it.

    Raises:
      ValueError: if an instance has no best known cost.
    """
    found = groups()
    settings = [*({name: one} for name, one in found.items()), found]
    made = []
    for instance in instances:
        if instance.best_known is None:
            raise ValueError(f"{instance.name} has no best known cost")
        goal = instance.best_known * (1 + gap)
        for teams in settings:
            names = " + ".join(teams)
            for seed, target in [(0, None), *((seed, goal) for seed in range(num_runs))]:
                about = {"on": names, "seconds": seconds, "target": target}
                make = _maker(instance, teams, seed, about)
                made.append(Job(about, instance.name, seed, f"{instance.name} on {names}", make))
    return made


_compiled: set[Any] = set()


def _maker(
    instance: QAPInstance | TSPInstance, teams: dict[str, Devices], seed: int, about: dict[str, Any]
) -> Callable[[], dict[str, Any]]:
    def make() -> dict[str, Any]:
        for team in teams.values():
            if (instance.name, team) not in _compiled:
                race(instance, [team], seed, 0.1, None)
                _compiled.add((instance.name, team))
        calls = race(instance, list(teams.values()), seed, about["seconds"], about["target"])
        met = [call.met_at for call in calls]
        times = [one for one in met if one is not None]
        return {
            "experiment": "together",
            "instance": instance.name,
            "seed": seed,
            "settings": about,
            "seconds": min(times, default=None),
            "met": dict(zip(teams, met, strict=True)),
            "moves_per_second": [call.moves_per_second for call in calls],
            **common.provenance(next(iter(teams.values()))),
        }

    return make
