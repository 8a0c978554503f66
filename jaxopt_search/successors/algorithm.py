"""FANG's N(x) for one state, as Algorithms 1 to 4 of the paper; portable.

Koester, Gross, Krueger, "FANG: Fast and Efficient Successor-State Generation for Heuristic
Optimization on GPUs". `turn` is the body of Algorithm 1, for one variable; `draw` and the functions
below it are Algorithms 2 to 4.

Possibility p stands in lane p % W of block p // W, for W lanes. A segment here is a lane's
possibilities and not, as in the paper, a run of 32: each lane adds up its own and needs no other.
Random words are a function of the successor's key, the variable, and, for a random order, of how
many were assigned before.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search.backends import bit_sets, counts, memory, random
from jaxopt_search.backends.counts import Number
from jaxopt_search.backends.memory import load
from jaxopt_search.backends.random import Key
from jaxopt_search.successors import heuristics
from jaxopt_search.successors.heuristics import Aggregate, Rating

Order: TypeAlias = Literal["fixed", "random"]
Ratings: TypeAlias = Literal["stored", "recomputed"]

_FOR_ORDER = 2**31
_MOST_UNROLLED = 64  # blocks whose ratings a kernel keeps in registers
REDUCTIONS: dict[Any, Any] = {jnp.maximum: jnp.max, jnp.minimum: jnp.min}


class Variables(NamedTuple):
    """The variables of one type, and all that decides what they are assigned.

    Attributes:
      heuristic: rates, weighs and assigns.
      problem: what it reads.
      number: of the type.
      order: in which variables are assigned.
      ratings: what becomes of them between their aggregation and their mapping.
    """

    heuristic: Any
    problem: Any
    number: int
    order: Order
    ratings: Ratings


class Course(NamedTuple):
    """A state while the variables of one type are assigned; sets as `bit_sets.read` returns them.

    Attributes:
      state: the user's.
      waiting: the set of variables that have not had their turn.
      left: those of them that are active.
      assigned: those that were assigned.
    """

    state: Any
    waiting: jax.Array
    left: jax.Array
    assigned: jax.Array


# Algorithm 1.


def open_state(of: Variables, state: Any) -> Any:
    """Returns the state in which the variables are to be assigned."""
    return heuristics.hook(of.heuristic, "before_state", of.problem, state, jnp.bool_(True))


def begin(of: Variables, state: Any, active: jax.Array) -> Course:
    """Returns the course before the first variable; `open_state` comes before it."""
    waiting = bit_sets.everything(of.heuristic.num_variables)
    left = bit_sets.read(active, of.heuristic.num_variables)
    left = heuristics.active_now(of.heuristic, of.problem, state, left) & waiting
    return Course(state, waiting, left, jnp.zeros_like(left))


def turn(of: Variables, key: Key, drawn: Any, place: jax.Array, course: Course) -> Course:
    """Returns the course after one variable more: lines 4 to 34; the same if none is left.

    Args:
      drawn: [num_variables] int32, what was drawn before by `draw_for`; None to draw now.
      place: [] int32, how many variables had their turn before.
    """
    heuristic, problem, (state, waiting, left, assigned) = of.heuristic, of.problem, course
    num_left = bit_sets.count(left)
    where = num_left > 0
    if of.order == "fixed":
        variable = bit_sets.first(left)
    else:
        counter = place.astype(jnp.uint32), jnp.uint32(_FOR_ORDER + of.number)
        word, _ = random.threefry2x32(key, counter, random.WORD_ROUNDS)
        variable = bit_sets.member(left, random.below(word, num_left))
    variable = jnp.where(where, variable, jnp.int32(0))
    waiting = bit_sets.removed(waiting, variable, where)
    state = heuristics.hook(heuristic, "before_variable", problem, state, variable, where)

    found = draw_for(of, key, state, variable) if drawn is None else load(drawn, variable)
    possibility, is_possible = jnp.maximum(found, 0), found >= 0

    def assign(state: Any, where: jax.Array) -> Any:
        return heuristic.assign(problem, state, variable, possibility, where)

    def give_up(state: Any, where: jax.Array) -> Any:
        return heuristic.could_not_assign(problem, state, variable, where)

    state = memory.when(where & is_possible, assign, state)
    if heuristic.could_not_assign is not None:
        state = memory.when(where & ~is_possible, give_up, state)
    state = heuristics.hook(heuristic, "after_variable", problem, state, variable, where)
    # Where none was left, the course has ended: nothing is activated any more.
    left = jnp.where(where, heuristics.active_now(heuristic, problem, state, left & waiting), left)
    assigned = bit_sets.added(assigned, variable, where & is_possible)
    return Course(state, waiting, left & waiting, assigned)


def end(of: Variables, course: Course, assigned: jax.Array) -> tuple[Any, jax.Array]:
    """Returns the state after the last variable, and `assigned`, overwritten by the course's."""
    where = jnp.bool_(True)
    state = heuristics.hook(of.heuristic, "after_state", of.problem, course.state, where)
    return state, bit_sets.write(assigned, course.assigned)


