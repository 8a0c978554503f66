"""A first look: anneal generated instances, and compare with their known optima.

    python -m experiments.quickstart
    python -m experiments.quickstart --seconds 30 --out pictures

Four TSP instances: two grids and a matrix with a hidden tour, whose optima are known by
construction, and random uniform cities. 64 searches side by side each price 4 relocations a step
and make the best one if it passes the Metropolis test; ten times in a run all go on from the best
tour. The temperature falls geometrically from 2 to 1/20 of the mean distance between nearest
neighbors: above that nearly every relocation passes, below nearly none does. A short pilot run
measures how many steps fit into the given time.
"""

import argparse
import itertools
import pathlib
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

import jaxopt_search as js
from experiments import common
from jaxopt_search import parallel, plotting
from jaxopt_search.datasets.instances import TSPInstance

NUM_SEARCHES = 64
MOVES_PER_SEARCH = 4
HOT, COLD = 2.0, 0.05
"""First and last temperature, in mean distances between nearest neighbors."""
NUM_EXCHANGES = 10
_PILOT_STEPS = 2000


class Outcome(NamedTuple):
    """An instance with its result; seconds of search, compilation left out."""

    instance: TSPInstance
    result: js.Result
    seconds: float
    compile_seconds: float
    num_devices: int


def instances() -> list[TSPInstance]:
    """Returns the instances of the tour; nothing is downloaded."""
    return [
        js.datasets.grid_tsp(8, 8, spacing=100, seed=0),
        js.datasets.grid_tsp(12, 12, spacing=100, seed=0),
        js.datasets.planted_tsp(100, seed=0),
        js.datasets.uniform_tsp(200, seed=0),
    ]


