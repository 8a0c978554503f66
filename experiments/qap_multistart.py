"""Multi-start local searches on the QAP: Table 1 and Figure 2 of Luong, Melab and Talbi.

    python -m experiments.qap_multistart --table 1
    python -m experiments.qap_multistart --table 1 --instances all --searches 4096 --out t.jsonl
    python -m experiments.qap_multistart --figure 2 --instances tai50a --out figure2.jsonl
    python -m experiments.qap_multistart --targets tai25b,kra30a --runs 30 --out targets.jsonl

Many searches from random starts, side by side: hill climbing by best improvement to local optima
(hc), simulated annealing (sa) and tabu search (ts). The paper does not say how many iterations it
makes: here tabu search and annealing make n * n steps (or `--steps`). One of tabu search prices all
n (n - 1) / 2 swaps; one of annealing prices 32 at random and makes the first that passes. Seconds
do not compare with the paper's, therefore; speed-ups and moves per second do.

Table 1 has our single core beside all that the machine has: searches one after the other, the
fastest way on a core (`native`), on one CPU device, and `auto` on all devices or on the GPU; and,
where numba is installed, tabu search as a plain compiled loop on one core.
Figure 2 has the speed-up over that core by the number of searches, on one device, with a lane per
search (the paper's algorithmic level), a lane per move (its iteration level), both, and `auto`.
`--targets` makes runs of `solve_qap` to the best known cost, and shows the share of runs that have
reached it by a time (Hoos, Stuetzle, "Evaluating Las Vegas algorithms", 1998).

What compiles is called before. Each finished run is one line of the file, and the same command goes
on where it was interrupted.
"""

import argparse
import importlib.util
import math
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

import jaxopt_search as js
from experiments import common, compiled_tabu, flag_types
from experiments.common import Progress, Runs
from experiments.paper_multistart import INSTANCES
from experiments.qap_multistart_tables import (
    draw_figure_2,
    draw_targets,
    figure_2,
    table_1,
    targets,
)
from jaxopt_search import parallel
from jaxopt_search.datasets.instances import QAPInstance
from jaxopt_search.problems import scales

_SCHEDULE = (0.3, 0.03)  # the first and the last temperature, times the mean change by a swap
_MOVES_OF_ANNEALING = 32
_CHECK_EVERY = 10
_MOST_ON_A_CORE = 64  # searches by which a core is measured; they run one after the other


class Way(NamedTuple):
    """How searches are run: with which implementation, on which devices."""

    name: str
    implementation: Any
    devices: tuple[jax.Device, ...]


def searches(problem: js.QAP, steps: int) -> dict[str, Any]:
    """Returns the three algorithms for so many steps."""
    unit = scales.swap_change(problem)
    hottest, coldest = (share * unit for share in _SCHEDULE)
    cooling = js.geometric(hottest, (coldest / hottest) ** (1 / max(steps - 1, 1)), 1)
    table = js.SwapTable()
    return {
        "hc": js.hill_climbing(table),
        "sa": js.simulated_annealing(
            table, cooling, moves_per_search=_MOVES_OF_ANNEALING, choose="first"
        ),
        "ts": js.tabu_search(table),
    }


def ways(name: str) -> list[Way]:
    """Returns the ways to run searches of `table` or `figure`, the single core first."""
    cpu, found = jax.devices("cpu"), parallel.find_devices("all")
    core = Way("1 core", "native", tuple(cpu[:1]))
    if name == "table":
        compiled = [Way("1 core, numba", "numba", ())] if importlib.util.find_spec("numba") else []
        return [core, Way(f"{len(found)} x {found[0].device_kind}", "auto", found), *compiled]
    models = {"algorithmic": "algorithmic", "iteration": "iteration", "both": "xla", "auto": "auto"}
    return [core, *(Way(name, how, found[:1]) for name, how in models.items())]


