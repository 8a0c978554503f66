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


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint8, np.array, jnp.int32])
def test_kinds_of_seeds(kind):
    """An integer is the same seed in any type."""
    assert words(kind(77)) == words(77) == (0, 77)


@pytest.mark.parametrize("seed", [-5, 2**40, 2**63 - 1, -(2**63)])
def test_wide_numpy_seeds(seed):
    """`np.int64` seeds lose no bits."""
    assert words(np.int64(seed)) == words(seed)


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


def test_legacy_key_keeps_both_words():
    """Both words of a legacy key count."""
    assert words(np.array([3, 4], np.uint32)) == (3, 4)


@pytest.mark.parametrize(
    ("key", "kind", "text"),
    [
        (None, ValueError, "key is None"),
        (1.0, TypeError, "key is a float"),
        (np.float32(1), TypeError, "key is a float32"),
        (True, TypeError, "key is True"),
        (np.True_, TypeError, "key is"),
        (np.array(True), TypeError, "key is"),
        ("0", TypeError, "key is a str"),
        ([0, 1], TypeError, "key is a list"),
        (np.array([0, 1]), TypeError, "dtype int64"),
        (np.array([0.5, 1.0]), TypeError, "dtype float64"),
        (np.zeros((3, 2), np.uint32), ValueError, "shape (3, 2), expected one key"),
        (np.zeros(3, np.uint32), ValueError, "shape (3,), expected one key"),
        (np.zeros((0, 2), np.uint32), ValueError, "shape (0, 2), expected one key"),
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


def test_bad_jax_keys_are_refused():
    """JAX's own arrays that are no keys are refused likewise."""
    with refuses(ValueError, "key has shape (3,), expected one key"):
        js.solve(small_tsp(), annealing(), jax.random.split(jax.random.key(0), 3), max_steps=1)
    for key in (jnp.float32(1), jnp.bool_(True)):
        with refuses(TypeError, "key is"):
            js.solve(small_tsp(), annealing(), key, max_steps=1)


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


def test_rbg_key_in_a_function_of_a_script():
    """A script's `__package__` is None; the warning names its line all the same."""
    code = "def main(key):\n    return as_key(key)\n"
    script = {"__name__": "__main__", "__package__": None, "as_key": random.as_key}
    exec(compile(code, "script.py", "exec"), script)
    with pytest.warns(UserWarning, match="rbg") as caught:
        script["main"](jax.random.key(1, impl="rbg"))
    assert (caught[0].filename, caught[0].lineno) == ("script.py", 2)


@pytest.mark.parametrize("make", [jax.random.key, jax.random.PRNGKey], ids=["typed", "legacy"])
def test_deleted_keys_are_refused(make):
    """What is no key is refused in one line that names the argument."""
    key = make(0)
    (jax.random.key_data(key) if make is jax.random.PRNGKey else key).delete()
    with refuses(ValueError, "key is an array that was deleted"):
        random.as_key(key)


def test_rbg_key_around_one_start_warns_once():
    """One warning, too, where the key is used for the start solutions as well."""
    key = jax.random.key(1, impl="rbg")
    with pytest.warns(UserWarning, match="rbg") as caught:
        js.solve(small_tsp(), annealing(), key, num_searches=2, max_steps=20, initial=range(8))
    assert len(caught) == 1


def test_default_generator_does_not_matter():
    """A seed gives the same run whatever JAX's default generator is."""
    problem, search = small_tsp(), annealing()
    expected = js.run(9, problem, search, num_searches=2, max_steps=20)
    with jax.default_prng_impl("rbg"):
        assert_same(js.run(9, problem, search, num_searches=2, max_steps=20), expected)
