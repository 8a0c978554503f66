"""What is minimized: data, costs, random solutions, and checks of users' data."""

from jaxopt_search.problems.finite.generalized_assignment import (
    GeneralizedAssignment,
    generalized_assignment,
)
from jaxopt_search.problems.finite.graph_coloring import GraphColoring, graph_coloring
from jaxopt_search.problems.finite.qubo import QUBO, max_cut, qubo
from jaxopt_search.problems.finite.vector import random_vector as random_vector
from jaxopt_search.problems.qap.build import qap, qap_from_instance
from jaxopt_search.problems.qap.problem import QAP
from jaxopt_search.problems.queens.problem import NQueens, greedy_placement, hoffman, nqueens
from jaxopt_search.problems.tsp.build import tsp, tsp_from_coords, tsp_from_instance
from jaxopt_search.problems.tsp.curves import curve_tours
from jaxopt_search.problems.tsp.problem import TSP

__all__ = [
    "QAP",
    "QUBO",
    "TSP",
    "GeneralizedAssignment",
    "GraphColoring",
    "NQueens",
    "curve_tours",
    "generalized_assignment",
    "graph_coloring",
    "greedy_placement",
    "hoffman",
    "max_cut",
    "nqueens",
    "qap",
    "qap_from_instance",
    "qubo",
    "tsp",
    "tsp_from_coords",
    "tsp_from_instance",
]
