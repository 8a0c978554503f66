"""The processes that are measured, and their records."""

import argparse
import itertools
import pathlib
import tempfile
from collections.abc import Sequence
from typing import Any

from experiments import common
from experiments.common import Job, Runs, make_missing
from experiments.first_call import cases
from experiments.first_call.cases import Case
from experiments.first_call.processes import Call, answer
from experiments.peers.levels import finite, gap

OURS = "jaxopt_search"
STATES = ("cold", "cached", "second_size", "second_call")

Records = list[dict[str, Any]]


def execute(args: argparse.Namespace, runs: Runs) -> Records:
    """Makes the runs asked for that are not in the file yet; returns the records of all.

    Raises:
      ValueError: if a case is unknown, or the data folder does not exist.
    """
    states = [state for state in STATES if state in args.states]
    every = itertools.product(range(args.seeds), cases.cases(args.cases, args.data), states)
    # A process of its own: a device that is started here would be missing in the others.
    env = answer("tsp", (), args.seconds)["env"]
    with tempfile.TemporaryDirectory() as folder:
        jobs = [_job(args.seconds, env, pathlib.Path(folder), *one) for one in every]
        return make_missing(jobs, runs)


def calls(case: Case, state: str, seed: int) -> list[Call]:
    """Returns the calls that a process makes in this state; the last is measured."""
    before = {"second_size": [(case.larger, seed)], "second_call": [(case.arrays, seed + 1)]}
    return [*before.get(state, []), (case.arrays, seed)]


def _job(
    seconds: float, env: dict[str, str], folder: pathlib.Path, seed: int, case: Case, state: str
) -> Job:
    known = {"case": case.name, "kind": case.kind, "solver": OURS, "version": env[OURS]}
    settings = known | {"state": state, "seconds": seconds, "machine": env["devices"]}

    def make(seeds: Sequence[int]) -> Records:
        cache = folder / case.name if state == "cached" else None
        if cache and not cache.exists():
            cache.mkdir(mode=0o700)
            answer(case.kind, calls(case, state, 0), seconds, cache)
        found = answer(case.kind, calls(case, state, seed), seconds, cache)
        return [record(case, settings, seed, found)]

    return Job(settings, case.instance.name, [seed], f"{case.name} {state}", make)


def record(
    case: Case, settings: dict[str, Any], seed: int, answer: dict[str, Any]
) -> dict[str, Any]:
    """Returns the record of a run, with the exact cost of its solution and the gap."""
    cost, best_known = case.cost(answer["solution"]), case.instance.best_known
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
        "gap": None if best_known is None else finite(gap(cost, best_known)),
        "implementation": answer["env"].get("implementation"),
        "env": answer["env"],
        "date": common.now(),
    }
