"""How many moves per second annealing prices: the speed of PSPM on this machine.

    python -m experiments.benchmark
    python -m experiments.benchmark --cities 100,442 --searches 98,1024 --moves 12,32 --devices all

Uniform random instances, relocation moves, the PSPM paper's cooling and broadcast. Compilation is
timed apart; then each repetition goes on from where the one before ended. The paper's 12-core
CPU made 4.7e6 (SSPM) and 1.3e7 moves/s (PSSM), its GPU 4.6e8 to 9.1e8 (PSPM).
"""

import argparse
import itertools
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import jax

import jaxopt_search as js
from experiments import common
from experiments.common import Progress
from experiments.pspm_runs import Cooling
from jaxopt_search import loop, parallel

CLAIM = 5e7
"""Moves/s on 100 cities that two CPU cores should reach."""
_PILOT_STEPS = 1000

Advance: TypeAlias = Callable[[loop.RunState, int], loop.RunState]


class Case(NamedTuple):
    """One line of the table."""

    cities: int
    searches: int
    moves: int
    devices: tuple[jax.Device, ...]


class Timing(NamedTuple):
    """What was measured of a case: [repetitions] seconds of `num_steps` steps each."""

    compile_seconds: float
    num_steps: int
    seconds: list[float]
    best: int


def measure(case: Case, repetitions: int, seconds: float) -> Timing:
    """Times a case.

    Args:
      repetitions: how often.
      seconds: about how long each repetition takes; the number of steps is chosen so.
    """
    advance, state, search_best = _prepared(case)
    began = time.perf_counter()
    state = advance(state, 0)
    compile_seconds = time.perf_counter() - began
    pilot, state = _timed(advance, state, _PILOT_STEPS)
    num_steps = max(1, round(seconds / pilot * _PILOT_STEPS))
    times = []
    for _ in range(repetitions):
        elapsed, state = _timed(advance, state, num_steps)
        times.append(elapsed)
    return Timing(compile_seconds, num_steps, times, search_best(state))


def _prepared(case: Case) -> tuple[Advance, loop.RunState, Callable[[loop.RunState], int]]:
    """Returns how to advance a case, where to start, and how to get its best cost."""
    problem = js.tsp_from_instance(js.datasets.uniform_tsp(case.cities, seed=0))
    cooling, per_temperature = Cooling(), Cooling().sweeps * case.cities
    schedule = js.geometric(cooling.start, cooling.alpha, per_temperature)
    search = js.simulated_annealing(js.Relocate(), schedule, moves_per_search=case.moves)
    rule = js.broadcast_best(every=cooling.exchange_every * per_temperature)
    placement = parallel.Placement(case.devices)

    def advance(state: loop.RunState, num_steps: int) -> loop.RunState:
        options = {"exchange": rule, "check_every": per_temperature}
        return jax.block_until_ready(
            placement.advance(problem, search, state, num_steps, **options)
        )

    def best(state: loop.RunState) -> int:
        tour, _ = loop.best(problem, search, placement.join(state, case.searches))
        return int(problem.host.cost(jax.device_get(tour)))

    return advance, placement.split(js.init(0, problem, search, num_searches=case.searches)), best


def _timed(advance: Advance, state: loop.RunState, num_steps: int) -> tuple[float, loop.RunState]:
    began = time.perf_counter()
    state = advance(state, num_steps)
    return time.perf_counter() - began, state


def records(case: Case, timing: Timing) -> list[dict[str, Any]]:
    """Returns one record per repetition."""
    moves = timing.num_steps * case.searches * case.moves
    return [
        {
            "experiment": "benchmark",
            "instance": f"uniform-{case.cities}-s0",
            "seed": 0,
            "repetition": repetition,
            "settings": {
                "cities": case.cities,
                "searches": case.searches,
                "moves": case.moves,
                "device_kind": case.devices[0].device_kind,
                "num_devices": len(case.devices),
            },
            "cost": timing.best,
            "best_known": None,
            "sec": None,
            "steps": timing.num_steps,
            "moves": moves,
            "seconds": seconds,
            "sses": moves / seconds,
            "compile_seconds": timing.compile_seconds,
            **common.provenance(case.devices),
        }
        for repetition, seconds in enumerate(timing.seconds)
    ]


def row(case: Case, timing: Timing) -> list[str]:
    """Returns the line of a case in the table."""
    lanes = case.searches * case.moves
    speeds = sorted(timing.num_steps / seconds for seconds in timing.seconds)
    low, median, high = speeds[0], statistics.median(speeds), speeds[-1]
    return [
        str(case.cities),
        str(case.searches),
        str(case.moves),
        f"{len(case.devices)} x {case.devices[0].device_kind}",
        f"{median:.3g}",
        f"{median * lanes:.3g}",
        f"{low * lanes:.3g} to {high * lanes:.3g}",
        f"{timing.compile_seconds:.1f}",
    ]


_HEADER = ("cities", "searches", "moves", "devices", "steps/s", "moves/s", "spread", "compile s")


def verdict(measured: list[dict[str, Any]]) -> str:
    """Returns whether the claim about 100 cities on two CPU cores holds; "" if not measured."""
    speeds: dict[str, list[float]] = {}
    for record in measured:
        settings = record["settings"]
        if settings["cities"] == 100 and settings["device_kind"] == "cpu":
            speeds.setdefault(json.dumps(settings), []).append(record["sses"])
    if not speeds:
        return ""
    best = max(statistics.median(values) for values in speeds.values())
    return (
        f"claim: {CLAIM:.0e} moves/s on 100 cities with two CPU cores; the fastest line above has"
        f" {best:.2e}: {'holds' if best >= CLAIM else 'does not hold here'}"
    )


def parser() -> argparse.ArgumentParser:
    """Returns the flags of this script."""
    flags = argparse.ArgumentParser(
        prog="experiments.benchmark",
        description="Measures how many moves per second annealing prices.",
    )
    flags.add_argument("--what", choices=("moves",), default="moves")
    flags.add_argument("--cities", type=common.integers, default=[100])
    flags.add_argument("--searches", type=common.integers, default=[98])
    flags.add_argument("--moves", type=common.integers, default=[12, 32, 64])
    flags.add_argument(
        "--devices", type=common.devices_argument, help="a number or all (default: one, then all)"
    )
    flags.add_argument("--repetitions", type=int, default=5)
    flags.add_argument("--seconds", type=float, default=1.0, help="of each repetition, about")
    flags.add_argument("--out", help="file of JSON lines to add to")
    flags.add_argument("--markdown", action="store_true", help="a table for a web page")
    return flags


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the script and returns its exit status."""
    args = parser().parse_args(arguments)
    common.use_cpu_cores()
    choices = [1, "all"] if args.devices is None else [args.devices]
    devices = dict.fromkeys(parallel.find_devices(choice) for choice in choices)
    cases = [Case(*c) for c in itertools.product(args.cities, args.searches, args.moves, devices)]
    progress, rows, measured = Progress(len(cases)), [], []
    for case in cases:
        timing = measure(case, args.repetitions, args.seconds)
        rows.append(row(case, timing))
        for record in records(case, timing):
            measured.append(record)
            if args.out:
                common.append(args.out, record)
        progress.step(1, f"{case.cities} cities, {case.searches} x {case.moves}")
    print(common.table(_HEADER, rows, markdown=args.markdown))
    print(
        f"medians of {args.repetitions} repetitions of about {args.seconds:g} s, lowest to highest"
    )
    print(verdict(measured), end="\n" if verdict(measured) else "")
    return 0


if __name__ == "__main__":
    sys.exit(main())
