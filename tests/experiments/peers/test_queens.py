"""Solvers of N-Queens: what each returns is what it says."""

import importlib.util
import types

import numpy as np
import pytest
from queens import all_valid

from experiments.peers import queens as peers_nqueens
from experiments.peers import script as peers
from experiments.queens import compiled as compiled_queens

PACKAGES = {"python-constraint2": "constraint", "ortools": "ortools"}


@pytest.fixture
def without_numba(monkeypatch):
    monkeypatch.setattr(
        compiled_queens, "placer", lambda: compiled_queens.build_placer(lambda fn: fn)
    )
    monkeypatch.setattr(peers_nqueens.metadata, "version", lambda name: "none")


@pytest.mark.parametrize("name", peers_nqueens.SOLVERS)
@pytest.mark.parametrize("task", ["8", "6x4"])
def test_solvers_find_what_is_wanted(name, task, without_numba, monkeypatch):
    """One of 92, and all there are of six queens; the last of a course is the end."""
    if (package := PACKAGES.get(name)) and not importlib.util.find_spec(package):
        pytest.skip(f"{name} is not installed")
    monkeypatch.setattr(peers_nqueens.JaxoptSearch, "devices", 1)
    (task,) = peers_nqueens.instances([task], None)
    solver = peers_nqueens.SOLVERS[name]()
    placements, course = solver.solve(solver.prepare(task), 1, 60.0, 0)
    assert placements.shape == (task.wanted, task.n)
    assert peers_nqueens.cost(task, placements) == 0
    assert not course or course[-1][1] == 0


@pytest.mark.parametrize("n", [1, 4, 5, 8, 30])
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


def test_what_is_missing():
    """Placements that are found twice count once."""
    task = peers_nqueens.QueensTask(6, 10)
    placements = np.array(all_valid(6))
    assert peers_nqueens.cost(task, placements) == 6
    assert peers_nqueens.cost(task, np.concatenate([placements, placements[:2]])) == 6
    assert peers_nqueens.cost(task, placements[:0]) == 10


@pytest.mark.parametrize("queens", [[0, 1, 2, 3], [1, 3, 3, 0], [1, 2, 0, 3]])
def test_placements_that_are_not_valid_are_refused(queens):
    with pytest.raises(ValueError, match="a placement of 4 queens is not valid"):
        peers_nqueens.cost(peers_nqueens.QueensTask(4, 1), np.array([queens]))


@pytest.mark.parametrize("name", ["rd100", "x5", "8x", "0", "8x0", "-8", "8x5x3"])
def test_names_that_are_none_of_queens(name):
    with pytest.raises(ValueError, match=f"instance '{name}' is not of N-Queens"):
        peers_nqueens.instances([name], None)


def test_tasks_by_name():
    """A name is what a task is called."""
    names = ["8", "1000x50"]
    tasks = peers_nqueens.instances(names, None)
    assert [(task.n, task.wanted, task.name) for task in tasks] == [
        (8, 1, "8"),
        (1000, 50, "1000x50"),
    ]


def test_a_solver_ends_with_its_time():
    """One that finds the same again and again is stopped."""
    solver = peers_nqueens.OneByOne()
    solver.placements = lambda task, seed, limit: iter(lambda: [1, 3, 0, 2], None)
    placements, course = solver.solve(peers_nqueens.QueensTask(4, 2), 0, 0.05, 0)
    assert placements.tolist() == [[1, 3, 0, 2]]
    assert course[-1][1] == 1


def test_what_does_not_suit_a_solver(without_numba, monkeypatch):
    """Too many pairs for python-constraint; numbers of queens without a valid placement."""
    monkeypatch.setitem(peers.sys.modules, "constraint", types.ModuleType("constraint"))
    with pytest.raises(ValueError, match="more than 50000 constraints"):
        peers_nqueens.MinConflicts().prepare(peers_nqueens.QueensTask(1000, 1))
    with pytest.raises(ValueError, match="no placement is valid"):
        peers_nqueens.CompiledSearch().prepare(peers_nqueens.QueensTask(3, 1))
