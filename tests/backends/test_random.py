"""The generator: known vectors, statistics, keys, and the same words inside a kernel."""

import contextlib
import itertools

import chex
import jax
import jax.extend.random
import jax.numpy as jnp
import numpy as np
import pytest
from kernels import check_everywhere
from references import KNOWN_VECTORS
from scipy import stats

from jaxopt_search.backends import memory, random

NUM_DRAWS = 2**20
HIGHLY_UNLIKELY = 1e-9  # p-value below which a statistical test fails: no seed is needed


def uint32(*values):
    return tuple(jnp.uint32(value) for value in values)


def make_stream(key=1, search=0, step=0):
    key = random.search_key(random.as_key(key), jnp.uint32(search), jnp.uint32(0))
    return random.Stream(key, jnp.uint32(step), jnp.int32(step))


@pytest.mark.parametrize(("rounds", "counter", "key", "expected"), KNOWN_VECTORS)
def test_known_vectors(rounds, counter, key, expected):
    """The block cipher equals the published one, also in kernels, where its rounds are a loop."""
    for way in (contextlib.nullcontext(), memory.one_search("interpret")):
        with way:
            found = random.threefry2x32(uint32(*key), uint32(*counter), rounds)
        assert tuple(int(word) for word in found) == expected


def words_along(axis, seed):
    """Returns NUM_DRAWS words that differ in one coordinate only."""
    many = jnp.arange(NUM_DRAWS, dtype=jnp.uint32)
    fixed = jnp.uint32(seed)
    search, step, slot = (many if name == axis else fixed for name in ("search", "step", "slot"))
    key = random.search_key(random.as_key(seed), search, jnp.uint32(0))
    return random.Stream(key, step, jnp.int32(0)).words(slot % random.MAX_SLOTS, 2)


@pytest.mark.parametrize("axis", ["search", "step", "slot"])
def test_words_are_uniform_and_independent(axis):
    """Along each coordinate, bytes are uniform, and neighbors and bits are uncorrelated."""
    seed = int(np.random.default_rng().integers(2**20))
    first, second = (np.asarray(word) for word in words_along(axis, seed))
    for words in (first, second, first ^ second, first[1:] ^ first[:-1]):
        for shift in (0, 8, 16, 24):
            counts = np.bincount((words >> shift) & 0xFF, minlength=256)
            assert stats.chisquare(counts).pvalue > HIGHLY_UNLIKELY, seed
    bits = ((first[:, None] >> np.arange(32, dtype=np.uint32)) & 1).astype(np.float32)
    number = bits.sum(axis=0, dtype=np.float64)
    covariances = (bits.T @ bits).astype(np.float64) - np.outer(number, number) / NUM_DRAWS
    deviations = np.sqrt(np.diag(covariances))  # sums of 0 and 1 are exact: below 2**24
    correlations = covariances / np.outer(deviations, deviations) - np.eye(32)
    assert np.abs(correlations).max() < 6.5 / np.sqrt(NUM_DRAWS), seed


def test_words_of_different_coordinates_differ():
    """No two (search, step, slot, word) share their words, and more words extend fewer."""
    slots = jnp.arange(8, dtype=jnp.uint32)

    @jax.jit
    def draw(search, step):
        stream = make_stream(search=search, step=step)
        return stream.words(slots, 5), stream.words(slots, 2)

    seen = set()
    for search, step in itertools.product(range(8), range(8)):
        words, fewer = draw(jnp.uint32(search), jnp.uint32(step))
        seen.update(np.asarray(words).ravel().tolist())
        chex.assert_trees_all_equal(words[:2], fewer)
    assert len(seen) == 8 * 8 * 8 * 5  # a chance collision of 2560 words: 8e-4


def test_epochs_and_families_have_keys_of_their_own():
    """Steps beyond 2**32, starts and exchanges do not repeat the words of the first steps."""
    key = random.as_key(3)
    keys = [random.search_key(key, jnp.uint32(i), jnp.uint32(e)) for i in (0, 1) for e in (0, 1)]
    keys += [random.exchange_key(key, jnp.uint32(epoch)) for epoch in (0, 1)]
    keys += [random.instance_key(key, jnp.uint32(i)) for i in (0, 1)]
    data = {tuple(int(word) for word in found) for found in keys}
    starts = [jax.random.key_data(random.start_key(key, jnp.uint32(i))) for i in (0, 1)]
    data |= {tuple(int(word) for word in start) for start in starts}
    assert len(data) == 10


@pytest.mark.parametrize("n", [1, 3, 65_535, 65_536, 1_000_003, 2**31 - 1])
def test_below_is_the_upper_word_of_the_product(n):
    """`below` is floor(word * n / 2**32), exactly, whatever the size of n."""
    rng = np.random.default_rng(0)
    edges = np.array([0, 1, 2**16 - 1, 2**16, 2**31, 2**32 - 1], np.uint32)
    words = np.concatenate([edges, rng.integers(0, 2**32, 5000, dtype=np.uint32)])
    expected = [int(word) * n >> 32 for word in words]
    found = random.below(jnp.asarray(words), n)
    chex.assert_trees_all_equal(random.below(jnp.asarray(words), jnp.int32(n)), found)
    chex.assert_type(found, jnp.int32)
    np.testing.assert_array_equal(found, expected)


def test_uniform_is_exact():
    """`uniform` is the upper 24 bits, below 1."""
    found = random.uniform(jnp.asarray([0, 255, 256, 2**31, 2**32 - 1], jnp.uint32))
    np.testing.assert_array_equal(found, np.float32([0, 0, 2**-24, 0.5, 1 - 2**-24]))


def test_exponential_is_minus_the_logarithm():
    """Within the stated 9e-5 for every exponent and mantissa, monotone, and never negative."""
    words = np.concatenate(
        [
            np.arange(2**16, dtype=np.uint32) << 16,
            2 ** np.arange(32, dtype=np.uint32),
            2 ** np.arange(1, 32, dtype=np.uint32) - 1,
            np.array([2**32 - 1], np.uint32),
        ]
    )
    words.sort()
    found = np.asarray(random.exponential(jnp.asarray(words)))
    expected = -np.log(((words >> 8) | 1) / 2**24)
    assert np.abs(found - expected).max() < 9e-5
    assert found.min() >= 0
    assert (np.diff(found) <= 2 * 2**-15).all()  # rounding may undo two steps of 2**-15


def test_words_are_the_same_everywhere():
    """So are the integers and exponentials that are made of them."""

    def draw(key, drawn):
        lane = jax.lax.iota(jnp.int32, 32)
        stream = random.Stream(key, jnp.uint32(11), jnp.int32(11))
        words = stream.words(lane.astype(jnp.uint32), 3)
        exponential = jax.lax.bitcast_convert_type(random.exponential(words[2]), jnp.int32)
        numbers = [*(random.below(word, 1000) for word in words), exponential]
        for row, value in enumerate(numbers):
            drawn = memory.store(drawn, (jnp.int32(row), lane), value, lane >= 0)
        return drawn

    key, none = make_stream(5).key, jnp.zeros((4, 32), jnp.int32)
    check_everywhere(draw, key, none, draw(key, none))
