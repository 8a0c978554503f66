"""Many small TSPs at once: `solve_tsp` on stacked coordinates, and fast-tsp on all cores.

    python -m experiments.tsp.many
    python -m experiments.tsp.many --instances 1000 --cities 100 --seconds 1,3,10 --out many.jsonl
    python -m experiments.tsp.many --instances 128 --cities 500 --seconds 60 --solvers ours,lkh
    python -m experiments.tsp.many --published --cities 50 --seconds 0.5
    python -m experiments.tsp.many --published --cities 100 --seconds 2,10

The instances have independent uniform whole coordinates below 30,000; lengths are Euclidean. With
`--published` they are the 10,000 test instances of Kool, van Hoof, Welling, "Attention, learn to
solve routing problems!", 2019: uniform in the unit square, by NumPy's old generator with seed 1234;
the mean length of LKH's tours of them is known. What compiles is called before. fast-tsp, where it
is installed, gets a time limit for each instance, one after the other on each core, and distances
rounded to integers; its processes are up before the clock starts. LKH (by elkai) makes one run of
each instance likewise. Gaps are to the shortest tour of each instance that any line of the table
has found.
"""

import argparse
import concurrent.futures
import functools
import importlib.util
import multiprocessing
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import jaxopt_search as js
from experiments import common, flag_types
from experiments.common import Runs
from jaxopt_search.engine.devices import find_devices
from jaxopt_search.engine.fingerprints import environment

SIZE = 30_000
NEAR = 0.001
"""The gap that counts as reached."""
PUBLISHED_SEED, PUBLISHED_NUMBER = 1234, 10_000
PUBLISHED = {20: 3.83571, 50: 5.69603, 100: 7.76456}
"""Mean lengths of LKH's tours of the published instances, by their cities."""


def instances(number: int, cities: int, seed: int) -> np.ndarray:
    """Returns coordinates [number, cities, 2] float64."""
    generator = np.random.default_rng(seed)
    return generator.integers(0, SIZE, (number, cities, 2)).astype(np.float64)


def published_instances(cities: int) -> np.ndarray:
    """Returns the published test instances, [10000, cities, 2]."""
    generator = np.random.RandomState(PUBLISHED_SEED)
    return generator.uniform(size=(PUBLISHED_NUMBER, cities, 2))


def ours(points: np.ndarray, seconds: float, seed: int, devices: Any) -> dict[str, Any]:
    """Returns the record of a run of `solve_tsp`."""
    js.solve_tsp(points, seed, max_seconds=0.05, devices=devices)  # compiles
    began = time.perf_counter()
    result = js.solve_tsp(points, seed, max_seconds=seconds, devices=devices)
    elapsed = time.perf_counter() - began
    common.unless_interrupted(result)
    on = {"steps": result.nit, "env": result.env}
    return _record("jaxopt_search", points, seconds, seed, elapsed, result.fun.tolist()) | on


def on_all_cores(
    solver: str,
    find: Callable[[np.ndarray], Sequence[int]],
    points: np.ndarray,
    limit: float,
    seed: int,
) -> dict[str, Any]:
    """Returns the record of a solver that finds a tour on one core, on each core one."""
    context, num_cores = multiprocessing.get_context("spawn"), common.num_cores()
    with concurrent.futures.ProcessPoolExecutor(num_cores, mp_context=context) as pool:
        list(pool.map(find, points[:num_cores, :10]))  # starts all processes
        began = time.perf_counter()
        tours = list(pool.map(find, points, chunksize=4))
        elapsed = time.perf_counter() - began
    lengths = [_length(each, tour) for each, tour in zip(points, tours, strict=True)]
    env = environment(find_devices(None)) | {"devices": f"{num_cores} cores"}
    return _record(solver, points, limit, seed, elapsed, lengths) | {"env": env}


def _fast_tsp_tour(seconds: float, points: np.ndarray) -> list[int]:
    import fast_tsp as package

    return package.find_tour(_rounded(points), duration_seconds=seconds, max_threads=1)


def _lkh_tour(runs: int, points: np.ndarray) -> list[int]:
    import elkai

    return elkai.DistanceMatrix(_rounded(points).tolist()).solve_tsp(runs)[:-1]


def _rounded(points: np.ndarray) -> np.ndarray:
    distances = np.hypot(*np.moveaxis(points[:, None] - points, 2, 0))
    return np.round(distances).astype(np.uint16)


def _length(points: np.ndarray, tour: Sequence[int]) -> float:
    placed = points[np.asarray(tour)]
    return float(np.hypot(*(placed - np.roll(placed, -1, axis=0)).T).sum())


