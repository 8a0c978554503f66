"""N-Queens compiled for one core: counting and annealing."""

import numpy as np
import pytest
from queens import slow_count

from experiments.queens import compiled as compiled_queens


def as_it_is(function):
    """Compiles nothing: what the tests do without numba."""
    return function


@pytest.mark.parametrize("scheme", ["numba", "numba_histogram"])
def test_compiled_loops_count_attacks(scheme):
    """Of random placements, crowded ones, and rows that are no permutations."""
    count = compiled_queens.build_counter(as_it_is, scheme)
    for n in (1, 2, 5, 12, 40):
        rows = [np.arange(n), np.zeros(n), *np.random.default_rng(n).integers(0, n, (5, n))]
        for row in rows:
            assert count(row.astype(np.int32)) == slow_count(row.astype(np.int32))


def test_compiled_annealing_accepts_by_its_temperature():
    """Hot, it makes any swap; cold, none that is worse, and it ends at the target."""
    anneal = compiled_queens.build_annealer(as_it_is, "numba")
    for seed in (1, 2, 3):
        queens = np.random.default_rng(seed).permutation(12).astype(np.int32)
        cooling, before, random = compiled_queens.Cooling(1e9, 1e-30, 20), slow_count(queens), seed
        attacks, courses = before, []
        for step in range(200):
            old = queens.copy()
            attacks, after, random = anneal(queens, attacks, -1, cooling, step, step + 1, random)
            assert (attacks, after) == (slow_count(queens), step + 1)
            assert np.count_nonzero(queens != old) in ((2,) if step < 20 else (0, 2))
            courses.append(attacks)
        assert (np.diff(courses[19:]) <= 0).all()
        end = anneal(queens, attacks, attacks, cooling, 200, 300, random)
        assert end == (attacks, 200, random)
        queens = np.arange(12, dtype=np.int32)
        attacks, steps, _ = anneal(queens, 66, 20, compiled_queens.Cooling(0.1), 0, 10_000, seed)
        assert attacks <= 20 and steps < 10_000
