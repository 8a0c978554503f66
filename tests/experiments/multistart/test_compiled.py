"""The compiled baselines of a core are the searches that they stand for, and keep exact books.

They run here as plain Python; numba compiles the same functions.
"""

import itertools

import numpy as np
import pytest
from cases import small_qap
from references import climb, slow_tabu, undoing_swaps

from experiments.multistart import compiled_qap, compiled_tabu


@pytest.fixture(scope="module")
def problem():
    return small_qap(8)


@pytest.fixture(scope="module")
def data(problem):
    pair = (np.asarray(m).reshape(8, 8) for m in (problem.flow, problem.distance))
    return compiled_qap.symmetric(*pair)


def test_climbing_agrees_with_a_slow_reference(problem, data):
    """Six starts end at its local optima after as many moves, and one more look each."""
    starts = compiled_qap.starts(8, 6, seed=1)
    found = starts.copy()
    steps = compiled_qap.build_climber(lambda fn: fn)(*data, found)
    expected = [climb(problem, start, "best") for start in starts]
    np.testing.assert_array_equal(found, [end for end, _ in expected])
    assert steps == sum(moves + 1 for _, moves in expected)


def test_annealing_accepts_as_often_as_metropolis_says():
    """One swap of two facilities, there and back: worse by 2, up one time in e at temperature 2."""
    flow = np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]])
    distance = np.array([[0, 1, 1], [1, 0, 1], [1, 1, 0]])
    anneal, steps = compiled_qap.build_annealer(lambda fn: fn), 4000
    equal = compiled_qap.starts(3, 1, seed=0)
    assert anneal(*compiled_qap.symmetric(flow, distance), equal, 1e-9, 1.0, 50, 1, 1)[1] == 50
    distance[0, 1] = distance[1, 0] = 2  # of three places for the pair one is worse
    priced, made = anneal(*compiled_qap.symmetric(flow, distance), equal, 4.0, 1.0, steps, 1, 1)
    # From the two good places one swap of three leads to the bad one; from there two lead back.
    refused = steps - made
    bad = np.exp(-1) / (2 + np.exp(-1))
    expected = steps * (1 - bad) * (1 - np.exp(-1)) / 3
    assert priced == steps and abs(refused - expected) < 6 * steps**0.5


def test_tabu_search_agrees_with_a_slow_reference(problem, data):
    """400 steps: forbidden, and aspired by cost and by age."""
    search = compiled_tabu.start(*data, 1)
    until, word = dict(enumerate((-1 - np.arange(64)).tolist())), int(search.numbers[3])

    def tenures(*_):
        nonlocal word
        for _ in range(2):
            word = word * 48271 % (2**31 - 1)
            yield 7 + word % 3

    def moves(assignment):
        for *move, undone in undoing_swaps(problem, assignment):
            yield *move, sorted(undone)

    first = search.assignment.copy()
    slow = slow_tabu(first, problem.host.cost(first), until, moves, tenures, 320)
    now, best = zip(*itertools.islice(slow, 400), strict=True)
    compiled_tabu.build(lambda fn: fn)(*data, search, 400, -1)
    np.testing.assert_array_equal(search.assignment, now[-1])
    assert search.numbers[2] == 2 * problem.host.cost(search.best) == 2 * best[-1]
