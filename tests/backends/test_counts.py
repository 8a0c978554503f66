"""Counts of 64 bits: arithmetic, carries, limits and order, against Python integers."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxopt_search.backends import counts
from jaxopt_search.backends.counts import Count

COUNTS = [0, 1, 2**31 - 2, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1, 2**32, 2**32 + 5, 2**40 + 7]
WORDS = [0, 1, 2, 3, 0xFFFF, 0x10000, 0x10001, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1]
EDGES = [0, 1, 2**16 - 1, 2**16, 2**31, 2**32 - 2, 2**32 - 1]
FACTORS = EDGES + np.random.default_rng(0).integers(0, 2**32, 3).tolist()


def count(value):
    return Count(jnp.uint32(value >> 32), jnp.uint32(value & 0xFFFFFFFF))


@pytest.mark.parametrize("value", COUNTS)
def test_arithmetic(value):
    """Sums carry, int32 saturates, and the room before a carry is exact up to 2**31 - 1."""
    for amount in (0, 1, 1000, 2**31 - 1):
        found = jax.jit(counts.add)(count(value), jnp.int32(amount))
        assert int(found) == value + amount
    assert int(jax.jit(counts.as_int32)(count(value))) == min(value, 2**31 - 1)
    room = 2**32 - value % 2**32
    assert int(jax.jit(counts.until_carry)(count(value))) == min(room, 2**31 - 1)


OTHERS = (-1, 0, 5, 2**31 - 1, 2**40 + 7, 2**70)


def compared(one, other):
    return one == other, one != other, one < other, one <= other, one > other, one >= other


@jax.jit
def computed(one):
    words = [compared(one, jnp.int32(other)) for other in OTHERS[:4]]
    return [compared(one, other) for other in OTHERS] + words, (one - 200, one % 7)


@pytest.mark.parametrize("value", [0, 5, 2**31, 2**40 + 7])
def test_a_count_is_a_number(value):
    """It compares, computes and converts as its value does, also in `jit`."""
    one = count(value)
    expected = [compared(value, other) for other in OTHERS]
    assert [compared(one, other) for other in OTHERS] == expected
    comparisons, numbers = computed(one)
    assert comparisons == expected + expected[:4]
    assert (one - 200, 3 + one, one * 2, one // 7, one % 7, one / 2, -one) == (
        *(value - 200, 3 + value, value * 2, value // 7, value % 7, value / 2, -value),
    )
    assert (bool(one), float(one), hash(one), np.mean(one)) == (value != 0, value, value, value)
    assert (f"{one} {one:>3}", str([one]), one == None) == (  # noqa: E711
        *(f"{value} {value:>3}", str([value]), False),
    )
    held = min(value, 2**31 - 1)
    assert jnp.asarray(one) == held
    assert numbers == (held - 200, held % 7)
    several = jax.tree.map(lambda *words: jnp.stack(words), one, count(7))
    np.testing.assert_array_equal(several, [value, 7])
    np.testing.assert_array_equal(several == 7, [False, True])


def test_the_first_of_many():
    """The smallest count has the lowest index of equals; never is above all others."""
    values = [2**40, 2**32 + 1, 2**32, 2**32]
    many = jax.tree.map(lambda *words: jnp.stack(words), *map(count, values))
    assert int(counts.first(many)) == 2
    never = counts.never((3,))
    assert np.asarray(counts.is_never(never)).all()
    assert not np.asarray(counts.is_never(many)).any()
    one = Count(never.high.at[1].set(9), never.low)
    assert int(counts.first(one)) == 1


def test_room_before_a_carry_inside_a_loop():
    """As the run loop uses it: the shortest of several limits, carried around a while_loop.

    On a GPU this came out negative once, and runs ended without a step.
    """

    @jax.jit
    def total(start, limit):
        def block(carry):
            state, left = carry
            length = jnp.minimum(jnp.minimum(left, counts.until_carry(state)), limit)
            return counts.add(state, length), left - length

        return jax.lax.while_loop(lambda carry: carry[1] > 0, block, (start, jnp.int32(1000)))[0]

    for value in (0, 2**31 - 5, 2**32 - 5):
        assert int(total(count(value), jnp.int32(100))) == value + 1000


def as_integers(count):
    """Returns counts, beyond 63 bits, too, or words."""
    if not isinstance(count, Count):
        return np.ravel(count).tolist()
    words = zip(np.ravel(count.high).tolist(), np.ravel(count.low).tolist(), strict=True)
    return [high * 2**32 + low for high, low in words]


def random_words(*shape):
    return np.random.default_rng(0).integers(0, 2**32, shape, dtype=np.uint32)


def test_add():
    """Carries go into the high word; what goes beyond 64 bits is lost."""
    edges = np.array(np.meshgrid([0, 1, 2**32 - 1], WORDS, [0, 1, 2**32 - 1], WORDS)).reshape(4, -1)
    words = jnp.asarray(np.concatenate([edges, random_words(4, 999)], 1), jnp.uint32)
    a, b = Count(words[0], words[1]), Count(words[2], words[3])
    sums = [x + y for x, y in zip(as_integers(a), as_integers(b), strict=True)]
    assert as_integers(jax.jit(counts.add)(a, b)) == [number % 2**64 for number in sums]


@pytest.mark.parametrize("size", [0, 3, 3 * 2**16 + 5])
def test_total(size):
    """Sums over the last axis carry from word to word; more than 2**16 are added in parts."""
    low = jnp.asarray(random_words(3, size) | np.uint32(2**31))
    several = Count(low >> 20, low)
    found = jax.jit(counts.total)(several)
    assert found.low.shape == (3,)
    rows = [Count(several.high[i], several.low[i]) for i in range(3)]
    assert as_integers(found) == [sum(as_integers(row)) for row in rows]


def combinations(repeat):
    """Returns columns of all combinations of words, [N] uint32 each."""
    columns = zip(*itertools.product(FACTORS, repeat=repeat), strict=True)
    return [jnp.asarray(column, jnp.uint32) for column in columns]


def test_products_are_exact():
    """A number below 2**64 times a fraction of 64 bits, rounded down; and a word times it."""
    high, low, upper, lower = combinations(4)
    found = jax.jit(lambda h, low, *words: counts.scaled(Count(h, low), words))(
        high, low, upper, lower
    )
    columns = zip(*(column.tolist() for column in (high, low, upper, lower)), strict=True)
    expected = [((h << 32) + n) * ((u << 32) + m) >> 64 for h, n, u, m in columns]
    assert as_integers(found) == expected
    found = jax.jit(lambda low, *words: counts.scaled(low, words))(low, upper, lower)
    columns = zip(*(column.tolist() for column in (low, upper, lower)), strict=True)
    assert as_integers(found) == [n * ((u << 32) + m) >> 64 for n, u, m in columns]


@pytest.mark.parametrize("is_wide", [True, False])
def test_sums_of_words(is_wide):
    """As counts, or as words where they are known to fit; each prefix of them too."""
    words = np.repeat(np.asarray(FACTORS, np.uint32), 40)
    words = words if is_wide else words % 2**14
    numbers = counts.of(jnp.asarray(words)) if is_wide else jnp.asarray(words)
    sums = np.cumsum(words.astype(object)).tolist()
    found = counts.prefix_sums(numbers)
    assert as_integers(found) == sums
    assert as_integers(counts.total(numbers)) == sums[-1:]
    doubled = counts.add(found, jnp.asarray(words))
    assert as_integers(doubled) == [a + b for a, b in zip(sums, words.tolist(), strict=True)]
    assert as_integers(counts.subtract(doubled, found)) == words.tolist()
    assert np.asarray(counts.is_at_most(found, doubled)).all()
    is_less = np.asarray(counts.is_at_most(doubled, found))
    assert is_less.tolist() == (words == 0).tolist()
    assert np.asarray(counts.is_zero(found)).tolist() == [total == 0 for total in sums]
