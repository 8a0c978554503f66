"""The repair of large placements of queens: it ends, never adds attacks, and repeats itself."""

import jax.numpy as jnp
import numpy as np
import pytest
from queens import assert_valid, attacks, permutations, repair, slow_count

import jaxopt_search as js
from jaxopt_search.backends import random


def repaired(n, key=0, start=None, **options):
    """Returns a start, its repaired placement, and how many queens are said to be attacked."""
    problem = js.nqueens(n)
    if start is None:
        start = np.random.default_rng(n).permutation(n)
    start = jnp.asarray(start, jnp.int32)
    queens, num_attacked = repair(random.as_key(key), problem, start, **options)
    assert queens.dtype == num_attacked.dtype == jnp.int32
    assert int(num_attacked) == attacks(queens).any(axis=1).sum()
    assert sorted(queens.tolist()) == list(range(n))
    return start, queens, int(num_attacked)


@pytest.mark.parametrize("width", [100, 2**17])
def test_repair_ends_at_a_valid_placement(width):
    _, queens, num_attacked = repaired(1000, width=width)
    assert num_attacked == 0
    assert_valid(queens)


def test_repair_cannot_leave_a_full_diagonal():
    """Known by hand: any two queens that exchange columns then share the other diagonal."""
    start, queens, num_attacked = repaired(60, start=np.arange(60), width=100, max_rounds=100)
    assert (queens.tolist(), num_attacked) == (start.tolist(), 60)


@pytest.mark.parametrize(("n", "width"), [(6, 4), (60, 100)])
def test_repair_never_adds_attacks(n, width):
    """When rounds run out; the more rounds, the fewer attacks, and none at all change nothing."""
    starts = permutations(n)[-4:]
    for key, start in enumerate(starts):
        costs = [slow_count(start)]
        for max_rounds in (0, 8, 16, 64):
            _, queens, _ = repaired(n, key, start, width=width, max_rounds=max_rounds)
            costs.append(slow_count(queens))
        assert costs == sorted(costs, reverse=True)
        assert costs[1] == costs[0]
        if n >= 60:
            assert costs[-1] < costs[0]


def test_queens_that_were_moved_are_not_attacked():
    """They went to empty diagonals, which no other queen of the same round was given."""
    for key in range(20):
        start, queens, _ = repaired(1000, key, max_rounds=8)
        is_moved = np.asarray(queens != start)
        assert is_moved.any()
        assert not attacks(queens).any(axis=1)[is_moved].any()


def test_rounds_are_rounded_up_to_eight():
    """One round is eight, nine are sixteen; the most there can be are as many as suffice."""
    ends = [repaired(60, width=1, max_rounds=rounds)[1].tolist() for rounds in (1, 8, 9, 16)]
    assert ends[0] == ends[1] != ends[2] == ends[3]
    ample = [repaired(60, max_rounds=rounds)[1].tolist() for rounds in (20_000, 2**31 - 1)]
    assert ample[0] == ample[1]


@pytest.mark.parametrize("n", [1, 4])
def test_repair_ends_for_a_few_queens(n):
    """Where it can do nothing, rounds run out; a valid placement stays as it is."""
    for start in permutations(n):
        _, queens, num_attacked = repaired(n, start=start, max_rounds=200)
        assert slow_count(queens) <= slow_count(start)
        if slow_count(start) == 0:
            assert (queens.tolist(), num_attacked) == (start.tolist(), 0)
