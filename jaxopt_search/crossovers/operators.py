"""Genetic operators: the part of `genetic` that depends on what solutions are.

`Operators` is the contract. There are some for vectors whose entries have finite domains, and some
for permutations, whose children are made without a loop over positions: `pmx` makes one child,
`pmx_rows` and `ox_rows` make one for each row of a table, portable.

Letters: `P` individuals of an island, `n` entries of each, `R` rows of a block of them, `C` columns
of a tile.
"""

import abc
import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search.backends import loops, random
from jaxopt_search.backends.memory import load, store
from jaxopt_search.backends.rows import Block, Tile
from jaxopt_search.neighborhoods.swap import Swap, positions
from jaxopt_search.problems.permutation import inverse
from jaxopt_search.types import Cost, Stream

__all__ = ["pmx"]


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


def pmx(first: jax.Array, second: jax.Array, is_second: jax.Array) -> jax.Array:
    """Returns the partially matched child of two permutations.

    It has the values of `second` where `is_second` holds. Elsewhere it has the value of `first`; if
    the child has this value already, the value of `first` at the place where `second` has it, and
    so on. Goldberg, Lingle, "Alleles, loci, and the traveling salesman problem", 1985, for a
    segment of positions. All chains of values are followed at once, in ceil(log2 n) doublings.

    Args:
      first, second: [n] int32 permutations of 0 to n - 1.
      is_second: [n] bool.

    Returns:
      [n] int32, a permutation.

    Raises:
      TypeError: if a parent is not [n] int32.

    Example:
      >>> first, second = jnp.array([0, 1, 2, 3, 4]), jnp.array([2, 0, 4, 1, 3])
      >>> pmx(first, second, jnp.array([False, True, True, False, False])).tolist()
      [1, 0, 4, 3, 2]
    """
    for parent in (first, second):
        if jnp.ndim(parent) != 1 or jnp.result_type(parent) != jnp.int32:
            kind = f"{jnp.result_type(parent)}{list(jnp.shape(parent))}"
            raise TypeError(f"a parent is {kind}, expected a permutation, int32[n]")
    n, position = first.shape[0], inverse(second)
    following = jnp.where(is_second[position], first[position], lax.iota(jnp.int32, n))
    for _ in range((n - 1).bit_length()):
        following = following[following]
    return jnp.where(is_second, second, following[first])


class Parents(NamedTuple):
    """Tables of permutations, and which of them have a child in each row of a block.

    Attributes:
      permutations: [P, n] int32 buffer.
      positions: [P, n] int32 buffer, the position of each value.
      second: [R, 1] int32, a row; the first parent is in the child's own row.
      start, end: [R, 1] int32; the child has the values of the second parent from position `start`
        to `end` - 1.
      swap: two [R, 1] int32 positions, whose values change places in the child at the end.
      num_entries: so many first values are crossed, as in `problems.padding`; None for all.
    """

    permutations: Any
    positions: Any
    second: jax.Array
    start: jax.Array
    end: jax.Array
    swap: tuple[jax.Array, jax.Array]
    num_entries: jax.Array | None = None

    def is_second(self, position: jax.Array) -> jax.Array:
        """Returns whether the child is like the second parent at positions."""
        return (position >= self.start) & (position < self.end)

    def swapped(self, position: jax.Array) -> jax.Array:
        """Returns where the value at positions comes from, or goes."""
        first, second = self.swap
        moved = jnp.where(position == second, first, position)
        return jnp.where(position == first, second, moved)


def pmx_rows(block: Block, parents: Parents, children: Any, links: Any) -> tuple[Any, Any]:
    """Returns two tables with a child in each row of a block, made as by `pmx` and then swapped.

    Args:
      children: [P, n] int32 buffer.
      links: [P, n] int32 buffer, working space.

    Returns:
      Both of them.
    """
    n = parents.permutations.shape[1]
    following = []
    for tile in block.tiles:
        place = load(parents.positions, (parents.second, tile.column))
        value = load(parents.permutations, (tile.row, place))
        following.append(jnp.where(parents.is_second(place), value, tile.column))
    for _ in range((n - 1).bit_length()):
        links = block.put(links, following)
        pairs = zip(block.tiles, following, strict=True)
        following = [load(links, (tile.row, value)) for tile, value in pairs]
    links = block.put(links, following)
    child = []
    for tile in block.tiles:
        source = parents.swapped(tile.column)
        own = load(links, (tile.row, load(parents.permutations, (tile.row, source))))
        others = load(parents.permutations, (parents.second, source))
        child.append(jnp.where(parents.is_second(source), others, own))
    return block.put(children, child), links


