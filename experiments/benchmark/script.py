"""The flags of the script, and what they do."""

import argparse
import itertools
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import jax

import jaxopt_search as js
from experiments import common, flag_types
from experiments.benchmark import tables
from experiments.common import Progress
from experiments.pspm.runs import Cooling
from jaxopt_search.backends import Choice, Implementation
from jaxopt_search.datasets.instances import TSPInstance
from jaxopt_search.engine import device_split, outcome, stepping
from jaxopt_search.engine.state import RunState, make_rules

NEIGHBORHOODS: dict[str, Callable[[js.TSP], Any]] = {
    "relocate": lambda problem: js.Relocate(),
    "two_opt": js.two_opt,
}
IMPLEMENTATIONS = ("auto", "xla", "native", "triton")
SIZE = 30_000
"""Cities have whole coordinates below this, so that squared distances fit into 32 bits."""
_PILOT_STEPS = 1000

Advance: TypeAlias = Callable[[RunState, int], RunState]


class Case(NamedTuple):
    """One line of the table; `implementation` is the requested one."""

    cities: int
    searches: int
    moves: int
    devices: tuple[jax.Device, ...]
    neighborhood: str = "relocate"
    implementation: Implementation = "auto"


class Prepared(NamedTuple):
    """A case ready to run.

    Attributes:
      advance: makes this many steps.
      start: where to begin.
      search_best: gets the best cost.
      ran: the implementation that runs.
    """

    advance: Advance
    start: RunState
    search_best: Callable[[RunState], int]
    ran: Choice


class Timing(NamedTuple):
    """What was measured of a case: [repetitions] seconds of `num_steps` steps each."""

    compile_seconds: float
    num_steps: int
    seconds: list[float]
    best: int
    ran: Choice


def measure(case: Case, repetitions: int, seconds: float) -> Timing:
    """Times a case.

    Args:
      repetitions: how often.
      seconds: about how long each repetition takes; the number of steps is chosen so.
    """
    advance, state, search_best, ran = _prepared(case)
    began = time.perf_counter()
    state = advance(state, 0)
    compile_seconds = time.perf_counter() - began
    pilot, state = _timed(advance, state, _PILOT_STEPS)
    num_steps = max(1, round(seconds / pilot * _PILOT_STEPS))
    times = []
    for _ in range(repetitions):
        elapsed, state = _timed(advance, state, num_steps)
        times.append(elapsed)
    return Timing(compile_seconds, num_steps, times, search_best(state), ran)


def instance(case: Case) -> TSPInstance:
    """Returns the instance of a case, whose distances can be computed from coordinates."""
    return js.datasets.uniform_tsp(case.cities, seed=0, size=SIZE)


def annealing(case: Case) -> tuple[js.TSP, js.SimulatedAnnealing]:
    """Returns the instance of a case and its search."""
    problem = js.tsp_from_instance(instance(case))
    cooling = Cooling()
    schedule = js.geometric(cooling.start, cooling.alpha, cooling.sweeps * case.cities)
    neighborhood = NEIGHBORHOODS[case.neighborhood](problem)
    return problem, js.simulated_annealing(neighborhood, schedule, moves_per_search=case.moves)


def choose(case: Case) -> Choice:
    """Returns the implementation that runs a case.

    Raises:
      ValueError: if the requested one cannot.
    """
    problem, search = annealing(case)
    return stepping.choose(case.implementation, case.devices[0], problem, search)


def _prepared(case: Case) -> Prepared:
    (problem, search), ran = annealing(case), choose(case)
    per_temperature = Cooling().sweeps * case.cities
    rule = js.broadcast_best(every=Cooling().exchange_every * per_temperature)
    split = device_split.DeviceSplit(case.devices)

    def advance(state: RunState, num_steps: int) -> RunState:
        dtype = state.best_cost.dtype
        rules = make_rules(search, dtype, exchange=rule, check_every=per_temperature)
        return jax.block_until_ready(
            split.advance(problem, search, state, num_steps, rules, ran.implementation)
        )

    def best(state: RunState) -> int:
        tour, _ = outcome.best(problem, search, split.join(state, case.searches))
        return int(problem.host.cost(jax.device_get(tour)))

    start = split.split(js.init(0, problem, search, num_searches=case.searches))
    return Prepared(advance, start, best, ran)


