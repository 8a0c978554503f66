"""N-Queens: counting attacks in nine ways, and finding valid placements.

    python -m experiments.nqueens --figure 4
    python -m experiments.nqueens --figure 6 --sizes 1000,100000,1048576 --out nqueens.jsonl
    python -m experiments.nqueens --figure 2 --threads 1,2,4,8,16
    python -m experiments.nqueens --table 3
    python -m experiments.nqueens --anneal 1000 --schemes coarse,numba_histogram --runs 3
    python -m experiments.nqueens --solve 3000 --runs 30
    python -m experiments.nqueens --set 1000 --solutions 100000
    python -m experiments.nqueens --report nqueens.jsonl --figure 4 --plot schemes.png

After "Parallel schemes of the N-Queens fitness function on CPU and GPU". Seconds are medians of
several calls after one that warms up; placements lie on the device. What would take longer than
`--limit` seconds, judging by a smaller size, is left out.

`serial`, the schemes on threads and the compiled loops run on the CPU also where JAX has a GPU; for
all on the CPU set JAX_PLATFORMS=cpu. Each record says where it was made. `numba` is the paper's
double loop, compiled for one core (numba, from the extra `peers`), and what all speed-ups are over;
`numba_histogram` the same in O(n).

Figure 1: the share of annealing's time that evaluation takes: what a step is longer by than the
same step with an evaluation that does nothing, on the same device. A step evaluates twice, the
second time when it is made; compiled loops once.
Figures 2 and 3: the speed of the schemes on threads by their number, and the best number by size.
Figures 4 and 5: all schemes beside one another, and their speed-ups.
Figure 6: `coarse` on random placements and on valid ones.
Figure 7: annealing with full evaluation, and with deltas in O(1), a step.
Tables 3 and 4: `subtasks` by their threshold, up to and from 100,000 queens.
`--anneal`: annealing with full evaluation by `--schemes`, one move a step, to a valid placement
(section 4), at most `--limit` seconds; `--searches` of them side by side.
`--batch`: many placements evaluated in one call by `histogram`.
`--solve`: annealing with deltas, and min-conflicts, to a valid placement; seconds from random
starts that lie on the device.
`--set`: `solve_nqueens` for many placements, or for one; the second of two calls.
`--stream`: what `solve_nqueens` does on the device, without bringing placements to the host.
"""

import argparse
import importlib.util
import itertools
import pathlib
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxopt_search as js
from experiments import common, compiled_queens, flag_types, nqueens_annealing
from experiments.common import Progress, Runs
from experiments.nqueens_annealing import COMPILED
from experiments.nqueens_tables import FIGURES, ON_ONE_CORE, PLOTS, TABLES
from jaxopt_search.engine import device_split
from jaxopt_search.engine.state import make_rules
from jaxopt_search.problems.queens import attacks as evaluation
from jaxopt_search.problems.queens.attacks import host
from jaxopt_search.problems.queens.problem import hoffman
from jaxopt_search.solvers import queens_searched

DEFAULTS: dict[str, list[int]] = {
    "figure 2": [100, 300, 1000, 3000, 10_000],
    "figure 4": [100, 300, 1000, 3000, 10_000],
    "figure 6": [100, 1000, 10_000],
    "figure 7": [100, 300, 1000, 3000],
    "table 3": [1000, 10_000],
    "table 4": [100_000],
}
SAME = {
    "figure 1": "figure 7",
    "figure 3": "figure 2",
    "figure 5": "figure 4",
    "table 4": "table 3",
}
"""What is made of the same measurements."""
THRESHOLDS = [2**k for k in range(10, 18)]
ANNEALED = (*COMPILED, "coarse", "histogram", "nothing", "deltas")
_SCHEMES = (*COMPILED, *evaluation.SCHEMES, "nothing", "deltas")
_REPEATS, _LONG = 7, 2.0
_STEPS = {"deltas": 10_000}
"""Of annealing, where not 1000."""
_SOLVED_BY = {"num_searches": 32, "moves_per_search": 256, "temperature": 0.1}
_CHECK_EVERY = 250


