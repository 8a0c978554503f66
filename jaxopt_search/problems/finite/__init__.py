"""Which problems are on vectors: each variable has one of finitely many values."""

from jaxopt_search.problems.finite.generalized_assignment.build import generalized_assignment
from jaxopt_search.problems.finite.generalized_assignment.problem import GeneralizedAssignment
from jaxopt_search.problems.finite.graph_coloring.build import graph_coloring
from jaxopt_search.problems.finite.graph_coloring.problem import GraphColoring
from jaxopt_search.problems.finite.qubo.build import max_cut, qubo
from jaxopt_search.problems.finite.qubo.problem import QUBO
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
