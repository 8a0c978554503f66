"""What the engine makes, compared with what the reference makes."""

import types

import jax
import jax.numpy as jnp
import numpy as np
from successors import reference
from successors.plain import plain


def objects_of(states):
    """Returns each state as an object of plain numbers and lists."""
    leaves = {name: np.asarray(leaf).tolist() for name, leaf in states._asdict().items()}
    number = len(next(iter(leaves.values())))
    return [
        types.SimpleNamespace(**{name: leaf[i] for name, leaf in leaves.items()})
        for i in range(number)
    ]


def members_of(sets):
    """Returns the members of each of [X, words] uint32 sets."""
    bits = np.unpackbits(np.asarray(sets).view(np.uint8), axis=-1, bitorder="little")
    return [set(np.flatnonzero(row).tolist()) for row in bits]


def expected(seed, heuristics, problem, states, active=None, num_successors=1, order="fixed"):
    """Returns what the reference makes."""
    return reference.generate(
        (0, seed),
        [plain(heuristic, problem) for heuristic in heuristics],
        objects_of(states),
        None if active is None else [members_of(sets) for sets in active],
        num_successors,
        order,
    )


def assert_equal(found, wanted, states):
    """Checks the engine's successors against the reference's, bit by bit."""
    assert jax.tree.structure(found.states) == jax.tree.structure(states)
    for name, leaf in found.states._asdict().items():
        old = getattr(states, name)
        assert leaf.dtype == old.dtype and leaf.shape[1:] == old.shape[1:], name
        new = np.asarray([getattr(state, name) for state in wanted.states], leaf.dtype)
        np.testing.assert_array_equal(np.asarray(leaf), new.reshape(leaf.shape), name)
    assert found.parent.dtype == jnp.int32
    assert found.parent.tolist() == wanted.parent
    assert len(found.assigned) == len(wanted.assigned)
    for sets, members in zip(found.assigned, wanted.assigned, strict=True):
        assert sets.dtype == jnp.uint32
        assert members_of(sets) == members
