"""Solvers of N-Queens: what each returns is what it says."""

import importlib.util

import pytest

from experiments import one_core
from experiments.peers import queens as peers_nqueens
from experiments.queens import compiled as compiled_queens

PACKAGES = {"python-constraint2": "constraint", "ortools": "ortools"}


@pytest.fixture
def without_numba(monkeypatch):
    monkeypatch.setattr(one_core, "compiled", lambda build, *args: build(lambda fn: fn, *args))
    monkeypatch.setattr(peers_nqueens.metadata, "version", lambda name: "none")


@pytest.mark.parametrize("name", [one for one in peers_nqueens.SOLVERS if one != "jaxopt_search"])
def test_solvers_find_what_is_wanted(name, without_numba):
    """All there are of six queens; the last of a course is the end."""
    if (package := PACKAGES.get(name)) and not importlib.util.find_spec(package):
        pytest.skip(f"{name} is not installed")
    (task,) = peers_nqueens.instances(["6x4"], None)
    solver = peers_nqueens.SOLVERS[name]()
    placements, course = solver.solve(solver.prepare(task), 1, 60.0, 0)
    assert placements.shape == (task.wanted, task.n)
    assert peers_nqueens.cost(task, placements) == 0
    assert not course or course[-1][1] == 0


@pytest.mark.parametrize("n", [1, 4, 8])
def test_the_compiled_search_places_queens(n):
    """Validly, and not always alike where there is more than one placement."""
    place, state, found = compiled_queens.build_placer(lambda fn: fn), 1, set()
    for _ in range(5):
        queens, state = place(n, state)
        assert peers_nqueens.cost(peers_nqueens.QueensTask(n, 1), queens[None]) == 0
        found.add(tuple(queens.tolist()))
    assert len(found) > 1 or n == 1
    again, _ = place(n, 1)
    assert tuple(again.tolist()) in found


def test_a_solver_ends_with_its_time():
    """One that finds the same again and again is stopped."""
    solver = peers_nqueens.OneByOne()
    solver.placements = lambda task, seed, limit: iter(lambda: [1, 3, 0, 2], None)
    placements, course = solver.solve(peers_nqueens.QueensTask(4, 2), 0, 0.05, 0)
    assert placements.tolist() == [[1, 3, 0, 2]]
    assert course[-1][1] == 1
