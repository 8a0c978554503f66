"""How many moves per second annealing prices: the speed of PSPM on this machine.

    python -m experiments.benchmark
    python -m experiments.benchmark --cities 100,442 --searches 98,1024 --moves 12,32 --devices all
    python -m experiments.benchmark --neighborhood two_opt --moves 4,8,16 --out speed.jsonl
    python -m experiments.benchmark --report speed.jsonl --plot speed.png

Uniform random instances, relocation or 2-opt and Or-opt moves, the PSPM paper's cooling and
broadcast. Compilation is timed apart; then each repetition goes on from where the one before ended.
To make a 2-opt takes longer than to price it, so that with 2-opt the speed rises as it gets colder.
The paper's 12-core CPU made 4.7e6 (SSPM) and 1.3e7 moves/s (PSSM), its GPU 4.6e8 to 9.1e8 (PSPM).
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
from jaxopt_search import loop, parallel, readout, stepping
from jaxopt_search.datasets.instances import TSPInstance
from jaxopt_search.kernels import Choice, Implementation

CLAIM = 5e7
"""Moves/s on 100 cities that two CPU cores should reach, by relocation."""
NEIGHBORHOODS: dict[str, Callable[[js.TSP], Any]] = {
    "relocate": lambda problem: js.Relocate(),
    "two_opt": js.two_opt,
}
IMPLEMENTATIONS = ("auto", "xla", "native", "triton")
SIZE = 30_000
"""Cities have whole coordinates below this, so that squared distances fit into 32 bits."""
_PILOT_STEPS = 1000

Advance: TypeAlias = Callable[[loop.RunState, int], loop.RunState]


class Case(NamedTuple):
    """One line of the table; `implementation` is what was asked for."""

    cities: int
    searches: int
    moves: int
    devices: tuple[jax.Device, ...]
    neighborhood: str = "relocate"
    implementation: Implementation = "auto"


class Prepared(NamedTuple):
    """A case ready to run.

    Attributes:
      advance: makes so many steps.
      start: where to begin.
      search_best: gets the best cost.
      ran: the implementation that runs.
    """

    advance: Advance
    start: loop.RunState
    search_best: Callable[[loop.RunState], int]
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
      ValueError: if the one that was asked for cannot.
    """
    problem, search = annealing(case)
    platform = case.devices[0].platform
    return stepping.choose(case.implementation, platform, problem, search)


def _prepared(case: Case) -> Prepared:
    (problem, search), ran = annealing(case), choose(case)
    per_temperature = Cooling().sweeps * case.cities
    rule = js.broadcast_best(every=Cooling().exchange_every * per_temperature)
    options = {"exchange": rule, "check_every": per_temperature}
    options["implementation"] = ran.implementation
    placement = parallel.Placement(case.devices)

    def advance(state: loop.RunState, num_steps: int) -> loop.RunState:
        return jax.block_until_ready(
            placement.advance(problem, search, state, num_steps, **options)
        )

    def best(state: loop.RunState) -> int:
        tour, _ = readout.best(problem, search, placement.join(state, case.searches))
        return int(problem.host.cost(jax.device_get(tour)))

    start = placement.split(js.init(0, problem, search, num_searches=case.searches))
    return Prepared(advance, start, best, ran)


def _timed(advance: Advance, state: loop.RunState, num_steps: int) -> tuple[float, loop.RunState]:
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


def row(measured: list[dict[str, Any]]) -> list[str]:
    """Returns the line of a case in the table, from the records of its repetitions."""
    first, settings = measured[0], measured[0]["settings"]
    lanes = settings["searches"] * settings["moves"]
    speeds = [record["sses"] for record in measured]
    median = statistics.median(speeds)
    return [
        settings["neighborhood"],
        str(settings["cities"]),
        str(settings["searches"]),
        str(settings["moves"]),
        f"{settings['num_devices']} x {settings['device_kind']}",
        settings["implementation"],
        f"{1e6 * lanes / median:.3g}",
        f"{median:.3g}",
        f"{min(speeds):.3g} to {max(speeds):.3g}",
        f"{first['compile_seconds']:.1f}",
    ]


def report(measured: list[dict[str, Any]], *, markdown: bool) -> str:
    """Returns the table of what was measured and, if it shows that, whether the claim holds."""
    rows = [row(group) for group in by_settings(measured)]
    parts = [common.table(_HEADER, rows, markdown=markdown)]
    parts += [verdict(measured)] if verdict(measured) else []
    return "\n".join(parts)


_HEADER = (
    "moves by",
    "cities",
    "searches",
    "moves",
    "devices",
    "runs as",
    "us/step",
    "moves/s",
    "spread",
    "compile s",
)


