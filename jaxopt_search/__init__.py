"""Gradient-free, vectorized combinatorial search in JAX."""

from jaxopt_search import datasets, memory, neighborhoods, problems, random, schedules, searches
from jaxopt_search.driver import Snapshot, solve
from jaxopt_search.errors import InstanceFormatError, UnsupportedInstance
from jaxopt_search.exchange import broadcast_best, ring
from jaxopt_search.loop import RunState, advance, best, first_hit, init, run
from jaxopt_search.neighborhoods import FullEvaluation, Relocate, Swap
from jaxopt_search.problems import TSP, tsp, tsp_from_coords, tsp_from_instance
from jaxopt_search.schedules import geometric
from jaxopt_search.searches import SimulatedAnnealing, simulated_annealing
from jaxopt_search.solvers import solve_tsp
from jaxopt_search.types import Result, Status

__all__ = [
    "TSP",
    "FullEvaluation",
    "InstanceFormatError",
    "Relocate",
    "Result",
    "RunState",
    "SimulatedAnnealing",
    "Snapshot",
    "Status",
    "Swap",
    "UnsupportedInstance",
    "advance",
    "best",
    "broadcast_best",
    "datasets",
    "first_hit",
    "geometric",
    "init",
    "memory",
    "neighborhoods",
    "problems",
    "random",
    "ring",
    "run",
    "schedules",
    "searches",
    "simulated_annealing",
    "solve",
    "solve_tsp",
    "tsp",
    "tsp_from_coords",
    "tsp_from_instance",
]
