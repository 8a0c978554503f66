"""The processes that are measured, and their records."""

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
from experiments.peers.runs import Solver
from jaxopt_search.driver import environment

OURS = "jaxopt_search"
STATES = ("cold", "cached", "second_size", "second_call")

Records = list[dict[str, Any]]


class Plan(NamedTuple):
    """What is to be run.

    Attributes:
      states: some of `STATES`.
      peers: public solvers, by kind of problem.
      seconds: the limit of each call.
      env: versions and devices that our own processes have.
    """

    cases: Sequence[Case]
    states: Sequence[str]
    peers: dict[str, list[Solver]]
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
    found = []
    for seed in plan.seeds:
        for case in plan.cases:
            found += [_own(plan, case, state, seed, caches) for state in plan.states]
            found += [_of_peer(plan, case, solver, seed) for solver in _takers(plan, case, seed)]
    return found


def calls(case: Case, state: str, seed: int) -> list[Call]:
    """Returns the calls that a process makes in this state; the last is measured."""
    last = Call(case.arrays, seed)
    if state == "second_size":
        return [Call(case.larger, seed), last]
    if state == "second_call":
        return [Call(case.arrays, seed + 1), last]
    return [last]


def _takers(plan: Plan, case: Case, seed: int) -> list[Solver]:
    """Returns the peers that can take a case, and says once which cannot."""
    if case.kind == "tsp" and case.arrays[0] is case.instance.coordinates:
        return []
    found = []
    for solver in plan.peers.get(case.kind, []):
        try:
            solver.prepare(case.instance)
        except ValueError as error:
            if seed == plan.seeds[0]:
                print(f"{solver.name} is left out on {case.name}: {error}")
        else:
            found.append(solver)
    return found


def _own(plan: Plan, case: Case, state: str, seed: int, caches: Caches) -> Job:
    settings = _settings(plan, case, OURS, plan.env[OURS], state)

    def make() -> dict[str, Any]:
        cache = caches.filled(case) if state == "cached" else None
        request = Request(case.kind, calls(case, state, seed), plan.seconds)
        return record(case, settings, seed, answer(request, cache))

    return Job(settings, case.instance.name, seed, f"{case.name} {state}", make)


def _of_peer(plan: Plan, case: Case, solver: Solver, seed: int) -> Job:
    settings = _settings(plan, case, solver.name, solver.version, "cold")

    def make() -> dict[str, Any]:
        where = (type(solver).__module__, type(solver).__name__)
        request = Request(case.kind, calls(case, "cold", seed), plan.seconds, where)
        env = environment.of_host() | {"platform": "cpu", "devices": solver.runs_on}
        return record(case, settings, seed, {"env": env} | answer(request))

    return Job(settings, case.instance.name, seed, f"{case.name} {solver.name}", make)


def _settings(plan: Plan, case: Case, solver: str, version: str, state: str) -> dict[str, Any]:
    """Returns what tells a run from others of the same instance and seed."""
    return {
        "case": case.name,
        "kind": case.kind,
        "solver": solver,
        "version": version,
        "state": state,
        "seconds": plan.seconds,
        "machine": plan.env["devices"],
    }


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
