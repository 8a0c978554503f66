"""Crossovers equal slow code that reads like their papers, on thousands of random cases."""

import jax
import numpy as np
import pytest
from references import slow_ox, slow_pmx

import jaxopt_search as js
from jaxopt_search.crossovers import permutations

CASES_PER_SIZE = 600


def figure_7(first, second, start, end):
    """The code of Tsutsui and Fujimoto, with its exchanges one after the other."""
    child = list(first)
    for i in range(start, end):
        j = child.index(second[i])
        child[i], child[j] = child[j], child[i]
    return child


def parents(n, number):
    """Returns [number, n] permutations, twice, segments and any other sets of positions, starts."""
    generator = np.random.default_rng(n)
    first, second = (
        np.stack([generator.permutation(n) for _ in range(number)]).astype(np.int32)
        for _ in range(2)
    )
    low, high = np.sort(generator.integers(0, n + 1, (2, number, 1)), axis=0)
    segment = (low <= np.arange(n)) & (np.arange(n) < high)
    scattered = generator.random((number, n)) < generator.random((number, 1))
    mask = np.where(np.arange(number)[:, None] % 2, segment, scattered)
    return first, second, mask, (high[:, 0] % n).astype(np.int32)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 16, 33, 100])
def test_pmx(n):
    first, second, mask, _ = parents(n, CASES_PER_SIZE)
    children = np.asarray(jax.jit(jax.vmap(permutations.pmx))(first, second, mask))
    expected = [slow_pmx(*case) for case in zip(first, second, mask, strict=True)]
    np.testing.assert_array_equal(children, expected)
    assert (np.sort(children, axis=1) == np.arange(n)).all()


@pytest.mark.parametrize("n", [2, 3, 5, 12, 56])
def test_pmx_of_a_segment_is_that_of_the_paper(n):
    first, second, *_ = parents(n, 1000)
    cuts = np.sort(np.random.default_rng(0).integers(0, n + 1, (1000, 2)), axis=1)
    mask = (cuts[:, :1] <= np.arange(n)) & (np.arange(n) < cuts[:, 1:])
    children = np.asarray(jax.jit(jax.vmap(permutations.pmx))(first, second, mask))
    cases = zip(first, second, *cuts.T, strict=True)
    np.testing.assert_array_equal(children, [figure_7(*case) for case in cases])


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 16, 33, 100])
def test_ox(n):
    first, second, mask, start = parents(n, CASES_PER_SIZE)
    children = np.asarray(jax.jit(jax.vmap(permutations.ox))(first, second, mask, start))
    expected = [slow_ox(*case) for case in zip(first, second, mask, start, strict=True)]
    np.testing.assert_array_equal(children, expected)
    assert (np.sort(children, axis=1) == np.arange(n)).all()


def test_pmx_leaves_what_both_parents_have():
    """So what is fixed stays fixed."""
    for first, second, mask, _ in zip(*parents(6, 200), strict=True):
        child = np.asarray(permutations.pmx(first, second, mask))
        same = first == second
        np.testing.assert_array_equal(child[same], first[same])


@pytest.mark.parametrize("parent", [np.zeros((2, 3), np.int32), np.zeros(3, np.float32)])
def test_what_is_no_permutation_is_refused(parent):
    with pytest.raises(TypeError, match="a parent is .*expected a permutation, int32"):
        permutations.pmx(parent, parent, parent > 0)


def test_the_former_name_still_holds():
    """`js.crossover` has the crossovers of permutations."""
    for name in ("pmx", "pmx_rows", "ox", "ox_rows", "Parents", "Room"):
        assert getattr(js.crossover, name) is getattr(permutations, name)
