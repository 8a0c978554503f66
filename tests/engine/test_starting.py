"""How a run begins: what is known of its state before anything is traced for it."""

import jax
import numpy as np
import pytest
from cases import matrix_tsp, small_qap

import jaxopt_search as js
from jaxopt_search.engine import fingerprints, starting

RUNS = {
    "float costs": (
        matrix_tsp(6, dtype=np.float64),
        js.hill_climbing(js.FullEvaluation(js.Swap())),
    ),
    "padded": (small_qap(9).padded(), js.tabu_search(js.SwapTable(), ties="random")),
}


@pytest.mark.parametrize("name", RUNS)
def test_the_shapes_of_a_state(name):
    """With their dtypes, and whether these are weak: else programs were compiled in vain."""
    problem, search = RUNS[name]
    found = starting.shape(problem, search, 3)
    state = js.init(0, problem, search, num_searches=3)
    assert jax.tree.structure(found) == jax.tree.structure(state)
    kinds = [[*map(fingerprints.kind_of, jax.tree.leaves(each))] for each in (found, state)]
    assert kinds[0] == kinds[1]
