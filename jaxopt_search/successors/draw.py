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

from jaxopt_search.backends import counts, memory
from jaxopt_search.backends.counts import Count, Number
from jaxopt_search.backends.memory import load
from jaxopt_search.successors import heuristics
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
    kept = _kept(possibilities) if keeps_ratings else None
    fold = functools.partial(_fold, possibilities, kept)
    lanes = possibilities.num_lanes
    aggregates = tuple(_aggregated(one, fold, lanes) for one in heuristics.aggregates_of(heuristic))
    weigh = functools.partial(heuristics.weights, heuristic, problem, aggregates)

    totals = _lane_totals(weigh, fold, lanes, heuristics.is_wide(heuristic))
    total = counts.total(totals)
    lane, rest = _find(totals, counts.scaled(total, words))
    lane = jnp.minimum(lane, lanes - 1)  # where all weights are 0
    block = _find_block(weigh, possibilities, lane, rest)
    return Drawn(block * lanes + lane, ~counts.is_zero(total))


def rate_all(
    heuristic: Any, problem: Any, state: Any, variable: jax.Array
) -> tuple[Rating, tuple[Any, ...]]:
    """Returns the ratings of all possibilities that a variable may have, and their aggregates.

    Not portable. Ratings are [R]; those beyond the number of possibilities mean nothing.
    """
    possibilities = _possibilities(heuristic, problem, state, variable)
    rating, _ = possibilities.at(lax.iota(jnp.int32, heuristic.max_possibilities))
    fold, lanes = (
        functools.partial(_fold, possibilities, _kept(possibilities)),
        possibilities.num_lanes,
    )
    aggregates = heuristics.aggregates_of(heuristic)
    return rating, tuple(_aggregated(one, fold, lanes) for one in aggregates)


def _possibilities(
    heuristic: Any, problem: Any, state: Any, variable: jax.Array
) -> "_Possibilities":
    return _Possibilities(
        num_lanes=heuristics.num_lanes(heuristic),
        num_blocks=heuristics.num_blocks(heuristic),
        number=heuristics.num_possibilities(heuristic, problem, state, variable),
        rate=functools.partial(heuristic.rate, problem, state, variable),
    )