class Job(NamedTuple):
    """One measurement."""

    kind: str
    n: int
    settings: dict[str, Any]


def jobs_of(args: argparse.Namespace) -> list[Job]:
    """Returns what the flags ask for."""
    if args.solve:
        return [
            Job("solve", n, {"search": search} | _SOLVED_BY)
            for n in args.solve
            for search in ("annealing", "min_conflicts")
        ]
    if unknown := set(args.schemes or ()) - set(_SCHEMES):
        raise ValueError(
            f"--schemes: no scheme {', '.join(sorted(unknown))}; there are {', '.join(_SCHEMES)}"
        )
    if args.anneal:
        return _to_the_end(args)
    if args.set:
        wanted = {"solutions": args.solutions, "distinct": args.distinct}
        return [Job("set", n, wanted) for n in args.set]
    if args.stream:
        return [Job("stream", n, {"rounds": args.rounds}) for n in args.stream]
    if args.batch:
        return [Job("evaluate", n, _evaluation("histogram", batch=args.size)) for n in args.batch]
    what = f"table {args.table}" if args.table else f"figure {args.figure}"
    sizes = args.sizes or DEFAULTS.get(what) or DEFAULTS[SAME[what]]
    jobs = [job for n in sizes for job in _jobs(SAME.get(what, what), n, args.threads)]
    return _runnable([job for job in jobs if job.settings["scheme"] in (args.schemes or _SCHEMES)])


def _to_the_end(args: argparse.Namespace) -> list[Job]:
    """Returns what `--anneal` asks for."""
    kept = ("searches", "temperature", "alpha", "steps_per_temperature")
    chosen = {name: getattr(args, name) for name in kept} | {"max_seconds": args.limit}
    js.schedules.geometric(args.temperature, args.alpha, args.steps_per_temperature)  # refuses
    schemes = args.schemes or ("coarse",)
    if nothing := {"nothing", "numba_nothing", "deltas"} & set(schemes):
        raise ValueError(f"--schemes: {', '.join(sorted(nothing))} is no full evaluation")
    return _runnable(
        [
            Job("anneal to the end", n, {"scheme": scheme} | chosen)
            for n in args.anneal
            for scheme in schemes
            if scheme not in COMPILED or args.searches == 1
        ]
    )


def _runnable(jobs: list[Job]) -> list[Job]:
    """Returns the jobs, without compiled loops where there is no compiler.

    Raises:
      ValueError: if a job runs on the CPU, and JAX has none.
    """
    if not importlib.util.find_spec("numba"):
        jobs = [job for job in jobs if job.settings["scheme"] not in COMPILED]
    for job in jobs:
        device_of(job)
    return jobs


def device_of(job: Job) -> jax.Device:
    """Returns where a job runs: the CPU for what belongs there, else JAX's default device.

    Raises:
      ValueError: if JAX has no CPU.
    """
    if job.settings.get("scheme") not in (*ON_ONE_CORE, *host.HOST):
        return device_split.find_devices(None)[0]
    try:
        return device_split.find_devices("cpu")[0]
    except ValueError:
        raise ValueError("JAX_PLATFORMS leaves out the CPU, expected it to hold cpu, too") from None


def _evaluation(scheme: str, **settings: Any) -> dict[str, Any]:
    return {"scheme": scheme, "placement": "random", "batch": 1} | settings


def _jobs(what: str, n: int, threads: Sequence[int] | None) -> Iterator[Job]:
    match what:
        case "figure 7":
            for scheme in ANNEALED:
                yield Job("anneal", n, {"scheme": scheme, "steps": _STEPS.get(scheme, 1000)})
        case "figure 2":
            counts = threads or [1 << k for k in range(8) if 1 << k <= 2 * common.num_cores()]
            yield Job("evaluate", n, _evaluation("numba"))
            for scheme, count in itertools.product(host.HOST, counts):
                yield Job("evaluate", n, _evaluation(scheme, num_threads=count))
        case "figure 4":
            for scheme in ("numba", "numba_histogram", *evaluation.SCHEMES):
                yield Job("evaluate", n, _evaluation(scheme))
        case "figure 6":
            for placement in ("random", "valid"):
                yield Job("evaluate", n, _evaluation("coarse", placement=placement))
        case "table 3":
            yield Job("evaluate", n, _evaluation("coarse"))
            for threshold in THRESHOLDS:
                if threshold < n:
                    yield Job("evaluate", n, _evaluation("subtasks", threshold=threshold))


