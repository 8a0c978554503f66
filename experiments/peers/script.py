"""The flags of the script, and what they do."""

import argparse
import dataclasses
import math
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from experiments import common, flag_types
from experiments.common import Progress, Runs
from experiments.peers import qap, queens, tsp
from jaxopt_search.engine import device_split

PROBLEMS = {"nqueens": queens, "qap": qap, "tsp": tsp}
"""Modules with `SOLVERS` (a dict of `Solver` classes), `instances(names, data)` and
`cost(instance, solution)`; an instance has a `name`, `n` and `best_known`."""
LEVELS = (0.01, 0.001, 0.0)
GROWTH = 2.5
"""How much a limit in seconds grows from run to run; one in runs is doubled."""


class Solver(Protocol):
    """A solver, ours or a peer. Making one imports its package.

    Attributes:
      name, version: of the package.
      runs_on: what it computes on, such as `1 thread`.
      unit: of its limit, "seconds" or "runs".
      first: the first limit of a series; None for one run with the last limit.
      compiles: whether a first call compiles, and is measured apart.
      note: how it is called.
    """

    name: str
    version: str
    runs_on: str
    unit: str
    first: float | None
    compiles: bool
    note: str

    def prepare(self, instance: Any) -> Any:
        """Returns an instance in the form that the solver takes.

        Raises:
          ValueError: if it cannot take this instance.
        """
        ...

    def solve(self, data: Any, seed: int, limit: float, target: int) -> "Answer":
        """Runs the solver; it may end early at a cost of `target`."""
        ...

    def forget(self) -> None:
        """Drops what was compiled; not called unless `compiles`."""
        ...


Answer = tuple[Any, list[tuple[float, int]]]
"""A solution, and what is known of the course to it: (seconds since the call, best cost)."""


class Plan(NamedTuple):
    """What the user asked for."""

    problem: Any
    instances: list[Any]
    solvers: list[Solver]
    seconds: float
    seeds: range


def gap(cost: int, best_known: int) -> float:
    """Returns how far `cost` is above the best known, as a share of it.

    Example:
      >>> gap(101, 100), gap(0, 0), gap(3, 0)
      (0.01, 0.0, inf)
    """
    if best_known == 0:
        return 0.0 if cost == 0 else math.inf
    return (cost - best_known) / best_known


def improvements(trace: Sequence[tuple[float, int]]) -> list[tuple[float, int]]:
    """Returns the points of a course at which the best cost fell."""
    kept: list[tuple[float, int]] = []
    for seconds, cost in trace:
        if not kept or cost < kept[-1][1]:
            kept.append((seconds, cost))
    return kept


def time_to_level(trace: Sequence[tuple[float, int]], best_known: int, level: float) -> float:
    """Returns the first time at which the gap was at most `level`, infinity if it never was.

    Example:
      >>> time_to_level([(0.5, 120), (2.0, 101)], best_known=100, level=0.01)
      2.0
    """
    return min((s for s, cost in trace if gap(cost, best_known) <= level), default=math.inf)


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
            is_long = self.solver.unit == "runs" and records and self._too_long(records[-1])
            if is_long or (records and records[-1]["cost"] <= self.instance.best_known):
                break
            records.append(self._record("warm", seed, limit))
        return records

    def _too_long(self, last: dict[str, Any]) -> bool:
        """Returns whether twice as many runs would take more time than there is."""
        return 2 * last["seconds"] > self.plan.seconds

    def _record(self, call: str, seed: int, limit: float) -> dict[str, Any]:
        settings = self._settings(call, limit)
        if not self.runs.has(settings, self.instance.name, seed):
            self._get_ready(call, seed)
            self.runs.add(self._make(settings, seed))
        return next(
            record
            for record in self.runs.records
            if (record["settings"], record["instance"], record["seed"])
            == (settings, self.instance.name, seed)
        )

    def _settings(self, call: str, limit: float) -> dict[str, Any]:
        solver = self.solver
        return {
            "solver": solver.name,
            "version": solver.version,
            "runs_on": solver.runs_on,
            "call": call,
            "budget": limit,
            "unit": solver.unit,
        }

    def _get_ready(self, call: str, seed: int) -> None:
        """Sees to it that the next call compiles everything, or nothing."""
        if call == "first":
            self.solver.forget()
        elif self.solver.compiles and not self.is_warm:
            self.solver.solve(self.data, seed, self.plan.seconds, self.instance.best_known)
            self.is_warm = True

    def _make(self, settings: dict[str, Any], seed: int) -> dict[str, Any]:
        best_known = self.instance.best_known
        began = time.perf_counter()
        solution, trace = self.solver.solve(self.data, seed, settings["budget"], best_known)
        seconds = time.perf_counter() - began
        cost = self.plan.problem.cost(self.instance, solution)
        if any(claimed < cost for _, claimed in trace):
            raise RuntimeError(f"{self.solver.name} claims less than the {cost} of its solution")
        above = gap(cost, best_known)
        return {
            "experiment": "peers",
            "instance": self.instance.name,
            "n": self.instance.n,
            "seed": seed,
            "settings": settings,
            "cost": cost,
            "best_known": best_known,
            "gap": above if math.isfinite(above) else None,
            "seconds": seconds,
            "trace": improvements([*trace, (seconds, cost)]),
            **common.provenance(device_split.find_devices("all")),
        }


def execute(plan: Plan, runs: Runs, progress: Progress) -> list[dict[str, Any]]:
    """Makes the runs of a plan that are not in the file yet; returns the records of all."""
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
                progress.step(1, f"{instance.name} {solver.name}")
    return records


