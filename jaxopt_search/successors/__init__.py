"""FANG: generic successor states, steered by local heuristics."""

from jaxopt_search.successors import bit_sets
from jaxopt_search.successors.generation import Successors, generate
from jaxopt_search.successors.heuristics import Aggregate, LocalHeuristic
from jaxopt_search.successors.memory_use import memory_estimate

__all__ = [
    "Aggregate",
    "LocalHeuristic",
    "Successors",
    "bit_sets",
    "generate",
    "memory_estimate",
]