def _timed(advance: Advance, state: RunState, num_steps: int) -> tuple[float, RunState]:
    began = time.perf_counter()
    state = advance(state, num_steps)
    return time.perf_counter() - began, state


def records(case: Case, timing: Timing) -> list[dict[str, Any]]:
    """Returns one record per repetition."""
    moves = timing.num_steps * case.searches * case.moves
    origin = common.provenance(case.devices)
    origin["env"] |= {"implementation": str(timing.ran)}
    return [
        {
            "experiment": "benchmark",
            "instance": instance(case).name,
            "seed": 0,
            "repetition": repetition,
            "settings": {
                "cities": case.cities,
                "searches": case.searches,
                "moves": case.moves,
                "neighborhood": case.neighborhood,
                "implementation": timing.ran.implementation,
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
            **origin,
        }
        for repetition, seconds in enumerate(timing.seconds)
    ]


def parser() -> argparse.ArgumentParser:
    """Returns the flags of this script."""
    flags = argparse.ArgumentParser(
        prog="experiments.benchmark",
        description="Measures how many moves per second annealing prices.",
    )
    flags.add_argument("--cities", type=flag_types.integers, default=[100])
    flags.add_argument("--searches", type=flag_types.integers, default=[98])
    flags.add_argument("--moves", type=flag_types.integers, default=[12, 32, 64])
    flags.add_argument("--neighborhood", choices=tuple(NEIGHBORHOODS), default="relocate")
    flags.add_argument(
        "--implementation", choices=IMPLEMENTATIONS, default="auto", help="how steps are run"
    )
    flags.add_argument(
        "--devices", type=flag_types.devices, help="a number or all (default: one, then all)"
    )
    flags.add_argument("--repetitions", type=flag_types.positive, default=5)
    flags.add_argument(
        "--seconds", type=flag_types.limit, default=1.0, help="of each repetition, about"
    )
    common.add_record_arguments(flags, "benchmark")
    flags.add_argument("--plot", metavar="FILE", help="draw moves/s against the sizes")
    return flags


def cases_from_arguments(args: argparse.Namespace) -> list[Case]:
    """Returns the lines of the table.

    Raises:
      ValueError: if there are no such devices.
    """
    choices = [1, "all"] if args.devices is None else [args.devices]
    devices = dict.fromkeys(device_split.find_devices(choice) for choice in choices)
    return [
        Case(*sizes, args.neighborhood, args.implementation)
        for sizes in itertools.product(args.cities, args.searches, args.moves, devices)
    ]


def _measure_all(flags: argparse.ArgumentParser, args: argparse.Namespace) -> list[dict[str, Any]]:
    common.use_cpu_cores()
    try:
        cases = cases_from_arguments(args)
        choose(cases[0])
    except ValueError as error:
        flags.error(str(error))
    progress, measured = Progress(len(cases)), []
    for case in cases:
        for record in records(case, measure(case, args.repetitions, args.seconds)):
            measured.append(record)
            if args.out:
                common.append(args.out, record)
        progress.step(1, f"{case.cities} cities, {case.searches} x {case.moves}")
    print(
        f"medians of {args.repetitions} repetitions of about {args.seconds:g} s, lowest to highest"
    )
    return measured


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the script and returns its exit status."""
    flags = parser()
    args = flags.parse_args(arguments)
    if args.report:
        measured = common.read_all(args.report)
    else:
        measured = _measure_all(flags, args)
    print(tables.report(measured, markdown=args.markdown))
    if args.plot:
        common.save_plot(args.plot, lambda ax: tables.draw(measured, ax), (12, 5))
    return 0


if __name__ == "__main__":
    sys.exit(main())
