"""Placements of queens by slow code: who attacks whom, and all that are valid."""

import functools
import itertools

import jax
import numpy as np

from jaxopt_search.searches.queens_repair import begun, continued


def attacks(queens):
    """Returns [..., n, n]: whether the queens of two rows attack each other along a diagonal."""
    queens = np.asarray(queens).astype(np.int64)
    row = np.arange(queens.shape[-1])
    apart = np.abs(row[:, None] - row)
    return (np.abs(queens[..., :, None] - queens[..., None, :]) == apart) & (apart > 0)


def slow_count(queens):
    """Returns the attacking pairs of [..., n] queens, all pairs of rows so far apart in turns."""
    queens = np.asarray(queens).astype(np.int64)
    n, count = queens.shape[-1], np.zeros(queens.shape[:-1], np.int64)
    for apart in range(1, n):
        count += np.sum(np.abs(queens[..., apart:] - queens[..., :-apart]) == apart, axis=-1)
    return count


def assert_valid(queens):
    """Checks that [..., n] queens stand in columns of their own and attack nobody."""
    queens = np.asarray(queens)
    expected = np.broadcast_to(np.arange(queens.shape[-1]), queens.shape)
    np.testing.assert_array_equal(np.sort(queens, axis=-1), expected)
    assert not slow_count(queens).any()


def all_valid(n):
    """Returns all valid placements of n queens as tuples, by backtracking row after row."""
    found = []

    def place(queens):
        if len(queens) == n:
            found.append(tuple(queens))
            return
        for column in range(n):
            if all(
                column != other and abs(column - other) != len(queens) - row
                for row, other in enumerate(queens)
            ):
                place([*queens, column])

    place([])
    return found


def permutations(n, number=100):
    """Returns [B, n] int32: all placements of up to five queens, or random ones, some crowded."""
    if n <= 5:
        return np.array(list(itertools.permutations(range(n))), np.int32)
    generator = np.random.default_rng(n)
    drawn = [generator.permutation(n) for _ in range(number)]
    return np.array([np.arange(n), np.arange(n)[::-1], *drawn], np.int32)


@functools.partial(jax.jit, static_argnames="width")
def repair(key, problem, queens, *, max_rounds=10_000, width=2**17):
    """Returns a placement after its repair, and how many of its queens are attacked."""
    end = continued(key, problem, begun(problem, queens), max_rounds, width)
    return end.placed.queens, end.num_attacked
