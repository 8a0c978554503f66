"""The random order is a uniform permutation.

That draws follow the weights is exact: see `test_segments`, and `reference` for their keys.
"""

import itertools

import jax.numpy as jnp
import numpy as np
from scipy import stats
from successors import heuristics as parts

import jaxopt_search as js

HIGHLY_UNLIKELY = 1e-9  # p-value below which a statistical test fails: no seed is needed
ACTIVE = (3, 31, 32, 70)
NUM_STATES, NUM_SUCCESSORS = 2400, 4


def test_a_random_order_is_a_uniform_permutation():
    """Of four active variables in three words, over states and successors."""
    states = parts.states(NUM_STATES, 71)._replace(last=jnp.zeros(NUM_STATES, jnp.int32))
    active = np.zeros((NUM_STATES, 71), bool)
    active[:, ACTIVE] = True
    seed = int(np.random.default_rng().integers(2**32))
    found = js.successors.generate(
        seed,
        parts.Positions(71),
        (),
        states,
        active=js.successors.bit_sets.pack(active),
        num_successors=NUM_SUCCESSORS,
        order="random",
    )
    orders = np.asarray(found.states.values)[:, ACTIVE]
    numbers = {order: k for k, order in enumerate(itertools.permutations(range(4)))}
    number = [numbers[tuple(order)] for order in orders.tolist()]
    assert stats.chisquare(np.bincount(number, minlength=24)).pvalue > HIGHLY_UNLIKELY, seed
