"""How attacking queens are counted: eight published schemes, and one that takes O(n)."""

from jaxopt_search.backends.counts import Count as Total
from jaxopt_search.problems.queens.attacks.schemes import (
    SCHEMES,
    Scheme,
    as_python,
    attacking_pairs,
    list_bytes,
    scheme,
)

__all__ = [
    "SCHEMES",
    "Scheme",
    "Total",
    "as_python",
    "attacking_pairs",
    "list_bytes",
    "scheme",
]
