"""What is drawn is exact up to the last unit of 2**64, where sums take more than 32 bits, too."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from successors import heuristics as parts
from successors import reference

from jaxopt_search.successors import algorithm

MOST = 300
_RANDOM = np.random.default_rng(1)
ROWS = np.stack(
    [
        np.full(MOST, 2**32 - 1),
        _RANDOM.integers(0, 2**32, MOST) * (_RANDOM.random(MOST) < 0.5),
        _RANDOM.integers(0, 3, MOST),
        (np.arange(MOST) == 299) * (2**32 - 1),
        (np.arange(MOST) == 0) * 1,
        np.zeros(MOST),
    ]
).astype(np.int64)


def boundaries(weights):
    """Returns the fractions just at and just below where each possibility begins."""
    lanes = reference.num_lanes(MOST)
    numbers = np.arange(MOST)
    weights = weights[np.lexsort((numbers // lanes, numbers % lanes))]
    total = max(int(weights.sum()), 1)
    starts = [-(-start * 2**64 // total) for start in itertools.accumulate(weights.tolist())]
    found = {0, 2**64 - 1, *starts, *(start - 1 for start in starts)}
    return [fraction for fraction in sorted(found) if 0 <= fraction < 2**64]


@pytest.mark.parametrize("ratings", ["stored", "recomputed"])
def test_a_draw_is_exact_at_every_boundary(ratings):
    """One unit of 2**64 decides, whatever the sum; and nothing without weight is drawn."""
    heuristic = parts.table(ROWS)
    state = jax.tree.map(lambda leaf: leaf[0], parts.states(1, len(ROWS)))
    cases = [(v, f) for v, weights in enumerate(ROWS) for f in boundaries(weights)]
    variables, fractions = zip(*cases, strict=True)
    upper = np.asarray([f >> 32 for f in fractions], np.uint32)
    lower = np.asarray([f & 0xFFFFFFFF for f in fractions], np.uint32)

    @jax.jit
    def draw_all(variables, upper, lower):
        def one(variable, *words):
            of = algorithm.Variables(heuristic, parts.ALONE, 0, "fixed", ratings)
            return algorithm.draw(of, state, variable, words)

        return jax.vmap(one)(variables, upper, lower)

    found = draw_all(jnp.asarray(variables, jnp.int32), upper, lower)
    expected = [reference.drawn(ROWS[v].tolist(), f, MOST) for v, f in cases]
    assert found.tolist() == [-1 if number is None else number for number in expected]
