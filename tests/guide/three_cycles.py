"""Moves of three facilities of a QAP in a circle, written from docs/your_own_problem.md alone."""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp

import jaxopt_search as js
from jaxopt_search.backends import memory
from jaxopt_search.backends.memory import load, store
from jaxopt_search.backends.random import below


class Cycle(NamedTuple):
    """The first facility goes where the second is, that one where the third is, and so on."""

    first: jax.Array
    second: jax.Array
    third: jax.Array


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class ThreeCycles(js.Neighborhood):
    """All cycles of three facilities, each priced in O(n)."""

    num_words = 3
    is_portable = True

    def init(self, problem, solution):
        return solution

    def snapshot(self, representation):
        return representation

    def solution(self, problem, snapshot):
        return snapshot

    def propose(self, problem, assignment, words):
        first = below(words[0], problem.n)
        second = (first + 1 + below(words[1], problem.n - 1)) % problem.n
        third = below(words[2], problem.n - 2)
        for taken in (jnp.minimum(first, second), jnp.maximum(first, second)):
            third = third + (third >= taken).astype(jnp.int32)
        return Cycle(first, second, third)

    def delta(self, problem, assignment, move):
        old = [load(assignment, facility) for facility in move]
        pairs = list(zip(move, old, old[1:] + old[:1], strict=True))

        def cost(a, b, at_a, at_b):
            return load(problem.flow, a * problem.n + b) * load(
                problem.distance, at_a * problem.n + at_b
            )

        def with_other(other, change):
            other = jnp.full_like(move.first, other)
            here = there = load(assignment, other)
            for facility, _, new in pairs:
                there = jnp.where(other == facility, new, there)
            is_apart = (other != move.first) & (other != move.second) & (other != move.third)
            for facility, at, to in pairs:
                change += cost(facility, other, to, there) - cost(facility, other, at, here)
                back = cost(other, facility, there, to) - cost(other, facility, here, at)
                change += jnp.where(is_apart, back, 0)
            return change

        return memory.fori_loop(problem.n, with_other, jnp.zeros_like(move.first))

    def commit(self, problem, assignment, move, accept):
        old = [load(assignment, facility) for facility in move]
        for facility, location in zip(move, old[1:] + old[:1], strict=True):
            assignment = store(assignment, facility, location, accept)
        return assignment
