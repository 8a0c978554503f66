"""Measurements, each of one kind on one size, and their records."""

import functools
import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxopt_search as js
from experiments import common, one_core
from experiments.common import Job, Runs, make_missing
from experiments.queens import annealing as annealed
from experiments.queens import compiled
from experiments.queens.compiled import COMPILED
from experiments.queens.records import ON_ONE_CORE
from jaxopt_search.engine.devices import find_devices
from jaxopt_search.engine.split import DeviceSplit
from jaxopt_search.engine.state import make_rules
from jaxopt_search.problems.queens import attacks as evaluation
from jaxopt_search.problems.queens.problem import hoffman

_REPEATS, _LONG = 7, 2.0

_CHECK_EVERY = 250


class Measurement(NamedTuple):
    """One measurement."""

    kind: str
    n: int
    settings: dict[str, Any]


def device_of(job: Measurement) -> jax.Device:
    """Returns where a job runs: the CPU for what belongs there, else JAX's default device.

    Raises:
      ValueError: if JAX has no CPU.
    """
    is_of_cpu = job.settings.get("scheme") in (*ON_ONE_CORE, *evaluation.ON_HOST)
    return find_devices("cpu" if is_of_cpu else None)[0]


def measure(job: Measurement, seed: int) -> dict[str, Any]:
    """Returns what a measurement gives: its seconds, among others.

    Raises:
      MemoryError: if what it takes does not fit.
    """
    with jax.default_device(device_of(job)):
        return _MEASURES[job.kind](job, seed)


def _evaluate(job: Measurement, seed: int) -> dict[str, Any]:
    options = dict(job.settings)
    scheme, placement, _ = (options.pop(name) for name in ("scheme", "placement", "batch"))
    random = np.random.default_rng(seed).permutation(job.n)
    queens = np.asarray(hoffman(job.n) if placement == "valid" else random, np.int32)
    if scheme in COMPILED:
        count = one_core.compiled(compiled.build_counter, scheme)
        count(np.zeros(1, np.int32))
        seconds, attacks = _median(lambda: count(queens))
        return {"seconds": seconds, "attacks": int(attacks)}
    function, placed = evaluation.scheme(scheme, job.n, **options), jnp.asarray(queens)
    call = jax.jit(lambda function, queens: function(queens)).lower(function, placed).compile()
    seconds, counted = _median(lambda: call(function, placed))
    return {"seconds": seconds, "attacks": int(np.sum(evaluation.as_python(counted)))}


def _median(call: Callable[[], Any]) -> tuple[float, Any]:
    """Returns the median seconds of calls and what they returned.

    The first call warms up, and counts only where it takes long. Then fewer are made.
    """
    seconds: list[float] = []
    while True:
        result, took = common.timed(call)
        seconds.append(took)
        if len(seconds) > _REPEATS or sum(seconds) > _LONG:
            return statistics.median(seconds[1:] or seconds), result


def _anneal(job: Measurement, seed: int) -> dict[str, Any]:
    scheme, steps = job.settings["scheme"], job.settings["steps"]
    annealing = annealed.start(job.n, scheme, compiled.Cooling(0.1), seed)
    annealing.advance(1)
    seconds, _ = _median(lambda: annealing.advance(steps))
    return {"seconds": seconds / steps}


def _anneal_to_the_end(job: Measurement, seed: int) -> dict[str, Any]:
    chosen = job.settings
    cooling = compiled.Cooling(
        chosen["temperature"], chosen["alpha"], chosen["steps_per_temperature"]
    )
    annealing = annealed.start(job.n, chosen["scheme"], cooling, seed, chosen["searches"])
    return annealed.to_the_end(annealing, chosen["max_seconds"])


def _solve(job: Measurement, seed: int) -> dict[str, Any]:
    chosen = job.settings
    problem = js.nqueens(job.n)
    make = {"annealing": js.simulated_annealing, "min_conflicts": js.min_conflicts}
    search = make[chosen["search"]](
        js.QueenSwap(), chosen["temperature"], moves_per_search=chosen["moves_per_search"]
    )
    placement = DeviceSplit(find_devices(None))
    rules = make_rules(search, jnp.int32, target=0, check_every=_CHECK_EVERY)

    def run(steps: int) -> tuple[js.RunState, float]:
        state = js.init(seed, problem, search, num_searches=chosen["num_searches"])
        state = jax.block_until_ready(placement.split(state))
        return common.timed(placement.steps(problem, search, state, steps, rules))

    run(0)
    state, seconds = run(1000 * job.n)
    queens, cost = jax.device_get(js.best(problem, search, state))
    is_valid = int(cost) == 0 == js.attacking_pairs(queens)
    return {"seconds": seconds, "steps": int(state.step), "reached": is_valid}


def _find_set(job: Measurement, seed: int) -> dict[str, Any]:
    def find(seed: int) -> js.QueensResult:
        return js.solve_nqueens(job.n, job.settings["solutions"], seed, max_seconds=600)

    find(seed)
    result, seconds = common.timed(find, seed + 1)
    common.unless_interrupted(result)
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


_MEASURES = {
    "evaluate": _evaluate,
    "anneal": _anneal,
    "anneal to the end": _anneal_to_the_end,
    "solve": _solve,
    "set": _find_set,
}


def execute(plan: tuple[Sequence[Measurement], range, float], runs: Runs) -> list[dict[str, Any]]:
    """Makes the measurements that are not in the file yet; returns the records of all.

    Args:
      plan: what is measured, with which seeds, and the seconds that one may take.
    """
    measurements, seeds, limit = plan

    def make(one: Measurement, missing: Sequence[int]) -> Iterator[dict[str, Any]]:
        for seed in missing:
            if _expected(one, runs.records) <= limit:
                yield _record(one, seed)

    jobs = [
        Job(
            one.settings | {"kind": one.kind},
            f"n{one.n}",
            seeds,
            f"{one.n} queens, {one.settings.get('scheme', one.kind)}",
            functools.partial(make, one),
        )
        for one in measurements
    ]
    return make_missing(jobs, runs)


def _record(job: Measurement, seed: int) -> dict[str, Any]:
    devices = find_devices("all") if job.kind == "set" else (device_of(job),)
    try:
        measured = measure(job, seed)
    except MemoryError as error:
        measured = {"seconds": None, "refused": str(error)}
    measured |= {"n": job.n, "cores": common.num_cores()}
    settings = job.settings | {"kind": job.kind}
    return common.record("nqueens", f"n{job.n}", seed, settings, devices, **measured)


def _expected(job: Measurement, records: Sequence[dict[str, Any]]) -> float:
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
