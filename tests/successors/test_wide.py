"""Sums beyond 32 bits are exact, up to the last unit, and so is what is drawn by them."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from successors import heuristics as parts
from successors import reference

from jaxopt_search.successors import draw, wide

EDGES = [0, 1, 2**16 - 1, 2**16, 2**31, 2**32 - 2, 2**32 - 1]
WORDS = np.asarray(EDGES + np.random.default_rng(0).integers(0, 2**32, 3).tolist(), np.uint32)


def combinations(repeat):
    """Returns columns of all combinations of words, [N] uint32 each."""
    return [jnp.asarray(c) for c in zip(*itertools.product(WORDS, repeat=repeat), strict=True)]


def as_ints(number):
    high = np.zeros_like(number.low) if number.high is None else np.asarray(number.high)
    return [(h << 32) + low for h, low in zip(high.tolist(), number.low.tolist(), strict=True)]


def test_products_are_exact():
    """A number below 2**64 times a fraction of 64 bits, rounded down; and a word times a word."""
    high, low, upper, lower = combinations(4)
    found = jax.jit(lambda h, low, *words: wide.scaled(wide.Wide(h, low), words))(
        high, low, upper, lower
    )
    columns = zip(*(column.tolist() for column in (high, low, upper, lower)), strict=True)
    expected = [((h << 32) + n) * ((u << 32) + m) >> 64 for h, n, u, m in columns]
    assert as_ints(found) == expected
    found = jax.jit(lambda low, *words: wide.scaled(wide.Wide(None, low), words))(low, upper, lower)
    columns = zip(*(column.tolist() for column in (low, upper, lower)), strict=True)
    assert as_ints(found) == [n * ((u << 32) + m) >> 64 for n, u, m in columns]


@pytest.mark.parametrize("is_wide", [True, False])
def test_sums_are_exact(is_wide):
    """Of words as of pairs of words; each prefix of them too."""
    words = np.repeat(WORDS, 40) if is_wide else WORDS % 2**20
    numbers = wide.of_words(jnp.asarray(words), is_wide)
    sums = np.cumsum(words.astype(object)).tolist()
    assert as_ints(wide.prefix_sums(numbers)) == sums
    total = wide.total(numbers)
    assert as_ints(jax.tree.map(lambda word: word[None], total)) == sums[-1:]
    if is_wide:
        doubled = wide.add(wide.prefix_sums(numbers), jnp.asarray(words))
        pairs = zip(sums, words.tolist(), strict=True)
        assert as_ints(doubled) == [a + b for a, b in pairs]
        assert as_ints(wide.subtract(doubled, wide.prefix_sums(numbers))) == words.tolist()


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


@pytest.mark.parametrize("keeps_ratings", [True, False], ids=["stored", "recomputed"])
def test_a_draw_is_exact_at_every_boundary(keeps_ratings):
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
            return draw.draw(heuristic, parts.ALONE, state, variable, words, keeps_ratings)

        return jax.vmap(one)(variables, upper, lower)

    found = draw_all(jnp.asarray(variables, jnp.int32), upper, lower)
    expected = [reference.drawn(ROWS[v].tolist(), f, MOST) for v, f in cases]
    assert np.asarray(found.is_possible).tolist() == [e is not None for e in expected]
    chosen = np.asarray(found.possibility)[found.is_possible].tolist()
    assert chosen == [e for e in expected if e is not None]
