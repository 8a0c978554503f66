"""The flags of the script, and what they do."""

import argparse
import functools
import math
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

import jaxopt_search as js
from experiments import common, flag_types, one_core
from experiments.common import Progress, Runs
from experiments.multistart import compiled_qap, compiled_tabu
from experiments.multistart.paper import INSTANCES
from experiments.multistart.tables import (
    CORE,
    MODELS,
    draw_figure_2,
    draw_targets,
    figure_2,
    table_1,
    targets,
)
from jaxopt_search.datasets.instances import QAPInstance
from jaxopt_search.engine import device_split
from jaxopt_search.solvers import scales

_SCHEDULE = (0.3, 0.03)  # the first and the last temperature, times the mean change by a swap
_MOVES_OF_ANNEALING = 32
_CHECK_EVERY = 10
_MOST_ON_A_CORE = 16  # searches by which a core is measured; they run one after the other


class Way(NamedTuple):
    """How searches are run: with which implementation, on which devices."""

    name: str
    implementation: Any
    devices: tuple[jax.Device, ...]


def searches(problem: js.QAP, steps: int) -> dict[str, Any]:
    """Returns the three algorithms for so many steps."""
    hottest, factor = cooling(problem, steps)
    table = js.SwapTable()
    return {
        "hc": js.hill_climbing(table),
        "sa": js.simulated_annealing(
            table,
            js.geometric(hottest, factor, 1),
            moves_per_search=_MOVES_OF_ANNEALING,
            choose="first",
        ),
        "ts": js.tabu_search(table),
    }


def cooling(problem: js.QAP, steps: int) -> tuple[float, float]:
    """Returns the first temperature of annealing and what it is multiplied by in each step."""
    hottest, coldest = (share * float(scales.swap_change(problem)) for share in _SCHEDULE)
    return hottest, (coldest / hottest) ** (1 / max(steps - 1, 1))


def ways(name: str) -> list[Way]:
    """Returns the ways to run searches of `table` or `figure`, the compiled core first if it can.

    Without numba there is nothing to compare with.
    """
    cpu, found = jax.devices("cpu"), device_split.find_devices("all")
    core = [Way(CORE, "numba", ())] if one_core.has_numba() else []
    core.append(Way("1 core, XLA", "native", tuple(cpu[:1])))
    if name == "table":
        return [*core, Way(f"{len(found)} x {found[0].device_kind}", "auto", found)]
    return [*core, *(Way(name, how, found[:1]) for name, how in MODELS.items())]


def measure(
    instance: QAPInstance, algorithm: str, way: Way, num_searches: int, steps: int, seed: int
) -> dict[str, Any]:
    """Returns the record of one run, warm."""
    if way.implementation == "numba":
        return _measure_compiled(instance, algorithm, way, num_searches, steps, seed)
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


def _measure_compiled(
    instance: QAPInstance, algorithm: str, way: Way, num_searches: int, steps: int, seed: int
) -> dict[str, Any]:
    """Returns the record of searches compiled for one core, one after the other."""
    run = _COMPILED[algorithm]
    run(instance, 1, 1, seed)
    seconds, made, priced, moves, costs = run(instance, num_searches, steps, seed)
    gaps = [_gap(cost, instance) for cost in (float(np.mean(costs)), float(np.min(costs)))]
    return {
        "experiment": "qap_multistart",
        "instance": instance.name,
        "seed": seed,
        "settings": settings(algorithm, way, num_searches, steps),
        "seconds": seconds,
        "steps": made / num_searches,
        "moves_priced": priced,
        "moves_made": moves,
        "mean_gap": gaps[0],
        "best_gap": gaps[1],
        "status": "LOCAL_OPTIMA" if algorithm == "hc" else "MAX_STEPS",
        **common.provenance(jax.devices("cpu")[:1]),
    }


Measured = tuple[float, int, int, int, np.ndarray]
"""Seconds, steps, moves priced and moves made of all searches, and the best cost of each."""


def _climb(instance: QAPInstance, num_searches: int, steps: int, seed: int) -> Measured:
    data, climb = _matrices(instance), _compiled("climber")
    found = compiled_qap.starts(instance.n, num_searches, seed)
    began = time.perf_counter()
    made = climb(*data, found)
    seconds = time.perf_counter() - began
    return seconds, made, made * math.comb(instance.n, 2), made - num_searches, _costs(data, found)


def _anneal(instance: QAPInstance, num_searches: int, steps: int, seed: int) -> Measured:
    data, anneal = _matrices(instance), _compiled("annealer")
    hottest, factor = cooling(js.qap_from_instance(instance), steps)
    found = compiled_qap.starts(instance.n, num_searches, seed)
    began = time.perf_counter()
    # The matrices have all costs twice as high.
    priced, moves = anneal(*data, found, 2 * hottest, factor, steps, _MOVES_OF_ANNEALING, seed)
    seconds = time.perf_counter() - began
    return seconds, num_searches * steps, priced, moves, _costs(data, found)


