"""Whether parts of your own keep the laws of the library's parts.

Each check runs a part on small examples and raises an `AssertionError` that says which law fails,
where, and by what numbers. The library's own tests use them. Needs chex.
"""

from jaxopt_search.testing.comparing import check_implementations
from jaxopt_search.testing.makers import check_crossover, check_exchange, check_heuristic
from jaxopt_search.testing.neighborhoods import check_neighborhood
from jaxopt_search.testing.problems import check_problem
from jaxopt_search.testing.searches import check_search

__all__ = [
    "check_crossover",
    "check_exchange",
    "check_heuristic",
    "check_implementations",
    "check_neighborhood",
    "check_problem",
    "check_search",
]
