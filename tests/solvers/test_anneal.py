"""Annealing whose temperatures are measured."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import pytest
from cases import linear_ordering

import jaxopt_search as js
from jaxopt_search.neighborhoods.full_evaluation import as_neighborhood
from jaxopt_search.solvers.anneal import increases


def test_it_finds_the_optimum_of_few():
    """Of seven things in order, within 200 steps, with no temperature given."""
    problem, moves = linear_ordering(7), js.InsertSegment(2)
    orders = jnp.array([*itertools.permutations(range(7))])
    lowest = jax.vmap(problem.cost)(orders).min()
    assert js.anneal(problem, moves, max_steps=200, devices=1).fun == lowest


def test_temperatures_follow_from_the_costs():
    """They are as many times as high where costs are, and 1 where all cost the same."""
    moves = as_neighborhood(js.Swap())
    usual, least = increases(linear_ordering(12), moves)
    assert 0 < least < usual
    assert increases(linear_ordering(12, scale=8), moves) == pytest.approx((8 * usual, 8 * least))
    assert increases(linear_ordering(12, scale=0), moves) == (1, 1)


@js.pytree
@dataclasses.dataclass(frozen=True)
class Ring(js.VectorProblem):
    """How many neighbors on a ring of zeros and ones are alike: all raises are of one size."""

    domain_sizes: jax.Array
    max_domain = 2

    def init(self, key):
        return jax.random.randint(key, self.domain_sizes.shape, 0, 2)

    def cost(self, x):
        return jnp.sum(x == jnp.roll(x, 1))


def test_walls_on_a_ring_meet():
    """In a sweep, flips of equal cost would move all of them alike."""
    ring = Ring(jnp.full(24, 2))
    assert increases(ring, as_neighborhood(js.Flip())) == (2, 2)
    assert js.anneal(ring, js.Flip(), max_steps=2000, devices=1).fun == 0
