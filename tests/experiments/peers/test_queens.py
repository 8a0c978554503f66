"""Solvers of N-Queens: what each returns is what it says."""

import importlib.util

import pytest

from experiments.peers import queens as peers_nqueens

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
