"""Counting the attacking pairs of queens: eight published schemes, and one that takes O(n)."""

from jaxopt_search.evaluation.host import table_path, tune_threads
from jaxopt_search.evaluation.schemes import SCHEMES, Scheme, attacking_pairs, list_bytes, scheme
from jaxopt_search.evaluation.totals import Total, as_python

__all__ = [
    "SCHEMES",
    "Scheme",
    "Total",
    "as_python",
    "attacking_pairs",
    "list_bytes",
    "scheme",
    "table_path",
    "tune_threads",
]
