"""What `import jaxopt_search as js` offers as `js.NAME`, imported when first asked for.

A line for each public name; `as` says that it is one. `testing`, which needs chex as nothing else
here does, is imported only when asked for.
"""

from jaxopt_search import backends as backends
from jaxopt_search import datasets as datasets
from jaxopt_search import neighborhoods as neighborhoods
from jaxopt_search import problems as problems
from jaxopt_search import searches as searches
from jaxopt_search import successors as successors
from jaxopt_search.analysis import run_times as run_times
from jaxopt_search.backends import memory as memory
from jaxopt_search.backends import random as random
from jaxopt_search.crossovers import permutations as _permutations
from jaxopt_search.crossovers.edge_assembly import edge_assembly as edge_assembly
from jaxopt_search.driver.checkpoints import load_best as load_best
from jaxopt_search.driver.checkpoints import load_checkpoint as load_checkpoint
from jaxopt_search.driver.checkpoints import save_checkpoint as save_checkpoint
from jaxopt_search.driver.compilation_cache import (
    enable_compilation_cache as enable_compilation_cache,
)
from jaxopt_search.driver.memory_use import memory_estimate as memory_estimate
from jaxopt_search.driver.results import Report as Report
from jaxopt_search.driver.run import Steer as Steer
from jaxopt_search.driver.run import solve as solve
from jaxopt_search.engine.loop import advance as advance
from jaxopt_search.engine.loop import run as run
from jaxopt_search.engine.outcome import best as best
from jaxopt_search.engine.outcome import first_hit as first_hit
from jaxopt_search.engine.room import MemoryEstimate as MemoryEstimate
from jaxopt_search.engine.starting import init as init
from jaxopt_search.engine.state import RunState as RunState
from jaxopt_search.engine.stepping import why_not_portable as why_not_portable
from jaxopt_search.errors import CheckpointError as CheckpointError
from jaxopt_search.errors import InstanceFormatError as InstanceFormatError
from jaxopt_search.errors import NotPortable as NotPortable
from jaxopt_search.errors import UnsupportedInstance as UnsupportedInstance
from jaxopt_search.exchanges.rules import broadcast_best as broadcast_best
from jaxopt_search.exchanges.rules import recombine as recombine
from jaxopt_search.exchanges.rules import resample as resample
from jaxopt_search.exchanges.rules import ring as ring
from jaxopt_search.exchanges.rules import shuffle as shuffle
from jaxopt_search.neighborhoods import Assign as Assign
from jaxopt_search.neighborhoods import DeltaSwap as DeltaSwap
from jaxopt_search.neighborhoods import Flip as Flip
from jaxopt_search.neighborhoods import FullEvaluation as FullEvaluation
from jaxopt_search.neighborhoods import Guided as Guided
from jaxopt_search.neighborhoods import QueenSwap as QueenSwap
from jaxopt_search.neighborhoods import Relocate as Relocate
from jaxopt_search.neighborhoods import Swap as Swap
from jaxopt_search.neighborhoods import SwapTable as SwapTable
from jaxopt_search.neighborhoods import SwapValues as SwapValues
from jaxopt_search.neighborhoods import ThreeOpt as ThreeOpt
from jaxopt_search.neighborhoods import TwoOpt as TwoOpt
from jaxopt_search.neighborhoods import three_opt as three_opt
from jaxopt_search.neighborhoods import two_opt as two_opt
from jaxopt_search.problems import QAP as QAP
from jaxopt_search.problems import QUBO as QUBO
from jaxopt_search.problems import TSP as TSP
from jaxopt_search.problems import GeneralizedAssignment as GeneralizedAssignment
from jaxopt_search.problems import GraphColoring as GraphColoring
from jaxopt_search.problems import NQueens as NQueens
from jaxopt_search.problems import curve_tours as curve_tours
from jaxopt_search.problems import generalized_assignment as generalized_assignment
from jaxopt_search.problems import graph_coloring as graph_coloring
from jaxopt_search.problems import greedy_placement as greedy_placement
from jaxopt_search.problems import hoffman as hoffman
from jaxopt_search.problems import max_cut as max_cut
from jaxopt_search.problems import nqueens as nqueens
from jaxopt_search.problems import qap as qap
from jaxopt_search.problems import qap_from_instance as qap_from_instance
from jaxopt_search.problems import qubo as qubo
from jaxopt_search.problems import tsp as tsp
from jaxopt_search.problems import tsp_from_coords as tsp_from_coords
from jaxopt_search.problems import tsp_from_instance as tsp_from_instance
from jaxopt_search.problems.queens import attacks as _attacks
from jaxopt_search.problems.queens import symmetry as _symmetry
from jaxopt_search.problems.queens.attacks import attacking_pairs as attacking_pairs
from jaxopt_search.pytrees import pytree as pytree
from jaxopt_search.results import QueensResult as QueensResult
from jaxopt_search.results import Result as Result
from jaxopt_search.results import StackedResult as StackedResult
from jaxopt_search.results import Status as Status
from jaxopt_search.results import plotting as plotting
from jaxopt_search.results.saving import load_result as load_result
from jaxopt_search.searches import Genetic as Genetic
from jaxopt_search.searches import HillClimbing as HillClimbing
from jaxopt_search.searches import LocalSearch as LocalSearch
from jaxopt_search.searches import MinConflicts as MinConflicts
from jaxopt_search.searches import SimulatedAnnealing as SimulatedAnnealing
from jaxopt_search.searches import TabuSearch as TabuSearch
from jaxopt_search.searches import acceptance as acceptance
from jaxopt_search.searches import genetic as genetic
from jaxopt_search.searches import hill_climbing as hill_climbing
from jaxopt_search.searches import local_search as local_search
from jaxopt_search.searches import min_conflicts as min_conflicts
from jaxopt_search.searches import schedules as schedules
from jaxopt_search.searches import simulated_annealing as simulated_annealing
from jaxopt_search.searches import tabu_search as tabu_search
from jaxopt_search.searches.schedules import geometric as geometric
from jaxopt_search.solvers.qap import solve_qap as solve_qap
from jaxopt_search.solvers.queens import solve_nqueens as solve_nqueens
from jaxopt_search.solvers.tsp import solve_tsp as solve_tsp
from jaxopt_search.solvers.warm_up import warm_up as warm_up
from jaxopt_search.types import Crossover as Crossover
from jaxopt_search.types import Enumerable as Enumerable
from jaxopt_search.types import EnumerableMoves as EnumerableMoves
from jaxopt_search.types import Exchange as Exchange
from jaxopt_search.types import Moves as Moves
from jaxopt_search.types import Neighborhood as Neighborhood
from jaxopt_search.types import Problem as Problem
from jaxopt_search.types import Search as Search
from jaxopt_search.types import VectorProblem as VectorProblem
from jaxopt_search.types import null_delta as null_delta

crossover = _permutations
evaluation = _attacks
placements = _symmetry