def ox_rows(block: Block, parents: Parents, children: Any, links: Any) -> tuple[Any, Any]:
    """Like `pmx_rows`, but by order crossover, which needs no working space.

    A child has the values of its second parent from `start` to `end` - 1. The others fill the rest
    from `end` on, wrapping around, in the order in which its first parent has them from there.
    Davis, "Applying adaptive algorithms to epistatic domains", 1985. What is behind `num_entries`
    stays as it is in `children`.
    """
    tile, entries = block.whole, parents.num_entries
    n = parents.permutations.shape[1] if entries is None else entries

    def around(number: jax.Array) -> jax.Array:
        place = parents.end + number
        return jnp.where(place >= n, place - n, place)

    column, counts = tile.column, tile.only_real()
    if entries is not None:
        column, counts = jnp.minimum(column, n - 1), counts & (column < n)
    value = load(parents.permutations, (tile.row, around(column)))
    is_left = ~parents.is_second(load(parents.positions, (parents.second, value))) & counts
    number = jnp.cumsum(is_left.astype(jnp.int32), axis=1) - 1
    place = parents.swapped(around(jnp.maximum(number, 0)))
    children = store(children, (tile.row, place), value, is_left)
    others = load(parents.permutations, (parents.second, tile.column))
    is_others = tile.only_real(parents.is_second(tile.column))
    place = parents.swapped(tile.column)
    return store(children, (tile.row, place), others, is_others), links


class PermutationTables(NamedTuple):
    """What operators need besides a table of permutations.

    Attributes:
      positions: [P, n] int32, the position of each value.
      links: [P, n] int32, working space.
    """

    positions: Any
    links: Any


@dataclasses.dataclass(frozen=True)
class PermutationOperators(Operators):
    """A crossover of permutations with two random cuts; mutation exchanges two random values.

    The second parent gives the part between the cuts, which are two of 0 to n - 1; so the last
    value is always from the first parent. Random individuals are uniform.

    Attributes:
      cross: makes children, `pmx_rows` or `ox_rows`.
      leaves_fixed: whether children keep what their parents have in common at a position.
    """

    cross: Callable[[Block, Parents, Any, Any], tuple[Any, Any]]
    leaves_fixed: bool

    space = "permutation"

    def check(self, problem: Any, solution: jax.Array) -> None:
        if problem.free is None:
            return
        if not self.leaves_fixed:
            raise ValueError("crossover is 'ox', expected 'pmx', which leaves what is fixed")
        if problem.is_free is None:
            raise ValueError(f"problem is a {type(problem).__name__} with free but no is_free")

    def tables(self, population: jax.Array) -> PermutationTables:
        return PermutationTables(jax.vmap(inverse)(population), population)

    def breed(
        self, stream: Stream, problem: Any, island: Island, block: Block, draws: Draws
    ) -> Island:
        (positions, links), number = island.tables, problem.num_entries
        n = island.population.shape[1] if number is None else number
        cut = random.below(draws.cuts[0], n)
        cuts = cut, random.another(draws.cuts[1], cut, n)
        swap = Swap().propose(problem, island.best, draws.change)
        parents = Parents(
            island.population,
            positions,
            second=draws.second,
            start=jnp.minimum(*cuts),
            end=jnp.maximum(*cuts),
            swap=(swap.first, jnp.where(draws.is_mutant, swap.second, swap.first)),
            num_entries=number,
        )
        children, links = self.cross(block, parents, island.children, links)
        return island._replace(tables=PermutationTables(positions, links), children=children)

    def updated(
        self, tables: PermutationTables, tile: Tile, individuals: jax.Array, where: jax.Array
    ) -> PermutationTables:
        is_new = tile.only_real(where)
        positions = store(tables.positions, (tile.row, individuals), tile.column, is_new)
        return tables._replace(positions=positions)

    def random(
        self, stream: Stream, problem: Any, island: Island, block: Block
    ) -> tuple[Any, list[jax.Array]]:
        """Returns the children and permutations whose positions are ranked by random words.

        If the problem has `free`, only these positions; the others are as in the best so far.
        """
        (size, n), number = island.population.shape, problem.num_entries
        n = n if number is None else number
        free, num_free = positions(problem, island.best)
        drawn = (entry_words(stream, tile, (size, n), 1) for tile in block.tiles)
        words = [lax.bitcast_convert_type(word, jnp.int32) for (word,) in drawn]
        children = block.put(island.children, words)

        def values(tile: Tile, word: jax.Array) -> jax.Array:
            def count(k: jax.Array, rank: jax.Array) -> jax.Array:
                place = k if free is None else load(free, k)
                other = tile.get_column(children, place)
                is_before = (other < word) | ((other == word) & (place < tile.column))
                return rank + is_before.astype(jnp.int32)

            rank = loops.fori_loop(0, num_free, count, jnp.zeros_like(word))
            if free is None:
                return rank if number is None else jnp.where(tile.column < n, rank, tile.column)
            new = load(island.best, load(free, jnp.minimum(rank, num_free - 1)))
            may_change = load(problem.is_free, tile.column) > 0
            return jnp.where(may_change, new, load(island.best, tile.column))

        new = list(map(values, block.tiles, words))
        return children, new


OPERATORS: dict[str, Operators] = {
    "pmx": PermutationOperators(pmx_rows, leaves_fixed=True),
    "ox": PermutationOperators(ox_rows, leaves_fixed=False),
    "uniform": VectorOperators(is_uniform=True),
    "one_point": VectorOperators(is_uniform=False),
}
"""Those of `genetic`, by name."""
