"""How good the tours of `solve_tsp` are: the gap to the optimum over instances and seeds.

    python -m experiments.tsp.quality
    python -m experiments.tsp.quality --instances paper --seconds 1,10 --seeds 10 --out q.jsonl
    python -m experiments.tsp.quality --instances uniform-1000000 --seconds 30 --seeds 1
    python -m experiments.tsp.quality --report q.jsonl

Each run is one call of `js.solve_tsp` with its defaults, a seed and `max_seconds`. "paper" stands
for the 20 instances of the PSPM paper, and "uniform-" with a number for this many random cities,
whose gap is to the length that is expected of the shortest tour (Johnson, McGeoch, "Experimental
analysis of heuristics for the STSP", 2002). How runs are measured:

- Limits are seconds of search. What compiles is called before; the seconds of that first call are
  a field of their own.
- A run ends at the optimum, where that is proven.
- Seconds are wall-clock time of the whole call. It takes longer than its limit by what `solve_tsp`
  does before the search, and by the chunk that is under way.
- The time to a level is the first line of `Result.history` that reaches it; there is one for every
  fiftieth of the limit, or finer.
- A table holds the mean and the worst gap, the runs that found the optimum, and medians of times; a
  run that did not reach the level counts as infinite.

Each finished run is one line of the file; the same command continues where it was interrupted. A
run is known by its limit, its recipe, the version and the devices: after another change of code,
take another file.
"""

import argparse
import dataclasses
import itertools
import math
import sys
import time
from collections.abc import Sequence
from statistics import fmean
from typing import Any, NamedTuple

import jax

import jaxopt_search as js
from experiments import common, flag_types
from experiments.common import Progress, Runs
from experiments.peers import tsp as peers_tsp
from experiments.peers.levels import gap, improvements, median_time, time_to_level
from experiments.pspm.paper import TABLE_2
from jaxopt_search.datasets.instances import TSPInstance
from jaxopt_search.engine.devices import find_devices
from jaxopt_search.problems.padding import capacity_for
from jaxopt_search.solvers import tsp

NEAR = 0.001
"""The gap to which times are shown, next to the times to the optimum."""
_WARM_SECONDS = 0.5
_UNIFORM, _SIZE, _CONSTANT = "uniform-", 900_000, 0.7124  # the last one of the expected length

Records = list[dict[str, Any]]


class Plan(NamedTuple):
    """What is to be run.

    Attributes:
      instances: those with a best known cost.
      seconds: the limits.
    """

    instances: list[TSPInstance]
    seconds: list[float]
    seeds: range
    devices: tuple[jax.Device, ...]

    def settings(self, seconds: float, n: int) -> dict[str, Any]:
        """Returns what tells a run from others of the same instance, of n cities, and seed."""
        return {
            "seconds": seconds,
            # A `TSPInstance` is symmetric.
            "recipe": tsp.tsp_recipe(True, self.devices[0], capacity_for(n))._asdict(),
            "version": common.version(),
            "device_kind": self.devices[0].device_kind,
            "num_devices": len(self.devices),
        }


def execute(plan: Plan, runs: Runs) -> Records:
    """Makes the runs of a plan that are not in the file yet; returns the records of all."""
    progress = Progress(len(plan.instances) * len(plan.seconds) * len(plan.seeds))
    wanted = []
    for instance in plan.instances:
        own = [
            (plan.settings(limit, instance.n), instance.name, seed)
            for limit, seed in itertools.product(plan.seconds, plan.seeds)
        ]
        missing = [one for one in own if not runs.has(*one)]
        progress.skip(len(own) - len(missing))
        compile_seconds = warm_up(plan, instance) if missing else 0.0
        for settings, _, seed in missing:
            runs.add(make(plan, instance, settings, seed, compile_seconds))
            progress.step(1, f"{instance.name} {settings['seconds']:g} s")
        wanted += own
    return runs.those(wanted)


def warm_up(plan: Plan, instance: TSPInstance) -> float:
    """Compiles what a run on this instance calls, and returns the seconds that it took."""
    jax.clear_caches()
    # Without time, the search is compiled and makes no step.
    compile_seconds, _ = _timed(plan, instance, 0, 0.0)
    _timed(plan, instance, 0, min(_WARM_SECONDS, *plan.seconds))
    return compile_seconds


def make(
    plan: Plan,
    instance: TSPInstance,
    settings: dict[str, Any],
    seed: int,
    compile_seconds: float,
) -> dict[str, Any]:
    """Makes a run and returns its record."""
    seconds, result = _timed(plan, instance, seed, settings["seconds"])
    best_known, ends = instance.best_known, peers_tsp.cost(instance, result.x)
    # The clock of the history starts with the search: what comes before it is added.
    before = seconds - result.elapsed + result.compile_seconds
    trace = [(before + record.seconds, record.best) for record in result.history]
    times = (time_to_level(trace, best_known, level) for level in (NEAR, 0.0))
    near, best = (value if math.isfinite(value) else None for value in times)
    above = gap(ends, best_known)
    return common.record(
        "tsp_quality",
        instance.name,
        seed,
        settings,
        plan.devices,
        n=instance.n,
        searches=len(result.costs),
        cost=ends,
        best_known=best_known,
        gap=above if math.isfinite(above) else None,
        steps=result.nit,
        moves=result.nfev,
        seconds=seconds,
        compile_seconds=compile_seconds,
        seconds_to_near=near,
        seconds_to_best_known=best,
        trace=improvements(trace),
        implementation=result.env["implementation"],
    )


