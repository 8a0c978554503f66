"""Edge assembly of padded tours: the same children as of the tours themselves."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from probes import distances_of

import jaxopt_search as js
from jaxopt_search.backends import random
from jaxopt_search.problems import padding

NUM, SHARE = 24, jnp.float32(0.5)


@jax.jit
def children(crossover, problem, own, given):
    words = jnp.arange(len(own), dtype=jnp.uint32), jnp.ones(len(own), jnp.uint32)
    return crossover.children(random.typed_key(words), problem, own, given, SHARE)


@pytest.mark.parametrize(("n", "is_matrix"), [(5, True), (13, False)])
def test_children_do_not_depend_on_the_capacity(n, is_matrix):
    """Of random tours, which fall into many parts; also if there are fewer cities than candidates.

    Float distances show in which order they are added up.
    """
    generator = np.random.default_rng(n)
    points = generator.random((n, 2)) * 100
    exact = js.tsp_from_coords(points)
    if is_matrix:
        exact = js.tsp(distances_of(points).round().astype(int))
    own, given = generator.permuted(np.tile(np.arange(n, dtype=np.int32), (2, NUM, 1)), axis=2)
    expected = np.asarray(children(js.edge_assembly(exact), exact, own, given))
    assert (expected != own).any()
    padded = exact.padded(20)
    tours = padding.filled(own, 20), padding.filled(given, 20)
    found = children(js.edge_assembly(padded), padded, *tours)
    np.testing.assert_array_equal(found, padding.filled(expected, 20))
