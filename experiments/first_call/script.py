"""The flags of the script, and what they do."""

import argparse
import sys
from collections.abc import Sequence

from experiments import common, flag_types
from experiments.common import Runs
from experiments.first_call import cases
from experiments.first_call.processes import Request, answer
from experiments.first_call.runs import STATES, Plan, Records, execute
from experiments.first_call.tables import report
from experiments.peers.runs import Solver
from experiments.peers.script import PROBLEMS, find_solvers

_DEFAULT_CASES = ("eil51-xy", "nug12", "queens-100")
_PEERS = {"tsp": ("fast-tsp", "ortools"), "qap": ("scipy-faq", "scipy-2opt")}


def states(text: str) -> list[str]:
    """Returns the states of a list such as `cold,cached`."""
    names = flag_types.words(text)
    if unknown := [name for name in names if name not in STATES]:
        raise argparse.ArgumentTypeError(
            f"{unknown[0]!r} is unknown, expected some of {','.join(STATES)}"
        )
    return [state for state in STATES if state in names]


def plan_from_arguments(args: argparse.Namespace) -> Plan:
    """Returns what to do.

    Raises:
      ValueError: if a case is unknown, or the data folder does not exist.
    """
    found = cases.cases(args.cases, args.data)
    kinds = {case.kind for case in found} if args.peers else set()
    return Plan(
        cases=found,
        states=args.states,
        peers={kind: _peers(kind) for kind in _PEERS if kind in kinds},
        seconds=args.seconds,
        seeds=range(args.seeds),
        is_busy=args.busy,
        # A process of its own: a device that is started here would be missing in the others.
        env=answer(Request("tsp", (), args.seconds))["env"],
    )


def _peers(kind: str) -> list[Solver]:
    return find_solvers(PROBLEMS[kind], _PEERS[kind])


def parser() -> argparse.ArgumentParser:
    """Returns the flags of this script."""
    flags = argparse.ArgumentParser(
        prog="experiments.first_call",
        description="What a first call takes, each in a new process.",
    )
    kinds = ", ".join(cases.NAMES)
    flags.add_argument(
        "--cases",
        type=flag_types.words,
        default=list(_DEFAULT_CASES),
        help=f"such as pcb442-matrix,tai30a,queens-1000; {kinds} or all"
        f" (default: {','.join(_DEFAULT_CASES)})",
    )
    flags.add_argument("--states", type=states, default=list(STATES), help=",".join(STATES))
    flags.add_argument("--seconds", type=flag_types.limit, default=1.0, help="limit of each call")
    flags.add_argument("--seeds", type=flag_types.positive, default=1, help="how many, from 0 on")
    flags.add_argument("--peers", action="store_true", help="public solvers, too")
    flags.add_argument("--busy", action="store_true", help="keep all cores busy meanwhile")
    common.add_record_arguments(flags, "first_call")
    common.add_data_argument(flags)
    return flags


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the script and returns its exit status."""
    flags = parser()
    args = flags.parse_args(arguments)
    if args.report:
        print(report(common.read_all(args.report), markdown=args.markdown))
        return 0
    try:
        plan = plan_from_arguments(args)
    except (ValueError, ChildProcessError) as error:
        flags.error(str(error))
    runs, records = Runs(args.out), Records()
    status = common.until_interrupted(lambda: records.extend(execute(plan, runs)), args.out)
    if records:
        print(report(records, markdown=args.markdown))
    return status


if __name__ == "__main__":
    sys.exit(main())
