"""Genetic operators: the part of `genetic` that depends on what solutions are.

`Operators` is the contract; those for vectors whose entries have finite domains are here, too.

Letters: `P` individuals of an island, `n` entries of each, `R` rows of a block of them, `C` columns
of a tile.
"""

import abc
import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxopt_search.backends import random
from jaxopt_search.backends.memory import load
from jaxopt_search.backends.rows import Block, Tile
from jaxopt_search.types import Cost, Stream


class Island(NamedTuple):
    """The state of one island.

    Attributes:
      population: [P, n] int32, an individual in each row.
      tables: what `Operators.tables` returns of it.
      costs: [P] of the population.
      best: [n] int32, the best solution of all since the start.
      best_cost: [] its cost.
      children, child_costs: [P, n] int32 and [P], working space.
    """

    population: Any
    tables: Any
    costs: Any
    best: Any
    best_cost: Cost
    children: Any
    child_costs: Any


class Draws(NamedTuple):
    """What was drawn for the child in each row of a block, [R, 1] each.

    Attributes:
      second: int32, the row of its second parent; the first one is in the child's own row.
      cuts: two uint32 words, for crossover.
      is_mutant: bool, whether mutation changes the child.
      change: two uint32 words, for what it changes.
    """

    second: jax.Array
    cuts: tuple[jax.Array, jax.Array]
    is_mutant: jax.Array
    change: tuple[jax.Array, jax.Array]


class Operators(abc.ABC):
    """Crossover, mutation and random individuals, for solutions of one space.

    `breed`, `updated` and `random` are portable.
    """

    space: str
    """The solutions that they are made for, such as `"permutation"`."""

    def check(self, problem: Any, solution: jax.Array, /) -> None:
        """Refuses a problem that they do not suit, by shapes, dtypes and static fields only.

        `contracts.check_spaces` has looked at the space before.

        Raises:
          ValueError: saying why, in one line.
        """
        return

    def tables(self, population: jax.Array, /) -> Any:
        """Returns a pytree of arrays that operators need besides `population`, [P, n] int32."""
        return ()

    @abc.abstractmethod
    def breed(
        self, stream: Stream, problem: Any, island: Island, block: Block, draws: Draws, /
    ) -> Island:
        """Returns the island with a child in each row of a block, mutation included."""

    def updated(self, tables: Any, tile: Tile, individuals: Any, where: jax.Array, /) -> Any:
        """Returns the tables of a population of which some entries have been replaced.

        Args:
          individuals: [R, C] int32, what the tile has now.
          where: [R, 1] bool, the rows that have changed.
        """
        return tables

    @abc.abstractmethod
    def random(
        self, stream: Stream, problem: Any, island: Island, block: Block, /
    ) -> tuple[Any, list[jax.Array]]:
        """Returns the table of children, and random individuals, [R, C] int32 for each tile.

        They take the first word of each slot that `entry_words` draws from. The children in the
        block's rows may be overwritten on the way.
        """


def entry_words(
    stream: Stream, tile: Tile, shape: tuple[int, int | jax.Array], num_words: int
) -> tuple[jax.Array, ...]:
    """Returns words for each entry of a table [P, n] here: uint32 [R, C] each; portable.

    They are of the slots from P on; the slots before are for whole individuals.

    Args:
      shape: P and n. A table may have room behind, of which the words are no one's own.
    """
    num_rows, num_columns = shape
    slot = num_rows + tile.row * num_columns + tile.column
    return stream.words(slot.astype(jnp.uint32), num_words)


@dataclasses.dataclass(frozen=True)
class VectorOperators(Operators):
    """A crossover of vectors; mutation gives one random variable another random value.

    By uniform crossover each entry is that of the second parent with even chances, independently
    (Syswerda, "Uniform crossover in genetic algorithms", 1989). By one-point crossover all entries
    are from a random cut on, uniform in 1 to n - 1, so that both parents give something if n > 1
    (Holland, "Adaptation in natural and artificial systems", 1975).

    The variable is uniform among all, and the value is uniform among the others of its domain; a
    variable with only one value keeps it. Random individuals are uniform.

    Attributes:
      is_uniform: whether crossover is uniform, else it is one-point.
    """

    is_uniform: bool

    space = "vector"

    def breed(
        self, stream: Stream, problem: Any, island: Island, block: Block, draws: Draws
    ) -> Island:
        population, n = island.population, island.population.shape[1]
        variable = random.below(draws.change[0], n)

        def values(tile: Tile) -> jax.Array:
            others = load(population, (draws.second, tile.column))
            if self.is_uniform:
                _, word = entry_words(stream, tile, population.shape, 2)
                is_others = word >> jnp.uint32(31) == jnp.uint32(1)
            else:
                is_others = tile.column >= 1 + random.below(draws.cuts[0], max(n - 1, 1))
            child = jnp.where(is_others, others, tile.get(population))
            sizes = load(problem.domain_sizes, tile.column)
            is_changed = draws.is_mutant & (tile.column == variable)
            return jnp.where(is_changed, random.another(draws.change[1], child, sizes), child)

        children = block.put(island.children, [values(tile) for tile in block.tiles])
        return island._replace(children=children)

    def random(
        self, stream: Stream, problem: Any, island: Island, block: Block
    ) -> tuple[Any, list[jax.Array]]:
        def values(tile: Tile) -> jax.Array:
            (word,) = entry_words(stream, tile, island.population.shape, 1)
            return random.below(word, load(problem.domain_sizes, tile.column))

        return island.children, [values(tile) for tile in block.tiles]