def _timed(plan: Plan, instance: TSPInstance, seed: int, limit: float) -> tuple[float, js.Result]:
    """Returns the seconds of a call and its result.

    Raises:
      KeyboardInterrupt: also if Ctrl-C has ended the call early.
    """
    began = time.perf_counter()
    result = js.solve_tsp(instance, seed, max_seconds=limit, devices=plan.devices)
    seconds = time.perf_counter() - began
    return seconds, common.unless_interrupted(result)


def row(records: Records) -> list[str]:
    """Returns the line of an instance, from its records of all seeds."""
    gaps = _gaps(records)
    return [
        records[0]["instance"],
        str(records[0]["n"]),
        f"{fmean(gaps):.3%}",
        f"{max(gaps):.3%}",
        f"{sum(gap <= 0 for gap in gaps)}/{len(gaps)}",
        *(
            median_time([math.inf if r[name] is None else r[name] for r in records])
            for name in ("seconds_to_near", "seconds_to_best_known")
        ),
    ]


_HEADER = f"instance | n | mean gap | worst gap | optima | s to {NEAR:.1%} | s to optimum"


def summary(records: Records) -> str:
    """Returns the line over all instances.

    Each instance counts the same in the mean gap. Optima are counted over seeds that have a run of
    each instance.
    """
    groups = _grouped(records, "instance")
    mean_gap = fmean(fmean(_gaps(group)) for group in groups.values())
    counts = [
        sum(gap <= 0 for gap in _gaps(seed))
        for seed in _grouped(records, "seed").values()
        if len(seed) == len(groups)
    ]
    text = f"all {len(groups)} instances: mean gap {mean_gap:.3%}"
    if not counts:
        return f"{text}; no seed has a run of each instance"
    return (
        f"{text}; optima per seed: at least {min(counts)} of {len(groups)},"
        f" {fmean(counts):.1f} on average ({len(counts)} seeds)"
    )


def report(records: Records, *, markdown: bool) -> str:
    """Returns a table for each kind of settings."""
    groups = _grouped(records, "settings").values()
    return "\n\n".join(_section(group, markdown) for group in groups) or "no run was finished"


def _section(records: Records, markdown: bool) -> str:
    first = records[0]
    ran = sorted({r.get("implementation") or r["env"]["implementation"] for r in records})
    instances = _grouped(records, "instance").values()
    num_seeds = " to ".join(map(str, sorted({len(group) for group in instances})))
    return "\n".join(
        [
            f"{first['settings']['seconds']:g} s per run, without compilation; {num_seeds} seeds;"
            f" {first['env']['devices']}, {', '.join(ran)}",
            "",
            common.table(_HEADER, [row(group) for group in instances], markdown=markdown),
            "",
            summary(records),
        ]
    )


def _gaps(records: Records) -> list[float]:
    return [gap(record["cost"], record["best_known"]) for record in records]


def _grouped(records: Records, field: str) -> dict[Any, Records]:
    groups: dict[Any, Records] = {}
    for record in records:
        value = record[field]
        groups.setdefault(str(value) if field == "settings" else value, []).append(record)
    return groups


def plan_from_arguments(args: argparse.Namespace) -> Plan:
    """Returns what to do.

    Raises:
      ValueError, FileNotFoundError: if instances or devices cannot be had.
    """
    names = _names(args.instances)
    uniform = [name for name in names or () if name.startswith(_UNIFORM)]
    instances = list(map(uniform_instance, uniform))
    if names is None or len(names) > len(uniform):
        others = None if names is None else [name for name in names if name not in uniform]
        instances += peers_tsp.instances(others, args.data)
    for instance in instances:
        if instance.best_known is None:
            print(f"{instance.name} is left out: no best known cost is on record")
    return Plan(
        instances=[instance for instance in instances if instance.best_known is not None],
        seconds=args.seconds,
        seeds=range(args.seeds),
        devices=find_devices(args.devices),
    )


def uniform_instance(name: str) -> TSPInstance:
    """Returns random cities, with the expected length of the shortest tour as the best known.

    Raises:
      ValueError: if the name does not end in a number.
    """
    n = int(name.removeprefix(_UNIFORM))
    expected = round(_CONSTANT * _SIZE * math.sqrt(n) * (1 + 0.33 / n))
    instance = js.datasets.uniform_tsp(n, seed=0, size=_SIZE)
    return dataclasses.replace(instance, name=name, best_known=expected)


def _names(words: Sequence[str] | None) -> list[str] | None:
    """Returns names of instances, each once, with the paper's in place of "paper"."""
    if words is None:
        return None
    return list(dict.fromkeys(n for w in words for n in (TABLE_2 if w == "paper" else [w])))


def parser() -> argparse.ArgumentParser:
    """Returns the flags of this script."""
    flags = argparse.ArgumentParser(
        prog="experiments.tsp.quality",
        description="The gap of solve_tsp to the optimum, over instances and seeds.",
    )
    add = flags.add_argument
    names = "names, paper, or such as uniform-100000 (default: two generated ones)"
    add("--instances", type=flag_types.words, help=names)
    add("--seconds", type=flag_types.limits, default=[2.0], help="limits, such as 1,10")
    add("--seeds", type=flag_types.positive, default=2, help="how many, from 0 on")
    add("--devices", type=flag_types.devices, default="all")
    common.add_record_arguments(flags, "tsp_quality")
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
