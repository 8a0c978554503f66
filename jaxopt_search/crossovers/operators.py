"""The contract of genetic operators: the part of `genetic` that depends on what solutions are.

Letters: `P` individuals of an island, `n` entries of each, `R` rows of a block of them, `C` columns
of a tile.
"""

from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp

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


class Operators(Protocol):
    """Crossover, mutation and random individuals, for solutions of one space.

    `breed`, `updated` and `random` are portable.
    """

    @property
    def space(self) -> str:
        """The solutions that they are made for, such as `"permutation"`."""
        ...

    def check(self, problem: Any, solution: jax.Array, /) -> None:
        """Refuses a problem that they do not suit, by shapes, dtypes and static fields only.

        Raises:
          ValueError: saying why, in one line.
        """
        ...

    def tables(self, population: jax.Array, /) -> Any:
        """Returns a pytree of arrays that operators need besides `population`, [P, n] int32."""
        ...

    def breed(
        self, stream: Stream, problem: Any, island: Island, block: Block, draws: Draws, /
    ) -> Island:
        """Returns the island with a child in each row of a block, mutation included."""
        ...

    def updated(self, tables: Any, tile: Tile, individuals: jax.Array, where: jax.Array, /) -> Any:
        """Returns the tables of a population of which some entries have been replaced.

        Args:
          individuals: [R, C] int32, what the tile has now.
          where: [R, 1] bool, the rows that have changed.
        """
        ...

    def random(
        self, stream: Stream, problem: Any, island: Island, block: Block, /
    ) -> tuple[Any, list[jax.Array]]:
        """Returns the table of children, and random individuals, [R, C] int32 for each tile.

        They take the first word of each slot that `entry_words` draws from. The children in the
        block's rows may be overwritten on the way.
        """
        ...


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
