"""See `experiments.benchmark`."""

import argparse
import itertools
import statistics
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax

import jaxopt_search as js
from experiments import benchmark, common, flag_types
from experiments.common import Progress, Runs
from experiments.pspm.runs import Cooling
from jaxopt_search.backends import Implementation
from jaxopt_search.engine import outcome, stepping
from jaxopt_search.engine.devices import find_devices
from jaxopt_search.engine.split import DeviceSplit
from jaxopt_search.engine.state import make_rules

NEIGHBORHOODS: dict[str, Callable[[js.TSP], Any]] = {
    "relocate": lambda problem: js.Relocate(),
    "two_opt": js.two_opt,
}
IMPLEMENTATIONS = ("auto", "xla", "native", "cuda")
SIZE = 30_000
"""Cities have whole coordinates below this, so that squared distances fit into 32 bits."""
_PILOT_STEPS = 1000


class Case(NamedTuple):
    """One line of the table; `implementation` is the requested one."""

    cities: int
    searches: int
    moves: int
    devices: tuple[jax.Device, ...]
    neighborhood: str = "relocate"
    implementation: Implementation = "auto"


def measure(case: Case, repetitions: int, seconds: float) -> list[dict[str, Any]]:
    """Returns a record for each repetition, which takes about this many seconds.

    Raises:
      ValueError: if the requested implementation cannot run it.
    """
    instance = js.datasets.uniform_tsp(case.cities, seed=0, size=SIZE)
    problem, cooling = js.tsp_from_instance(instance), Cooling()
    per_temperature = cooling.sweeps * case.cities
    schedule = js.geometric(cooling.start, cooling.alpha, per_temperature)
    neighborhood = NEIGHBORHOODS[case.neighborhood](problem)
    search = js.simulated_annealing(neighborhood, schedule, moves_per_search=case.moves)
    ran = stepping.choose(case.implementation, case.devices[0], problem, search)
    split, state = (
        DeviceSplit(case.devices),
        js.init(0, problem, search, num_searches=case.searches),
    )
    rule = js.broadcast_best(every=cooling.exchange_every * per_temperature)
    rules = make_rules(search, state.best_cost.dtype, exchange=rule, check_every=per_temperature)
    state = split.split(state)

    def advance(num_steps: int) -> float:
        nonlocal state
        how = num_steps, rules, ran.implementation
        state, took = common.timed(split.advance, problem, search, state, *how)
        return took

    compile_seconds = advance(0)
    num_steps = max(1, round(seconds / advance(_PILOT_STEPS) * _PILOT_STEPS))
    times = [advance(num_steps) for _ in range(repetitions)]
    tour, _ = outcome.best(problem, search, split.join(state, case.searches))
    moves = num_steps * case.searches * case.moves
    settings = {
        "cities": case.cities,
        "searches": case.searches,
        "moves": case.moves,
        "neighborhood": case.neighborhood,
        "implementation": ran.implementation,
        "device_kind": case.devices[0].device_kind,
        "num_devices": len(case.devices),
    }
    found = []
    for repetition, took in enumerate(times):
        measured = {"cost": int(problem.host.cost(jax.device_get(tour))), "steps": num_steps}
        measured |= {"moves": moves, "seconds": took, "sses": moves / took}
        measured |= {"repetition": repetition, "compile_seconds": compile_seconds}
        one = common.record("benchmark", instance.name, 0, settings, case.devices, **measured)
        one["env"]["implementation"] = str(ran)
        found.append(one)
    return found


def report(measured: list[dict[str, Any]], args: argparse.Namespace) -> str:
    """Returns a line for each case."""
    groups = common.grouped(measured, lambda record: tuple(record["settings"].values()))
    header = "moves by | cities | searches | moves | devices | runs as | us/step | moves/s | spread"
    rows = map(_row, groups.values())
    return common.table(f"{header} | compile s", rows, markdown=args.markdown)


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
    """Returns the lines of the table, and how often and how long each is measured."""
    choices = [1, "all"] if args.devices is None else [args.devices]
    devices = dict.fromkeys(find_devices(choice) for choice in choices)
    cases = [
        Case(*sizes, args.neighborhood, args.implementation)
        for sizes in itertools.product(args.cities, args.searches, args.moves, devices)
    ]
    return cases, args.repetitions, args.seconds


def measure_all(plan: tuple[list[Case], int, float], runs: Runs) -> list[dict[str, Any]]:
    """Measures all cases anew, and adds the records to the file."""
    cases, repetitions, seconds = plan
    progress, found = Progress(len(cases)), []
    for case in cases:
        for record in measure(case, repetitions, seconds):
            runs.add(record)
            found.append(record)
        progress.step(f"{case.cities} cities, {case.searches} x {case.moves}")
    print(f"medians of {repetitions} repetitions of about {seconds:g} s, lowest to highest")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the script and returns its exit status."""
    flags = common.parser("benchmark", benchmark.__doc__, "benchmark")
    add, numbers = flags.add_argument, flag_types.integers
    add("--cities", type=numbers, default=[100])
    add("--searches", type=numbers, default=[98])
    add("--moves", type=numbers, default=[12, 32, 64])
    add("--neighborhood", choices=tuple(NEIGHBORHOODS), default="relocate")
    add("--implementation", choices=IMPLEMENTATIONS, default="auto", help="how steps are run")
    add("--devices", type=flag_types.devices, help="a number or all (default: one, then all)")
    add("--repetitions", type=flag_types.positive, default=5)
    add("--seconds", type=flag_types.limit, default=1.0, help="of each repetition, about")
    return common.run_script(flags, arguments, cases_from_arguments, report, measure_all)


if __name__ == "__main__":
    sys.exit(main())