def _record(
    solver: str,
    points: np.ndarray,
    seconds: float,
    seed: int,
    elapsed: float,
    lengths: list[float],
) -> dict[str, Any]:
    number, cities, _ = points.shape
    found = {"mean_length": float(np.mean(lengths))}
    if not _is_published(points):
        found["lengths"] = lengths
    return found | {
        "experiment": "tsp_many",
        "instance": f"{number} x {_name_of(points, seed)}",
        "seed": seed,
        "settings": {"solver": solver, "seconds": seconds, "instances": number, "cities": cities},
        "seconds": elapsed,
        "date": common.now(),
    }


def _is_published(points: np.ndarray) -> bool:
    return points.max() <= 1


def _name_of(points: np.ndarray, seed: int) -> str:
    cities = points.shape[1]
    if _is_published(points):
        return f"published-{cities}"
    return f"uniform-{cities}-size{SIZE}-s{seed}"


def report(records: list[dict[str, Any]], *, markdown: bool) -> str:
    """Returns the table of runs; gaps are among those on the same instances."""
    rows = []
    for name in dict.fromkeys(record["instance"] for record in records):
        own = [record for record in records if record["instance"] == name]
        shortest = np.min([record.get("lengths", np.nan) for record in own], axis=0)
        rows += [[name, *_row(record, shortest)] for record in own]
    header = "instances | solver | on | limit s | seconds | instances/s | mean length | above LKH"
    header += " | mean gap | worst | within 0.1%"
    return common.table(header, rows, markdown=markdown)


def _row(record: dict[str, Any], shortest: np.ndarray) -> list[str]:
    settings, mean, gaps = record["settings"], record["mean_length"], ["-"] * 4
    if "published" in record["instance"]:
        if (lkh := PUBLISHED.get(settings["cities"])) is not None:
            gaps[0] = f"{mean / lkh - 1:.4%}"
    else:
        away = np.array(record["lengths"]) / shortest - 1
        gaps[1:] = f"{away.mean():.3%}", f"{away.max():.2%}", f"{(away <= NEAR).mean():.1%}"
    return [
        settings["solver"],
        record["env"]["devices"],
        f"{settings['seconds']:g}",
        f"{record['seconds']:.2f}",
        f"{settings['instances'] / record['seconds']:.3g}",
        f"{mean:.7g}",
        *gaps,
    ]


def parser() -> argparse.ArgumentParser:
    """Returns the flags of this script."""
    flags = argparse.ArgumentParser(
        prog="experiments.tsp.many", description="Many small TSPs at once."
    )
    add = flags.add_argument
    add("--instances", type=flag_types.positive, default=20)
    add("--cities", type=flag_types.positive, default=50)
    add("--published", action="store_true", help="10,000 test instances whose best are known")
    add("--seconds", type=flag_types.limits, default=[2.0], help="limits of solve_tsp")
    add("--each", type=flag_types.limits, default=[0.01], help="limits of fast-tsp")
    add(
        "--solvers", type=flag_types.words, default=["ours", "fast-tsp"], help="ours, fast-tsp, lkh"
    )
    add("--seed", type=int, default=0)
    add("--devices", type=flag_types.devices, default="all")
    common.add_record_arguments(flags, "tsp_many")
    return flags


def runs_from_arguments(args: argparse.Namespace) -> list[Callable[[], dict[str, Any]]]:
    """Returns what makes a run each.

    Raises:
      ValueError: if there are no such devices.
    """
    devices = find_devices(args.devices)
    points = instances(args.instances, args.cities, args.seed)
    if args.published:
        points = published_instances(args.cities)
    made = []
    if "ours" in args.solvers:
        made += [
            functools.partial(ours, points, limit, args.seed, devices) for limit in args.seconds
        ]
    others = [("LKH", _lkh_tour, 1)] if "lkh" in args.solvers else []
    if "fast-tsp" in args.solvers and importlib.util.find_spec("fast_tsp"):
        others += [("fast-tsp", _fast_tsp_tour, limit) for limit in args.each]
    elif "fast-tsp" in args.solvers:
        print("no fast-tsp to compare with: pip install fast-tsp")
    for solver, find, limit in others:
        own = functools.partial(find, limit), points, limit, args.seed
        made.append(functools.partial(on_all_cores, solver, *own))
    return made


def execute(plan: Sequence[Callable[[], dict[str, Any]]], runs: Runs) -> list[dict[str, Any]]:
    """Makes the runs one after the other, and adds their records to the file."""
    progress, records = common.Progress(len(plan)), []
    for make in plan:
        records.append(make())
        progress.step(1, records[-1]["settings"]["solver"])
        if runs.path:
            common.append(runs.path, records[-1])
    return records


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the script and returns its exit status."""
    return common.run_script(
        parser(),
        arguments,
        runs_from_arguments,
        lambda records, args: report(records, markdown=args.markdown),
        execute,
    )


if __name__ == "__main__":
    sys.exit(main())
