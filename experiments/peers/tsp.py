"""Solvers of the traveling salesman problem, for `__main__`: how each is called.

fast-tsp (iterated local search, Lin-Kernighan moves), elkai (LKH 3 by Helsgaun) and the routing
library of OR-Tools are public packages; none is needed to import this module.
"""

import time
from collections.abc import Sequence
from importlib import metadata
from typing import Any

import numpy as np

import jaxopt_search as js
from experiments import common
from experiments.peers.solver import Ours, Points, Solver
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


class FastTsp(Solver):
    """The package fast-tsp: one call for each limit in seconds."""

    name, first = "fast-tsp", 0.002

    def __init__(self):
        import fast_tsp

        self._find_tour = fast_tsp.find_tour
        self.version = metadata.version("fast-tsp")

    def prepare(self, instance: TSPInstance) -> np.ndarray:
        """Returns the distances as [n, n] uint16."""
        return distances_up_to(instance, 2**16 - 1).astype(np.uint16)

    def solve(self, data: np.ndarray, seed: int, limit: float, target: int) -> tuple[Any, Points]:
        """Returns a tour."""
        del seed, target  # it takes neither
        return self._find_tour(data, duration_seconds=limit, max_threads=1), []


class Elkai(Solver):
    """The package elkai, LKH in a library: one call for each number of runs."""

    name, unit, first = "elkai", "runs", 1

    def __init__(self):
        import elkai

        self._matrix = elkai.DistanceMatrix
        self.version = metadata.version("elkai")

    def prepare(self, instance: TSPInstance) -> list[list[int]]:
        """Returns the distances as lists; LKH multiplies them by 100 and takes them in 31 bits."""
        if instance.n < 3:
            raise ValueError(f"it has {instance.n} cities, expected at least 3")
        return distances_up_to(instance, (2**31 - 1) // 200).tolist()

    def solve(self, data: Any, seed: int, limit: float, target: int) -> tuple[Any, Points]:
        """Returns a tour; elkai's ends with the city that it starts with."""
        del seed, target  # it takes neither
        return self._matrix(data).solve_tsp(int(limit))[:-1], []


class OrTools(Solver):
    """The routing library of OR-Tools, guided local search from the cheapest arcs."""

    name = "ortools"

    def __init__(self):
        from ortools.constraint_solver import pywrapcp, routing_enums_pb2

        self._cp, self._enums = pywrapcp, routing_enums_pb2
        self.version = metadata.version("ortools")

    def prepare(self, instance: TSPInstance) -> list[list[int]]:
        """Returns the distances as lists."""
        return distances_up_to(instance, 2**40).tolist()

    def solve(self, data: Any, seed: int, limit: float, target: int) -> tuple[Any, Points]:
        """Returns a tour and the course to it; building the model takes part of the time."""
        del seed
        began = time.perf_counter()
        manager = self._cp.RoutingIndexManager(len(data), 1, 0)
        model = self._cp.RoutingModel(manager)
        model.SetArcCostEvaluatorOfAllVehicles(model.RegisterTransitMatrix(data))
        points: Points = []

        def note_solution() -> None:
            points.append((time.perf_counter() - began, model.CostVar().Max()))
            if points[-1][1] <= target:
                model.solver().FinishCurrentSearch()

        model.AddAtSolutionCallback(note_solution)
        found = model.SolveWithParameters(self._parameters(limit))
        if found is None:
            raise RuntimeError(f"OR-Tools found no tour within {limit:g} s")
        return _route(manager, model, found), points

    def _parameters(self, seconds: float) -> Any:
        parameters = self._cp.DefaultRoutingSearchParameters()
        parameters.first_solution_strategy = self._enums.FirstSolutionStrategy.PATH_CHEAPEST_ARC
        parameters.local_search_metaheuristic = (
            self._enums.LocalSearchMetaheuristic.GUIDED_LOCAL_SEARCH
        )
        parameters.time_limit.FromMilliseconds(max(1, round(1000 * seconds)))
        return parameters


def _route(manager: Any, model: Any, found: Any) -> list[int]:
    """Returns the cities in the order of an OR-Tools solution."""
    tour, index = [], model.Start(0)
    while not model.IsEnd(index):
        tour.append(manager.IndexToNode(index))
        index = found.Value(model.NextVar(index))
    return tour


def distances_up_to(instance: TSPInstance, highest: int) -> np.ndarray:
    """Returns [n, n] int64 distances.

    Raises:
      ValueError: if one is below 0 or above `highest`.
    """
    distances = instance.distances()
    low, high = int(distances.min()), int(distances.max())
    if low < 0 or high > highest:
        raise ValueError(f"its distances are {low} to {high}, and it takes 0 to {highest}")
    return distances


SOLVERS = {each.name: each for each in (JaxoptSearch, FastTsp, Elkai, OrTools)}
