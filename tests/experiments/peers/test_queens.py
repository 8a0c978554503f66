"""Solvers of N-Queens: what each returns is what it says."""

import importlib.util

import pytest

from experiments.peers import queens as peers_nqueens
from experiments.queens import compiled as compiled_queens

PACKAGES = {"python-constraint2": "constraint", "ortools": "ortools"}


@pytest.mark.parametrize("name", [one for one in peers_nqueens.SOLVERS if one != "jaxopt_search"])
def test_solvers_find_what_is_wanted(name, in_python, monkeypatch):
    """All there are of six queens; the last of a course is the end."""
    if (package := PACKAGES.get(name)) and not importlib.util.find_spec(package):
        pytest.skip(f"{name} is not installed")
    (task,) = peers_nqueens.instances(["6x4"], None)
    monkeypatch.setattr(peers_nqueens.metadata, "version", lambda name: "none")
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
