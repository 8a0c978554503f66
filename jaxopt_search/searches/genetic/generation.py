"""One generation of an island, Figure 3 of the paper; portable.

Each individual mates with another one, drawn at random, and has one child, by crossover and, by
chance, mutation. Once all children are priced, each takes the place of its first parent if it is
better. So all individuals breed at once, and none waits for another.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxopt_search.backends import memory, random, rows
from jaxopt_search.backends.costs import cost_of
from jaxopt_search.backends.memory import load, store
from jaxopt_search.backends.rows import Block
from jaxopt_search.crossovers import Draws, Operators
from jaxopt_search.searches.genetic import island
from jaxopt_search.searches.genetic.island import GeneticState
from jaxopt_search.searches.genetic.memetic import Improvement
from jaxopt_search.types import Info, Problem, Stream

NUM_WORDS = 6
"""The random words for one child, the first ones of the slot of its row."""


class Breeding(NamedTuple):
    """How children come about.

    Attributes:
      operators: crossover and mutation.
      mutation_rate: [] float32, the share of children that are mutated.
      improvement: what becomes of children before they are priced; None for nothing.
    """

    operators: Operators
    mutation_rate: jax.Array
    improvement: Improvement | None


def generation(
    breeding: Breeding, stream: Stream, problem: Problem, state: GeneticState
) -> tuple[GeneticState, Info]:
    """Returns the island after one generation, and how many children took their parents' places."""
    state = bred(breeding, stream, problem, state)
    memory.barrier()  # all have read their partners
    return replaced(breeding.operators, state, jnp.bool_(False))


def bred(breeding: Breeding, stream: Stream, problem: Problem, state: GeneticState) -> GeneticState:
    """Returns the state with a child of each individual, priced."""

    def breed(block: Block, state: GeneticState) -> GeneticState:
        draws = _draws(breeding.mutation_rate, stream, block, state.costs.shape[0])
        made = breeding.operators.breed(stream, problem, island.buffers(state), block, draws)
        state = state._replace(tables=made.tables, children=made.children)
        if breeding.improvement is not None:
            return breeding.improvement.of_children(stream, problem, state, NUM_WORDS)
        return priced(problem, state, block)

    return rows.by_rows(_shape(state), breed, state)


def _draws(mutation_rate: jax.Array, stream: Stream, block: Block, size: int) -> Draws:
    row = block.rows[:, None]
    other, *cuts, chance, variable, value = stream.words(row.astype(jnp.uint32), NUM_WORDS)
    return Draws(
        second=random.another(other, row, size),
        cuts=(cuts[0], cuts[1]),
        is_mutant=random.uniform(chance) < mutation_rate,
        change=(variable, value),
    )


def priced(problem: Problem, state: GeneticState, block: Block) -> GeneticState:
    """Returns the state with the costs of the children in these rows."""
    memory.barrier()
    row_costs = problem.row_costs
    if row_costs is not None:
        costs = row_costs(block, state.children)
    else:
        costs = jax.vmap(cost_of, (None, 0))(problem, state.children)
    child_costs = store(state.child_costs, block.rows, costs, block.is_row)
    return state._replace(child_costs=child_costs)


def replaced(
    operators: Operators, state: GeneticState, all_of_them: jax.Array
) -> tuple[GeneticState, Info]:
    """Returns the state in which better children have taken the places of their first parents.

    Args:
      all_of_them: [] bool, whether all children take these places, better or not.
    """
    child_costs = state.child_costs

    def replace(block: Block, carry: tuple[Any, Any]) -> tuple[Any, Any]:
        population, tables = carry
        row = block.rows[:, None]
        where = (load(child_costs, row) < load(state.costs, row)) | all_of_them
        for tile in block.tiles:
            child = tile.get(state.children)
            population = tile.put(population, child, where)
            tables = operators.updated(tables, tile, child, where)
        return population, tables

    tree = state.population, state.tables
    population, tables = rows.by_rows(_shape(state), replace, tree)
    memory.barrier()
    lane, individual = island.lanes(state)
    new, old = load(child_costs, individual), load(state.costs, individual)
    where = ((new < old) | all_of_them) & (lane < state.costs.shape[0])
    costs = store(state.costs, individual, new, where)
    memory.barrier()
    state = state._replace(population=population, tables=tables, costs=costs)
    return island.remember_best(state), Info(jnp.sum(where, dtype=jnp.int32))


def _shape(state: GeneticState) -> tuple[int, int]:
    return state.costs.shape[0], state.best.shape[0]