def measure(job: Job, seed: int) -> dict[str, Any]:
    """Returns what a measurement gives: its seconds, among others.

    Raises:
      MemoryError: if what it takes does not fit.
    """
    with jax.default_device(device_of(job)):
        return _MEASURES[job.kind](job, seed)


def _evaluate(job: Job, seed: int) -> dict[str, Any]:
    options = dict(job.settings)
    scheme, placement, batch = (options.pop(name) for name in ("scheme", "placement", "batch"))
    generator = np.random.default_rng(seed)
    rows = [
        hoffman(job.n) if placement == "valid" else generator.permutation(job.n)
        for _ in range(batch)
    ]
    queens = np.array(rows if batch > 1 else rows[0], np.int32)
    if scheme in COMPILED:
        count = compiled_queens.counter(COMPILED[scheme])
        count(np.zeros(1, np.int32))
        seconds, attacks = _median(lambda: count(queens))
        return {"seconds": seconds, "attacks": int(attacks)}
    count_all = _count_several if batch > 1 else _count_one
    function, placed = evaluation.scheme(scheme, job.n, **options), jnp.asarray(queens)
    compiled = count_all.lower(function, placed).compile()
    seconds, counted = _median(lambda: jax.block_until_ready(compiled(function, placed)))
    return {"seconds": seconds / batch, "attacks": int(np.sum(evaluation.as_python(counted)))}


@jax.jit
def _count_one(function: Any, queens: jax.Array) -> evaluation.Total:
    return function(queens)


@jax.jit
def _count_several(function: Any, queens: jax.Array) -> evaluation.Total:
    return jax.lax.map(function, queens)


def _median(call: Callable[[], Any]) -> tuple[float, Any]:
    """Returns the median seconds of calls and what they returned.

    The first call warms up, and counts only where it takes long. Then fewer are made.
    """
    seconds: list[float] = []
    while True:
        began = time.perf_counter()
        result = call()
        seconds.append(time.perf_counter() - began)
        if len(seconds) > _REPEATS or sum(seconds) > _LONG:
            return statistics.median(seconds[1:] or seconds), result


def _anneal(job: Job, seed: int) -> dict[str, Any]:
    scheme, steps = job.settings["scheme"], job.settings["steps"]
    annealing = nqueens_annealing.start(job.n, scheme, compiled_queens.Cooling(0.1), seed)
    annealing.advance(1)
    seconds, _ = _median(lambda: annealing.advance(steps))
    return {"seconds": seconds / steps}


def _anneal_to_the_end(job: Job, seed: int) -> dict[str, Any]:
    chosen = job.settings
    cooling = compiled_queens.Cooling(
        chosen["temperature"], chosen["alpha"], chosen["steps_per_temperature"]
    )
    annealing = nqueens_annealing.start(job.n, chosen["scheme"], cooling, seed, chosen["searches"])
    return nqueens_annealing.to_the_end(annealing, chosen["max_seconds"])


def _solve(job: Job, seed: int) -> dict[str, Any]:
    chosen = job.settings
    problem = js.nqueens(job.n)
    make = {"annealing": js.simulated_annealing, "min_conflicts": js.min_conflicts}
    search = make[chosen["search"]](
        js.QueenSwap(), chosen["temperature"], moves_per_search=chosen["moves_per_search"]
    )
    placement = device_split.DeviceSplit(device_split.find_devices(None))
    rules = make_rules(search, jnp.int32, target=0, check_every=_CHECK_EVERY)

    def run(steps: int) -> tuple[js.RunState, float]:
        state = js.init(seed, problem, search, num_searches=chosen["num_searches"])
        state = jax.block_until_ready(placement.split(state))
        began = time.perf_counter()
        state = placement.advance(problem, search, state, steps, rules)
        return jax.block_until_ready(state), time.perf_counter() - began

    run(0)
    state, seconds = run(1000 * job.n)
    queens, cost = jax.device_get(js.best(problem, search, state))
    is_valid = int(cost) == 0 == js.attacking_pairs(queens)
    return {"seconds": seconds, "steps": int(state.step.low), "reached": is_valid}


