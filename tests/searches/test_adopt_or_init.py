"""Walks that start again and walks that adopt a solution share what is computed for both."""

import chex
import jax
import jax.numpy as jnp
import pytest
from cases import linear_ordering
from qaps import matrices

import jaxopt_search as js
from jaxopt_search.backends import random
from jaxopt_search.engine import exchange

QAP = js.qap(*matrices(7, "asymmetric")).padded()
CASES = {
    "tabu": (QAP, js.tabu_search(js.SwapTable())),
    "first improvement": (linear_ordering(7), js.hill_climbing(js.Swap(), choose="first")),
}


def at(place, tree):
    return jax.tree.map(lambda leaf: leaf[place], tree)


@pytest.mark.parametrize("case", CASES)
def test_it_is_one_or_the_other(case):
    """The state of `init` or of `adopt`, bit for bit, of searches that have made some steps."""
    problem, search = CASES[case]
    state = js.run(1, problem, search, num_searches=4, max_steps=9).searches
    keys = jax.vmap(lambda i: random.start_key(random.as_key(2), i))(jnp.arange(4, dtype="uint32"))

    def both(key, state, is_new):
        solution = problem.init(key)
        found = search.adopt_or_init(problem, state, solution, is_new)
        old, new = search.adopt(problem, state, solution), search.init(problem, solution)
        return found, old, new

    found, old, new = jax.jit(jax.vmap(both))(keys, state, jnp.array([0, 1, 0, 1], bool))
    for place, expected in enumerate((old, new, old, new)):
        chex.assert_trees_all_equal(at(place, found), at(place, expected))
    assert any((a != b).any() for a, b in zip(*map(jax.tree.leaves, (old, new)), strict=True))


def test_without_it_the_same_is_chosen_from_both():
    """Of islands, which draw other individuals for their start."""
    search = js.genetic(crossover="pmx", population_size=6)
    assert search.adopt_or_init is None
    words = jnp.array([3, 4], jnp.uint32), jnp.array([5, 6], jnp.uint32)
    keys = random.typed_key(words)
    solutions = jnp.tile(jnp.arange(QAP.capacity, dtype=jnp.int32), (2, 1))
    init_with = jax.jit(jax.vmap(search.init_with, (0, None, 0)))
    states = init_with(keys[::-1], QAP, solutions)
    starts = jnp.array([True, False])
    found = jax.jit(exchange.adopt_or_start)(search, QAP, states, solutions, starts, words)
    new = init_with(keys, QAP, solutions)
    old = jax.jit(jax.vmap(search.adopt, in_axes=(None, 0, 0)))(QAP, states, solutions)
    for place, expected in enumerate((new, old)):
        chex.assert_trees_all_equal(at(place, found), at(place, expected))
