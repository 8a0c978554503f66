"""Runs of a solver on an instance, with growing limits."""

import dataclasses
from collections.abc import Iterator
from typing import Any, NamedTuple

from experiments import common
from experiments.common import Progress, Runs
from experiments.peers.levels import finite, gap, improvements
from experiments.peers.solver import Solver
from jaxopt_search.engine.devices import find_devices

GROWTH = 2.5
"""How much a limit in seconds grows from run to run; one in runs is doubled."""


class Plan(NamedTuple):
    """What is to be run."""

    problem: Any
    instances: list[Any]
    solvers: list[Solver]
    seconds: float
    seeds: range


def limits(solver: Solver, seconds: float) -> Iterator[float]:
    """Yields the limits of a series: seconds up to `seconds`, or numbers of runs without an end."""
    limit = solver.first
    if solver.unit == "runs":
        while True:
            yield limit
            limit *= 2
    while limit is not None and limit < seconds:
        yield limit
        limit *= GROWTH
    yield seconds


@dataclasses.dataclass
class Case:
    """A solver on an instance; makes the runs that are not in the file."""

    plan: Plan
    runs: Runs
    instance: Any
    solver: Solver
    data: Any
    is_warm: bool = False

    def first_call(self, seed: int) -> dict[str, Any]:
        """Returns the record of a call that compiles and, for want of time, does little else."""
        return self._record("first", seed, next(limits(self.solver, self.plan.seconds)))

    def series(self, seed: int) -> list[dict[str, Any]]:
        """Returns the records of runs with growing limits."""
        records: list[dict[str, Any]] = []
        for limit in limits(self.solver, self.plan.seconds):
            records.append(self._record("warm", seed, limit))
            # Twice as many runs would take more time than there is.
            is_over = self.solver.unit == "runs" and 2 * records[-1]["seconds"] > self.plan.seconds
            if is_over or records[-1]["cost"] <= self.instance.best_known:
                break
        return records

    def _record(self, call: str, seed: int, limit: float) -> dict[str, Any]:
        solver = self.solver
        settings = {
            "solver": solver.name,
            "version": solver.version,
            "runs_on": solver.runs_on,
            "call": call,
            "budget": limit,
            "unit": solver.unit,
        }
        if not self.runs.has(settings, self.instance.name, seed):
            self._get_ready(call, seed)
            self.runs.add(self._make(settings, seed))
        return self.runs.those([(settings, self.instance.name, seed)])[0]

    def _get_ready(self, call: str, seed: int) -> None:
        """Sees to it that the next call compiles everything, or nothing."""
        if call == "first":
            self.solver.forget()
        elif self.solver.compiles and not self.is_warm:
            self.solver.solve(self.data, seed, self.plan.seconds, self.instance.best_known)
            self.is_warm = True

    def _make(self, settings: dict[str, Any], seed: int) -> dict[str, Any]:
        best_known = self.instance.best_known
        own = self.data, seed, settings["budget"], best_known
        (solution, trace), seconds = common.timed(self.solver.solve, *own)
        cost = self.plan.problem.cost(self.instance, solution)
        if any(claimed < cost for _, claimed in trace):
            raise RuntimeError(f"{self.solver.name} claims less than the {cost} of its solution")
        return common.record(
            "peers",
            self.instance.name,
            seed,
            settings,
            find_devices("all"),
            n=self.instance.n,
            cost=cost,
            best_known=best_known,
            gap=finite(gap(cost, best_known)),
            seconds=seconds,
            trace=improvements([*trace, (seconds, cost)]),
        )


def execute(plan: Plan, runs: Runs) -> list[dict[str, Any]]:
    """Makes the runs of a plan that are not in the file yet; returns the records of all."""
    progress = Progress(len(plan.instances) * len(plan.solvers) * len(plan.seeds))
    records = []
    for instance in plan.instances:
        for solver in plan.solvers:
            try:
                case = Case(plan, runs, instance, solver, solver.prepare(instance))
            except ValueError as error:
                print(f"{solver.name} is left out on {instance.name}: {error}")
                progress.skip(len(plan.seeds))
                continue
            if solver.compiles:
                records.append(case.first_call(plan.seeds[0]))
            for seed in plan.seeds:
                records += case.series(seed)
                progress.step(f"{instance.name} {solver.name}")
    return records
