"""The restart of an island that has stagnated: section III of the paper; portable.

Now and then an island counts the individuals that have its lowest cost. Once they are a large share
of it, all are replaced by random ones. The best solution of all is remembered apart.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxopt_search.backends import memory, rows
from jaxopt_search.backends.memory import load
from jaxopt_search.backends.rows import Block
from jaxopt_search.crossovers import Operators
from jaxopt_search.searches.genetic import island
from jaxopt_search.searches.genetic.generation import priced, replaced
from jaxopt_search.searches.genetic.island import GeneticState
from jaxopt_search.types import Problem, Stream


class Restart(NamedTuple):
    """When and how an island restarts.

    Attributes:
      alike: [] float32, the share of individuals with the lowest cost at which it does.
      every: [] int32, generations between looks at that.
      keeps_best: whether the best solution of all takes the place of a random one.
    """

    alike: jax.Array
    every: jax.Array
    keeps_best: bool


def restarted(
    rule: Restart, operators: Operators, stream: Stream, problem: Problem, state: GeneticState
) -> GeneticState:
    """Returns an island of random individuals if it has stagnated, else the island itself."""

    def with_new_ones(state: GeneticState, where: jax.Array) -> GeneticState:
        new = _with_random_children(rule, operators, stream, problem, state)
        new, _ = replaced(operators, new, where)
        if memory.is_in_kernel():
            return new
        return jax.tree.map(lambda new, old: jnp.where(where, new, old), new, state)

    def look(state: GeneticState, where: jax.Array) -> GeneticState:
        costs = island.costs_of_all(state)
        num_alike = jnp.sum(costs == jnp.min(costs), dtype=jnp.int32)
        is_over = num_alike.astype(jnp.float32) >= rule.alike * state.costs.shape[0]
        return memory.when(is_over & where, with_new_ones, state)

    is_due = (stream.step % rule.every == 0) & (stream.step > 0)
    return memory.when(is_due, look, state, all_alike=True)


def _with_random_children(
    rule: Restart, operators: Operators, stream: Stream, problem: Problem, state: GeneticState
) -> GeneticState:
    """Returns the state with random children, priced; the first one may be the best of all."""

    def make(block: Block, state: GeneticState) -> GeneticState:
        new = operators.random(stream, problem, island.buffers(state), block)
        if rule.keeps_best:
            best = [load(state.best, tile.column) for tile in block.tiles]
            pairs = zip(block.tiles, best, new, strict=True)
            new = [jnp.where(t.row == 0, b, v) for t, b, v in pairs]
        return priced(problem, state._replace(children=block.put(state.children, new)), block)

    return rows.by_rows((state.costs.shape[0], state.best.shape[0]), make, state)
