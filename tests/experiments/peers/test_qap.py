"""Solvers of the QAP: what each returns is what it says."""

import numpy as np
import pytest

import jaxopt_search as js
from experiments import one_core
from experiments.multistart import compiled_qap, compiled_tabu
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


@pytest.mark.parametrize("which", ["both", "flow"])
def test_the_compiled_search_keeps_exact_books(which):
    """Its cost, its best cost and all deltas, after 300 steps; with one symmetric matrix, too."""
    generator = np.random.default_rng(0)
    pair = [np.triu(m, 1) for m in generator.integers(0, 50, (2, 8, 8))]
    flow, distance = (
        m if which not in ("both", name) else m + m.T
        for name, m in zip(("flow", "distance"), pair, strict=True)
    )
    data = compiled_qap.symmetric(flow, distance)
    search = compiled_tabu.start(*data, 3)
    assert compiled_tabu.build(lambda fn: fn)(*data, search, 300, -1) == 300

    def cost(assignment):
        return 2 * (flow * distance[np.ix_(assignment, assignment)]).sum()

    steps, now, best, _ = search.numbers
    assert (steps, now, best) == (300, cost(search.assignment), cost(search.best))
    for i in range(8):
        for j in range(i + 1, 8):
            after = search.assignment.copy()
            after[[i, j]] = after[[j, i]]
            assert search.deltas[i, j] == cost(after) - now
