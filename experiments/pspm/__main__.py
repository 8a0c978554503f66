"""See `experiments.pspm`."""

import argparse
import itertools
import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import jax

import jaxopt_search as js
from experiments import common, flag_types, one_core, pspm
from experiments.common import Job, Runs
from experiments.pspm import figures, measures
from experiments.pspm import runs as pspm_runs
from experiments.pspm import tables as pspm_tables
from experiments.pspm.runs import COLD, OF_THE_PAPER, SCHEMES, Batch, Cooling, Limit, Scheme
from jaxopt_search.datasets.instances import TSPInstance
from jaxopt_search.engine.devices import find_devices

MOVES_PER_DEVICE = 500
"""Fewer moves per step than this on a device cost more to split up than they save."""
MOVES = (4, 8, 12, 24, 32, 48)
"""Table 4: the values of Pm and TPB."""


STUDIES = ("core", "exchange", "descent")
PERIODS = (1, 10, 100, 1000, None)
"""Of `--study exchange`: temperatures between broadcasts; None for none."""
MAX_COOLINGS = 5
"""Of Table 3: searches that cool down in vain before a run gives up."""


class Plan(NamedTuple):
    """What is to be run.

    Attributes:
      table: 2, 3 or 4; or one of `STUDIES`.
      batch: runs side by side; None for all, but one of PSPM.
    """

    table: int | str
    instances: list[TSPInstance]
    schemes: list[Scheme]
    cooling: Cooling
    num_runs: int
    batch: int | None
    devices: int | str | None


def execute(plan: Plan, runs: Runs) -> measures.Records:
    """Makes the runs of a plan that are not in the file yet; returns the records of all."""
    total = len(plan.instances) * len(stages(plan)) * plan.num_runs
    return common.make_missing(_jobs(plan, runs), runs, total)


def _jobs(plan: Plan, runs: Runs) -> Iterator[Job]:
    for instance, (kind, scheme, cooling) in itertools.product(plan.instances, stages(plan)):
        limit = _limit(plan, runs, instance, kind)
        if limit is None:
            print(f"{instance.name}: PSPM never reached the threshold, so no {kind} runs")
            continue
        for seeds in _batches(plan, scheme):
            devices = _devices(plan, scheme, len(seeds))
            batch = Batch(instance, scheme, cooling, kind, limit, seeds, devices)
            make = lambda missing, batch=batch: pspm_runs.make(batch)  # noqa: E731, all of them
            text = f"{instance.name} {scheme.name} x{scheme.moves} {kind}"
            yield Job(batch.settings(), instance.name, seeds, text, make)


def stages(plan: Plan) -> list[tuple[str, Scheme, Cooling]]:
    """Returns the kinds of runs, each to be made on every instance, in the order of their need."""
    cooling, wide = plan.cooling, SCHEMES["pspm"]
    if plan.table == "core":
        return [("quality", SCHEMES[s], cooling) for s in ("pspm", "core sspm", "core single")]
    if plan.table == "exchange":
        never = ("quality", wide._replace(exchanges=False), cooling)
        return [
            ("quality", wide, cooling._replace(exchange_every=every)) if every else never
            for every in PERIODS
        ]
    if plan.table == "descent":
        cold = COLD._replace(sweeps=cooling.sweeps, alpha=cooling.alpha)
        names = ("single", "core strict") if one_core.has_numba() else ("single",)
        return [("quality", SCHEMES[name], cold) for name in names]
    if plan.table == 4:
        two = [scheme for scheme in plan.schemes if scheme.name != "pssm"]
        return [("quality", scheme._replace(moves=m), cooling) for scheme in two for m in MOVES]
    if plan.table == 2:
        return [("quality", scheme, cooling) for scheme in plan.schemes]
    later = [(kind, s, cooling) for kind in ("throughput", "convergence") for s in plan.schemes]
    return [("quality", SCHEMES["sspm"], cooling), *later]


def _batches(plan: Plan, scheme: Scheme) -> list[tuple[int, ...]]:
    size = plan.batch or (1 if scheme.name == "pspm" else plan.num_runs)
    seeds = tuple(range(plan.num_runs))
    return [seeds[i : i + size] for i in range(0, plan.num_runs, size)]


