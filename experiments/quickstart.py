"""A first look: anneal generated instances, and compare with their known optima.

    python -m experiments.quickstart
    python -m experiments.quickstart --seconds 30 --out pictures

Four TSP instances: two grids and a matrix with a hidden tour, whose optima are known by
construction, and random uniform cities; each is solved by `js.solve_tsp` with its defaults.
Compiled programs are kept for the next time (`js.enable_compilation_cache`).
"""

import argparse
import pathlib
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import jaxopt_search as js
from experiments import common, flag_types, record_files
from jaxopt_search.datasets.instances import TSPInstance
from jaxopt_search.results import plotting


class Outcome(NamedTuple):
    """An instance with its result."""

    instance: TSPInstance
    result: js.Result

    @property
    def seconds(self) -> float:
        """Seconds of search, without compilation."""
        return max(self.result.history[-1].seconds, 1e-9)


def instances() -> list[TSPInstance]:
    """Returns the instances of the tour; nothing is downloaded."""
    return [
        js.datasets.grid_tsp(10, 10, spacing=100, seed=0),
        js.datasets.grid_tsp(16, 16, spacing=100, seed=0),
        js.datasets.planted_tsp(100, seed=0),
        js.datasets.uniform_tsp(200, seed=0),
    ]


def record(outcome: Outcome, seconds: float) -> dict[str, Any]:
    """Returns the JSON line of a run that was given this many seconds."""
    instance, result = outcome.instance, outcome.result
    measured = {"n": instance.n, "cost": result.fun, "best_known": instance.best_known}
    measured |= {"gap": result.gap, "steps": result.nit, "moves": result.nfev}
    measured |= {"seconds": outcome.seconds, "compile_seconds": result.compile_seconds}
    settings = {"max_seconds": seconds, "searches": len(result.costs)}
    known = {"experiment": "quickstart", "instance": instance.name, "seed": 0}
    return known | {"settings": settings} | measured | {"env": result.env, "date": common.now()}


def row(outcome: Outcome) -> list[str]:
    """Returns the line of a run in the table."""
    instance, result = outcome.instance, outcome.result
    return [
        instance.name,
        str(instance.n),
        str(result.fun),
        common.number(instance.best_known, 0),
        "-" if result.gap is None else f"{result.gap:.2%}",
        f"{result.nfev / outcome.seconds:.2e}" if result.nfev else "-",
        f"{outcome.seconds:.1f}",
        f"{result.compile_seconds:.1f}",
    ]


def save_plots(outcomes: list[Outcome], folder: pathlib.Path) -> None:
    """Writes a picture of each tour that lies in the plane, and one of the convergence."""
    for instance, result in outcomes:
        if instance.coordinates is not None:
            common.save_plot(folder / f"tour-{instance.name}.png", result.plot, size=(5, 5.3))
    known = [one for one in outcomes if one.instance.best_known is not None]

    def draw(ax: Any) -> None:
        plotting.plot_convergence(
            [one.result for one in known],
            labels=[one.instance.name for one in known],
            against="step",
            best_known=[one.instance.best_known for one in known],
            ax=ax,
        )
        ax.set_title("How far above the optimum")
        ax.set_xscale("symlog", linthresh=100)  # some are there at once

    common.save_plot(folder / "convergence.png", draw, size=(7, 4.5))


def parser() -> argparse.ArgumentParser:
    """Returns the flags of this script."""
    flags = argparse.ArgumentParser(
        prog="experiments.quickstart",
        description="Anneals generated instances and compares with their known optima.",
    )
    flags.add_argument("--seconds", type=float, default=10.0, help="of search, for each instance")
    flags.add_argument("--out", type=pathlib.Path, default=pathlib.Path("results/quickstart"))
    flags.add_argument("--devices", type=flag_types.devices, default="all")
    return flags


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the script and returns its exit status."""
    flags = parser()
    args = flags.parse_args(arguments)
    lines = args.out / "runs.jsonl"
    record_files.check_writable(lines, ["quickstart"])
    common.use_cpu_cores()
    js.enable_compilation_cache()
    outcomes = []
    for instance in instances():
        print(f"{instance.name}: compiling, then up to {args.seconds:g} s of search", flush=True)
        result = js.solve_tsp(
            instance, max_seconds=args.seconds, devices=args.devices, show_progress=True
        )
        outcomes.append(Outcome(instance, result))
        common.append(lines, record(outcomes[-1], args.seconds))
    header = "instance | n | best | optimum | gap | moves/s | seconds | compiling"
    print(common.table(header, map(row, outcomes)))
    save_plots(outcomes, args.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
