"""See `experiments.islands`."""

import argparse
import itertools
import sys
from collections.abc import Callable, Sequence
from functools import partial

import jaxopt_search as js
from experiments import common, flag_types, islands
from experiments.common import Job
from experiments.islands import studies, tables
from experiments.islands.figures import FIGURES
from experiments.islands.paper import FLOW, INSTANCES, POPULATION
from experiments.islands.records import VARIANTS, Records, completed
from experiments.islands.runs import Setting, Task, job

TABLES: dict[int | str, Callable[..., str]] = {
    1: tables.table_1,
    2: tables.table_2,
    3: tables.table_3,
    "devices": studies.by_devices,
    "variants": studies.by_variant,
    "distributions": studies.by_distribution,
    "encodings": studies.by_encoding,
    "rates": studies.by_rate,
}
"""The paper's tables by number, and studies by name."""
RATES = (0.1, 1.0)
"""Of mutation: the paper's, and the one with which ours takes fewer generations."""


def settings_of(args: argparse.Namespace) -> list[Setting]:
    """Returns the settings of a table or a study."""
    chosen = {"local_steps": args.local_steps, "encoding": args.encoding}
    setting = Setting(1, args.individuals, **chosen)
    match args.study or args.table:
        case 1:
            with_restarts = (False,) if args.no_restarts else (False, True)
            return [setting._replace(restarts=restarts) for restarts in with_restarts]
        case 3:
            on = (args.only,) if args.only else ("all", "core")
            sizes = sorted({*args.sizes, *(() if args.only == "cores" else (POPULATION,))})
            together = [setting._replace(islands=max(args.islands))] if "all" in on else []
            alone = [setting._replace(population=size, on=each) for size in sizes for each in on]
            return together + alone
        case "devices":
            pairs = itertools.product(args.islands, args.devices)
            return [setting._replace(islands=number, on=str(count)) for number, count in pairs]
        case "variants":
            setting = setting._replace(islands=max(args.islands))
            return [setting._replace(**changes) for changes in VARIANTS.values()]
        case "rates":
            return [setting._replace(restarts=False, mutation=rate) for rate in RATES]
    return [setting._replace(islands=number) for number in args.islands]


def jobs_from_arguments(args: argparse.Namespace) -> list[Job]:
    """Returns what to run.

    Raises:
      ValueError, FileNotFoundError: if instances cannot be had, or a setting is out of range.
    """
    names = list(INSTANCES) if args.instances == ["all"] else args.instances
    instances = common.find_instances(
        names, args.data, "tai25b", lambda: js.datasets.planted_qap(3, 4, seed=0)
    )
    for instance in instances:
        if instance.best_known is None:
            raise ValueError(f"{instance.name} has no best known cost")
    return [
        job(Task(instance, setting, args.generations), range(args.runs))
        for instance in instances
        for setting in settings_of(args)
        if args.study != "variants" or setting.encoding == "paper" or FLOW.get(instance.name) == 2
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the script and returns its exit status."""

    def show(records: Records, args: argparse.Namespace) -> str:
        records = completed(records)
        if args.plot:
            common.save_plot(args.plot, partial(FIGURES[args.figure], records))
        return TABLES[args.study or args.table](records, markdown=args.markdown)

    flags = common.parser("islands", islands.__doc__, "qap_islands")
    add, numbers, number = flags.add_argument, flag_types.integers, flag_types.positive
    add("--table", type=int, choices=(1, 2, 3), default=1)
    add("--study", choices=[name for name in TABLES if isinstance(name, str)], help="see above")
    add("--figure", type=int, choices=tuple(FIGURES), default=6, help="for --plot")
    add("--instances", type=flag_types.words, help="names, or all of the paper's")
    add("--islands", type=numbers, default=[1, 30, 60])
    add("--sizes", type=numbers, default=[64, 128, 256, 512, 1024, 2048], help="Table 3")
    add("--only", choices=("all", "core", "cores"), help="Table 3: only runs on these, see above")
    add("--no-restarts", action="store_true", help="Table 1: only the runs without restarts")
    add("--devices", type=numbers, default=[1, 2], help="--study devices")
    add("--runs", type=number, default=5, help="of each, seeds from 0 on")
    add("--generations", type=number, default=100_000, help="of the longest run")
    add("--plot", metavar="FILE", help="where to draw a figure of these runs")
    add("--individuals", type=number, default=POPULATION, help="of an island")
    add("--encoding", choices=("paper", "file"), default="paper", help="of matrices, see above")
    add("--local-steps", type=int, default=0, help="of hill climbing from each child")
    common.add_data_argument(flags)
    return common.run_script(flags, arguments, jobs_from_arguments, show)


if __name__ == "__main__":
    sys.exit(main())
