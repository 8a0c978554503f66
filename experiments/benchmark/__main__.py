"""See `experiments.benchmark`."""

import argparse
import itertools
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax

import jaxopt_search as js
from experiments import benchmark, common, flag_types
from experiments.common import Progress, Runs
from experiments.pspm.runs import Cooling
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


def measure(
    args: argparse.Namespace,
    cities: int,
    searches: int,
    moves: int,
    devices: tuple[jax.Device, ...],
) -> Iterator[dict[str, Any]]:
    """Yields a record for each repetition.

    Raises:
      ValueError: if the requested implementation cannot run it.
    """
    instance = js.datasets.uniform_tsp(cities, seed=0, size=SIZE)
    problem, cooling = js.tsp_from_instance(instance), Cooling()
    per_temperature = cooling.sweeps * cities
    schedule = js.geometric(cooling.start, cooling.alpha, per_temperature)
    neighborhood = NEIGHBORHOODS[args.neighborhood](problem)
    search = js.simulated_annealing(neighborhood, schedule, moves_per_search=moves)
    ran = stepping.choose(args.implementation, devices[0], problem, search)
    split, state = DeviceSplit(devices), js.init(0, problem, search, num_searches=searches)
    rule = js.broadcast_best(every=cooling.exchange_every * per_temperature)
    rules = make_rules(search, state.best_cost.dtype, exchange=rule, check_every=per_temperature)
    state = split.split(state)

    def advance(num_steps: int) -> float:
        nonlocal state
        how = num_steps, rules, ran.implementation
        state, took = common.timed(split.steps(problem, search, state, *how))
        return took

    compile_seconds = advance(0)
    num_steps = max(1, round(args.seconds / advance(_PILOT_STEPS) * _PILOT_STEPS))
    times = [advance(num_steps) for _ in range(args.repetitions)]
    tour, _ = outcome.best(problem, search, split.join(state, searches))
    priced = num_steps * searches * moves
    settings = {
        "cities": cities,
        "searches": searches,
        "moves": moves,
        "neighborhood": args.neighborhood,
        "implementation": ran.implementation,
        "device_kind": devices[0].device_kind,
        "num_devices": len(devices),
    }
    for repetition, took in enumerate(times):
        measured = {"cost": int(problem.host.cost(jax.device_get(tour))), "steps": num_steps}
        measured |= {"moves": priced, "seconds": took, "sses": priced / took}
        measured |= {"repetition": repetition, "compile_seconds": compile_seconds}
        one = common.record("benchmark", instance.name, 0, settings, devices, **measured)
        one["env"]["implementation"] = str(ran)
        yield one


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


def measure_all(args: argparse.Namespace, runs: Runs) -> list[dict[str, Any]]:
    """Measures all cases anew, and adds the records to the file."""
    choices = [1, "all"] if args.devices is None else [args.devices]
    devices = dict.fromkeys(find_devices(choice) for choice in choices)
    cases = list(itertools.product(args.cities, args.searches, args.moves, devices))
    progress, found = Progress(len(cases)), []
    for case in cases:
        for record in measure(args, *case):
            runs.add(record)
            found.append(record)
        progress.step("{} cities, {} x {}".format(*case))
    print(f"medians of {args.repetitions} repetitions of about {args.seconds:g} s,", end=" ")
    print("lowest to highest")
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
    return common.run_script(flags, arguments, lambda args: args, report, measure_all)


if __name__ == "__main__":
    sys.exit(main())
