"""The flags of the script, and what they do."""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from experiments import common, flag_types
from experiments.common import Progress, Runs
from experiments.peers import qap, queens, tsp
from experiments.peers.runs import Plan, Solver, execute
from experiments.peers.tables import table

PROBLEMS = {"nqueens": queens, "qap": qap, "tsp": tsp}
"""Modules with `SOLVERS` (a dict of `Solver` classes), `instances(names, data)` and
`cost(instance, solution)`; an instance has a `name`, `n` and `best_known`."""


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
        description="Time to a good solution, compared with public solvers on the same machine.",
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
