"""Problems on vectors: each variable has one of finitely many values."""

from jaxopt_search.problems.finite.graph_coloring import GraphColoring, graph_coloring
from jaxopt_search.problems.finite.vector import random_vector

__all__ = ["GraphColoring", "graph_coloring", "random_vector"]
