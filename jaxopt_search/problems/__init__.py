"""Problems: data, cost, random solutions, checks on the way in."""

from jaxopt_search.problems.curves import curve_tours
from jaxopt_search.problems.finite import (
    QUBO,
    GeneralizedAssignment,
    GraphColoring,
    generalized_assignment,
    graph_coloring,
    max_cut,
    qubo,
    random_vector,
)
from jaxopt_search.problems.nqueens import NQueens, greedy_placement, hoffman, nqueens
from jaxopt_search.problems.qap import QAP
from jaxopt_search.problems.qap_input import qap, qap_from_instance
from jaxopt_search.problems.tsp import TSP
from jaxopt_search.problems.tsp_input import tsp, tsp_from_coords, tsp_from_instance

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
    "random_vector",
    "tsp",
    "tsp_from_coords",
    "tsp_from_instance",
]
