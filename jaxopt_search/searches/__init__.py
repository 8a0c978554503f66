"""Which algorithms improve a solution step by step."""

from jaxopt_search.searches import acceptance, schedules
from jaxopt_search.searches import base as base
from jaxopt_search.searches.annealing import LocalSearch, local_search, simulated_annealing
from jaxopt_search.searches.bifurcation import SimulatedBifurcation, simulated_bifurcation
from jaxopt_search.searches.genetic import Genetic, genetic
from jaxopt_search.searches.hill_climbing import HillClimbing, hill_climbing
from jaxopt_search.searches.iterated import IteratedLocalSearch, iterated_local_search
from jaxopt_search.searches.min_conflicts import MinConflicts, min_conflicts
from jaxopt_search.searches.tabu import TabuSearch, tabu_search

__all__ = [
    "Genetic",
    "HillClimbing",
    "IteratedLocalSearch",
    "LocalSearch",
    "MinConflicts",
    "SimulatedBifurcation",
    "TabuSearch",
    "acceptance",
    "genetic",
    "hill_climbing",
    "iterated_local_search",
    "local_search",
    "min_conflicts",
    "schedules",
    "simulated_annealing",
    "simulated_bifurcation",
    "tabu_search",
]
