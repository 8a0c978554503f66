"""Partition crossovers equal slow code that reads like their papers."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.sparse import csgraph

import jaxopt_search as js


def classes_of(own, given, colors, share):
    """Returns the classes that a child gets, as sets: the largest of a parent by turns."""
    left, found = set(range(len(own))), []
    for color in range(colors):
        parent = given if int((color + 1) * share) > int(color * share) else own
        groups = [{v for v in left if parent[v] == c} for c in range(colors)]
        found.append(max(groups, key=len))  # the first of equal ones
        left -= found[-1]
    return found


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 1.0])
@pytest.mark.parametrize(("n", "colors"), [(1, 1), (9, 3), (40, 7)])
def test_a_child_has_the_largest_classes_of_its_parents(n, colors, share):
    """What neither of them gave has any color that there is, also where there is room for more."""
    problem = js.graph_coloring(np.zeros((n, n)), colors + 2)
    problem = dataclasses.replace(problem, domain_sizes=jnp.full(n, colors))
    generator = np.random.default_rng(n)
    both = generator.integers(0, colors, (2, 100, n)).astype(np.int32)
    keys, shares = jax.random.split(jax.random.key(0), 100), jnp.full(100, share, jnp.float32)
    make = jax.vmap(js.greedy_partition().child, in_axes=(0, None, 0, 0, 0))
    children = np.asarray(jax.jit(make)(keys, problem, *both, shares))
    assert children.min() >= 0 and children.max() < colors
    for own, given, child in zip(*both, children, strict=True):
        for color, group in enumerate(classes_of(own, given, colors, share)):
            assert (child[list(group)] == color).all()


def test_children_keep_to_domains_of_several_sizes():
    """A class can get a number that some of its variables do not have."""
    problem = js.graph_coloring(np.zeros((40, 40)), 5)
    problem = dataclasses.replace(problem, domain_sizes=jnp.tile(jnp.array([5, 2]), 20))
    keys, shares = jax.random.split(jax.random.key(0), 100), jnp.full(100, 0.5)
    parents = [jax.vmap(problem.init)(jax.random.split(jax.random.key(k), 100)) for k in (1, 2)]
    make = jax.vmap(js.greedy_partition().child, in_axes=(0, None, 0, 0, 0))
    children = np.asarray(jax.jit(make)(keys, problem, *parents, shares))
    assert (children < np.asarray(problem.domain_sizes)[None]).all()


@pytest.mark.parametrize("storage", ["sparse", "dense"])
@pytest.mark.parametrize(("unit", "share"), [(1, 0.0), (1, 1.0), (0.37, 0.0)])
def test_a_child_is_the_best_of_its_parents_components(storage, unit, share):
    """Of all that take each component from one of them; of equal ones by the share."""
    n, generator = 14, np.random.default_rng(0)
    matrix = generator.integers(-3, 4, (n, n)) * (generator.random((n, n)) < 0.12) * unit
    problem = js.qubo(matrix, storage=storage)
    own = generator.integers(0, 2, (60, n)).astype(np.int32)
    given = own ^ (generator.random((60, n)) < 0.4)
    make = jax.vmap(js.component_partition().child, in_axes=(0, None, 0, 0, None))
    keys = jax.random.split(jax.random.key(0), 60)
    children = np.asarray(jax.jit(make)(keys, problem, own, given, jnp.float32(share)))
    number_of_components = set()
    for mine, other, child in zip(own, given, children, strict=True):
        differing = mine != other
        differing ^= differing.sum() > n // 2
        coupled = ((matrix + matrix.T) != 0) & np.outer(differing, differing)
        num, component = csgraph.connected_components(coupled)
        expected = mine.copy()
        for number in range(num):
            members = (component == number) & differing
            flipped = np.where(members, 1 - expected, expected)
            change = flipped @ matrix @ flipped - expected @ matrix @ expected
            if members.any() and (change < -1e-9 or (share and abs(change) < 1e-9)):
                expected = flipped
        np.testing.assert_array_equal(child, expected)
        number_of_components.add(len(np.unique(component[differing])))
    assert max(number_of_components) > 2
