"""See `experiments.benchmark`."""

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
from experiments import common, flag_types
from experiments.common import Progress, Runs
from experiments.pspm.runs import Cooling
from jaxopt_search.backends import Choice, Implementation
from jaxopt_search.datasets.instances import TSPInstance
from jaxopt_search.engine import outcome, stepping
from jaxopt_search.engine.devices import find_devices
from jaxopt_search.engine.split import DeviceSplit
from jaxopt_search.engine.state import RunState, make_rules

NEIGHBORHOODS: dict[str, Callable[[js.TSP], Any]] = {
    "relocate": lambda problem: js.Relocate(),
    "two_opt": js.two_opt,
}
IMPLEMENTATIONS = ("auto", "xla", "native", "cuda")
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


def annealing(case: Case) -> tuple[js.TSP, js.LocalSearch]:
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


def _prepared(case: Case) -> tuple[Advance, RunState, Callable[[RunState], int], Choice]:
    """Returns what makes steps, where to begin, what gets the best cost, and what runs."""
    (problem, search), ran = annealing(case), choose(case)
    per_temperature = Cooling().sweeps * case.cities
    rule = js.broadcast_best(every=Cooling().exchange_every * per_temperature)
    split = DeviceSplit(case.devices)

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
    return advance, start, best, ran


def _timed(advance: Advance, state: RunState, num_steps: int) -> tuple[float, RunState]:
    began = time.perf_counter()
    state = advance(state, num_steps)
    return time.perf_counter() - began, state


def records(case: Case, timing: Timing) -> list[dict[str, Any]]:
    """Returns one record per repetition."""
    moves = timing.num_steps * case.searches * case.moves
    settings = {
        "cities": case.cities,
        "searches": case.searches,
        "moves": case.moves,
        "neighborhood": case.neighborhood,
        "implementation": timing.ran.implementation,
        "device_kind": case.devices[0].device_kind,
        "num_devices": len(case.devices),
    }
    found = []
    for repetition, seconds in enumerate(timing.seconds):
        measured = {"cost": timing.best, "steps": timing.num_steps, "moves": moves}
        measured |= {"seconds": seconds, "sses": moves / seconds, "repetition": repetition}
        measured["compile_seconds"] = timing.compile_seconds
        one = common.record("benchmark", instance(case).name, 0, settings, case.devices, **measured)
        one["env"]["implementation"] = str(timing.ran)
        found.append(one)
    return found


def report(measured: list[dict[str, Any]], *, markdown: bool) -> str:
    """Returns a line for each case."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for record in measured:
        groups.setdefault(json.dumps(record["settings"]), []).append(record)
    header = "moves by | cities | searches | moves | devices | runs as | us/step | moves/s | spread"
    rows = map(_row, groups.values())
    return common.table(f"{header} | compile s", rows, markdown=markdown)


def _row(measured: list[dict[str, Any]]) -> list[str]:
    first, settings = measured[0], measured[0]["settings"]
    speeds = [record["sses"] for record in measured]
    median = statistics.median(speeds)
    sizes = [str(settings[name]) for name in ("cities", "searches", "moves")]
    step = 1e6 * settings["searches"] * settings["moves"] / median
    row = [settings["neighborhood"], *sizes]
    row += [f"{settings['num_devices']} x {settings['device_kind']}", settings["implementation"]]
    row += [f"{step:.3g}", f"{median:.3g}", f"{min(speeds):.3g} to {max(speeds):.3g}"]
    return [*row, f"{first['compile_seconds']:.1f}"]


def cases_from_arguments(args: argparse.Namespace) -> tuple[list[Case], int, float]:
    """Returns the lines of the table, and how often and how long each is measured.

    Raises:
      ValueError: if there are no such devices, or they cannot run it as requested.
    """
    choices = [1, "all"] if args.devices is None else [args.devices]
    devices = dict.fromkeys(find_devices(choice) for choice in choices)
    cases = [
        Case(*sizes, args.neighborhood, args.implementation)
        for sizes in itertools.product(args.cities, args.searches, args.moves, devices)
    ]
    choose(cases[0])
    return cases, args.repetitions, args.seconds


def measure_all(plan: tuple[list[Case], int, float], runs: Runs) -> list[dict[str, Any]]:
    """Measures all cases anew, and adds the records to the file."""
    cases, repetitions, seconds = plan
    progress, found = Progress(len(cases)), []
    for case in cases:
        for record in records(case, measure(case, repetitions, seconds)):
            found.append(record)
            if runs.path:
                common.append(runs.path, record)
        progress.step(1, f"{case.cities} cities, {case.searches} x {case.moves}")
    print(f"medians of {repetitions} repetitions of about {seconds:g} s, lowest to highest")
    return found


def parser() -> argparse.ArgumentParser:
    """Returns the flags of this script."""
    flags = argparse.ArgumentParser(
        prog="experiments.benchmark",
        description="Measures how many moves per second annealing prices.",
    )
    add, numbers = flags.add_argument, flag_types.integers
    add("--cities", type=numbers, default=[100])
    add("--searches", type=numbers, default=[98])
    add("--moves", type=numbers, default=[12, 32, 64])
    add("--neighborhood", choices=tuple(NEIGHBORHOODS), default="relocate")
    add("--implementation", choices=IMPLEMENTATIONS, default="auto", help="how steps are run")
    add("--devices", type=flag_types.devices, help="a number or all (default: one, then all)")
    add("--repetitions", type=flag_types.positive, default=5)
    add("--seconds", type=flag_types.limit, default=1.0, help="of each repetition, about")
    common.add_record_arguments(flags, "benchmark")
    return flags


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the script and returns its exit status."""
    return common.run_script(
        parser(),
        arguments,
        cases_from_arguments,
        lambda records, args: report(records, markdown=args.markdown),
        measure_all,
    )


if __name__ == "__main__":
    sys.exit(main())