def _devices(plan: Plan, scheme: Scheme, batch: int) -> tuple[jax.Device, ...]:
    if scheme.name.startswith("core"):
        return tuple(jax.devices("cpu")[:1])
    if plan.devices is not None:
        return find_devices(plan.devices)
    found = find_devices("all")
    return found[: max(1, batch * scheme.searches * scheme.moves // MOVES_PER_DEVICE)]


def _limit(plan: Plan, runs: Runs, instance: TSPInstance, kind: str) -> Limit | None:
    """Returns when runs of this kind end, which for Table 3 depends on earlier ones."""
    steps = plan.cooling.steps(instance.n)
    if kind == "quality":
        return Limit(max_steps=steps)
    earlier = [
        record
        for record in runs.records
        if record["instance"] == instance.name
        and record["settings"]["cooling"] == plan.cooling._asdict()
        and record["seed"] < plan.num_runs
    ]
    sspm = measures.select(earlier, "quality", "sspm", SCHEMES["sspm"].moves)
    threshold = min(record["cost"] for record in sspm)
    if kind == "throughput":
        return Limit(max_steps=MAX_COOLINGS * steps, threshold=threshold)
    pspm = measures.select(earlier, "throughput", "pspm", SCHEMES["pspm"].moves)
    seconds = [record["seconds"] for record in pspm if record["reached"]]
    return Limit(max_seconds=sum(seconds) / len(seconds)) if seconds else None


def plan_from_arguments(args: argparse.Namespace) -> Plan:
    """Returns what to do; `--figure 4` needs the runs of Table 4."""
    table = _table(args) or 2
    if table == "core" and not one_core.has_numba():
        raise ValueError("--study core needs numba, from the extra `peers`")
    if table == 3 and not {"sspm", "pspm"} <= set(args.schemes):
        raise ValueError("--table 3 compares times to a threshold; it needs sspm and pspm")
    names = list(pspm_tables.INSTANCES) if args.instances == ["all"] else args.instances
    grid = lambda: js.datasets.grid_tsp(5, 10, spacing=100, seed=0)  # noqa: E731
    instances = common.find_instances(names, args.data, "rd100", grid)
    schemes = [SCHEMES[name] for name in OF_THE_PAPER if name in args.schemes]
    cooling = Cooling()._replace(sweeps=args.sweeps)
    return Plan(table, instances, schemes, cooling, args.runs, args.batch, args.devices)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the script and returns its exit status."""

    def show(records: measures.Records, args: argparse.Namespace) -> str:
        if args.plot:
            common.save_plot(args.plot, lambda ax: figures.draw(records, ax), (7, 5))
        what = _table(args) or (None if args.report else 2)
        return pspm_tables.report(records, tables=what and (what,), markdown=args.markdown)

    flags = common.parser("pspm", pspm.__doc__, "pspm")
    add, number = flags.add_argument, flag_types.positive
    schemes = flag_types.some_of(*OF_THE_PAPER)
    on = f"a number or all (default: one for every {MOVES_PER_DEVICE} moves per step)"
    add("--table", type=int, choices=(2, 3, 4), help="default: 2; of a report, all")
    add("--figure", type=int, choices=(4,), help="of Table 4's runs; with --plot")
    add("--study", choices=STUDIES, help="instead of a table: see above")
    add("--instances", type=flag_types.words, help="names, or all (default: rd100)")
    add("--schemes", type=schemes, default=list(OF_THE_PAPER), help="of pspm,sspm,pssm")
    add("--runs", type=number, default=1, help="independent (paper: 10)")
    add("--batch", type=number, help="runs side by side (default: 1 for pspm, else all)")
    add("--devices", type=flag_types.devices, help=on)
    add("--sweeps", type=number, default=10, help="of n steps a temperature (paper: 10)")
    add("--plot", metavar="FILE", help="where to draw Figure 4")
    common.add_data_argument(flags)
    return common.run_script(flags, arguments, plan_from_arguments, show, execute)


def _table(args: argparse.Namespace) -> int | str | None:
    return 4 if args.figure else args.study or args.table


if __name__ == "__main__":
    sys.exit(main())
