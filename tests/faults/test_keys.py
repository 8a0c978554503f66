"""What is taken for a key, and what is not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from probes import annealing, assert_same, refuses, small_tsp

import jaxopt_search as js
from jaxopt_search.backends import random


def words(key):
    first, second = random.as_key(key)
    assert first.dtype == second.dtype == jnp.uint32
    return int(first), int(second)


SEEDS = [0, 1, -1, 2**31, 2**32 - 1, 2**32, 2**32 + 1, -(2**32) - 1, 2**64 + 1, 2**100, -(2**100)]


def test_seeds_give_different_keys():
    """Seeds of any size and sign differ, where plain JAX makes 2**32 + 1 a 1."""
    seeds = [*SEEDS, 2**100 + 2**70, 2**63, 2**96]
    assert len({words(seed) for seed in seeds}) == len(seeds)


@pytest.mark.parametrize("kind", [np.int64, np.uint8, jnp.int32])
def test_kinds_of_seeds(kind):
    """An integer is the same seed in any type."""
    assert words(kind(77)) == words(77) == (0, 77)


def test_small_seeds_are_jax_keys():
    """A seed, its typed key, its legacy key and NumPy's copy give one run."""
    problem, search = small_tsp(), annealing()
    typed = jax.random.key(5, impl="threefry2x32")
    legacy = jax.random.key_data(typed)
    states = [
        js.run(key, problem, search, num_searches=2, max_steps=20)
        for key in (5, typed, legacy, np.asarray(legacy))
    ]
    for state in states[1:]:
        assert_same(state, states[0])


@pytest.mark.parametrize(
    ("key", "kind", "text"),
    [
        (None, ValueError, "key is None"),
        (1.0, TypeError, "key is a float"),
        (True, TypeError, "key is True"),
        (np.zeros((3, 2), np.uint32), ValueError, "shape (3, 2), expected one key"),
    ],
    ids=repr,
)
def test_bad_keys_are_refused(key, kind, text):
    """No hidden seed, no batch, no number that is no integer; `solve` and `run` alike."""
    with refuses(kind, text):
        js.solve(small_tsp(), annealing(), key, max_steps=1)
    with refuses(kind, text):
        js.run(key, small_tsp(), annealing(), num_searches=1, max_steps=1)
    with refuses(kind, text):
        js.solve(small_tsp(), annealing(), key, max_steps=1, initial=range(8))


@pytest.mark.parametrize("implementation", ["rbg", "unsafe_rbg"])
def test_rbg_keys_warn(implementation):
    """A key of another generator warns once, works, and depends on all of its words."""
    keys = [jax.random.key(seed, impl=implementation) for seed in (1, 2)]
    with pytest.warns(UserWarning, match="rbg") as caught:
        found = [words(key) for key in keys]
    assert len(caught) == 2
    assert found[0] != found[1]
    with pytest.warns(UserWarning, match="rbg") as caught:
        result = js.solve(small_tsp(), annealing(), keys[0], num_searches=2, max_steps=20)
    assert len(caught) == 1
    assert sorted(result.x.tolist()) == list(range(8))
    assert caught[0].filename == __file__, "the warning points into the library"
