"""Solvers of the traveling salesman problem, for `__main__`: how each is called.

fast-tsp, elkai and OR-Tools routing are public packages (see `experiments.packages.tsp`); none is
needed to import this module.
"""

from collections.abc import Sequence

import numpy as np

import jaxopt_search as js
from experiments import common
from experiments.packages.tsp import Elkai, FastTsp, OrTools
from experiments.peers.ours import Ours
from jaxopt_search.datasets.instances import TSPInstance


def instances(names: Sequence[str] | None, data: str | None) -> list[TSPInstance]:
    """Returns TSPLIB instances by name; without names, two generated ones with known optima."""
    grid = js.datasets.grid_tsp(12, 12, spacing=100, seed=0)
    if names is None:
        return [grid, js.datasets.planted_tsp(100, seed=0)]
    return common.find_instances(names, data, grid.name, lambda: grid)


def cost(instance: TSPInstance, tour: Sequence[int]) -> int:
    """Returns the exact length of a tour.

    Raises:
      ValueError: if it is not a permutation of the cities.
    """
    return instance.tour_length(np.asarray(tour))


class JaxoptSearch(Ours):
    """`js.solve_tsp` with its defaults."""

    call = staticmethod(js.solve_tsp)


SOLVERS = {each.name: each for each in (JaxoptSearch, FastTsp, Elkai, OrTools)}
