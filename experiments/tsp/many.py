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

Each finished run is one line of the file; the same command continues where it was interrupted. A
run is known by its instances, solver and limit: on other devices, or after a change of code, take
another file.
"""

import argparse
import concurrent.futures
import functools
import importlib.util
import multiprocessing
import sys
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

import jaxopt_search as js
from experiments import common, flag_types
from experiments.common import Job
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


def ours(points: np.ndarray, seconds: float, devices: Any) -> dict[str, Any]:
    """Returns what is measured of a run of `solve_tsp`."""
    js.solve_tsp(points, 0, max_seconds=0.05, devices=devices)  # compiles
    options = {"max_seconds": seconds, "devices": devices}
    result, elapsed = common.timed(js.solve_tsp, points, 0, **options)
    common.unless_interrupted(result)
    measured = _measured(points, elapsed, result.fun.tolist())
    return measured | {"steps": result.nit, "env": result.env}


def on_all_cores(
    find: Callable[[float, np.ndarray], Sequence[int]], points: np.ndarray, limit: float
) -> dict[str, Any]:
    """Returns what is measured of a solver that finds a tour on one core, on each core one."""
    context, num_cores = multiprocessing.get_context("spawn"), common.num_cores()
    find = functools.partial(find, limit)
    with concurrent.futures.ProcessPoolExecutor(num_cores, mp_context=context) as pool:
        list(pool.map(find, points[:num_cores, :10]))  # starts all processes
        tours, elapsed = common.timed(lambda: list(pool.map(find, points, chunksize=4)))
    lengths = [_length(each, tour) for each, tour in zip(points, tours, strict=True)]
    env = environment(find_devices(None)) | {"devices": f"{num_cores} cores"}
    return _measured(points, elapsed, lengths) | {"env": env}


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


def _measured(points: np.ndarray, elapsed: float, lengths: list[float]) -> dict[str, Any]:
    found = {"seconds": elapsed, "mean_length": float(np.mean(lengths)), "date": common.now()}
    is_published = points.max() <= 1
    return found if is_published else found | {"lengths": lengths}


def report(records: list[dict[str, Any]], args: argparse.Namespace) -> str:
    """Returns the table of runs; gaps are among those on the same instances."""
    rows = []
    for name, own in common.grouped(records, itemgetter("instance")).items():
        shortest = np.min([record.get("lengths", np.nan) for record in own], axis=0)
        rows += [[name, *_row(record, shortest)] for record in own]
    header = "instances | solver | on | limit s | seconds | instances/s | mean length | above LKH"
    header += " | mean gap | worst | within 0.1%"
    return common.table(header, rows, markdown=args.markdown)


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


def jobs_from_arguments(args: argparse.Namespace) -> list[Job]:
    """Returns what to run.

    Raises:
      ValueError: if there are no such devices.
    """
    devices, cities = find_devices(args.devices), args.cities
    if args.published:
        points, name = published_instances(cities), f"published-{cities}"
    else:
        points = instances(args.instances, cities, seed=0)
        name = f"uniform-{cities}-size{SIZE}-s0"
    found: list[tuple[str, float, Callable[[], dict[str, Any]]]] = []
    if "ours" in args.solvers:
        for limit in args.seconds:
            found.append(("jaxopt_search", limit, functools.partial(ours, points, limit, devices)))
    if "lkh" in args.solvers:
        found.append(("LKH", 1, functools.partial(on_all_cores, _lkh_tour, points, 1)))
    if "fast-tsp" in args.solvers and importlib.util.find_spec("fast_tsp"):
        for limit in args.each:
            make = functools.partial(on_all_cores, _fast_tsp_tour, points, limit)
            found.append(("fast-tsp", limit, make))
    elif "fast-tsp" in args.solvers:
        print("no fast-tsp to compare with: pip install fast-tsp")
    return [_job(f"{len(points)} x {name}", points, *one) for one in found]


def _job(
    name: str, points: np.ndarray, solver: str, limit: float, make: Callable[[], dict[str, Any]]
) -> Job:
    number, cities, _ = points.shape
    settings = {"solver": solver, "seconds": limit, "instances": number, "cities": cities}
    known = {"experiment": "tsp_many", "instance": name, "seed": 0, "settings": settings}
    return Job(settings, name, [0], solver, lambda _: [known | make()])


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the script and returns its exit status."""
    flags = common.parser("tsp.many", __doc__, "tsp_many")
    add = flags.add_argument
    solvers = flag_types.some_of("ours", "fast-tsp", "lkh")
    add("--instances", type=flag_types.positive, default=20)
    add("--cities", type=flag_types.positive, default=50)
    add("--published", action="store_true", help="10,000 test instances whose best are known")
    add("--seconds", type=flag_types.limits, default=[2.0], help="limits of solve_tsp")
    add("--each", type=flag_types.limits, default=[0.01], help="limits of fast-tsp")
    add("--solvers", type=solvers, default=["ours", "fast-tsp"], help="ours, fast-tsp, lkh")
    add("--devices", type=flag_types.devices, default="all")
    return common.run_script(flags, arguments, jobs_from_arguments, report)


if __name__ == "__main__":
    sys.exit(main())
