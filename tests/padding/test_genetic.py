"""Genetic search and recombination where there is room for more: the same children."""

import jax
import jax.numpy as jnp
import pytest
from padding.same import check_course, check_same
from qaps import matrices
from ways import KERNEL, needs_cpu

import jaxopt_search as js
from jaxopt_search.backends import random

FIXED = [[2, 5], [7, 1]]


@needs_cpu
@pytest.mark.parametrize(
    ("crossover", "implementation", "fixed"),
    [("pmx", "xla", FIXED), ("ox", KERNEL, None)],
)
def test_islands_take_the_same_course(crossover, implementation, fixed):
    """Populations, costs and tables; also after a restart, which draws new individuals."""
    alike = 0.1 if crossover == "pmx" else None  # restarts each time
    search = js.genetic(population_size=8, crossover=crossover, alike=alike, restart_every=3)
    problem = js.qap(*matrices(9, "diagonal"), partial_match=fixed)
    check_course(problem, 16, search, implementation, num_steps=20)


@jax.jit
def children(problem, indices):
    """Returns a child of two random assignments each, and of two equal ones."""

    def of_one(index):
        first, second, *keys = (random.start_key(random.as_key(seed), index) for seed in range(4))
        exchange = js.recombine(every=1)
        make = exchange.crossover.child
        child = make(keys[0], problem, problem.init(first), problem.init(second), exchange.share)
        return child, make(keys[1], problem, child, child, exchange.share)

    return jax.vmap(of_one)(indices)


def test_recombination_makes_the_same_children():
    """PMX, and the perturbation of a child that equals its parents."""
    problem = js.qap(*matrices(9, "symmetric"), partial_match=FIXED)
    indices = jnp.arange(30, dtype=jnp.uint32)
    check_same(children(problem, indices), children(problem.padded(16), indices))