def measure(
    instance: QAPInstance, algorithm: str, way: Way, num_searches: int, steps: int, seed: int
) -> dict[str, Any]:
    """Returns the record of one run, warm."""
    if way.implementation == "numba":
        return _measure_compiled(instance, way, steps, seed)
    problem = js.qap_from_instance(instance)
    search = searches(problem, steps)[algorithm]
    is_climbing = algorithm == "hc"

    def run(max_steps: int) -> tuple[js.Result, float]:
        began = time.perf_counter()
        result = js.solve(
            problem,
            search,
            seed,
            num_searches=num_searches,
            max_steps=max_steps,
            chunk_steps=max_steps or None,
            check_every=_CHECK_EVERY,
            implementation=way.implementation,
            devices=way.devices,
        )
        return result, time.perf_counter() - began

    run(1)
    result, seconds = run(100 * instance.n if is_climbing else steps)
    moves = int(np.asarray(result.state.info.accepted).sum())
    return {
        "experiment": "qap_multistart",
        "instance": instance.name,
        "seed": seed,
        "settings": settings(algorithm, way, num_searches, steps),
        "seconds": seconds,
        "steps": result.nit,
        "moves_priced": result.nfev,
        "moves_made": moves,
        "mean_gap": _gap(float(np.mean(result.costs)), instance),
        "best_gap": _gap(result.fun, instance),
        "status": result.status.name,
        **common.provenance(way.devices),
    }


