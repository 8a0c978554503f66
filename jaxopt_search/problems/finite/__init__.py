"""Which problems are on vectors: each variable has one of finitely many values."""

from jaxopt_search.problems.finite.generalized_assignment import (
    GeneralizedAssignment,
    generalized_assignment,
)
from jaxopt_search.problems.finite.graph_coloring import GraphColoring, graph_coloring
from jaxopt_search.problems.finite.qubo import QUBO, max_cut, qubo
from jaxopt_search.problems.finite.vector import random_vector

__all__ = [
    "QUBO",
    "GeneralizedAssignment",
    "GraphColoring",
    "generalized_assignment",
    "graph_coloring",
    "max_cut",
    "qubo",
    "random_vector",
]
