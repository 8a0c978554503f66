"""See `experiments.first_call`."""

import argparse
import sys
from collections.abc import Sequence

from experiments import common, flag_types
from experiments.first_call import cases
from experiments.first_call.processes import Request, answer
from experiments.first_call.runs import STATES, Plan, execute
from experiments.first_call.tables import report

_DEFAULT_CASES = "eil51-xy,nug12,queens-100"


def plan_from_arguments(args: argparse.Namespace) -> Plan:
    """Returns what to do.

    Raises:
      ValueError: if a case is unknown, or the data folder does not exist.
    """
    if unknown := [name for name in args.states if name not in STATES]:
        raise ValueError(f"state {unknown[0]!r} is unknown, expected some of {','.join(STATES)}")
    found = cases.cases(args.cases, args.data)
    return Plan(
        cases=found,
        states=[state for state in STATES if state in args.states],
        seconds=args.seconds,
        seeds=range(args.seeds),
        # A process of its own: a device that is started here would be missing in the others.
        env=answer(Request("tsp", (), args.seconds))["env"],
    )


def parser() -> argparse.ArgumentParser:
    """Returns the flags of this script."""
    flags = argparse.ArgumentParser(
        prog="experiments.first_call",
        description="What a first call takes, each in a new process.",
    )
    names = f"such as pcb442-matrix,tai30a,queens-1000; {', '.join(cases.NAMES)} or all"
    add, words = flags.add_argument, flag_types.words
    add("--cases", type=words, default=_DEFAULT_CASES, help=f"{names} (default: %(default)s)")
    add("--states", type=words, default=list(STATES), help=",".join(STATES))
    add("--seconds", type=flag_types.limit, default=1.0, help="limit of each call")
    add("--seeds", type=flag_types.positive, default=1, help="how many, from 0 on")
    common.add_record_arguments(flags, "first_call")
    common.add_data_argument(flags)
    return flags


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the script and returns its exit status."""
    return common.run_script(
        parser(),
        arguments,
        plan_from_arguments,
        lambda records, args: report(records, markdown=args.markdown),
        execute,
    )


if __name__ == "__main__":
    sys.exit(main())
