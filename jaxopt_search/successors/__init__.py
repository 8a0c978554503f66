"""Which successor states a heuristic leads to: FANG, generic and steered by local heuristics."""

from jaxopt_search.backends import bit_sets
from jaxopt_search.successors.checking import check
from jaxopt_search.successors.generation import (
    Successors,
    distinct,
    duplicates,
    generate,
    memory_estimate,
)
from jaxopt_search.successors.heuristics import Aggregate, LocalHeuristic
from jaxopt_search.successors.vectors import ByDelta, ConflictsOnly

__all__ = [
    "Aggregate",
    "ByDelta",
    "ConflictsOnly",
    "LocalHeuristic",
    "Successors",
    "bit_sets",
    "check",
    "distinct",
    "duplicates",
    "generate",
    "memory_estimate",
]
