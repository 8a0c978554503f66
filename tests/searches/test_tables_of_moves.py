"""Hill climbing and tabu search over moves that have a table, but no search of their own in it."""

import dataclasses
import itertools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import linear_ordering
from ways import KERNEL

import jaxopt_search as js
from jaxopt_search.backends.memory import load


@js.pytree
@dataclasses.dataclass(frozen=True)
class Ordering(type(linear_ordering(2))):
    """A user's own permutation problem with a price for swaps in O(n)."""

    def swap_delta(self, order, first, second):
        low, high = jnp.minimum(first, second), jnp.maximum(first, second)
        a, b = load(order, low), load(order, high)

        def add(place, total):
            at = load(order, place)
            is_between = (low < place) & (place < high)
            # What stands between moves from below `a` to above it, and the other way round for `b`.
            change = load(self.weight, (a, at)) - load(self.weight, (at, a))
            change = change + load(self.weight, (at, b)) - load(self.weight, (b, at))
            return total + jnp.where(is_between, change, 0)

        between = jax.lax.fori_loop(0, self.n, lambda i, t: add(jnp.full_like(low, i), t), low * 0)
        return between + load(self.weight, (a, b)) - load(self.weight, (b, a))


def ordering(n, seed=0):
    return Ordering(linear_ordering(n, seed).weight, n)


PROBLEMS = {
    "ordering": ordering(7),
    "fixed": js.qap(*np.random.default_rng(3).integers(0, 50, (2, 7, 7)), partial_match=[[1, 3]]),
}
SEARCHES = {
    "tabu": js.tabu_search(js.DeltaSwap(), tenure=(2, 6)),
    "first": js.hill_climbing(js.DeltaSwap(), choose="first"),
}


def optimum(problem):
    """Returns the lowest cost of all permutations in which what is fixed stays."""
    orders = np.array(list(itertools.permutations(range(7))), np.int32)
    if (free := problem.is_free) is not None:
        fixed = np.flatnonzero(np.asarray(free) == 0)
        start = np.asarray(problem.init(jax.random.key(0)))
        orders = orders[(orders[:, fixed] == start[fixed]).all(1)]
    return int(jax.vmap(problem.cost)(orders).min())


@pytest.mark.parametrize(("kind", "name"), [("first", "fixed"), ("tabu", "ordering")])
def test_searches_over_delta_swap_find_the_optimum(kind, name):
    """And make the same steps in every implementation."""
    problem, search = PROBLEMS[name], SEARCHES[kind]
    found = js.run(0, problem, search, num_searches=200, max_steps=100, implementation="xla")
    assert int(js.best(problem, search, found)[1]) == optimum(problem)
    assert js.why_not_portable(problem, search) == ""
    runs = [
        js.run(0, problem, search, num_searches=2, max_steps=8, implementation=way)
        for way in ("xla", KERNEL)
    ]
    chex.assert_trees_all_equal(*runs)


def test_the_table_of_swaps_keeps_the_laws():
    js.testing.check_neighborhood(js.DeltaSwap(), PROBLEMS["ordering"], implementations=False)