def anneal(
    instance: TSPInstance, seconds: float, *, devices: Any = "all", show_progress: bool = True
) -> Outcome:
    """Anneals one instance.

    Args:
      seconds: about how long the search takes; compilation comes on top.
      devices: as in `solve`.
      show_progress: whether to write lines on standard error.
    """
    problem = js.tsp_from_instance(instance)
    scale = mean_nearest_distance(problem)
    pilot = js.solve(
        problem,
        annealing(scale, _PILOT_STEPS),
        key=0,
        num_searches=NUM_SEARCHES,
        max_steps=4 * _PILOT_STEPS,
        exchange=js.broadcast_best(every=_PILOT_STEPS),
        devices=devices,
        chunk_steps=_PILOT_STEPS,
    )
    # Some chunks compile something; the fastest does not.
    chunks = itertools.pairwise(record.seconds for record in pilot.history)
    chunk_seconds = min(end - begin for begin, end in chunks)
    num_steps = max(1000, round(seconds * _PILOT_STEPS / chunk_seconds))
    result = js.solve(
        problem,
        annealing(scale, num_steps),
        key=1,
        num_searches=NUM_SEARCHES,
        max_steps=num_steps,
        exchange=js.broadcast_best(every=max(1, num_steps // NUM_EXCHANGES)),
        devices=devices,
        chunk_steps=max(1, num_steps // 100),
        show_progress=show_progress,
    )
    search_seconds = result.history[-1].seconds - result.history[0].seconds
    num_devices = len(parallel.find_devices(devices))
    return Outcome(instance, result, search_seconds, pilot.elapsed, num_devices)


def annealing(scale: float, num_steps: int) -> js.SimulatedAnnealing:
    """Returns the search that cools down in `num_steps` steps.

    Args:
      scale: a typical change of length, to which temperatures are proportional.
    """
    schedule = js.geometric(HOT * scale, alpha=(COLD / HOT) ** (1 / num_steps))
    return js.simulated_annealing(js.Relocate(), schedule, moves_per_search=MOVES_PER_SEARCH)


def mean_nearest_distance(problem: js.TSP) -> float:
    """Returns the mean over the cities of the distance to the nearest other city."""
    cities = jnp.arange(problem.n, dtype=jnp.int32)
    distances = np.array(problem.distance(*jnp.meshgrid(cities, cities)), float)
    np.fill_diagonal(distances, np.inf)
    return float(distances.min(axis=1).mean())


def record(outcome: Outcome) -> dict[str, Any]:
    """Returns the JSON line of a run."""
    instance, result = outcome.instance, outcome.result
    return {
        "experiment": "quickstart",
        "instance": instance.name,
        "n": instance.n,
        "seed": 1,
        "settings": {
            "searches": NUM_SEARCHES,
            "moves": MOVES_PER_SEARCH,
            "hot": HOT,
            "cold": COLD,
            "exchanges": NUM_EXCHANGES,
            "steps": result.nit,
            "num_devices": outcome.num_devices,
        },
        "cost": result.fun,
        "best_known": instance.best_known,
        "gap": result.gap,
        "steps": result.nit,
        "moves": result.nfev,
        "seconds": outcome.seconds,
        "compile_seconds": outcome.compile_seconds,
        **common.provenance(parallel.find_devices(outcome.num_devices)),
    }


def row(outcome: Outcome) -> list[str]:
    """Returns the line of a run in the table."""
    instance, result = outcome.instance, outcome.result
    return [
        instance.name,
        str(instance.n),
        str(result.fun),
        common.number(instance.best_known, 0),
        "-" if result.gap is None else f"{result.gap:.2%}",
        f"{result.nfev / outcome.seconds:.2e}",
        f"{outcome.seconds:.1f}",
        f"{outcome.compile_seconds:.1f}",
    ]


_HEADER = ("instance", "n", "best", "optimum", "gap", "moves/s", "seconds", "pilot s")


def save_plots(outcomes: list[Outcome], folder: pathlib.Path) -> None:
    """Writes a picture of each tour that lies in the plane, and one of the convergence."""
    for instance, result, *_ in outcomes:
        if instance.coordinates is not None:
            common.save_plot(
                folder / f"tour-{instance.name}.png",
                lambda ax, i=instance, r=result: plot_tour(i, r, ax),
                size=(5, 5),
            )
    optima = {
        outcome.instance.name: outcome.instance.best_known
        for outcome in outcomes
        if outcome.instance.best_known is not None
    }
    if optima:
        common.save_plot(
            folder / "convergence.png",
            lambda ax: plotting.plot_convergence(
                [o.result for o in outcomes if o.instance.name in optima],
                labels=list(optima),
                against="step",
                best_known=list(optima.values()),
                ax=ax,
            ),
            size=(7, 4.5),
        )


def plot_tour(instance: TSPInstance, result: js.Result, ax: Any) -> Any:
    """Draws a tour with its length, and the gap where the optimum is known; returns the axes."""
    gap = "" if result.gap is None else f", {result.gap:.2%} above the optimum"
    plotting.plot_tour(instance.coordinates, result.x, ax)
    ax.set_title(f"{instance.name}: {result.fun}{gap}")
    return ax


def parser() -> argparse.ArgumentParser:
    """Returns the flags of this script."""
    flags = argparse.ArgumentParser(
        prog="experiments.quickstart",
        description="Anneals generated instances and compares with their known optima.",
    )
    flags.add_argument("--seconds", type=float, default=8.0, help="of search on each instance")
    flags.add_argument("--out", type=pathlib.Path, default=pathlib.Path("results/quickstart"))
    flags.add_argument("--devices", type=common.devices_argument, default="all")
    return flags


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the script and returns its exit status."""
    args = parser().parse_args(arguments)
    common.use_cpu_cores()
    outcomes = []
    for instance in instances():
        print(f"{instance.name}: {args.seconds:g} s of search, after compilation", flush=True)
        outcomes.append(anneal(instance, args.seconds, devices=args.devices))
        common.append(args.out / "runs.jsonl", record(outcomes[-1]))
    print(common.table(_HEADER, map(row, outcomes)))
    save_plots(outcomes, args.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