def by_settings(measured: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Returns the records of each settings that occur."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for record in measured:
        groups.setdefault(json.dumps(record["settings"]), []).append(record)
    return list(groups.values())


def _speeds(group: list[dict[str, Any]]) -> list[float]:
    return [record["sses"] for record in group]


def verdict(measured: list[dict[str, Any]]) -> str:
    """Returns whether the claim about 100 cities on two CPU cores holds; "" if not measured."""
    claimed = {"cities": 100, "device_kind": "cpu", "neighborhood": "relocate"}
    speeds = [
        _speeds(group)
        for group in by_settings(measured)
        if claimed.items() <= group[0]["settings"].items()
    ]
    if not speeds:
        return ""
    best = max(map(statistics.median, speeds))
    return (
        f"claim: {CLAIM:.0e} moves/s on 100 cities with two CPU cores; the fastest line above has"
        f" {best:.2e}: {'holds' if best >= CLAIM else 'does not hold here'}"
    )


class Point(NamedTuple):
    """A size and the moves per second measured there."""

    size: int
    low: float
    median: float
    high: float


_SWEPT = {"searches": "searches", "moves": "moves per search", "cities": "cities"}


def curves(measured: list[dict[str, Any]], against: str) -> dict[str, list[Point]]:
    """Returns the lines of a panel, by their labels.

    A line holds what differs in one setting only; its label has those others that vary at all.
    Points go from the smallest size to the largest.

    Args:
      measured: the records.
      against: the setting on the horizontal axis.
    """
    groups = by_settings(measured)
    varied = [
        name
        for name in (groups[0][0]["settings"] if groups else ())
        if name != against and len({group[0]["settings"][name] for group in groups}) > 1
    ]
    lines: dict[str, list[Point]] = {}
    for group in sorted(groups, key=lambda group: group[0]["settings"][against]):
        settings, speeds = group[0]["settings"], _speeds(group)
        label = ", ".join(_in_words(name, settings[name]) for name in varied)
        point = Point(settings[against], min(speeds), statistics.median(speeds), max(speeds))
        lines.setdefault(label, []).append(point)
    return lines


def _in_words(name: str, value: Any) -> str:
    words = {**_SWEPT, "num_devices": "devices"}
    return f"{words[name]} {value}" if name in words else str(value)


def draw(measured: list[dict[str, Any]], ax: Any) -> None:
    """Draws moves per second against each size, on log axes; `ax` becomes the first of them."""
    grid = ax.figure.add_gridspec(1, len(_SWEPT))
    ax.set_subplotspec(grid[0])
    ax.set_ylabel("moves per second")
    others = [ax.figure.add_subplot(place, sharey=ax) for place in list(grid)[1:]]
    for panel, (name, words) in zip([ax, *others], _SWEPT.items(), strict=True):
        _draw_panel(panel, curves(measured, name))
        panel.set_xlabel(words)
        panel.label_outer()


def _draw_panel(panel: Any, lines: dict[str, list[Point]]) -> None:
    sizes = sorted({point.size for points in lines.values() for point in points})
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_xlim(sizes[0] / 1.2, 1.2 * sizes[-1])  # matplotlib finds none for a single size
    for label, points in lines.items():
        x, low, median, high = zip(*points, strict=True)
        (line,) = panel.plot(x, median, "o-", markersize=4, linewidth=1.5, label=label)
        panel.vlines(x, low, high, color=line.get_color(), linewidth=1, alpha=0.6)
    panel.set_xticks(sizes, map(str, sizes))
    panel.set_xticks([], minor=True)
    panel.grid(alpha=0.3)
    if any(lines):  # a label is empty where there is but one line
        panel.legend(frameon=False, fontsize="x-small", loc="lower center", bbox_to_anchor=(0.5, 1))


def parser() -> argparse.ArgumentParser:
    """Returns the flags of this script."""
    flags = argparse.ArgumentParser(
        prog="experiments.benchmark",
        description="Measures how many moves per second annealing prices.",
    )
    flags.add_argument("--cities", type=common.integers, default=[100])
    flags.add_argument("--searches", type=common.integers, default=[98])
    flags.add_argument("--moves", type=common.integers, default=[12, 32, 64])
    flags.add_argument("--neighborhood", choices=tuple(NEIGHBORHOODS), default="relocate")
    flags.add_argument(
        "--implementation", choices=IMPLEMENTATIONS, default="auto", help="how steps are run"
    )
    flags.add_argument(
        "--devices", type=common.devices_argument, help="a number or all (default: one, then all)"
    )
    flags.add_argument("--repetitions", type=int, default=5)
    flags.add_argument("--seconds", type=float, default=1.0, help="of each repetition, about")
    common.add_record_arguments(flags)
    flags.add_argument("--plot", metavar="FILE", help="draw moves/s against the sizes")
    return flags


def cases_from_arguments(args: argparse.Namespace) -> list[Case]:
    """Returns the lines of the table.

    Raises:
      ValueError: if there are no such devices.
    """
    choices = [1, "all"] if args.devices is None else [args.devices]
    devices = dict.fromkeys(parallel.find_devices(choice) for choice in choices)
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
        measured = common.read(args.report)
    else:
        measured = _measure_all(flags, args)
    print(report(measured, markdown=args.markdown))
    if args.plot:
        common.save_plot(args.plot, lambda ax: draw(measured, ax), (12, 5))
    return 0


if __name__ == "__main__":
    sys.exit(main())
