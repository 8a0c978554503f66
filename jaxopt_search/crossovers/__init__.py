"""What children two solutions have: the operators of `genetic` by name, and others."""

from jaxopt_search.crossovers import permutations
from jaxopt_search.crossovers.operators import Draws, Island, Operators, VectorOperators
from jaxopt_search.crossovers.permutations import PermutationOperators

OPERATORS: dict[str, Operators] = {
    "pmx": PermutationOperators(permutations.pmx_rows, leaves_fixed=True),
    "ox": PermutationOperators(permutations.ox_rows, leaves_fixed=False),
    "uniform": VectorOperators(is_uniform=True),
    "one_point": VectorOperators(is_uniform=False),
}

__all__ = [
    "OPERATORS",
    "Draws",
    "Island",
    "Operators",
    "PermutationOperators",
    "VectorOperators",
    "permutations",
]
