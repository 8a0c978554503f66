"""What `import jaxopt_search as js` offers as `js.NAME`, imported when first asked for.

All names in the `__all__` of `neighborhoods`, `problems` and `searches`; else a line for each
public name, where `as` says that it is one. `testing`, which needs chex as nothing else here does,
is imported only when asked for.
"""

from jaxopt_search import backends as backends
from jaxopt_search import datasets as datasets
from jaxopt_search import neighborhoods as neighborhoods
from jaxopt_search import problems as problems
from jaxopt_search import searches as searches
from jaxopt_search import successors as successors
from jaxopt_search.backends import memory as memory
from jaxopt_search.backends import random as random
from jaxopt_search.command.doctor import doctor as doctor
from jaxopt_search.crossovers import operators as _operators
from jaxopt_search.crossovers.edge_assembly import edge_assembly as edge_assembly
from jaxopt_search.crossovers.partition import component_partition as component_partition
from jaxopt_search.crossovers.partition import greedy_partition as greedy_partition
from jaxopt_search.driver.checkpoints import load_best as load_best
from jaxopt_search.driver.checkpoints import load_checkpoint as load_checkpoint
from jaxopt_search.driver.checkpoints import save_checkpoint as save_checkpoint
from jaxopt_search.driver.results import Report as Report
from jaxopt_search.driver.run import Steer as Steer
from jaxopt_search.driver.run import memory_estimate as memory_estimate
from jaxopt_search.driver.run import solve as solve
from jaxopt_search.engine.compile import enable_compilation_cache as enable_compilation_cache
from jaxopt_search.engine.loop import advance as advance
from jaxopt_search.engine.loop import run as run
from jaxopt_search.engine.memory import MemoryEstimate as MemoryEstimate
from jaxopt_search.engine.outcome import best as best
from jaxopt_search.engine.outcome import first_hit as first_hit
from jaxopt_search.engine.starting import init as init
from jaxopt_search.engine.state import RunState as RunState
from jaxopt_search.engine.stepping import why_not_portable as why_not_portable
from jaxopt_search.errors import CheckpointError as CheckpointError
from jaxopt_search.errors import InstanceFormatError as InstanceFormatError
from jaxopt_search.errors import NotPortable as NotPortable
from jaxopt_search.errors import UnsupportedInstance as UnsupportedInstance
from jaxopt_search.exchanges import broadcast_best as broadcast_best
from jaxopt_search.exchanges import merge as merge
from jaxopt_search.exchanges import recombine as recombine
from jaxopt_search.exchanges import resample as resample
from jaxopt_search.exchanges import ring as ring
from jaxopt_search.exchanges import shuffle as shuffle
from jaxopt_search.neighborhoods import *  # noqa: F403
from jaxopt_search.problems import *  # noqa: F403
from jaxopt_search.problems.queens import attacks as _attacks
from jaxopt_search.problems.queens import symmetry as _symmetry
from jaxopt_search.problems.queens.attacks import attacking_pairs as attacking_pairs
from jaxopt_search.pytrees import pytree as pytree
from jaxopt_search.results import QueensResult as QueensResult
from jaxopt_search.results import Result as Result
from jaxopt_search.results import StackedResult as StackedResult
from jaxopt_search.results import Status as Status
from jaxopt_search.results import plotting as plotting
from jaxopt_search.results import run_times as run_times
from jaxopt_search.searches import *  # noqa: F403
from jaxopt_search.searches.schedules import geometric as geometric
from jaxopt_search.solvers.anneal import anneal as anneal
from jaxopt_search.solvers.assignment import solve_assignment as solve_assignment
from jaxopt_search.solvers.coloring import solve_coloring as solve_coloring
from jaxopt_search.solvers.qap import solve_qap as solve_qap
from jaxopt_search.solvers.qubo import solve_max_cut as solve_max_cut
from jaxopt_search.solvers.qubo import solve_qubo as solve_qubo
from jaxopt_search.solvers.queens import solve_nqueens as solve_nqueens
from jaxopt_search.solvers.regional import regional_search as regional_search
from jaxopt_search.solvers.tsp import solve_tsp as solve_tsp
from jaxopt_search.types import ByElement as ByElement
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

crossover = _operators
evaluation = _attacks
placements = _symmetry
