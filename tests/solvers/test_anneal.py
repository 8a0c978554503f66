"""Annealing whose temperatures are measured."""

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