def row(records: Sequence[dict[str, Any]], levels: Sequence[float]) -> list[str]:
    """Returns the line of a solver on an instance, from its records of all seeds."""
    one, best_known = records[0], records[0]["best_known"]
    settings, compiling, seeds = one["settings"], None, {}
    for record in records:
        if record["settings"]["call"] == "first":
            compiling = record["seconds"]
        else:
            seeds.setdefault(record["seed"], []).append(record)
    times = [
        [min(time_to_level(r["trace"], best_known, level) for r in runs) for runs in seeds.values()]
        for level in levels
    ]
    ends = [min(r["cost"] for r in runs) for runs in seeds.values()]
    gaps = statistics.median(gap(end, best_known) for end in ends)
    return [
        one["instance"],
        f"{settings['solver']} {settings['version']}".removesuffix(" not installed"),
        settings["runs_on"],
        *map(median_time, times),
        f"{gaps:.2%}" if best_known else f"{statistics.median(ends):g}",
        common.number(compiling, 1),
    ]


def median_time(times: Sequence[float]) -> str:
    """Returns the median of times, a dash for infinity, and how many are finite unless all are.

    Example:
      >>> median_time([0.5, 0.25, 1.0]), median_time([0.5, 0.25, math.inf])
      ('0.500', '0.500 (2/3)')
    """
    num_finite = sum(map(math.isfinite, times))
    median = statistics.median(times)
    text = f"{median:.3f}" if math.isfinite(median) else "-"
    return text if num_finite in (0, len(times)) else f"{text} ({num_finite}/{len(times)})"


def table(records: Sequence[dict[str, Any]], *, markdown: bool) -> str:
    """Returns a line for each solver on each instance, in the order in which the records came."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for record in records:
        groups.setdefault((record["instance"], record["settings"]["solver"]), []).append(record)
    levels = LEVELS if any(record["best_known"] for record in records) else LEVELS[-1:]
    header = (
        "instance",
        "solver",
        "runs on",
        *(f"s to {100 * level:g}%" if level else "s to best known" for level in levels),
        "gap" if levels == LEVELS else "cost",
        "first call +s",
    )
    lines = [row(group, levels) for group in groups.values()]
    return common.table(header, lines, markdown=markdown)


def report(plan: Plan, records: Sequence[dict[str, Any]], *, markdown: bool) -> str:
    """Returns the table of the records and what has to be known to read it."""
    lines = [
        table(records, markdown=markdown),
        "",
        f"wall-clock seconds, median over seeds or repetitions ({len(plan.seeds)}); each takes"
        f" the shortest of runs with growing limits up to {plan.seconds:g} s; (1/3): one of three"
        " got there; -: the median did not; gap: of the best, median, or its cost where 0 is"
        " known; first call: compiles",
        *(f"{solver.name}: {solver.note}" for solver in plan.solvers),
    ]
    return "\n".join(lines)


def find_solvers(problem: Any, names: Sequence[str]) -> list[Solver]:
    """Returns the solvers that can be imported, and says which cannot.

    Raises:
      ValueError: if the problem has no solver of that name.
    """
    found = []
    for name in names:
        if name not in problem.SOLVERS:
            raise ValueError(
                f"solver {name!r} is unknown, expected some of {list(problem.SOLVERS)}"
            )
        try:
            found.append(problem.SOLVERS[name]())
        except ImportError as error:
            print(f"{name} is left out: not installed ({error}); the extra `peers` has it")
    return found


def plan_from_arguments(args: argparse.Namespace) -> Plan:
    """Returns what to do."""
    problem = PROBLEMS[args.problem]
    instances = problem.instances(args.instances, args.data)
    for instance in instances:
        if instance.best_known is None:
            print(f"{instance.name} is left out: no best known cost is on record")
    return Plan(
        problem=problem,
        instances=[instance for instance in instances if instance.best_known is not None],
        solvers=find_solvers(problem, args.solvers or list(problem.SOLVERS)),
        seconds=args.seconds,
        seeds=range(args.seeds),
    )


def parser() -> argparse.ArgumentParser:
    """Returns the flags of this script."""
    flags = argparse.ArgumentParser(
        prog="experiments.peers",
        description="Time to a good solution, ours beside public solvers on the same machine.",
    )
    flags.add_argument("--problem", choices=tuple(PROBLEMS), default="tsp")
    flags.add_argument("--instances", type=flag_types.words, help="names (default: generated ones)")
    flags.add_argument("--solvers", type=flag_types.words, help="names (default: all)")
    flags.add_argument("--seconds", type=flag_types.limit, default=3.0, help="longest run")
    flags.add_argument("--seeds", type=flag_types.positive, default=2, help="how many, from 0 on")
    common.add_out_argument(flags, "peers")
    flags.add_argument("--markdown", action="store_true", help="a table for a web page")
    common.add_data_argument(flags)
    return flags


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the script and returns its exit status."""
    flags = parser()
    args = flags.parse_args(arguments)
    plan = common.plan_from(flags, args, plan_from_arguments)
    total = len(plan.instances) * len(plan.solvers) * len(plan.seeds)
    if not total:
        print("nothing to measure")
        return 1
    records: list[dict[str, Any]] = []
    status = common.until_interrupted(
        lambda: records.extend(execute(plan, Runs(args.out), Progress(total))), args.out
    )
    if not status:
        print(report(plan, records, markdown=args.markdown))
    return status


if __name__ == "__main__":
    sys.exit(main())