def _aggregated(aggregate: Aggregate, fold: Callable[..., Any], num_lanes: int) -> Any:
    """Returns the value of an aggregate over all ratings: scalars."""
    neutral = jax.tree.map(jnp.asarray, aggregate.neutral)

    def value(rating: Rating, where: jax.Array | None) -> Any:
        own = rating if aggregate.of is None else aggregate.of(rating)
        where = heuristics.only_rated(rating, where)
        if where is None:
            return own
        return jax.tree.map(lambda own, none: jnp.where(where, own, none), own, neutral)

    start = jax.tree.map(lambda leaf: jnp.full(num_lanes, leaf), neutral)
    reduce = reduction(aggregate)
    values = fold(value, aggregate.combine, start, reduce)
    if reduce is not None:
        return jax.tree.map(reduce, values)
    while (size := jax.tree.leaves(values)[0].size) > 1:
        pairs = jax.tree.map(lambda leaf: leaf.reshape(2, size // 2), values)
        values = aggregate.combine(*(memory.row(pairs, number) for number in (0, 1)))
    return jax.tree.map(lambda leaf: leaf.reshape(()), values)


def reduction(aggregate: Aggregate) -> Any:
    """Returns a function that combines values over an axis; None if their order may matter."""
    return _REDUCTIONS.get(aggregate.combine)


def _lane_totals(
    weigh: Callable[..., jax.Array], fold: Callable[..., Any], num_lanes: int, is_wide: bool
) -> Number:
    """Returns the sum of the weights in each lane."""

    def add_up(weights: jax.Array, axis: int) -> Number:
        return counts.total(_numbers(weights, is_wide), axis)

    start = _numbers(jnp.zeros(num_lanes, jnp.uint32), is_wide)
    return fold(weigh, counts.add, start, add_up)


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
    found, _ = _find(_numbers(weights, isinstance(value, Count)), value)
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

    def places(self, number: int | jax.Array) -> jax.Array:
        return number * self.num_lanes + lax.iota(jnp.int32, self.num_lanes)


def _kept(possibilities: _Possibilities) -> Any:
    """Returns ratings that are computed once: a list of blocks in a kernel, else a table.

    Of a table, all ratings and which of them are real, [B, W]. None for too many blocks.
    """
    shape = possibilities.num_blocks, possibilities.num_lanes
    if memory.is_in_kernel():
        few = shape[0] <= _MOST_UNROLLED
        return list(map(possibilities.block, range(shape[0]))) if few else None
    everything = possibilities.at(lax.iota(jnp.int32, shape[0] * shape[1]))
    return jax.tree.map(lambda leaf: leaf.reshape(shape), everything)


def _fold(
    possibilities: _Possibilities, kept: Any, of: Any, combine: Any, start: Any, reduce: Any
) -> Any:
    """Returns `start` combined with the values of all ratings, by lanes, [W].

    Args:
      kept: the ratings, as `_kept` returns them; None to rate again.
      of: maps ratings, and which of them are real, to values.
      combine: maps two values to one.
      reduce: combines [B, W] values over an axis; None if only `combine` may.
    """
    if isinstance(kept, list):
        return functools.reduce(combine, (of(*block) for block in kept), start)
    if kept is not None and not memory.is_native():
        values = of(*kept)
        if reduce is not None:
            return jax.tree.map(lambda leaf: reduce(leaf, axis=0), values)

        def add_row(number: jax.Array, carry: Any) -> Any:
            return combine(carry, _row(values, number))

        return lax.fori_loop(0, possibilities.num_blocks, add_row, start)

    size, num_lanes = possibilities.number, possibilities.num_lanes
    whole_block, some_block = possibilities.whole_block, possibilities.block
    if kept is not None:
        # Row by row, of which XLA for CPUs makes one loop of vectors. There may be one block more
        # than there are, if all of them are whole; none of its ratings is real.
        whole_block = functools.partial(_row, kept[0])

        def some_block(number: int | jax.Array) -> tuple[Rating, jax.Array | None]:
            return whole_block(number), possibilities.places(number) < size

    def whole(number: jax.Array, carry: Any) -> Any:
        return combine(carry, of(whole_block(number), None))

    def partial(number: jax.Array | int, carry: Any) -> Any:
        return combine(carry, of(*some_block(number)))

    if not isinstance(size, int) and not memory.is_alone():
        return lax.fori_loop(0, possibilities.num_blocks, partial, start)
    carry = lax.fori_loop(0, size // num_lanes, whole, start)
    if isinstance(size, int) and size % num_lanes == 0:
        return carry
    return partial(size // num_lanes, carry)


def _row(tree: Any, number: jax.Array | int) -> Any:
    return jax.tree.map(lambda leaf: lax.dynamic_index_in_dim(leaf, number, keepdims=False), tree)


def _find(lengths: Number, value: Number) -> tuple[jax.Array, Number]:
    """Returns in which of several segments, set end to end, a value lies, and how far into it.

    Args:
      lengths: of M segments, at most 2**16; a power of two in a search by itself on a CPU.
      value: [], below the total.

    Returns:
      [] int32, and what is left of the value.
    """
    if memory.is_native():
        return _find_by_halves(lengths, value)
    is_before = counts.is_at_most(counts.prefix_sums(lengths), value)
    before = jax.tree.map(lambda words: jnp.where(is_before, words, jnp.uint32(0)), lengths)
    place = jnp.sum(is_before.astype(jnp.int32), dtype=jnp.int32)
    return place, counts.subtract(value, counts.total(before))


def _find_by_halves(lengths: Number, value: Number) -> tuple[jax.Array, Number]:
    """Like `_find`, by a tree of sums, which a CPU handles faster than prefix sums.

    A value that is not below the total lies in the last segment.
    """
    levels = [lengths]
    while (size := jax.tree.leaves(levels[-1])[0].shape[0]) > 1:
        pairs = jax.tree.map(lambda words, half=size // 2: words.reshape(half, 2), levels[-1])
        left = jax.tree.map(lambda words: words[:, 0], pairs)
        levels.append(counts.add(left, jax.tree.map(lambda words: words[:, 1], pairs)))
    place = jnp.int32(0)
    for level in reversed(levels[:-1]):
        place = place * 2
        left = jax.tree.map(functools.partial(load, index=place), level)
        is_right = counts.is_at_most(left, value)
        rest = counts.subtract(value, left)
        value = jax.tree.map(functools.partial(jnp.where, is_right), rest, value)
        place = place + is_right.astype(jnp.int32)
    return place, value