def _measure_compiled(instance: QAPInstance, way: Way, steps: int, seed: int) -> dict[str, Any]:
    """Returns the record of one tabu search as a compiled loop."""
    data = compiled_tabu.symmetric(instance.flow, instance.distance)
    advance = compiled_tabu.compiled()
    advance(*data, compiled_tabu.start(*data, seed), 1, -1)
    search = compiled_tabu.start(*data, seed)
    began = time.perf_counter()
    advance(*data, search, steps, -1)
    seconds = time.perf_counter() - began
    gap = _gap(int(search.numbers[2]) // 2, instance)
    return {
        "experiment": "qap_multistart",
        "instance": instance.name,
        "seed": seed,
        "settings": settings("ts", way, 1, steps),
        "seconds": seconds,
        "steps": steps,
        "moves_priced": steps * instance.n * (instance.n - 1) // 2,
        "moves_made": steps,
        "mean_gap": gap,
        "best_gap": gap,
        "status": "MAX_STEPS",
        **common.provenance(parallel.find_devices(None)),
    }


def settings(algorithm: str, way: Way, num_searches: int, steps: int) -> dict[str, Any]:
    """Returns what tells a run from others on the same instance."""
    return {
        "algorithm": algorithm,
        "way": way.name,
        "implementation": way.implementation,
        "searches": num_searches,
        "steps": steps,
    }


def reach(instance: QAPInstance, gap: float, seconds: float, seed: int) -> dict[str, Any]:
    """Returns the record of a run of `solve_qap` until it is within `gap`, warm."""
    target = math.floor(instance.best_known * (1 + gap))
    result = js.solve_qap(instance, key=seed, max_seconds=seconds, target=target)
    return {
        "experiment": "qap_targets",
        "instance": instance.name,
        "seed": seed,
        "settings": {"gap": gap, "seconds": seconds},
        "reached": result.success,
        "seconds": result.elapsed,
        "best_gap": _gap(result.fun, instance),
        **common.provenance(parallel.find_devices("all")),
    }


def _gap(cost: float, instance: QAPInstance) -> float | None:
    best_known = instance.best_known
    return (cost - best_known) / best_known if best_known else None


class Task(NamedTuple):
    """What a run of this script does.

    Attributes:
      jobs: what is known of each run, and what makes its record.
      show: makes the table of records.
      draw: makes what draws them, or None.
    """

    jobs: list[tuple[dict[str, Any], str, int, Callable[[], dict[str, Any]]]]
    show: Callable[..., str]
    draw: Callable[[Any], Any] | None


def plan_from_arguments(args: argparse.Namespace) -> Task:
    """Returns what to do."""
    if args.targets:
        return _plan_targets(args)
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
                if way.implementation == "numba" and algorithm != "ts":
                    continue
                most = {"1 core": _MOST_ON_A_CORE, "1 core, numba": 1}.get(way.name)
                for number in numbers if most is None else [min(max(numbers), most)]:
                    jobs += _jobs(instance, algorithm, way, number, args)
    return Task(jobs, table_1, None) if is_table else Task(jobs, figure_2, draw_figure_2)


def _jobs(
    instance: QAPInstance, algorithm: str, way: Way, num_searches: int, args: argparse.Namespace
) -> list[Any]:
    steps = args.steps or instance.n**2
    known = settings(algorithm, way, num_searches, steps)

    def job(seed: int) -> Any:
        return (
            known,
            instance.name,
            seed,
            lambda: measure(instance, algorithm, way, num_searches, steps, seed),
        )

    return [job(seed) for seed in range(args.runs)]


def _plan_targets(args: argparse.Namespace) -> Task:
    known = {"gap": args.gap, "seconds": args.seconds}
    jobs = []
    for instance in common.find_instances(args.targets, args.data, "", _small):
        if instance.best_known is None:
            raise ValueError(f"{instance.name} has no best known cost")

        def job(seed: int, instance: QAPInstance = instance) -> Any:
            return known, instance.name, seed, lambda: reach(instance, seed=seed, **known)

        jobs += [job(seed) for seed in range(args.runs)]
    return Task(jobs, targets, draw_targets)


def _small() -> QAPInstance:
    return js.datasets.planted_qap(3, 4, seed=0)


def execute(task: Task, runs: Runs) -> list[dict[str, Any]]:
    """Makes the runs that are not in the file yet; returns the records of all."""
    progress, warm = Progress(len(task.jobs)), set()
    for known, instance, seed, make in task.jobs:
        if runs.has(known, instance, seed):
            progress.skip(1)
            continue
        if task.show is targets and instance not in warm:
            make()  # compiles
            warm.add(instance)
        runs.add(make())
        progress.step(1, f"{instance} {' '.join(map(str, list(known.values())[:4]))}")
    return runs.those([(known, instance, seed) for known, instance, seed, _ in task.jobs])


def parser() -> argparse.ArgumentParser:
    """Returns the flags of this script."""
    flags = argparse.ArgumentParser(
        prog="experiments.qap_multistart",
        description="Multi-start local searches on the QAP, and times to targets.",
    )
    flags.add_argument("--table", type=int, choices=(1,), help="the default")
    flags.add_argument("--figure", type=int, choices=(2,))
    flags.add_argument(
        "--targets", type=flag_types.words, help="instances to solve again and again"
    )
    flags.add_argument(
        "--instances", type=flag_types.words, help="names, or all: those of the paper"
    )
    flags.add_argument("--algorithms", type=flag_types.words, default=["hc", "sa", "ts"])
    flags.add_argument(
        "--searches", type=flag_types.integers, help="side by side; several for Figure 2"
    )
    flags.add_argument("--steps", type=int, help="of annealing and tabu search (default: n * n)")
    flags.add_argument(
        "--runs", type=flag_types.positive, default=1, help="executions of everything"
    )
    flags.add_argument(
        "--seconds", type=flag_types.limit, default=10.0, help="longest run to a target"
    )
    flags.add_argument("--gap", type=float, default=0.0, help="share above the best known cost")
    flags.add_argument("--plot", metavar="FILE", help="where to draw Figure 2, or times to targets")
    common.add_data_argument(flags)
    common.add_record_arguments(flags, "qap_multistart", "qap_targets")
    return flags


def report(paths: Sequence[str], *, markdown: bool) -> str:
    """Returns all tables of some files."""
    records = common.read_all(paths)
    own = [r for r in records if r["experiment"] == "qap_multistart"]
    times = [r for r in records if r["experiment"] == "qap_targets"]
    parts = [table_1(own, markdown=markdown)] if own else []
    return "\n\n".join(parts + ([targets(times, markdown=markdown)] if times else []))


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the script and returns its exit status."""
    flags = parser()
    args = flags.parse_args(arguments)
    if args.report:
        print(report(args.report, markdown=args.markdown))
        return 0
    task = common.plan_from(flags, args, plan_from_arguments)
    records: list[dict[str, Any]] = []
    status = common.until_interrupted(
        lambda: records.extend(execute(task, Runs(args.out))), args.out
    )
    if not status:
        print(task.show(records, markdown=args.markdown))
        if args.plot and task.draw:
            common.save_plot(args.plot, task.draw(records), (6.4, 4.8))
    return status


if __name__ == "__main__":
    sys.exit(main())
