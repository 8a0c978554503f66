"""The reference itself, where its answer can be told by other means."""

import itertools

import numpy as np
import pytest
from references import KNOWN_VECTORS
from successors import reference


@pytest.mark.parametrize(("rounds", "counter", "key", "expected"), KNOWN_VECTORS)
def test_its_generator_gives_the_published_words(rounds, counter, key, expected):
    """The block cipher equals the published one."""
    assert reference.threefry2x32(key, counter, rounds) == expected


def by_segments(weights, random, max_possibilities):
    """Returns the possibility by prefix sums: of segments, then within the one that is found."""
    lanes = reference.num_lanes(max_possibilities)
    padded = np.zeros(-(-max_possibilities // lanes) * lanes, object)
    padded[: len(weights)] = weights
    blocks = padded.reshape(-1, lanes)
    segments = np.cumsum(blocks.sum(0))
    value = random * int(segments[-1]) // 2**64
    lane = int((segments <= value).sum())
    value -= int(segments[lane] - blocks[:, lane].sum())
    block = int((np.cumsum(blocks[:, lane]) <= value).sum())
    return block * lanes + lane


@pytest.mark.parametrize("most", [1, 2, 3, 255, 256, 257, 600])
def test_it_draws_as_prefix_sums_of_segments_do(most):
    """The walk through the lanes is the search in segments, at all boundaries of the sum."""
    rng = np.random.default_rng(most)
    for number in {1, most // 2 + 1, most}:
        weights = (rng.integers(0, 2**32, number) * (rng.random(number) < 0.7)).tolist()
        weights[-1] += 1
        total = sum(weights)
        starts = [-(-start * 2**64 // total) for start in itertools.accumulate(weights)]
        for random in {0, 2**64 - 1, *(max(s - 1, 0) for s in starts), *starts} - {2**64}:
            found = reference.drawn(weights, random, most)
            assert found == by_segments(weights, random, most)
            assert weights[found] > 0
    assert reference.drawn([0] * most, 2**64 - 1, most) is None


def test_it_permutes_at_random_and_ascends_otherwise():
    """Every order of three variables comes up; a fixed order ascends."""

    def in_order(key, order):
        left, found = {1, 40, 70}, []
        while left:
            found.append(reference.next_of(key, 0, len(found), left, order))
            left.remove(found[-1])
        return tuple(found)

    orders = {in_order((0, seed), "random") for seed in range(100)}
    assert orders == set(itertools.permutations({1, 40, 70}))
    assert in_order((0, 0), "fixed") == (1, 40, 70)


def test_it_combines_lanes_by_halves():
    """Each lane in ascending order, then lane i with lane i + half, from the neutral element on."""

    def join(a, b):
        return (f"({a[0]}{b[0]})",)

    values = [(letter,) for letter in "abcde"]
    assert reference.aggregated(values[:4], join, ("-",), 4) == ("(((-a)(-c))((-b)(-d)))",)
    assert reference.aggregated(values[:2], join, ("-",), 3) == ("(((-a)(--))((-b)(--)))",)
