"""Which algorithms improve a solution step by step."""

from jaxopt_search.searches.annealing import SimulatedAnnealing, simulated_annealing
from jaxopt_search.searches.genetic import Genetic, genetic
from jaxopt_search.searches.hill_climbing import HillClimbing, hill_climbing
from jaxopt_search.searches.min_conflicts import MinConflicts, min_conflicts
from jaxopt_search.searches.tabu import TabuSearch, tabu_search

__all__ = [
    "Genetic",
    "HillClimbing",
    "MinConflicts",
    "SimulatedAnnealing",
    "TabuSearch",
    "genetic",
    "hill_climbing",
    "min_conflicts",
    "simulated_annealing",
    "tabu_search",
]
