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
from typing import Any

import jaxopt_search as js
from experiments import common, flag_types
from jaxopt_search.datasets.instances import TSPInstance
from jaxopt_search.results import plotting


def instances() -> list[TSPInstance]:
    """Returns the instances of the tour; nothing is downloaded."""
    return [
        js.datasets.grid_tsp(10, 10, spacing=100, seed=0),
        js.datasets.grid_tsp(16, 16, spacing=100, seed=0),
        js.datasets.planted_tsp(100, seed=0),
        js.datasets.uniform_tsp(200, seed=0),
    ]


def row(instance: TSPInstance, result: js.Result) -> list[str]:
    """Returns the line of a run in the table."""
    seconds = max(result.history[-1].seconds, 1e-9)  # of search, without compilation
    return [
        instance.name,
        str(instance.n),
        str(result.fun),
        common.number(instance.best_known, 0),
        "-" if result.gap is None else f"{result.gap:.2%}",
        f"{result.nfev / seconds:.2e}" if result.nfev else "-",
        f"{seconds:.1f}",
        f"{result.compile_seconds:.1f}",
    ]


def draw(found: dict[TSPInstance, js.Result], ax: Any) -> None:
    """Draws how the runs come near the optima that are known."""
    known = [instance for instance in found if instance.best_known is not None]
    plotting.plot_convergence(
        [found[instance] for instance in known],
        labels=[instance.name for instance in known],
        against="step",
        best_known=[instance.best_known for instance in known],
        ax=ax,
    )
    ax.set_title("How far above the optimum")
    ax.set_xscale("symlog", linthresh=100)  # some are there at once
    ax.set_xlim(left=0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the script and returns its exit status."""
    flags = argparse.ArgumentParser(prog="experiments.quickstart")
    add = flags.add_argument
    add("--seconds", type=flag_types.limit, default=10.0, help="of search, for each instance")
    add("--out", type=pathlib.Path, default=pathlib.Path("results/quickstart"), help="of pictures")
    args = flags.parse_args(arguments)
    common.use_cpu_cores()
    js.enable_compilation_cache()
    found, limits = {}, {"max_seconds": args.seconds, "devices": "all"}
    for instance in instances():
        print(f"{instance.name}: compiling, then up to {args.seconds:g} s of search", flush=True)
        found[instance] = js.solve_tsp(instance, show_progress=True, **limits)
    header = "instance | n | best | optimum | gap | moves/s | seconds | compiling"
    print(common.table(header, [row(*one) for one in found.items()]))
    for instance, result in found.items():
        if instance.coordinates is not None:
            common.save_plot(args.out / f"tour-{instance.name}.png", result.plot, (5, 5.3))
    common.save_plot(args.out / "convergence.png", lambda ax: draw(found, ax), (7, 4.5))
    return 0


if __name__ == "__main__":
    sys.exit(main())
