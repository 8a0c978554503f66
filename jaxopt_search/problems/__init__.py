"""Problems: data, cost, random solutions, checks on the way in."""

from jaxopt_search.problems.tsp import TSP
from jaxopt_search.problems.tsp_input import tsp, tsp_from_coords, tsp_from_instance

__all__ = ["TSP", "tsp", "tsp_from_coords", "tsp_from_instance"]
