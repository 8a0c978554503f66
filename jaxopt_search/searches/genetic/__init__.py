"""How a population evolves: `search` joins a `generation`, a `restart` and a local search.

Tsutsui, Fujimoto, "An analytical study of GPU computation for solving QAPs by parallel evolutionary
computation with independent run", 2010.
"""

from jaxopt_search.searches.genetic.island import GeneticState
from jaxopt_search.searches.genetic.search import CrossoverName, Genetic, genetic

__all__ = ["CrossoverName", "Genetic", "GeneticState", "genetic"]