def _find_set(job: Job, seed: int) -> dict[str, Any]:
    wanted, distinct = job.settings["solutions"], job.settings["distinct"]
    js.solve_nqueens(job.n, wanted, seed, distinct=distinct, max_seconds=600)
    began = time.perf_counter()
    result = js.solve_nqueens(job.n, wanted, seed + 1, distinct=distinct, max_seconds=600)
    seconds = time.perf_counter() - began
    different = js.placements.diversity(result.solutions[:1000])
    attacks = js.attacking_pairs(result.solutions[:1000])
    return {
        "seconds": seconds,
        "found": len(result.solutions),
        "repeated": result.num_found - len(result.solutions),
        "implementation": result.env["implementation"],
        "mean_difference": different.mean_difference,
        "valid": int(np.sum(attacks == 0)),
    }


def _stream(job: Job, seed: int) -> dict[str, Any]:
    chosen = queens_searched.plan_of(job.n, jax.default_backend())
    problem, search = js.nqueens(job.n), queens_searched.search_of(chosen)
    count, looks = chosen.num_searches, itertools.count()

    def rounds(state: js.RunState, age: jax.Array, number: int) -> tuple[Any, Any, list[Any]]:
        harvests = []
        for look in itertools.islice(looks, number):
            state = js.advance(problem, search, state, chosen.steps)
            state, age, harvest = queens_searched.harvested(
                problem, search, state, age, jnp.uint32(look), distinct="raw", tries=chosen.tries
            )
            harvests.append((harvest.is_valid, harvest.words))
        return state, age, [*harvests, harvest]

    state = js.init(seed, problem, search, num_searches=count)
    state, age, _ = jax.block_until_ready(rounds(state, jnp.zeros(count, jnp.int32), 4))
    began = time.perf_counter()
    *_, harvests = jax.block_until_ready(rounds(state, age, job.settings["rounds"]))
    seconds = time.perf_counter() - began
    *kept, last = jax.device_get(harvests)
    words = np.concatenate([words[is_valid] for is_valid, words in kept])
    queens = last.queens[last.is_valid][:1000]
    different = js.placements.diversity(queens)
    return {
        "seconds": seconds,
        "found": len(np.unique(js.placements.as_numbers(words))),
        "repeated": len(words) - len(np.unique(js.placements.as_numbers(words))),
        "mean_difference": different.mean_difference,
        "valid": int(np.sum(js.attacking_pairs(queens) == 0)),
    }


_MEASURES = {
    "evaluate": _evaluate,
    "anneal": _anneal,
    "anneal to the end": _anneal_to_the_end,
    "solve": _solve,
    "set": _find_set,
    "stream": _stream,
}


def execute(jobs: Sequence[Job], seeds: range, runs: Runs, limit: float) -> list[dict[str, Any]]:
    """Makes the measurements that are not in the file yet; returns the records of all."""
    progress, wanted = Progress(len(jobs) * len(seeds)), []
    for job, seed in itertools.product(jobs, seeds):
        settings, name = job.settings | {"kind": job.kind}, f"n{job.n}"
        wanted.append((settings, name, seed))
        if runs.has(*wanted[-1]) or _expected(job, runs.records) > limit:
            progress.skip(1)
            continue
        devices = device_split.find_devices("all") if job.kind == "set" else (device_of(job),)
        try:
            measured = measure(job, seed)
        except MemoryError as error:
            measured = {"seconds": None, "refused": str(error)}
        runs.add(
            {
                "experiment": "nqueens",
                "instance": name,
                "n": job.n,
                "seed": seed,
                "settings": settings,
                **measured,
                **_host(),
                **common.provenance(devices),
            }
        )
        progress.step(1, f"{job.n} queens, {job.settings.get('scheme', job.kind)}")
    return runs.those(wanted)


