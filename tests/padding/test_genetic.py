"""Genetic search and recombination where there is room for more: the same children."""

import jax
import jax.numpy as jnp
from padding.same import check_course, check_same
from qaps import matrices

import jaxopt_search as js
from jaxopt_search.backends import random

FIXED = [[2, 5], [7, 1]]


def test_islands_take_the_same_course():
    """Populations, costs and tables; also after a restart, which draws new individuals."""
    search = js.genetic(population_size=8, crossover="pmx", alike=0.1, restart_every=3)
    problem = js.qap(*matrices(9, "diagonal"), partial_match=FIXED)
    check_course(problem, 16, search, "xla", num_steps=20)


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
