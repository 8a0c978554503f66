"""The picture of the README: tours at moments of a run that starts at random.

    python -m experiments.tours_picture
    python -m experiments.tours_picture --cities 1000 --picture tours.png

Eight searches anneal random cities by 2-opt; the best tour after some of the steps is drawn.
"""

import argparse
import pathlib
import sys
from collections.abc import Sequence

import numpy as np

import jaxopt_search as js
from experiments import flag_types
from jaxopt_search.results import plotting

_MOMENTS = (0, 1000, 5000, 50_000)  # steps
_SCALE = 0.3  # of the first temperature, in mean edges of a short tour


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the script and returns the exit status."""
    flags = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    flags.add_argument("--cities", type=flag_types.positive, default=300)
    flags.add_argument(
        "--picture", type=pathlib.Path, default=pathlib.Path("docs/images/tours.png")
    )
    args = flags.parse_args(arguments)
    points = np.random.default_rng(0).random((args.cities, 2))
    draw(points, tours_of(points), args.picture)
    print(args.picture)
    return 0


def tours_of(points: np.ndarray) -> list[js.Report]:
    """Returns the best tours after `_MOMENTS` steps of 2-opt annealing."""
    problem = js.tsp_from_coords(points)
    hottest = _SCALE / len(points) ** 0.5
    cooled = js.geometric(hottest, alpha=0.98, steps_per_temperature=max(_MOMENTS) // 250 or 1)
    search = js.simulated_annealing(js.two_opt(problem), cooled, moves_per_search=8)
    reports: list[js.Report] = []
    limits = {"max_steps": max(_MOMENTS), "chunk_steps": min(filter(None, _MOMENTS))}
    js.solve(problem, search, 0, num_searches=8, callback=reports.append, **limits)
    return [report for report in reports if report.step in _MOMENTS]


def draw(points: np.ndarray, reports: list[js.Report], path: pathlib.Path) -> None:
    """Writes the tours side by side."""
    axes = plotting.detached_axes((3 * len(reports), 3.3), columns=len(reports))
    for ax, report in zip(axes, reports, strict=True):
        plotting.plot_tour(points, report.x, ax)
        ax.set_title(f"{report.step:,} steps: {report.fun:.2f}", fontsize=10)
    path.parent.mkdir(parents=True, exist_ok=True)
    axes[0].figure.savefig(path, dpi=100)


if __name__ == "__main__":
    sys.exit(main())
