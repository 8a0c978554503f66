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
import functools
import itertools
import math
import sys
from collections.abc import Iterator, Sequence
from operator import itemgetter
from statistics import fmean
from typing import Any

import jax

import jaxopt_search as js
from experiments import common, flag_types
from experiments.common import Job
from experiments.peers import tsp as peers_tsp
from experiments.peers.levels import (
    finite,
    gap,
    improvements,
    median_time,
    time_to_level,
    with_best_known,
)
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


def jobs_from_arguments(args: argparse.Namespace) -> list[Job]:
    """Returns what to run.

    Raises:
      ValueError, FileNotFoundError: if instances or devices cannot be had.
    """
    devices, jobs = find_devices(args.devices), []
    for instance, limit in itertools.product(_instances(args), args.seconds):
        # A `TSPInstance` is symmetric.
        recipe = tsp.tsp_recipe(True, devices[0], capacity_for(instance.n))
        settings = {
            "seconds": limit,
            "recipe": recipe._asdict(),
            "version": common.version(),
            "device_kind": devices[0].device_kind,
            "num_devices": len(devices),
        }
        make = functools.partial(_make, instance, settings, devices)
        text = f"{instance.name} {limit:g} s"
        jobs.append(Job(settings, instance.name, range(args.seeds), text, make))
    return jobs


def _instances(args: argparse.Namespace) -> list[TSPInstance]:
    """Returns what `--instances` names, each once, where a best known cost is on record."""
    if args.instances is None:
        return peers_tsp.instances(None, args.data)
    found = []
    for name in args.instances:
        if name == "paper":
            found += peers_tsp.instances(list(TABLE_2), args.data)
        elif name.startswith(_UNIFORM):
            found.append(uniform_instance(name))
        else:
            found += peers_tsp.instances([name], args.data)
    return with_best_known({instance.name: instance for instance in found}.values())


def uniform_instance(name: str) -> TSPInstance:
    """Returns random cities, with the expected length of the shortest tour as the best known.

    Raises:
      ValueError: if the name does not end in a number.
    """
    n = int(name.removeprefix(_UNIFORM))
    expected = round(_CONSTANT * _SIZE * math.sqrt(n) * (1 + 0.33 / n))
    instance = js.datasets.uniform_tsp(n, seed=0, size=_SIZE)
    return dataclasses.replace(instance, name=name, best_known=expected)


def _make(
    instance: TSPInstance, settings: dict[str, Any], devices: tuple[Any, ...], seeds: Sequence[int]
) -> Iterator[dict[str, Any]]:
    """Yields the records of runs."""
    compile_seconds = _warm_up(instance, devices)
    for seed in seeds:
        result, seconds = _timed(instance, devices, seed, settings["seconds"])
        best_known, ends = instance.best_known, peers_tsp.cost(instance, result.x)
        # The clock of the history starts with the search: what comes before it is added.
        before = seconds - result.elapsed + result.compile_seconds
        trace = [(before + record.seconds, record.best) for record in result.history]
        near, best = (time_to_level(trace, best_known, level) for level in (NEAR, 0.0))
        yield common.record(
            "tsp_quality",
            instance.name,
            seed,
            settings,
            devices,
            n=instance.n,
            searches=len(result.costs),
            cost=ends,
            best_known=best_known,
            gap=finite(gap(ends, best_known)),
            steps=result.nit,
            moves=result.nfev,
            seconds=seconds,
            compile_seconds=compile_seconds,
            seconds_to_near=finite(near),
            seconds_to_best_known=finite(best),
            trace=improvements(trace),
            implementation=result.env["implementation"],
        )


@functools.lru_cache(1)
def _warm_up(instance: TSPInstance, devices: tuple[Any, ...]) -> float:
    """Compiles what a run on this instance calls, and returns the seconds that it took."""
    jax.clear_caches()
    # Without time, the search is compiled and makes no step.
    _, compile_seconds = _timed(instance, devices, 0, 0.0)
    _timed(instance, devices, 0, _WARM_SECONDS)
    return compile_seconds


def _timed(
    instance: TSPInstance, devices: tuple[Any, ...], seed: int, limit: float
) -> tuple[js.Result, float]:
    options = {"max_seconds": limit, "devices": devices}
    result, seconds = common.timed(js.solve_tsp, instance, seed, **options)
    return common.unless_interrupted(result), seconds


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
    groups = common.grouped(records, itemgetter("instance"))
    mean_gap = fmean(fmean(_gaps(group)) for group in groups.values())
    counts = [
        sum(gap <= 0 for gap in _gaps(seed))
        for seed in common.grouped(records, itemgetter("seed")).values()
        if len(seed) == len(groups)
    ]
    text = f"all {len(groups)} instances: mean gap {mean_gap:.3%}"
    if not counts:
        return f"{text}; no seed has a run of each instance"
    return (
        f"{text}; optima per seed: at least {min(counts)} of {len(groups)},"
        f" {fmean(counts):.1f} on average ({len(counts)} seeds)"
    )


def report(records: Records, args: argparse.Namespace) -> str:
    """Returns a table for each kind of settings."""
    groups = common.grouped(records, lambda record: str(record["settings"])).values()
    return "\n\n".join(_section(group, args.markdown) for group in groups)


def _section(records: Records, markdown: bool) -> str:
    first = records[0]
    ran = sorted({r.get("implementation") or r["env"]["implementation"] for r in records})
    instances = common.grouped(records, itemgetter("instance")).values()
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the script and returns its exit status."""
    flags = common.parser("tsp.quality", __doc__, "tsp_quality")
    add = flags.add_argument
    names = "names, paper, or such as uniform-100000 (default: two generated ones)"
    add("--instances", type=flag_types.words, help=names)
    add("--seconds", type=flag_types.limits, default=[2.0], help="limits, such as 1,10")
    add("--seeds", type=flag_types.positive, default=2, help="how many, from 0 on")
    add("--devices", type=flag_types.devices, default="all")
    common.add_data_argument(flags)
    return common.run_script(flags, arguments, jobs_from_arguments, report)


if __name__ == "__main__":
    sys.exit(main())
