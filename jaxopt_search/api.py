"""What `import jaxopt_search as js` offers as `js.NAME`, imported when first asked for."""

from typing import TYPE_CHECKING

from jaxopt_search import (
    backends,
    datasets,
    neighborhoods,
    problems,
    searches,
    successors,
)
from jaxopt_search.analysis import run_times
from jaxopt_search.backends import memory, random
from jaxopt_search.crossovers import permutations as crossover
from jaxopt_search.crossovers.edge_assembly import edge_assembly
from jaxopt_search.driver.checkpoints import load_best, load_checkpoint, save_checkpoint
from jaxopt_search.driver.plan import memory_estimate
from jaxopt_search.driver.results import Report
from jaxopt_search.driver.run import Steer, solve
from jaxopt_search.engine.compile import enable_compilation_cache
from jaxopt_search.engine.loop import advance, run
from jaxopt_search.engine.memory import MemoryEstimate
from jaxopt_search.engine.outcome import best, first_hit
from jaxopt_search.engine.starting import init
from jaxopt_search.engine.state import RunState
from jaxopt_search.engine.stepping import why_not_portable
from jaxopt_search.errors import (
    CheckpointError,
    InstanceFormatError,
    NotPortable,
    UnsupportedInstance,
)
from jaxopt_search.exchanges.rules import broadcast_best, recombine, resample, ring, shuffle
from jaxopt_search.neighborhoods import (
    Assign,
    DeltaSwap,
    Flip,
    FullEvaluation,
    Guided,
    QueenSwap,
    Relocate,
    Swap,
    SwapTable,
    SwapValues,
    ThreeOpt,
    TwoOpt,
    three_opt,
    two_opt,
)
from jaxopt_search.problems import (
    QAP,
    QUBO,
    TSP,
    GeneralizedAssignment,
    GraphColoring,
    NQueens,
    curve_tours,
    generalized_assignment,
    graph_coloring,
    greedy_placement,
    hoffman,
    max_cut,
    nqueens,
    qap,
    qap_from_instance,
    qubo,
    tsp,
    tsp_from_coords,
    tsp_from_instance,
)
from jaxopt_search.problems.queens import attacks as evaluation
from jaxopt_search.problems.queens import symmetry as placements
from jaxopt_search.problems.queens.attacks import attacking_pairs
from jaxopt_search.pytrees import pytree
from jaxopt_search.results import QueensResult, Result, StackedResult, Status, plotting
from jaxopt_search.results.saving import load_result
from jaxopt_search.searches import (
    Genetic,
    HillClimbing,
    LocalSearch,
    MinConflicts,
    SimulatedAnnealing,
    TabuSearch,
    acceptance,
    genetic,
    hill_climbing,
    local_search,
    min_conflicts,
    schedules,
    simulated_annealing,
    tabu_search,
)
from jaxopt_search.searches.schedules import geometric
from jaxopt_search.solvers.qap import solve_qap
from jaxopt_search.solvers.queens import solve_nqueens
from jaxopt_search.solvers.tsp import solve_tsp
from jaxopt_search.solvers.warm_up import warm_up
from jaxopt_search.types import (
    Crossover,
    Enumerable,
    EnumerableMoves,
    Exchange,
    Moves,
    Neighborhood,
    Problem,
    Search,
    VectorProblem,
    null_delta,
)

if TYPE_CHECKING:
    from jaxopt_search import testing

__all__ = [
    "QAP",
    "QUBO",
    "TSP",
    "Assign",
    "CheckpointError",
    "Crossover",
    "DeltaSwap",
    "Enumerable",
    "EnumerableMoves",
    "Exchange",
    "Flip",
    "FullEvaluation",
    "GeneralizedAssignment",
    "Genetic",
    "GraphColoring",
    "Guided",
    "HillClimbing",
    "InstanceFormatError",
    "LocalSearch",
    "MemoryEstimate",
    "MinConflicts",
    "Moves",
    "NQueens",
    "Neighborhood",
    "NotPortable",
    "Problem",
    "QueenSwap",
    "QueensResult",
    "Relocate",
    "Report",
    "Result",
    "RunState",
    "Search",
    "SimulatedAnnealing",
    "StackedResult",
    "Status",
    "Steer",
    "Swap",
    "SwapTable",
    "SwapValues",
    "TabuSearch",
    "ThreeOpt",
    "TwoOpt",
    "UnsupportedInstance",
    "VectorProblem",
    "acceptance",
    "advance",
    "attacking_pairs",
    "backends",
    "best",
    "broadcast_best",
    "crossover",
    "curve_tours",
    "datasets",
    "edge_assembly",
    "enable_compilation_cache",
    "evaluation",
    "first_hit",
    "generalized_assignment",
    "genetic",
    "geometric",
    "graph_coloring",
    "greedy_placement",
    "hill_climbing",
    "hoffman",
    "init",
    "load_best",
    "load_checkpoint",
    "load_result",
    "local_search",
    "max_cut",
    "memory",
    "memory_estimate",
    "min_conflicts",
    "neighborhoods",
    "nqueens",
    "null_delta",
    "placements",
    "plotting",
    "problems",
    "pytree",
    "qap",
    "qap_from_instance",
    "qubo",
    "random",
    "recombine",
    "resample",
    "ring",
    "run",
    "run_times",
    "save_checkpoint",
    "schedules",
    "searches",
    "shuffle",
    "simulated_annealing",
    "solve",
    "solve_nqueens",
    "solve_qap",
    "solve_tsp",
    "successors",
    "tabu_search",
    "testing",  # imported only when asked for: it needs chex, as nothing else here does
    "three_opt",
    "tsp",
    "tsp_from_coords",
    "tsp_from_instance",
    "two_opt",
    "warm_up",
    "why_not_portable",
]
