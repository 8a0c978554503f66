"""Solvers of the QAP: what each returns is what it says."""

import pytest

import jaxopt_search as js
from experiments import one_core
from experiments.peers import levels
from experiments.peers import qap as peers_qap

INSTANCE = js.datasets.planted_qap(3, 3, seed=0)


@pytest.mark.parametrize("name", [name for name in peers_qap.SOLVERS if name != "jaxopt_search"])
def test_solvers_find_a_planted_optimum(name, monkeypatch):
    """Nine facilities take none of them a second; costs in the course are true."""
    if name == "compiled tabu" and not one_core.has_numba():
        monkeypatch.setattr(one_core, "compiled", lambda build, *args: build(lambda fn: fn, *args))
        monkeypatch.setattr(peers_qap.metadata, "version", lambda name: "none")
        monkeypatch.setattr(peers_qap, "_STEPS_BETWEEN_LOOKS", 3600)
    solver = peers_qap.SOLVERS[name]()
    data = solver.prepare(INSTANCE)
    solution, course = solver.solve(data, 1, 20.0, INSTANCE.best_known)
    assert peers_qap.cost(INSTANCE, solution) == INSTANCE.best_known == course[-1][1]
    assert levels.improvements(course)[-1][1] == INSTANCE.best_known
