"""Duplicates are found by comparing every bit, and removed if asked."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from ways import wide_types

import jaxopt_search as js


class Several(NamedTuple):
    """States of all kinds of leaves."""

    number: Any
    flags: Any
    rows: Any
    share: Any


def few_states(number, seed=0):
    """Returns states of which many are equal in some leaves, and fewer in all."""
    rng = np.random.default_rng(seed)
    return Several(
        jnp.asarray(rng.integers(-1, 1, number), jnp.int32),
        jnp.asarray(rng.random((number, 2)) < 0.5),
        jnp.asarray(rng.integers(0, 2, (number, 1, 2)), jnp.uint32),
        jnp.asarray(rng.integers(0, 2, number) / 4, jnp.float32),
    )


def by_comparing(states, parent=None):
    """Returns which states are equal to an earlier one, each compared with all before it."""
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(states)]
    leaves += [] if parent is None else [np.asarray(parent)]
    seen, found = set(), []
    for i in range(len(leaves[0])):
        state = b"|".join(leaf[i].tobytes() for leaf in leaves)
        found.append(state in seen)
        seen.add(state)
    return np.asarray(found)


def test_duplicates_are_those_that_equal_an_earlier_one():
    """Of any parent, or of the same parent; in all leaves."""
    parent = jnp.arange(300, dtype=jnp.int32) // 10
    for number, of in ((0, None), (1, None), (300, None), (300, parent)):
        states = few_states(number)
        found = js.successors.duplicates(states, of)
        assert found.dtype == jnp.bool_ and found.shape == (number,)
        np.testing.assert_array_equal(found, by_comparing(states, of))


def test_one_leaf_makes_the_difference():
    """Two states that differ in the last number of any leaf are no duplicates."""
    same = jax.tree.map(lambda x: np.repeat(np.asarray(x), 2, 0), few_states(1))
    assert js.successors.duplicates(same).tolist() == [False, True]
    for leaf in Several._fields:
        changed = getattr(same, leaf).copy()
        last = (1, *(size - 1 for size in changed.shape[1:]))
        changed[last] = ~changed[last] if changed.dtype == bool else changed[last] + 1
        found = js.successors.duplicates(same._replace(**{leaf: changed}))
        assert found.tolist() == [False, False], leaf


def test_distinct_keeps_the_first_of_each_state():
    """With its parent and its set of assigned variables; successors of other states stay."""
    states = few_states(60)
    parent = jnp.arange(60, dtype=jnp.int32) // 15
    sets = jnp.arange(60, dtype=jnp.uint32)[:, None]
    found = js.successors.distinct(js.successors.Successors(states, parent, (sets,)))
    keep = ~by_comparing(states, parent)
    assert 4 < keep.sum() < 60
    for leaf, old in zip(jax.tree.leaves(found), [*states, parent, sets], strict=True):
        np.testing.assert_array_equal(leaf, np.asarray(old)[keep])


def test_floats_are_compared_by_their_bits():
    """A NaN equals itself, and 0 is not -0."""
    states = jnp.asarray([np.nan, 0.0, -0.0, np.nan, -0.0], jnp.float32)
    assert js.successors.duplicates(states).tolist() == [False, False, False, True, True]


def test_wide_and_narrow_types_are_compared_whole():
    """Numbers of 64 bits that differ in their upper half, and of 8 bits."""
    with wide_types(True):
        wide = jnp.asarray([1, 1 + 2**40, 1, 1 + 2**40], jnp.int64)
        assert js.successors.duplicates(wide).tolist() == [False, False, True, True]
    narrow = jnp.asarray([-1, 127, -1], jnp.int8)
    assert js.successors.duplicates(narrow).tolist() == [False, False, True]
    assert js.successors.duplicates(narrow[:0]).tolist() == []
