"""The pictures of the guide: small problems, solved and drawn by `result.plot`.

python -m experiments.pictures
"""

import argparse
import pathlib
import sys
from collections.abc import Sequence

import jaxopt_search as js
from experiments import common
from jaxopt_search.results import plotting


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the script and returns the exit status."""
    flags = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    flags.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("docs/images"))
    folder = flags.parse_args(arguments).folder
    common.use_cpu_cores()
    cities = js.datasets.uniform_tsp(100, seed=1, size=1000)
    plans = js.datasets.uniform_qap(12, seed=1)
    colored = js.solve_coloring(js.datasets.mycielski_graph(4), max_steps=1000)
    pictures = {
        "tour": js.solve_tsp(cities, max_steps=4000).plot(),
        "assignment": js.solve_qap(plans, max_steps=500).plot(),
        "board": js.solve_nqueens(16).plot(),
        "coloring": colored.plot(plotting.detached_axes((5.5, 4.8))),
    }
    for name, axes in pictures.items():
        axes[0].figure.savefig(folder / f"{name}.png", dpi=70)
        print(folder / f"{name}.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
