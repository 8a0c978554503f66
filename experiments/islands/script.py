"""The flags of the script, and what they do."""

import argparse
import sys
from collections.abc import Callable, Sequence

import jaxopt_search as js
from experiments import common, flag_types
from experiments.islands import studies, tables
from experiments.islands.figures import FIGURES
from experiments.islands.paper import INSTANCES, POPULATION
from experiments.islands.records import VARIANTS
from experiments.islands.runs import Setting, Task, execute

RATES = (0.1, 1.0)
"""Of mutation: the paper's, and the one with which ours takes fewer generations."""


TABLES: dict[int, Callable[..., str]] = {
    1: tables.table_1,
    2: tables.table_2,
    3: tables.table_3,
    4: studies.table_4,
    5: studies.table_5,
    6: studies.table_6,
    7: studies.table_7,
    8: studies.table_8,
}


def settings_of(args: argparse.Namespace) -> list[Setting]:
    """Returns the settings of a table."""
    setting = Setting(
        1,
        args.individuals,
        mutation=args.mutation,
        local_steps=args.local_steps,
        encoding=args.encoding,
        crossover=args.crossover,
        keep_best=args.keep_best,
        exchange=args.exchange,
    )
    if args.table == 1:
        with_restarts = (False,) if args.no_restarts else (False, True)
        return [setting._replace(restarts=restarts) for restarts in with_restarts]
    if args.table == 4:
        return [
            setting._replace(islands=islands, on=str(devices))
            for islands in args.islands
            for devices in args.devices
        ]
    if args.table == 8:
        return [setting._replace(restarts=False, mutation=rate) for rate in RATES]
    if args.table == 5:
        setting = setting._replace(islands=max(args.islands))
        return [setting._replace(**changes) for changes in VARIANTS.values()]
    if args.table != 3:
        return [setting._replace(islands=islands) for islands in args.islands]
    on = (args.only,) if args.only else ("all", "core")
    sizes = sorted({*args.sizes, *(() if args.only == "cores" else (POPULATION,))})
    settings = [setting._replace(population=size, on=each) for size in sizes for each in on]
    together = [setting._replace(islands=max(args.islands))] if "all" in on else []
    return together + settings


def plan_from_arguments(args: argparse.Namespace) -> list[Task]:
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
        Task(instance, setting, args.generations)
        for instance in instances
        for setting in settings_of(args)
    ]


def parser() -> argparse.ArgumentParser:
    """Returns the flags of this script."""
    flags = argparse.ArgumentParser(
        prog="experiments.islands", description="Islands of a genetic algorithm on the QAP."
    )
    flags.add_argument("--table", type=int, choices=tuple(TABLES), default=1)
    flags.add_argument("--figure", type=int, choices=tuple(FIGURES), default=6, help="for --plot")
    flags.add_argument("--instances", type=flag_types.words, help="names, or all of the paper's")
    flags.add_argument("--islands", type=flag_types.integers, default=[1, 30, 60])
    flags.add_argument(
        "--sizes", type=flag_types.integers, default=[64, 128, 256, 512, 1024, 2048], help="Table 3"
    )
    flags.add_argument(
        "--only",
        choices=("all", "core", "cores"),
        help="Table 3: only the runs on all devices, the short ones of the compiled loop on a core,"
        " or its complete runs on all cores",
    )
    flags.add_argument(
        "--no-restarts", action="store_true", help="Table 1: only the runs without restarts"
    )
    flags.add_argument("--devices", type=flag_types.integers, default=[1, 2], help="Table 4")
    flags.add_argument(
        "--runs", type=flag_types.positive, default=5, help="of each, seeds from 0 on"
    )
    _add_island_arguments(flags)
    flags.add_argument(
        "--generations", type=flag_types.positive, default=100_000, help="of the longest run"
    )
    flags.add_argument("--plot", metavar="FILE", help="where to draw a figure of these runs")
    common.add_data_argument(flags)
    common.add_record_arguments(flags, "qap_islands")
    return flags


def _add_island_arguments(flags: argparse.ArgumentParser) -> None:
    """Adds what an island is."""
    flags.add_argument("--mutation", type=float, default=1.0, help="rate (paper: 0.1)")
    flags.add_argument(
        "--individuals", type=flag_types.positive, default=POPULATION, help="of an island"
    )
    flags.add_argument("--crossover", choices=("pmx", "ox"), default="pmx")
    flags.add_argument("--exchange", choices=("none", "ring", "shuffle"), default="none")
    flags.add_argument(
        "--keep-best", action="store_true", help="islands that restart keep their best"
    )
    flags.add_argument(
        "--encoding",
        choices=("paper", "file"),
        default="paper",
        help="matrices as in the paper's equation 1, or the first one of the file as flow",
    )
    flags.add_argument(
        "--local-steps", type=int, default=0, help="of hill climbing from each child; 0 for none"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the script and returns its exit status."""
    flags = parser()
    args = flags.parse_args(arguments)
    records, status = common.measured_or_read(
        flags, args, plan_from_arguments, lambda plan, runs: execute(plan, range(args.runs), runs)
    )
    if status:
        return status
    try:
        print(TABLES[args.table](records, markdown=args.markdown))
        if args.plot:
            common.save_plot(args.plot, FIGURES[args.figure](records), (6.4, 4.8))
    except ValueError as error:
        flags.error(str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main())
