"""See `experiments.multistart`."""

import argparse
import functools
import sys
from collections.abc import Sequence
from typing import Any

import jaxopt_search as js
from experiments import common, flag_types, multistart
from experiments.common import Job
from experiments.multistart.paper import INSTANCES
from experiments.multistart.runs import Task, reach, ways
from experiments.multistart.tables import MODELS, draw_figure_2, figure_2, table_1, targets

_MOST_ON_A_CORE = 16  # searches by which a core is measured; they run one after the other


def jobs_from_arguments(args: argparse.Namespace) -> list[Job]:
    """Returns the runs to be made."""
    if args.targets:
        return _jobs_to_targets(args)
    names = list(INSTANCES) if args.instances == ["all"] else args.instances
    found = common.find_instances(
        names, args.data, "tai30a", lambda: js.datasets.uniform_qap(20, seed=0)
    )
    is_table = args.figure is None
    numbers = args.searches or ([64] if is_table else [1, 4, 16, 64])
    jobs = []
    for instance in found:
        for algorithm in args.algorithms if is_table else ["ts"]:
            for way in ways("table" if is_table else "figure"):
                if way.implementation not in (args.ways or [way.implementation]):
                    continue
                is_core = way.implementation in ("numba", "native")
                steps = instance.n**2 if is_core and not is_table else args.steps or instance.n**2
                on_a_core = [min(max(numbers), _MOST_ON_A_CORE)]
                for number in on_a_core if is_core else numbers:
                    task = Task(instance, algorithm, way, number, steps)
                    jobs.append(task.job(args.runs))
    return jobs


def _jobs_to_targets(args: argparse.Namespace) -> list[Job]:
    known = {"gap": args.gap, "seconds": args.seconds}
    jobs = []
    small = lambda: js.datasets.planted_qap(3, 4, seed=0)  # noqa: E731
    for instance in common.find_instances(args.targets, args.data, "", small):
        if instance.best_known is None:
            raise ValueError(f"{instance.name} has no best known cost")
        make = functools.partial(reach, instance, args.gap, args.seconds)
        jobs.append(Job(known, instance.name, range(args.runs), instance.name, make))
    return jobs


def show(records: list[dict[str, Any]], args: argparse.Namespace) -> str:
    """Returns the tables of what is in records, and draws what can be drawn."""
    own = [r for r in records if r["experiment"] == "qap_multistart"]
    times = [r for r in records if r["experiment"] == "qap_targets"]
    is_figure = any(record["settings"]["way"] in MODELS for record in own)
    tables = [(figure_2 if is_figure else table_1, own), (targets, times)]
    if args.plot and is_figure:
        common.save_plot(args.plot, functools.partial(draw_figure_2, own))
    return "\n\n".join(table(some, markdown=args.markdown) for table, some in tables if some)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the script and returns its exit status."""
    flags = common.parser("multistart", multistart.__doc__, "qap_multistart", "qap_targets")
    add, number = flags.add_argument, flag_types.positive
    names = ("numba", "native", *MODELS.values())
    ways = f"some of {','.join(names)} (default: all; numba is the core of all ratios)"
    steps = "of annealing and tabu search (default: n * n, as always on a core of Figure 2)"
    add("--table", type=int, choices=(1,), help="the default")
    add("--figure", type=int, choices=(2,))
    add("--targets", type=flag_types.words, help="instances to solve again and again")
    add("--instances", type=flag_types.words, help="names, or all of the paper's")
    add("--algorithms", type=flag_types.words, default=["hc", "sa", "ts"])
    add("--ways", type=flag_types.some_of(*names), help=ways)
    add("--searches", type=flag_types.integers, help="side by side; several for Figure 2")
    add("--steps", type=number, help=steps)
    add("--runs", type=number, default=1, help="executions of everything")
    add("--seconds", type=flag_types.limit, default=10.0, help="longest run to a target")
    add("--gap", type=float, default=0.0, help="share above the best known cost")
    add("--plot", metavar="FILE", help="where to draw Figure 2")
    common.add_data_argument(flags)
    return common.run_script(flags, arguments, jobs_from_arguments, show)


if __name__ == "__main__":
    sys.exit(main())