def assign_in_turn(
    of: Variables, key: Key, drawn: Any, state: Any, active: jax.Array, assigned: jax.Array
) -> tuple[Any, jax.Array]:
    """Returns a state by itself after its active variables had their turns, and `assigned`.

    Args:
      drawn: as in `turn`.
      state: as `open_state` returns it.
      active: [words] uint32.
      assigned: [words] uint32, overwritten by the set of those that were assigned.
    """
    take_turn = functools.partial(turn, of, key, drawn)
    course = begin(of, state, active)
    num_turns = bit_sets.count(course.left)
    if of.heuristic.active_now is not None:
        num_turns = jnp.int32(of.heuristic.num_variables)

        def take_turn(place: jax.Array, course: Course) -> Course:
            is_left = bit_sets.count(course.left) > 0
            return memory.when(
                is_left, lambda course, where: turn(of, key, drawn, place, course), course
            )

    return end(of, memory.fori_loop(num_turns, take_turn, course), assigned)


def assign_side_by_side(
    of: Variables, keys: Key, states: Any, active: jax.Array
) -> tuple[Any, jax.Array]:
    """Like `assign_in_turn`, for states [X, ...] at once: each turn is one of all states."""
    states, drawn = jax.vmap(functools.partial(open_state, of))(states), None
    if of.heuristic.independent:
        variables = lax.iota(jnp.int32, of.heuristic.num_variables)
        draw_all = jax.vmap(functools.partial(draw_for, of), (None, None, 0))
        drawn = jax.vmap(draw_all, (0, 0, None))(keys, states, variables)
    turn_all = jax.vmap(functools.partial(turn, of), (0, 0, None, 0))
    courses = jax.vmap(functools.partial(begin, of))(states, active)
    _, courses = lax.while_loop(
        lambda carry: jnp.any(carry[1].left != 0),
        lambda carry: (carry[0] + 1, turn_all(keys, drawn, *carry)),
        (jnp.int32(0), courses),
    )
    return jax.vmap(functools.partial(end, of))(courses, jnp.zeros_like(active))


# Lines 5 to 9 and 18 to 25.


def draw_for(of: Variables, key: Key, state: Any, variable: jax.Array) -> jax.Array:
    """Returns what a variable is to be assigned, by the key of a successor; see `draw`."""
    counter = variable.astype(jnp.uint32), jnp.uint32(of.number)
    return draw(of, state, variable, random.threefry2x32(key, counter, random.WORD_ROUNDS))


def draw(
    of: Variables, state: Any, variable: jax.Array, words: tuple[jax.Array, jax.Array]
) -> jax.Array:
    """Returns a possibility of a variable, drawn by its weight, [] int32; -1 if all weights are 0.

    Args:
      variable: [] int32.
      words: two random words, the upper one first.
    """
    heuristic = of.heuristic
    rated = _rated(of, state, variable, of.ratings == "stored")
    aggregates = tuple(_aggregate(one, rated) for one in heuristic.aggregates)  # Algorithm 2
    weigh = functools.partial(heuristics.weights, heuristic, of.problem, aggregates)

    def as_numbers(weights: jax.Array) -> Number:
        return counts.of(weights) if heuristics.is_wide(heuristic) else weights

    def add_up(weights: jax.Array, axis: int) -> Number:
        return counts.total(as_numbers(weights), axis)

    # Algorithm 3: the lengths of the segments.
    nothing = as_numbers(jnp.zeros(rated.num_lanes, jnp.uint32))
    lengths = rated.fold(weigh, counts.add, nothing, add_up)
    total = counts.total(lengths)
    value = counts.scaled(total, words)
    # Algorithm 4: the segment in which the value lies, and there, the block.
    lane, rest = _find(lengths, value)
    lane, block = jnp.minimum(lane, rated.num_lanes - 1), jnp.int32(0)  # if all weights are 0
    if rated.num_blocks > 1:
        blocks = lax.iota(jnp.int32, memory.power_of_two(rated.num_blocks))
        weights = weigh(*rated.at(blocks * rated.num_lanes + lane))
        found, _ = _find(as_numbers(weights), rest)
        # Here a compiler may round ratings of floats otherwise than before.
        block = jnp.minimum(found, jnp.max(jnp.where(weights > 0, blocks, jnp.int32(0))))
    return jnp.where(counts.is_zero(total), jnp.int32(-1), block * rated.num_lanes + lane)


def rate_all(of: Variables, state: Any, variable: jax.Array) -> tuple[Rating, tuple[Any, ...]]:
    """Returns the ratings of all possibilities that a variable may have, and their aggregates.

    Not portable. Ratings are [R]; those beyond the number of possibilities mean nothing.
    """
    rated = _rated(of, state, variable, True)
    rating, _ = rated.at(lax.iota(jnp.int32, of.heuristic.max_possibilities))
    return rating, tuple(_aggregate(one, rated) for one in of.heuristic.aggregates)


