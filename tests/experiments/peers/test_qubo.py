"""Solvers of QUBOs: what each is given is the same problem, and it solves that."""

import itertools

import numpy as np
import pytest
from scipy import sparse

from experiments.finite import gset
from experiments.peers import qubo

MATRIX = np.triu(np.random.default_rng(0).integers(-9, 10, (10, 10)))
LOWEST = min(x @ MATRIX @ x for x in map(np.array, itertools.product((0, 1), repeat=10)))
INSTANCE = qubo.Instance("small", 10, sparse.coo_array(MATRIX), int(LOWEST))


@pytest.mark.parametrize("name", qubo.SOLVERS)
def test_solvers_find_the_lowest_of_all_sums(name):
    try:
        solver = qubo.SOLVERS[name]()
    except ImportError:
        pytest.skip(f"{name} is not installed")
    limit = 1.0 if solver.unit == "runs" else 0.2
    solution, course = solver.solve(solver.prepare(INSTANCE), 1, limit, INSTANCE.best_known)
    assert qubo.cost(INSTANCE, solution) == LOWEST == min(cost for _, cost in course)


def test_a_cut_costs_what_its_edges_weigh():
    (instance,) = qubo.instances(["G11"], None)
    sides = np.random.default_rng(1).integers(0, 2, instance.n)
    assert -qubo.cost(instance, sides) == gset.cut(gset.graph("G11"), sides)
