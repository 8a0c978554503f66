"""The processes that are measured, and their records."""

import itertools
import math
import pathlib
import tempfile
from collections.abc import Sequence
from typing import Any, NamedTuple

from experiments import common
from experiments.common import Job, Runs, make_missing
from experiments.first_call.cases import Case
from experiments.first_call.processes import Call, Request, answer
from experiments.peers.levels import gap

OURS = "jaxopt_search"
STATES = ("cold", "cached", "second_size", "second_call")

Records = list[dict[str, Any]]


class Plan(NamedTuple):
    """What is to be run.

    Attributes:
      states: some of `STATES`.
      seconds: the limit of each call.
      env: versions and devices that our own processes have.
    """

    cases: Sequence[Case]
    states: Sequence[str]
    seconds: float
    seeds: range
    env: dict[str, str]


def execute(plan: Plan, runs: Runs) -> Records:
    """Makes the runs of a plan that are not in the file yet; returns the records of all."""
    with tempfile.TemporaryDirectory() as folder:
        return make_missing(jobs(plan, Caches(pathlib.Path(folder), plan.seconds)), runs)


class Caches:
    """A cache for each case, filled by a process of its own before it is first asked for."""

    def __init__(self, folder: pathlib.Path, seconds: float):
        self._folder, self._seconds = folder, seconds

    def filled(self, case: Case) -> pathlib.Path:
        """Returns the folder of a case."""
        cache = self._folder / case.name
        if not cache.exists():
            cache.mkdir(mode=0o700)
            answer(Request(case.kind, calls(case, "cached", 0), self._seconds), cache)
        return cache


def jobs(plan: Plan, caches: Caches) -> list[Job]:
    """Returns the runs of a plan, those of the first seed first."""
    every = itertools.product(plan.seeds, plan.cases, plan.states)
    return [_job(plan, case, state, seed, caches) for seed, case, state in every]


def calls(case: Case, state: str, seed: int) -> list[Call]:
    """Returns the calls that a process makes in this state; the last is measured."""
    last = Call(case.arrays, seed)
    if state == "second_size":
        return [Call(case.larger, seed), last]
    if state == "second_call":
        return [Call(case.arrays, seed + 1), last]
    return [last]


def _job(plan: Plan, case: Case, state: str, seed: int, caches: Caches) -> Job:
    settings = _settings(plan, case, state)

    def make() -> dict[str, Any]:
        cache = caches.filled(case) if state == "cached" else None
        request = Request(case.kind, calls(case, state, seed), plan.seconds)
        return record(case, settings, seed, answer(request, cache))

    return Job(settings, case.instance.name, seed, f"{case.name} {state}", make)


def _settings(plan: Plan, case: Case, state: str) -> dict[str, Any]:
    """Returns what tells a run from others of the same instance and seed."""
    known = {"case": case.name, "kind": case.kind, "solver": OURS, "version": plan.env[OURS]}
    return known | {"state": state, "seconds": plan.seconds, "machine": plan.env["devices"]}


def record(
    case: Case, settings: dict[str, Any], seed: int, answer: dict[str, Any]
) -> dict[str, Any]:
    """Returns the record of a run, with the exact cost of its solution and the gap."""
    cost, best_known = case.cost(answer["solution"]), case.instance.best_known
    above = math.inf if best_known is None else gap(cost, best_known)
    times = ("import", "device", "first_step", "compile", "call", "process")
    fun = answer.get("fun")
    return {
        "experiment": "first_call",
        "instance": case.instance.name,
        "n": case.instance.n,
        "seed": seed,
        "settings": settings,
        **{f"{name}_seconds": answer.get(f"{name}_seconds") for name in times},
        "overhead": answer["call_seconds"] - settings["seconds"],
        "nit": answer.get("nit"),
        "fun": cost if fun is None else fun,
        "cost": cost,
        "best_known": best_known,
        "gap": above if math.isfinite(above) else None,
        "implementation": answer["env"].get("implementation"),
        "env": answer["env"],
        "date": common.now(),
    }
