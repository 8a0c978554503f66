"""One variable: all of its possibilities are rated and weighed, and one of them is drawn.

Algorithms 2 to 4 of Koester, Gross, Krueger, "FANG: Fast and Efficient Successor-State Generation
for Heuristic Optimization on GPUs"; portable. Possibility p stands in lane p % W of block p // W,
for W lanes. A lane adds up its weights over all blocks, so that it is a segment of the paper's, and
needs no other lane for that.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search.portable import counts, memory
from jaxopt_search.portable.counts import Count, Number
from jaxopt_search.successors import heuristics, segments
from jaxopt_search.successors.heuristics import Aggregate, Rating

_REDUCTIONS: dict[Any, Any] = {jnp.maximum: jnp.max, jnp.minimum: jnp.min}
_MOST_UNROLLED = 64  # blocks whose ratings a kernel keeps in registers


class Drawn(NamedTuple):
    """What a variable is to be assigned.

    Attributes:
      possibility: [] int32.
      is_possible: [] bool, False if all weights are 0.
    """

    possibility: jax.Array
    is_possible: jax.Array


def draw(
    heuristic: Any,
    problem: Any,
    state: Any,
    variable: jax.Array,
    words: tuple[jax.Array, jax.Array],
    keeps_ratings: bool,
) -> Drawn:
    """Returns a random possibility of a variable, drawn by its weight.

    Args:
      variable: [] int32.
      words: two random words, the upper one first.
      keeps_ratings: whether ratings are kept from when they are aggregated to when they are mapped
        to weights, or else computed again.
    """
    possibilities = _possibilities(heuristic, problem, state, variable)
    ratings = _kept(possibilities) if keeps_ratings else possibilities
    aggregates = tuple(_aggregated(one, ratings) for one in heuristics.aggregates_of(heuristic))
    weigh = functools.partial(heuristics.weights, heuristic, problem, aggregates)

    lanes = _lane_totals(weigh, ratings, heuristics.is_wide(heuristic))
    total = counts.total(lanes)
    lane, rest = segments.find(lanes, counts.scaled(total, words))
    lane = jnp.minimum(lane, possibilities.num_lanes - 1)  # where all weights are 0
    block = _find_block(weigh, possibilities, lane, rest)
    return Drawn(block * possibilities.num_lanes + lane, ~counts.is_zero(total))


def rate_all(
    heuristic: Any, problem: Any, state: Any, variable: jax.Array
) -> tuple[Rating, tuple[Any, ...]]:
    """Returns the ratings of all possibilities that a variable may have, and their aggregates.

    Not portable. Ratings are [R]; those beyond the number of possibilities mean nothing.
    """
    possibilities = _possibilities(heuristic, problem, state, variable)
    rating, _ = possibilities.at(lax.iota(jnp.int32, heuristic.max_possibilities))
    of_all = _AtOnce(possibilities)
    return rating, tuple(_aggregated(one, of_all) for one in heuristics.aggregates_of(heuristic))


def _possibilities(
    heuristic: Any, problem: Any, state: Any, variable: jax.Array
) -> "_Possibilities":
    return _Possibilities(
        num_lanes=heuristics.num_lanes(heuristic),
        num_blocks=heuristics.num_blocks(heuristic),
        number=heuristics.num_possibilities(heuristic, problem, state, variable),
        rate=functools.partial(heuristic.rate, problem, state, variable),
    )


def _aggregated(aggregate: Aggregate, ratings: Any) -> Any:
    """Returns what an aggregate is of all ratings: scalars."""
    neutral = jax.tree.map(jnp.asarray, aggregate.neutral)

    def value(rating: Rating, where: jax.Array | None) -> Any:
        own = rating if aggregate.of is None else aggregate.of(rating)
        where = heuristics.only_rated(rating, where)
        if where is None:
            return own
        return jax.tree.map(lambda own, none: jnp.where(where, own, none), own, neutral)

    start = jax.tree.map(lambda leaf: jnp.full(ratings.num_lanes, leaf), neutral)
    reduce = reduction(aggregate)
    values = ratings.fold(value, aggregate.combine, start, reduce)
    if reduce is not None:
        return jax.tree.map(reduce, values)
    while (size := jax.tree.leaves(values)[0].size) > 1:
        pairs = jax.tree.map(lambda leaf: leaf.reshape(2, size // 2), values)
        values = aggregate.combine(*(memory.row(pairs, number) for number in (0, 1)))
    return jax.tree.map(lambda leaf: leaf.reshape(()), values)


def reduction(aggregate: Aggregate) -> Any:
    """Returns what combines values over an axis in any order; None if the order may matter."""
    return _REDUCTIONS.get(aggregate.combine)


def _lane_totals(weigh: Callable[..., jax.Array], ratings: Any, is_wide: bool) -> Number:
    """Returns the sum of the weights in each lane."""

    def add_up(weights: jax.Array, axis: int) -> Number:
        return counts.total(_numbers(weights, is_wide), axis)

    start = _numbers(jnp.zeros(ratings.num_lanes, jnp.uint32), is_wide)
    return ratings.fold(weigh, counts.add, start, add_up)


def _numbers(weights: jax.Array, is_wide: bool) -> Number:
    """Returns weights as numbers whose sum may take more than 32 bits, or not."""
    return counts.of(weights) if is_wide else weights


def _find_block(
    weigh: Callable[..., jax.Array],
    possibilities: "_Possibilities",
    lane: jax.Array,
    value: Number,
) -> jax.Array:
    """Returns the block in which a value lies that counts the weights in one lane, [] int32."""
    if possibilities.num_blocks == 1:
        return jnp.int32(0)
    block = lax.iota(jnp.int32, memory.power_of_two(possibilities.num_blocks))
    weights = weigh(*possibilities.at(block * possibilities.num_lanes + lane))
    found, _ = segments.find(_numbers(weights, isinstance(value, Count)), value)
    # Here a compiler may round ratings of floats otherwise than before.
    return jnp.minimum(found, jnp.max(jnp.where(weights > 0, block, jnp.int32(0))))


@dataclasses.dataclass(frozen=True)
class _Possibilities:
    """The possibilities of a variable, rated when they are needed.

    Attributes:
      num_lanes: of a block.
      num_blocks: at most.
      number: of all possibilities; a Python integer where it is known.
      rate: maps some to their ratings.
    """

    num_lanes: int
    num_blocks: int
    number: int | jax.Array
    rate: Callable[[jax.Array], Rating]

    def at(self, possibility: jax.Array) -> tuple[Rating, jax.Array]:
        """Returns ratings, and which of them are real: those beyond the last are the last one's."""
        last = jnp.maximum(jnp.int32(self.number) - 1, 0)
        return self.rate(jnp.minimum(possibility, last)), possibility < self.number

    def block(self, number: int | jax.Array) -> tuple[Rating, jax.Array | None]:
        """Returns the ratings in a block, and which of them are real; None for all."""
        is_known = isinstance(self.number, int) and isinstance(number, int)
        if is_known and (number + 1) * self.num_lanes <= self.number:
            return self.whole_block(number), None
        return self.at(self.places(number))

    def whole_block(self, number: int | jax.Array) -> Rating:
        """Returns the ratings in a block that is full."""
        return self.rate(self.places(number))

    def fold(self, of: Any, combine: Any, start: Any, reduce: Any) -> Any:
        """Returns `start` combined with the values of all ratings, by lanes, [W].

        Args:
          of: maps ratings, and which of them are real, to values.
          combine: maps two values to one.
          reduce: combines [B, W] values over an axis; None if only `combine` may.
        """
        return self.fold_blocks(self.whole_block, self.block, of, combine, start)

    def fold_blocks(
        self, whole_block: Any, some_block: Any, of: Any, combine: Any, start: Any
    ) -> Any:
        """Like `fold`, with ratings that two functions give."""

        def whole(number: jax.Array, carry: Any) -> Any:
            return combine(carry, of(whole_block(number), None))

        def partial(number: jax.Array | int, carry: Any) -> Any:
            return combine(carry, of(*some_block(number)))

        if not isinstance(self.number, int) and not memory.is_alone():
            return lax.fori_loop(0, self.num_blocks, partial, start)
        num_whole = self.number // self.num_lanes
        carry = lax.fori_loop(0, num_whole, whole, start)
        if isinstance(self.number, int) and self.number % self.num_lanes == 0:
            return carry
        return partial(num_whole, carry)

    def places(self, number: int | jax.Array) -> jax.Array:
        return number * self.num_lanes + lax.iota(jnp.int32, self.num_lanes)


