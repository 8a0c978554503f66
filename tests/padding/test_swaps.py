"""Swaps where there is room for more facilities: searches take the same course, bit for bit."""

import pytest
from padding.same import check_course
from qaps import matrices
from ways import needs_cpu

import jaxopt_search as js

TABU = js.tabu_search(js.SwapTable())
FIXED = [[2, 5], [7, 1]]


@needs_cpu
@pytest.mark.parametrize(
    ("search", "implementation", "kind"),
    [
        (TABU, "native", "float"),
        (js.hill_climbing(js.SwapTable(), choose="first"), "xla", "diagonal"),
    ],
)
def test_searches_take_the_same_course(search, implementation, kind):
    """Tables included, as far as they count; facilities that are fixed stay."""
    fixed = FIXED if search is TABU else None
    check_course(js.qap(*matrices(9, kind), partial_match=fixed), 16, search, implementation)