def _host() -> dict[str, Any]:
    """Returns the model of the CPU and how many cores of it may be used."""
    model, about = platform.processor(), pathlib.Path("/proc/cpuinfo")
    for line in about.read_text().splitlines() if about.exists() else ():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            model = value.strip()
    return {"cpu": model, "cores": common.num_cores()}


def _expected(job: Job, records: Sequence[dict[str, Any]]) -> float:
    """Returns the seconds that a scheme would take at most, judging by the next smaller size."""
    scheme, steps = job.settings.get("scheme"), job.settings.get("steps", 1)
    smaller = [
        (record["n"], record["seconds"])
        for record in records
        if (record["settings"]["kind"], record["settings"].get("scheme")) == (job.kind, scheme)
        and record["n"] < job.n
        and record["seconds"]
    ]
    if scheme is None or not smaller:
        return 0.0
    n, seconds = max(smaller)
    return steps * seconds * (job.n / n) ** 2


def parser() -> argparse.ArgumentParser:
    """Returns the flags of this script."""
    flags = argparse.ArgumentParser(
        prog="experiments.nqueens", description="N-Queens: counting attacks, finding placements."
    )
    flags.add_argument("--figure", type=int, choices=range(1, 8), default=4)
    flags.add_argument("--table", type=int, choices=(3, 4))
    flags.add_argument("--batch", type=flag_types.integers, help="sizes to evaluate in batches")
    flags.add_argument("--size", type=flag_types.positive, default=32, help="placements in a batch")
    flags.add_argument("--solve", type=flag_types.integers, help="sizes to solve")
    flags.add_argument(
        "--anneal", type=flag_types.integers, help="sizes to anneal by full evaluation"
    )
    flags.add_argument("--searches", type=flag_types.positive, default=1, help="side by side")
    flags.add_argument("--temperature", type=flag_types.limit, default=0.1, help="the first one")
    flags.add_argument("--alpha", type=flag_types.limit, default=1.0, help="cooling: factor of it")
    flags.add_argument(
        "--steps-per-temperature", type=flag_types.positive, default=1, help="of the factor"
    )
    flags.add_argument("--threads", type=flag_types.integers, help="numbers of threads to measure")
    flags.add_argument("--set", type=flag_types.integers, help="sizes to find sets for")
    flags.add_argument("--stream", type=flag_types.integers, help="sizes to find placements for")
    flags.add_argument("--rounds", type=flag_types.positive, default=50, help="of a stream")
    flags.add_argument("--solutions", type=flag_types.positive, default=10_000, help="of a set")
    flags.add_argument("--distinct", choices=("raw", "symmetry"), default="raw")
    flags.add_argument("--schemes", type=flag_types.words, help="only these of a figure or table")
    flags.add_argument("--sizes", type=flag_types.integers, help="of figures and tables")
    flags.add_argument(
        "--runs", type=flag_types.positive, default=1, help="of each, seeds from 0 on"
    )
    flags.add_argument("--limit", type=flag_types.limit, default=60.0, help="seconds of one line")
    flags.add_argument("--plot", metavar="FILE", help="where to draw the figure")
    common.add_record_arguments(flags, "nqueens")
    return flags


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the script and returns its exit status."""
    flags = parser()
    args = flags.parse_args(arguments)
    records, status = common.measured_or_read(
        flags, args, jobs_of, lambda jobs, runs: execute(jobs, range(args.runs), runs, args.limit)
    )
    if status:
        return status
    extra = [name for name in TABLES if getattr(args, name, None)]
    show = TABLES[extra[0]] if extra else FIGURES[args.figure]
    print(show(records, markdown=args.markdown))
    if args.plot:
        common.save_plot(args.plot, PLOTS[args.figure](records), (6.4, 4.8))
    return 0


if __name__ == "__main__":
    sys.exit(main())
