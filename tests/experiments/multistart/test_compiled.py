"""The compiled baselines of a core are the searches that they stand for, and keep exact books.

They run here as plain Python; numba compiles the same functions.
"""

import itertools

import numpy as np
import pytest
from cases import small_qap
from references import climb

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


def slow_tabu(flow, distance, search, num_steps):
    """Returns the best assignment and cost of Taillard's tabu search as a plain loop over swaps."""
    n, cost = len(flow), lambda p: int((flow * distance[np.ix_(p, p)]).sum())
    now = search.assignment.copy()
    until = -1 - np.arange(n * n).reshape(n, n)
    low, high, age = int(0.9 * n), -int(-1.1 * n // 1), 5 * n * n
    best, best_cost, word = now.copy(), cost(now), int(search.numbers[3])
    for step in range(num_steps):
        choices = []
        for i, j in itertools.combinations(range(n), 2):
            after = now.copy()
            after[[i, j]] = after[[j, i]]
            times = until[i, now[j]], until[j, now[i]]
            if min(times) < step - age or cost(after) < best_cost:
                choices.append((0, cost(after), i, j))
            elif min(times) < step:
                choices.append((1, cost(after), i, j))
        if not choices:
            continue
        *_, i, j = min(choices)
        for u in (i, j):
            word = word * 48271 % (2**31 - 1)
            until[u, now[u]] = step + low + word % (high - low + 1)
        now[[i, j]] = now[[j, i]]
        if cost(now) < best_cost:
            best, best_cost = now.copy(), cost(now)
    return now, best, best_cost


def test_tabu_search_agrees_with_a_slow_reference(data):
    """400 steps: forbidden, aspired by cost and by age, in the order of a plain loop."""
    search = compiled_tabu.start(*data, 3)
    expected = slow_tabu(*data, search, 400)
    compiled_tabu.build(lambda fn: fn)(*data, search, 400, -1)
    found = search.assignment, search.best, search.numbers[2]
    for own, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(own, other)