def _tabu(instance: QAPInstance, num_searches: int, steps: int, seed: int) -> Measured:
    data, advance = _matrices(instance), _compiled("tabu")
    found = [compiled_tabu.start(*data, seed * num_searches + k) for k in range(num_searches)]
    began = time.perf_counter()
    for search in found:
        advance(*data, search, steps, -(2**62))
    seconds = time.perf_counter() - began
    made, costs = num_searches * steps, _costs(data, [search.best for search in found])
    return seconds, made, made * math.comb(instance.n, 2), made, costs


_COMPILED = {"hc": _climb, "sa": _anneal, "ts": _tabu}


@functools.cache
def _compiled(name: str) -> Any:
    """Returns a search for one core, compiled when it is called for the first time."""
    makers = {
        "climber": compiled_qap.climber,
        "annealer": compiled_qap.annealer,
        "tabu": compiled_tabu.compiled,
    }
    return makers[name]()


def _matrices(instance: QAPInstance) -> tuple[np.ndarray, np.ndarray]:
    return compiled_qap.symmetric(instance.flow, instance.distance)


def _costs(data: tuple[np.ndarray, np.ndarray], assignments: Any) -> np.ndarray:
    return np.array([compiled_qap.cost(*data, each) // 2 for each in assignments])


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
        **common.provenance(device_split.find_devices("all")),
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
                if way.implementation not in (args.ways or [way.implementation]):
                    continue
                is_core = way.implementation in ("numba", "native")
                steps = instance.n**2 if is_core and not is_table else args.steps or instance.n**2
                on_a_core = [min(max(numbers), _MOST_ON_A_CORE)]
                for number in on_a_core if is_core else numbers:
                    jobs += _jobs(instance, algorithm, way, number, steps, args.runs)
    return Task(jobs, table_1, None) if is_table else Task(jobs, figure_2, draw_figure_2)


def _jobs(
    instance: QAPInstance, algorithm: str, way: Way, num_searches: int, steps: int, num_runs: int
) -> list[Any]:
    known = settings(algorithm, way, num_searches, steps)

    def job(seed: int) -> Any:
        return (
            known,
            instance.name,
            seed,
            lambda: measure(instance, algorithm, way, num_searches, steps, seed),
        )

    return [job(seed) for seed in range(num_runs)]


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
        "--ways",
        type=_ways,
        help=f"some of {','.join(_WAYS)} (default: all; numba is the core of all ratios)",
    )
    flags.add_argument(
        "--searches", type=flag_types.integers, help="side by side; several for Figure 2"
    )
    flags.add_argument(
        "--steps",
        type=flag_types.positive,
        help="of annealing and tabu search (default: n * n, as always on a core of Figure 2)",
    )
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


_WAYS = ("numba", "native", *MODELS.values())


def _ways(text: str) -> list[str]:
    names = flag_types.words(text)
    if not names or not set(names) <= set(_WAYS):
        raise argparse.ArgumentTypeError(f"{text!r} is not among {','.join(_WAYS)}")
    return names


def tasks_of(records: list[dict[str, Any]]) -> list[tuple[Task, list[dict[str, Any]]]]:
    """Returns how to show and to draw what is in a file, with the records of each kind."""
    own = [r for r in records if r["experiment"] == "qap_multistart"]
    times = [r for r in records if r["experiment"] == "qap_targets"]
    is_figure = any(record["settings"]["way"] in MODELS for record in own)
    first = Task([], figure_2, draw_figure_2) if is_figure else Task([], table_1, None)
    found = [(first, own), (Task([], targets, draw_targets), times)]
    return [(task, some) for task, some in found if some]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the script and returns its exit status."""
    flags = parser()
    args = flags.parse_args(arguments)
    if args.report:
        shown = tasks_of(common.read_all(args.report))
        return _show(shown, args)
    task = common.plan_from(flags, args, plan_from_arguments)
    records: list[dict[str, Any]] = []
    status = common.until_interrupted(
        lambda: records.extend(execute(task, Runs(args.out))), args.out
    )
    return status or _show([(task, records)], args)


def _show(shown: list[tuple[Task, list[dict[str, Any]]]], args: argparse.Namespace) -> int:
    print("\n\n".join(task.show(records, markdown=args.markdown) for task, records in shown))
    if args.plot:
        try:
            draw = next(task.draw(records) for task, records in shown if task.draw)
            common.save_plot(args.plot, draw, (6.4, 4.8))
        except StopIteration:
            print(f"no plot {args.plot}: Table 1 has none; --figure 2 and --targets have")
        except ValueError as error:
            print(f"no plot {args.plot}: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
