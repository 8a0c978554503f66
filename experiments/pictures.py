"""The pictures of the guide: small problems, solved and drawn by `result.plot`.

python -m experiments.pictures
"""

import argparse
import pathlib
import sys
from collections.abc import Sequence
from typing import Any

import jaxopt_search as js
from experiments import common
from jaxopt_search.results import plotting


def tour() -> Any:
    """A tour of 100 cities and the course of its run."""
    return js.solve_tsp(js.datasets.uniform_tsp(100, seed=1, size=1000), max_steps=4000).plot()


def board() -> Any:
    """A valid placement of 16 queens."""
    return js.solve_nqueens(16).plot()


def coloring() -> Any:
    """A graph colored with as few colors as are found."""
    graph = js.datasets.mycielski_graph(4)
    return js.solve_coloring(graph, max_steps=1000).plot(plotting.detached_axes((5.5, 4.8)))


def assignment() -> Any:
    """An assignment of 12 facilities: what they cost with one another."""
    instance = js.datasets.uniform_qap(12, seed=1)
    return js.solve_qap(instance, max_steps=500).plot()


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the script and returns the exit status."""
    flags = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    flags.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("docs/images"))
    folder = flags.parse_args(arguments).folder
    common.use_cpu_cores()
    for draw in (tour, board, coloring, assignment):
        first, *_ = draw()
        picture = folder / f"{draw.__name__}.png"
        first.figure.savefig(picture, dpi=70)
        print(picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
