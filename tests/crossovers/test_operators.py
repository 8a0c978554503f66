"""Crossovers equal slow code that reads like their papers, on thousands of random cases."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from references import slow_ox, slow_pmx

from jaxopt_search.backends import rows
from jaxopt_search.crossovers import operators
from jaxopt_search.problems.permutation import inverse

CASES_PER_SIZE = 600


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


@pytest.mark.parametrize("n", [1, 3, 33])
def test_pmx(n):
    """What both parents have stays, so that what is fixed stays fixed."""
    first, second, mask, _ = parents(n, CASES_PER_SIZE)
    children = np.asarray(jax.jit(jax.vmap(operators.pmx))(first, second, mask))
    expected = [slow_pmx(*case) for case in zip(first, second, mask, strict=True)]
    np.testing.assert_array_equal(children, expected)
    assert (np.sort(children, axis=1) == np.arange(n)).all()
    assert (children == first)[first == second].all()


@pytest.mark.parametrize("n", [3, 33])
def test_ox_of_rows(n):
    """Each child has its own parents and segment, and at the end two of its values swapped."""
    first, second, *_ = parents(n, CASES_PER_SIZE)
    generator = np.random.default_rng(0)
    cuts = np.sort(generator.integers(0, n, (2, CASES_PER_SIZE)), axis=0)
    swap = generator.integers(0, n, (2, CASES_PER_SIZE))

    @jax.jit
    def cross(table, cuts, swap):
        # The second parents are in the lower half of the table.
        behind = jnp.arange(CASES_PER_SIZE, 2 * CASES_PER_SIZE)[:, None]
        positions = jax.vmap(inverse)(table)

        def make(block, children):
            given = operators.Parents(table, positions, behind, *cuts, swap)
            return operators.ox_rows(block, given, children, None)[0]

        return rows.by_rows((CASES_PER_SIZE, n), make, jnp.zeros((CASES_PER_SIZE, n), jnp.int32))

    columns = tuple(tuple(one.astype(np.int32)[:, None] for one in pair) for pair in (cuts, swap))
    children = np.asarray(cross(np.concatenate([first, second]), *columns))
    for i, (start, end) in enumerate(cuts.T):
        mask = (start <= np.arange(n)) & (np.arange(n) < end)
        expected = np.array(slow_ox(first[i], second[i], mask, end))
        expected[swap[:, i]] = expected[swap[::-1, i]]
        np.testing.assert_array_equal(children[i], expected)


@pytest.mark.parametrize("parent", [np.zeros((2, 3), np.int32), np.zeros(3, np.float32)])
def test_what_is_no_permutation_is_refused(parent):
    with pytest.raises(TypeError, match="a parent is .*expected a permutation, int32"):
        operators.pmx(parent, parent, parent > 0)