@dataclasses.dataclass(frozen=True)
class _Rated:
    """The possibilities of a variable with their ratings.

    Attributes:
      number: of all possibilities; a Python integer where it never changes.
      num_lanes, num_blocks: of a block, and of the variable at most.
      rate: maps some possibilities to their ratings.
      kept: ratings that are computed once, and which of them are real: a list of blocks in a
        kernel, else [B, W]; None to rate anew each time.
    """

    number: int | jax.Array
    num_lanes: int
    num_blocks: int
    rate: Callable[[jax.Array], Rating]
    kept: Any = None

    def at(self, possibility: jax.Array) -> tuple[Rating, jax.Array]:
        """Returns ratings, and which of them are real: those beyond the last are the last one's."""
        last = jnp.maximum(jnp.int32(self.number) - 1, 0)
        return self.rate(jnp.minimum(possibility, last)), possibility < self.number

    def block(self, place: int | jax.Array, is_whole: bool) -> tuple[Rating, jax.Array | None]:
        """Returns the ratings in a block, and which of them are real; None for all."""
        possibility = place * self.num_lanes + lax.iota(jnp.int32, self.num_lanes)
        if self.kept is not None:
            row = functools.partial(lax.dynamic_index_in_dim, index=place, keepdims=False)
            kept = jax.tree.map(row, self.kept[0])
            return kept, None if is_whole else possibility < self.number
        return (self.rate(possibility), None) if is_whole else self.at(possibility)

    def fold(self, of: Any, combine: Any, start: Any, reduce: Any) -> Any:
        """Returns `start` combined with the values of all ratings, by lanes, [W].

        Args:
          of: maps ratings, and which of them are real, to values.
          combine: maps two values to one.
          reduce: combines [B, W] values over an axis; None if only `combine` may.
        """
        if isinstance(self.kept, list):
            return functools.reduce(combine, (of(*block) for block in self.kept), start)
        if self.kept is not None and reduce is not None and not memory.is_alone():
            return jax.tree.map(lambda leaf: reduce(leaf, axis=0), of(*self.kept))

        # Block by block. Of a CPU's kept ratings XLA makes one loop of vectors.
        def add(is_whole: bool, place: int | jax.Array, carry: Any) -> Any:
            return combine(carry, of(*self.block(place, is_whole)))

        is_known = isinstance(self.number, int)
        if not (is_known or memory.is_alone()):
            return lax.fori_loop(0, self.num_blocks, functools.partial(add, False), start)
        num_whole = self.number // self.num_lanes
        carry = lax.fori_loop(0, num_whole, functools.partial(add, True), start)
        # Of a number that is not known, there may be no block left; then nothing of it is real.
        is_all = is_known and self.number % self.num_lanes == 0
        return carry if is_all else add(False, num_whole, carry)


def _rated(of: Variables, state: Any, variable: jax.Array, is_stored: bool) -> _Rated:
    heuristic, problem, *_ = of
    number = heuristics.num_possibilities(heuristic, problem, state, variable)
    lanes, blocks = heuristics.lanes_and_blocks(heuristic)
    rate = functools.partial(heuristic.rate, problem, state, variable)
    rated = _Rated(number, lanes, blocks, rate)
    if not is_stored or (memory.is_in_kernel() and blocks > _MOST_UNROLLED):
        return rated
    if memory.is_in_kernel():
        num_whole = number // lanes if isinstance(number, int) else 0
        kept = [rated.block(place, place < num_whole) for place in range(blocks)]
    else:
        everything = rated.at(lax.iota(jnp.int32, blocks * lanes))
        kept = jax.tree.map(lambda leaf: leaf.reshape(blocks, lanes), everything)
    return dataclasses.replace(rated, kept=kept)


def _aggregate(aggregate: Aggregate, rated: _Rated) -> Any:
    """Returns the value of an aggregate over all ratings: scalars."""

    def value(rating: Rating, where: jax.Array | None) -> Any:
        return heuristics.values(aggregate, rating, heuristics.only_rated(rating, where))

    start = jax.tree.map(lambda leaf: jnp.full(rated.num_lanes, leaf), aggregate.neutral)
    reduce = REDUCTIONS.get(aggregate.combine)  # None if the order of values may matter
    values = rated.fold(value, aggregate.combine, start, reduce)
    if reduce is not None:
        return jax.tree.map(reduce, values)
    while (size := jax.tree.leaves(values)[0].size) > 1:
        half = size // 2
        values = aggregate.combine(
            jax.tree.map(lambda leaf: leaf[:half], values),  # noqa: B023
            jax.tree.map(lambda leaf: leaf[half:], values),  # noqa: B023
        )
    return jax.tree.map(lambda leaf: leaf.reshape(()), values)


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
