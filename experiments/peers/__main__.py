"""See `experiments.peers`."""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from experiments import common, flag_types, peers
from experiments.peers.levels import with_best_known
from experiments.peers.problems import PROBLEMS, find_solvers
from experiments.peers.runs import Plan, execute
from experiments.peers.tables import table


def report(records: Sequence[dict[str, Any]], args: argparse.Namespace) -> str:
    """Returns the table of records and what has to be known to read it."""
    return (
        f"{table(records, markdown=args.markdown)}\n\nwall-clock seconds, medians over seeds or"
        " repetitions; each takes the shortest of runs with growing limits; (1/3): one of three got"
        " there; -: the median did not; gap: of the best, median, or its cost where 0 is known;"
        " first call: compiles"
    )


def plan_from_arguments(args: argparse.Namespace) -> Plan:
    """Returns what to do."""
    problem = PROBLEMS[args.problem]
    return Plan(
        problem=problem,
        instances=with_best_known(problem.instances(args.instances, args.data)),
        solvers=find_solvers(problem, args.solvers or list(problem.SOLVERS)),
        seconds=args.seconds,
        seeds=range(args.seeds),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the script and returns its exit status."""
    flags = common.parser("peers", peers.__doc__, "peers")
    add = flags.add_argument
    add("--problem", choices=tuple(PROBLEMS), default="tsp")
    add("--instances", type=flag_types.words, help="names (default: generated ones)")
    add("--solvers", type=flag_types.words, help="names (default: all)")
    add("--seconds", type=flag_types.limit, default=3.0, help="longest run")
    add("--seeds", type=flag_types.positive, default=2, help="how many, from 0 on")
    common.add_data_argument(flags)
    return common.run_script(flags, arguments, plan_from_arguments, report, execute)


if __name__ == "__main__":
    sys.exit(main())
