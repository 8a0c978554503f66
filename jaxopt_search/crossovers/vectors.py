"""Genetic operators for vectors whose entries have finite domains.

A solution is [n] int32 with 0 <= x[i] < `problem.domain_sizes[i]`.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from jaxopt_search.backends import random
from jaxopt_search.backends.memory import load
from jaxopt_search.backends.rows import Block, Tile
from jaxopt_search.crossovers.operators import Draws, Island, entry_words
from jaxopt_search.types import Stream


@dataclasses.dataclass(frozen=True)
class VectorOperators:
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

    def check(self, problem: Any, solution: jax.Array) -> None:
        """Refuses nothing: `contracts.check_spaces` has looked at the domains."""

    def tables(self, population: jax.Array) -> tuple[()]:
        return ()

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

    def updated(
        self, tables: tuple[()], tile: Tile, individuals: jax.Array, where: jax.Array
    ) -> tuple[()]:
        return tables

    def random(
        self, stream: Stream, problem: Any, island: Island, block: Block
    ) -> tuple[Any, list[jax.Array]]:
        def values(tile: Tile) -> jax.Array:
            (word,) = entry_words(stream, tile, island.population.shape, 1)
            return random.below(word, load(problem.domain_sizes, tile.column))

        return island.children, [values(tile) for tile in block.tiles]
