"""See `experiments.first_call`."""

import sys
from collections.abc import Sequence

from experiments import common, first_call, flag_types
from experiments.first_call import cases
from experiments.first_call.runs import STATES, execute
from experiments.first_call.tables import report

_DEFAULT = "eil51-xy,nug12,queens-100"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the script and returns its exit status."""
    flags = common.parser("first_call", first_call.__doc__, "first_call")
    names = f"such as pcb442-matrix,tai30a,queens-1000; {', '.join(cases.NAMES)} or all"
    add, states = flags.add_argument, flag_types.some_of(*STATES)
    add("--cases", type=flag_types.words, default=_DEFAULT, help=f"{names} (default: %(default)s)")
    add("--states", type=states, default=list(STATES), help=",".join(STATES))
    add("--seconds", type=flag_types.limit, default=1.0, help="limit of each call")
    add("--seeds", type=flag_types.positive, default=1, help="how many, from 0 on")
    common.add_data_argument(flags)
    return common.run_script(flags, arguments, lambda args: args, report, execute)


if __name__ == "__main__":
    sys.exit(main())
