"""Search algorithms."""

from jaxopt_search.searches.annealing import SimulatedAnnealing, simulated_annealing

__all__ = ["SimulatedAnnealing", "simulated_annealing"]
