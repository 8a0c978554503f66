"""Gradient-free, vectorized combinatorial search in JAX."""

from jaxopt_search import (
    crossover,
    datasets,
    kernels,
    memory,
    neighborhoods,
    problems,
    random,
    run_times,
    schedules,
    searches,
)
from jaxopt_search.driver import Snapshot, Steer, solve
from jaxopt_search.errors import InstanceFormatError, NotPortable, UnsupportedInstance
from jaxopt_search.exchange import broadcast_best, recombine, resample, ring
from jaxopt_search.loop import RunState, advance, best, first_hit, init, run
from jaxopt_search.neighborhoods import (
    DeltaSwap,
    FullEvaluation,
    Relocate,
    Swap,
    SwapTable,
    TwoOpt,
    two_opt,
)
from jaxopt_search.problems import (
    QAP,
    TSP,
    qap,
    qap_from_instance,
    tsp,
    tsp_from_coords,
    tsp_from_instance,
)
from jaxopt_search.schedules import geometric
from jaxopt_search.searches import (
    Genetic,
    HillClimbing,
    SimulatedAnnealing,
    TabuSearch,
    genetic,
    hill_climbing,
    simulated_annealing,
    tabu_search,
)
from jaxopt_search.solvers import solve_qap, solve_tsp
from jaxopt_search.stepping import why_not_portable
from jaxopt_search.types import Result, StackedResult, Status, null_delta

__all__ = [
    "QAP",
    "TSP",
    "DeltaSwap",
    "FullEvaluation",
    "Genetic",
    "HillClimbing",
    "InstanceFormatError",
    "NotPortable",
    "Relocate",
    "Result",
    "RunState",
    "SimulatedAnnealing",
    "Snapshot",
    "StackedResult",
    "Status",
    "Steer",
    "Swap",
    "SwapTable",
    "TabuSearch",
    "TwoOpt",
    "UnsupportedInstance",
    "advance",
    "best",
    "broadcast_best",
    "crossover",
    "datasets",
    "first_hit",
    "genetic",
    "geometric",
    "hill_climbing",
    "init",
    "kernels",
    "memory",
    "neighborhoods",
    "null_delta",
    "problems",
    "qap",
    "qap_from_instance",
    "random",
    "recombine",
    "resample",
    "ring",
    "run",
    "run_times",
    "schedules",
    "searches",
    "simulated_annealing",
    "solve",
    "solve_qap",
    "solve_tsp",
    "tabu_search",
    "tsp",
    "tsp_from_coords",
    "tsp_from_instance",
    "two_opt",
    "why_not_portable",
]
