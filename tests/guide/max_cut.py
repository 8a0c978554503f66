"""The maximum cut and flips of single vertices, written from the two pages of the guide alone."""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp

import jaxopt_search as js
from jaxopt_search.backends import memory
from jaxopt_search.backends.memory import load, store
from jaxopt_search.backends.random import below


@js.pytree
@dataclasses.dataclass(frozen=True)
class MaxCut(js.VectorProblem):
    """A graph, [n * n] int32, symmetric, 0 on the diagonal; the cost is minus the cut."""

    weight: jax.Array
    n: int = dataclasses.field(metadata={"static": True})

    max_domain = 2

    @property
    def domain_sizes(self):
        return jnp.full(self.n, 2, jnp.int32)

    def init(self, key):
        return jax.random.bernoulli(key, shape=(self.n,)).astype(jnp.int32)

    def cost(self, side):
        is_cut = side[:, None] > side[None, :]
        return -jnp.sum(jnp.where(is_cut.ravel(), self.weight, 0), dtype=jnp.int32)


class Sides(NamedTuple):
    """The side of each vertex, and the change in cost if it goes to the other, [n] int32 each."""

    side: jax.Array
    change: jax.Array


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Flips(js.Enumerable):
    """One vertex goes to the other side: priced in O(1), made in O(n) by lanes."""

    num_words = 1
    is_portable = True

    def init(self, problem, solution):
        is_cut = solution[:, None] != solution[None, :]
        weight = problem.weight.reshape(problem.n, problem.n)
        change = jnp.sum(jnp.where(is_cut, weight, -weight), axis=1, dtype=jnp.int32)
        return Sides(solution, change)

    def snapshot(self, representation):
        return representation.side

    def solution(self, problem, snapshot):
        return snapshot

    def propose(self, problem, representation, words):
        return below(words[0], problem.n)

    def delta(self, problem, representation, move):
        return load(representation.change, move)

    def commit(self, problem, representation, move, accept):
        (side, change), n, lane = representation, problem.n, memory.lanes(memory.LANES)
        own, own_change = load(side, move), load(change, move)

        def update_tile(number, change):
            vertex = number * memory.LANES + lane
            is_other = (vertex < n) & (vertex != move)
            vertex = jnp.minimum(vertex, n - 1)
            twice = 2 * load(problem.weight, move * n + vertex)
            more = jnp.where(load(side, vertex) == own, twice, -twice)
            return store(change, vertex, load(change, vertex) + more, accept & is_other)

        change = memory.fori_loop(-(-n // memory.LANES), update_tile, change)
        change = store(change, move, -own_change, accept)
        return Sides(store(side, move, 1 - own, accept), change)

    def num_moves(self, problem):
        return problem.n

    def shape(self, problem):
        return problem.n, 1

    def move_at(self, problem, representation, row, column):
        return row, True

    def undone(self, problem, representation, move):
        return ((move, jnp.int32(0)),)