def _kept(possibilities: _Possibilities) -> Any:
    """Returns what gives the same values with ratings that are computed once."""
    if memory.is_native():
        return _InRows(possibilities)
    if not memory.is_in_kernel():
        return _AtOnce(possibilities)
    return _Unrolled(possibilities) if possibilities.num_blocks <= _MOST_UNROLLED else possibilities


class _Unrolled:
    """The ratings of some blocks, a value each."""

    def __init__(self, possibilities: _Possibilities) -> None:
        self.num_lanes = possibilities.num_lanes
        self._blocks = list(map(possibilities.block, range(possibilities.num_blocks)))

    def fold(self, of: Any, combine: Any, start: Any, reduce: Any) -> Any:
        values = (of(*block) for block in self._blocks)
        return functools.reduce(combine, values, start)


class _AtOnce:
    """The ratings of all possibilities, [B, W], handled all together."""

    def __init__(self, possibilities: _Possibilities) -> None:
        self.num_lanes = possibilities.num_lanes
        self._ratings, self._is_real = _table(possibilities)

    def fold(self, of: Any, combine: Any, start: Any, reduce: Any) -> Any:
        values = of(self._ratings, self._is_real)
        if reduce is not None:
            return jax.tree.map(lambda leaf: reduce(leaf, axis=0), values)

        def go_on(number: jax.Array, carry: Any) -> Any:
            return combine(carry, _row(values, number))

        return lax.fori_loop(0, self._is_real.shape[0], go_on, start)


class _InRows:
    """The same, handled row by row: XLA for CPUs makes one loop of vectors of that."""

    def __init__(self, possibilities: _Possibilities) -> None:
        self.num_lanes = possibilities.num_lanes
        self._possibilities = possibilities
        self._ratings, _ = _table(possibilities)

    def fold(self, of: Any, combine: Any, start: Any, reduce: Any) -> Any:
        possibilities, whole = self._possibilities, functools.partial(_row, self._ratings)

        def some(number: jax.Array | int) -> tuple[Rating, jax.Array]:
            # One block more than there are, if all of them are whole; none of its ratings is real.
            return whole(number), possibilities.places(number) < possibilities.number

        return possibilities.fold_blocks(whole, some, of, combine, start)


def _table(possibilities: _Possibilities) -> tuple[Rating, jax.Array]:
    """Returns all ratings, and which of them are real, [B, W]."""
    shape = possibilities.num_blocks, possibilities.num_lanes
    everything = possibilities.at(lax.iota(jnp.int32, shape[0] * shape[1]))
    return jax.tree.map(lambda leaf: leaf.reshape(shape), everything)


def _row(tree: Any, number: jax.Array | int) -> Any:
    return jax.tree.map(lambda leaf: lax.dynamic_index_in_dim(leaf, number, keepdims=False), tree)
