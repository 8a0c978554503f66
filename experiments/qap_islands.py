"""Islands of a genetic algorithm on the QAP: Tables I to III of Tsutsui and Fujimoto.

    python -m experiments.qap_islands --table 1 --instances tai25b --runs 5
    python -m experiments.qap_islands --table 2 --islands 1,30,60 --runs 30 --out islands.jsonl
    python -m experiments.qap_islands --table 3 --instances all --out one_thread.jsonl
    python -m experiments.qap_islands --report islands.jsonl --table 2 --figure 6 --plot fit.png

Each run goes on until one island has found an acceptable assignment, or to a limit. Seconds leave
out compilation. An island has 128 individuals, PMX, mutation by the chance 0.1, and starts anew
where 60% of it are equally good, as in the paper.

Table 1: one island on one CPU device, without and with starting anew.
Table 2: p islands on all devices; beside the mean time T its gain over one island, and M(p): the
time that a gamma distribution predicts, fitted to the runs of one island by least squares.
Table 3: as many islands as the most in `--islands` on all devices, beside one population on one
CPU device, of 128 (the paper's Model II), and of that size among `--sizes` which takes the shortest
mean time (Model I).
Figures 5 and 6, with `--plot`: the times of one island, and their distribution with its fit.
"""

import argparse
import math
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax

import jaxopt_search as js
from experiments import common
from experiments.common import Progress, Runs
from experiments.paper_islands import GAPS, INSTANCES, POPULATION
from experiments.qap_islands_tables import FIGURES, TABLES
from jaxopt_search import parallel
from jaxopt_search.datasets.instances import QAPInstance

RESTART = 0.6


class Setting(NamedTuple):
    """What a run is, beside its instance and seed."""

    islands: int
    population: int = POPULATION
    restarts: bool = True
    on: str = "all"


def settings_of(args: argparse.Namespace) -> list[Setting]:
    """Returns the settings of a table."""
    if args.table == 1:
        return [Setting(1, restarts=restarts, on="core") for restarts in (False, True)]
    if args.table == 2:
        return [Setting(islands) for islands in args.islands]
    sizes = sorted({*args.sizes, POPULATION})
    return [Setting(max(args.islands)), *(Setting(1, size, on="core") for size in sizes)]


def measure(instance: QAPInstance, setting: Setting, seconds: float, seed: int) -> dict[str, Any]:
    """Returns the record of a run of at most so many seconds."""
    devices = jax.devices("cpu")[:1] if setting.on == "core" else parallel.find_devices("all")
    best_known = instance.best_known or 0
    result = js.solve(
        js.qap_from_instance(instance),
        js.genetic(population_size=setting.population, alike=RESTART if setting.restarts else None),
        seed,
        num_searches=setting.islands,
        target=math.floor(best_known * (1 + GAPS.get(instance.name, 0.0))),
        max_seconds=seconds,
        devices=tuple(devices),
    )
    return {
        "experiment": "qap_islands",
        "instance": instance.name,
        "seed": seed,
        "settings": known(setting, seconds),
        "reached": result.success,
        "seconds": result.elapsed,
        "generations": result.nit,
        "first": result.first_hit._asdict() if result.first_hit else None,
        **common.provenance(devices),
    }


def known(setting: Setting, seconds: float) -> dict[str, Any]:
    """Returns what tells a run from others on the same instance."""
    return setting._asdict() | {"limit": seconds}


class Job(NamedTuple):
    """Runs of a setting on an instance."""

    instance: QAPInstance
    setting: Setting


def plan_from_arguments(args: argparse.Namespace) -> list[Job]:
    """Returns what to run.

    Raises:
      ValueError, FileNotFoundError: if instances cannot be had.
    """
    names = list(INSTANCES) if args.instances == ["all"] else args.instances
    instances = common.find_instances(
        names, args.data, "tai25b", lambda: js.datasets.planted_qap(3, 4, seed=0)
    )
    for instance in instances:
        if instance.best_known is None:
            raise ValueError(f"{instance.name} has no best known cost")
    return [Job(instance, setting) for instance in instances for setting in settings_of(args)]


def execute(jobs: Sequence[Job], seeds: range, seconds: float, runs: Runs) -> list[dict[str, Any]]:
    """Makes the runs that are not in the file yet; returns the records of all."""
    progress, wanted = Progress(len(jobs) * len(seeds)), []
    for instance, setting in jobs:
        is_warm = False
        for seed in seeds:
            wanted.append((known(setting, seconds), instance.name, seed))
            if runs.has(*wanted[-1]):
                progress.skip(1)
                continue
            if not is_warm:
                measure(instance, setting, 0.0, seed)  # compiles
                is_warm = True
            runs.add(measure(instance, setting, seconds, seed))
            progress.step(1, f"{instance.name}, {setting.islands} x {setting.population}")
    return runs.those(wanted)


def parser() -> argparse.ArgumentParser:
    """Returns the flags of this script."""
    flags = argparse.ArgumentParser(
        prog="experiments.qap_islands", description="Islands of a genetic algorithm on the QAP."
    )
    flags.add_argument("--table", type=int, choices=tuple(TABLES), default=1)
    flags.add_argument("--figure", type=int, choices=tuple(FIGURES), default=6, help="for --plot")
    flags.add_argument("--instances", type=common.words, help="names, or all: those of the paper")
    flags.add_argument("--islands", type=common.integers, default=[1, 30, 60])
    flags.add_argument(
        "--sizes", type=common.integers, default=[64, 128, 256, 512, 1024, 2048], help="Table 3"
    )
    flags.add_argument("--runs", type=common.positive, default=5, help="of each, seeds from 0 on")
    flags.add_argument("--seconds", type=common.limit, default=60.0, help="longest run")
    flags.add_argument("--plot", metavar="FILE", help="where to draw a figure of these runs")
    common.add_data_argument(flags)
    common.add_record_arguments(flags)
    return flags


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the script and returns its exit status."""
    flags = parser()
    args = flags.parse_args(arguments)
    records: list[dict[str, Any]] = []
    if args.report:
        records += common.read(args.report)
    else:
        jobs = common.plan_from(flags, args, plan_from_arguments)
        seeds, runs = range(args.runs), Runs(args.out)
        status = common.until_interrupted(
            lambda: records.extend(execute(jobs, seeds, args.seconds, runs)), args.out
        )
        if status:
            return status
    print(TABLES[args.table](records, markdown=args.markdown))
    if args.plot:
        common.save_plot(args.plot, FIGURES[args.figure](records), (6.4, 4.8))
    return 0


if __name__ == "__main__":
    sys.exit(main())
