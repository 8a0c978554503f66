"""Swaps where there is room for more facilities: searches take the same course, bit for bit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from padding.same import check_course
from qaps import matrices
from ways import KERNEL, needs_cpu

import jaxopt_search as js
from jaxopt_search.engine import stepping
from jaxopt_search.searches import tabu

TABU = js.tabu_search(js.SwapTable())
FIXED = [[2, 5], [7, 1]]


@needs_cpu
@pytest.mark.parametrize(
    ("search", "implementation", "kind"),
    [
        (TABU, "native", "float"),
        (js.hill_climbing(js.SwapTable(), choose="first"), KERNEL, "diagonal"),
        (js.simulated_annealing(js.DeltaSwap(), 50.0, moves_per_search=4), "native", "float"),
        (js.hill_climbing(js.Swap(), choose="first"), "xla", "symmetric"),
    ],
)
def test_searches_take_the_same_course(search, implementation, kind):
    """Tables included, as far as they count; facilities that are fixed stay."""
    fixed = FIXED if search is TABU else None
    check_course(js.qap(*matrices(9, kind), partial_match=fixed), 16, search, implementation)


def test_lowers_for_gpus():
    """A kernel of a padded instance compiles for an NVIDIA GPU, up to the GPU's own compiler."""
    problem = js.qap(*matrices(9, "float")).padded(20)
    assert stepping.why_not_portable(problem, TABU) == ""


def test_usual_tenures_and_ages_are_those_of_python():
    """For all numbers of rows up to 20,000: 1.1 times 100 are 110.00000000000001."""
    rows = np.arange(1, 20_000)
    found = jax.jit(tabu._usual_tenure)(jnp.asarray(rows, jnp.int32))
    expected = zip(*(tabu._usual_tenure(number) for number in rows.tolist()), strict=True)
    np.testing.assert_array_equal(found, list(expected))
    for entries in (1, 400, 2**30 // 5, 2**30 // 5 + 1, 2**31 - 1):
        assert int(tabu._usual_age(jnp.int32(entries))) == tabu._usual_age(entries)
