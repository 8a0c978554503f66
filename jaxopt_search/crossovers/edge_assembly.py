# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
"""Children of two tours by edge assembly (EAX).

Nagata, Kobayashi, "A powerful genetic algorithm using edge assembly crossover for the traveling
salesman problem", 2013. Where two tours differ, their edges form closed walks that take an edge of
one and an edge of the other by turns, AB-cycles. A child is a tour in which some of these walks
have changed hands, its parts joined where it fell apart.

Cities are told by their positions in the own tour, and edges by their ends: position p has end 2p
of the edge to the city after it, and end 2p + 1 of the edge from the city before it; the mate of an
end is the other end of its edge. All of it is portable: what depends on all cities is done by
lanes, and walks are followed one after the other, past what the tours do not share.
"""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxopt_search.backends import Implementation, for_each, memory, random
from jaxopt_search.backends.memory import each_index, load, store
from jaxopt_search.checks import check_count, check_suits
from jaxopt_search.problems.tsp import candidates as candidate_lists
from jaxopt_search.problems.tsp import traced
from jaxopt_search.problems.tsp.problem import TSP
from jaxopt_search.pytrees import pytree
from jaxopt_search.types import Cost, Crossover, null_delta

_MOST_PARTS = 32  # that are joined
_JOINED_AT = 64  # cities of a part at which it may be joined to another
_CITIES_PER_WARP, _MOST_WARPS = 512, 4
_ROUNDING = 2.0**-20  # of float distances


@pytree
@dataclasses.dataclass(frozen=True, kw_only=True)
class EdgeAssembly(Crossover):
    """Build it with `edge_assembly`.

    Attributes:
      candidates: [capacity, K] int32, cities near each city, at which parts of a tour are joined.
        The city itself stands for none.
    """

    candidates: jax.Array

    def child(
        self, key: jax.Array, problem: TSP, own: jax.Array, given: jax.Array, share: jax.Array
    ) -> jax.Array:
        """Returns a shorter tour than `own`, or `own` itself.

        It is made of edges of `own` and `given`, and of edges that join its parts. Each AB-cycle
        that makes `own` shorter changes hands with probability `share`, and at least one does, if
        there are any.

        Args:
          key: typed.
          own, given: [n] int32 tours.
          share: [] float32, 0 to 1.

        Returns:
          [n] int32.
        """
        return self.children(key[None], problem, own[None], given[None], share)[0]

    def children(
        self,
        keys: jax.Array,
        problem: TSP,
        own: jax.Array,
        given: jax.Array,
        share: jax.Array,
        implementation: Implementation = "xla",
    ) -> jax.Array:
        """Returns a child of each pair of tours, [S, n] int32, as `child` makes one.

        Args:
          keys: [S] typed.
          own, given: [S, n] int32 tours.
          implementation: one of `backends.Implementation`, not `"auto"`.
        """
        check_suits("EdgeAssembly", "a TSP", problem, isinstance(problem, TSP))
        words = tuple(jax.vmap(random.data_of)(keys).T)
        made = for_each(
            _assemble,
            (problem, self.candidates, share),
            (words, own, given),
            _scratch(problem),
            share < 0,
            implementation=implementation,
            num_warps=_num_warps(problem),
        )
        return made.child


def edge_assembly(problem: TSP, *, num_candidates: int = 8) -> EdgeAssembly:
    """Returns the edge assembly crossover (EAX) of tours, for `recombine`.

    Among Nagata and Kobayashi's variants this lies at random between EAX-Single and EAX-Rand: it
    takes a share of the AB-cycles, and none that makes the tour longer. Parts are joined as in
    their work, the smallest first, by the best 2-opt move to a candidate, but from at most 64
    cities of the part. A child takes a few operations for each city, of which those are done in
    sequence that concern edges in which the tours differ.

    Args:
      problem: of symmetric distances; it may be traced.
      num_candidates: K, at how many cities near each one parts of a tour may be joined.
        They are spread as `two_opt` spreads them, so a traced problem of coordinates may take
        another course than outside.

    Raises:
      ValueError: for asymmetric distances, or a number out of range.

    Example:
      >>> import jaxopt_search as js
      >>> problem = js.tsp_from_instance(js.datasets.grid_tsp(4, 4, spacing=10))
      >>> search = js.simulated_annealing(js.two_opt(problem), 2.0, moves_per_search=8)
      >>> exchange = js.recombine(every=100, alike=None, crossover=js.edge_assembly(problem))
      >>> js.solve(problem, search, 0, num_searches=8, max_steps=500, exchange=exchange).fun
      160
    """
    check_suits("edge_assembly", "a TSP", problem, isinstance(problem, TSP))
    if not problem.is_symmetric:
        raise ValueError("problem has asymmetric distances, expected symmetric ones")
    num_candidates = check_count("num_candidates", num_candidates)
    if traced.is_on_device_only(problem):
        return EdgeAssembly(candidates=traced.neighbors(problem, num_candidates, "spread"))
    lists = candidate_lists.neighbors(problem, num_candidates, "spread")
    if problem.num_entries is not None:
        n, num = lists.shape
        near = np.repeat(np.arange(problem.capacity, dtype=np.int32)[:, None], num_candidates, 1)
        near[:n, :num] = lists
        lists = near
    return EdgeAssembly(candidates=jax.device_put(lists))


class _Scratch(NamedTuple):
    """What an assembly writes, of one pair of tours with n cities.

    Attributes:
      child: [n] int32, the result.
      place: [n] int32, the position of each city in the own tour.
      order: [n] int32, the given tour, by positions in the own one; `rank` is its inverse.
      is_crossed: [n] int32, 1 where a walk that comes along the edge to the city after, of one
        tour, goes on by the edge from the city before, of the other tour.
      differing: [n] int32, the first ones, the positions whose edge to the next one only `own` has.
      given: [2n] int32, the mate of each end if its AB-cycle changes hands.
      change: [2n] by how much the edge there gets longer then.
      cycle: [2n] int32, the number of its AB-cycle, or -1.
      chance: [n] float32, by AB-cycles: it changes hands if this is low.
      gain: [n] by how much longer all of an AB-cycle gets then.
      mate: [2n] int32, the mate of each end in the child.
      segment: [n] int32, the number of the segment of `own` in which a position is: positions
        that are neighbors in the child, too.
      last: [n] int32, the last position of each segment.
      part: [n] int32, the part of the child that each segment is in, or -1.
      offset: [n] int32, the position of each segment's first city in the child, or in the part
        after other parts; -1 less that if the segment is reversed, of its last one.
      size, member, whole: [parts] int32, the cities of each part, a position in it, and the part
        that it belongs to since parts were joined.
      own: [cities] int32, positions of the part that is joined.
    """

    child: jax.Array
    place: jax.Array
    order: jax.Array
    rank: jax.Array
    is_crossed: jax.Array
    differing: jax.Array
    given: jax.Array
    change: jax.Array
    cycle: jax.Array
    chance: jax.Array
    gain: jax.Array
    mate: jax.Array
    segment: jax.Array
    last: jax.Array
    part: jax.Array
    offset: jax.Array
    size: jax.Array
    member: jax.Array
    whole: jax.Array
    own: jax.Array


def _num_warps(problem: TSP) -> int:
    return min(memory.power_of_two(max(1, problem.capacity // _CITIES_PER_WARP)), _MOST_WARPS)


def _scratch(problem: TSP) -> _Scratch:
    n, city = problem.capacity, jax.ShapeDtypeStruct((), jnp.int32)
    sizes = dict.fromkeys(("given", "change", "cycle", "mate"), 2 * n)
    sizes |= dict.fromkeys(("size", "member", "whole"), _MOST_PARTS) | {"own": _JOINED_AT}
    distance = jax.eval_shape(problem.distance, city, city).dtype
    dtypes = {"change": distance, "gain": distance, "chance": jnp.float32}
    return _Scratch._make(
        jax.ShapeDtypeStruct((sizes.get(name, n),), dtypes.get(name, jnp.int32))
        for name in _Scratch._fields
    )


class _Pair(NamedTuple):
    """Two tours, and what is known with them.

    Attributes:
      n: [] int32, how many cities take part.
      own, given: [capacity] int32.
      words: two [] uint32, random.
    """

    problem: TSP
    candidates: jax.Array
    n: jax.Array
    own: jax.Array
    given: jax.Array
    words: tuple[jax.Array, jax.Array]

    def wrapped(self, position: jax.Array) -> jax.Array:
        """Returns positions from -1 to n within the tour."""
        inside = jnp.where(position < self.n, position, position - self.n)
        return jnp.where(inside < 0, inside + self.n, inside)

    def beside(self, end: jax.Array) -> jax.Array:
        """Returns the mates of ends in the own tour."""
        side = end & 1
        return 2 * self.wrapped((end >> 1) + 1 - 2 * side) + 1 - side

    def distance(self, position: jax.Array, other: jax.Array) -> jax.Array:
        return self.problem.distance(load(self.own, position), load(self.own, other))

    def each(self, num: jax.Array, body: Any, tree: Any) -> Any:
        """Like `each_index` of indices below n, all of which `body` may read at."""

        def inside(index: jax.Array, where: jax.Array, tree: Any) -> Any:
            return body(jnp.minimum(index, self.n - 1), where, tree)

        return each_index(num, self.problem.capacity, inside, tree, self.tile)

    @property
    def tile(self) -> int:
        """Two indices for each thread of a kernel."""
        return 2 * memory.LANES * _num_warps(self.problem)


def _assemble(shared: Any, own: Any, scratch: _Scratch) -> _Scratch:
    """Writes the child of a pair of tours; portable."""
    (problem, candidates, share), (words, tour, given) = shared, own
    pair = _Pair(problem, candidates, jnp.int32(problem.n), tour, given, words)

    def keep(index: jax.Array, where: jax.Array, child: jax.Array) -> jax.Array:
        return store(child, index, load(tour, index, where), where)

    capacity = problem.capacity
    kept = each_index(jnp.int32(capacity), capacity, keep, scratch.child, pair.tile)
    scratch = _located(pair, scratch._replace(child=kept))
    scratch, number, unit = _differing(pair, scratch)
    scratch, num_cycles, least = _cycles(pair, scratch, number, unit)

    def change_hands(scratch: _Scratch, where: jax.Array) -> _Scratch:
        limit = jnp.maximum(share, least)
        scratch = _exchanged(pair, scratch, number, limit, where)
        change = _gain(pair, scratch, num_cycles, limit)
        scratch, num_parts = _parts(pair, scratch, where)
        scratch, change, is_one = _joined(pair, scratch, num_parts, change, where)

        def write(scratch: _Scratch, where: jax.Array) -> _Scratch:
            return _written(pair, _parts(pair, scratch, where)[0], where)

        return memory.when(where & is_one & (change < -unit), write, scratch)

    return memory.when(least < jnp.inf, change_hands, scratch)


def _located(pair: _Pair, scratch: _Scratch) -> _Scratch:
    """Finds the cities in the own tour, and those of the given one."""

    def locate(position: jax.Array, where: jax.Array, place: jax.Array) -> jax.Array:
        return store(place, load(pair.own, position), position, where)

    scratch = scratch._replace(place=pair.each(pair.n, locate, scratch.place))

    def follow(rank: jax.Array, where: jax.Array, scratch: _Scratch) -> _Scratch:
        position = load(scratch.place, load(pair.given, rank))
        return scratch._replace(
            order=store(scratch.order, rank, position, where),
            rank=store(scratch.rank, position, rank, where),
        )

    return pair.each(pair.n, follow, scratch)


def _differing(pair: _Pair, scratch: _Scratch) -> tuple[_Scratch, jax.Array, Cost]:
    """Finds the edges that only `own` has, and what takes their place along AB-cycles.

    At each city a walk changes from an edge of one tour to one of the other. If they share an edge
    there, it is paired with itself, else the pairs are random.

    Returns:
      What is written, how many edges they are, and the length below which a sum of changes is
      rounding, 0 of integers.
    """

    def compare(
        position: jax.Array, where: jax.Array, carry: tuple[_Scratch, jax.Array]
    ) -> tuple[_Scratch, jax.Array]:
        scratch, number = carry
        after, before = pair.wrapped(position + 1), pair.wrapped(position - 1)
        rank = load(scratch.rank, position)
        other_after = load(scratch.order, pair.wrapped(rank + 1))
        other_before = load(scratch.order, pair.wrapped(rank - 1))
        is_along = (after == other_after) | (before == other_before)
        is_against = (after == other_before) | (before == other_after)
        coin = random.mixed(pair.words[0] ^ position.astype(jnp.uint32)) & 1 != 0
        is_crossed = jnp.where(is_along | is_against, is_against, coin).astype(jnp.int32)
        differs = where & (after != other_after) & (after != other_before)
        place = number + memory.number_before(differs)
        scratch = scratch._replace(
            is_crossed=store(scratch.is_crossed, position, is_crossed, where),
            differing=store(scratch.differing, place, position, differs),
        )
        return scratch, number + jnp.sum(differs, dtype=jnp.int32)

    scratch, number = pair.each(pair.n, compare, (scratch, jnp.int32(0)))
    dtype = scratch.change.dtype

    def pair_ends(
        number: jax.Array, where: jax.Array, carry: tuple[_Scratch, jax.Array]
    ) -> tuple[_Scratch, jax.Array]:
        scratch, length = carry
        end = 2 * load(scratch.differing, number)
        for own in (end, pair.beside(end)):
            position, side = own >> 1, own & 1
            side ^= load(scratch.is_crossed, position)
            rank = pair.wrapped(load(scratch.rank, position) + 1 - 2 * side)
            other = load(scratch.order, rank)
            mate = 2 * other + ((1 - side) ^ load(scratch.is_crossed, other))
            lost = pair.distance(position, pair.beside(own) >> 1)
            won = pair.distance(position, other)
            if jnp.issubdtype(dtype, jnp.inexact):
                length += jnp.sum(jnp.where(where, jnp.abs(lost) + jnp.abs(won), 0))
            scratch = scratch._replace(
                given=store(scratch.given, own, mate, where),
                change=store(scratch.change, own, won - lost, where),
                cycle=store(scratch.cycle, own, jnp.full_like(own, -1), where),
            )
        return scratch, length

    scratch, length = pair.each(number, pair_ends, (scratch, jnp.zeros((), dtype)))
    unit = length * jnp.float32(_ROUNDING) if jnp.issubdtype(dtype, jnp.inexact) else length
    return scratch, number, unit


def _cycles(
    pair: _Pair, scratch: _Scratch, number: jax.Array, unit: Cost
) -> tuple[_Scratch, jax.Array, jax.Array]:
    """Follows the AB-cycles, one after the other, and draws a chance for each that is better.

    Returns:
      What is written, how many there are, and the least chance; infinite if none is better.
    """
    given, changes = memory.settled(scratch.given), memory.settled(scratch.change)
    differing = memory.settled(scratch.differing)

    class State(NamedTuple):
        place: jax.Array  # the edge in `differing` with which the walk begins, or is to
        is_new: jax.Array  # whether no walk has come there; read after all that is written
        end: jax.Array  # where the walk is, or -1
        change: jax.Array  # of the walk so far
        number: jax.Array  # of the walk
        least: jax.Array
        scratch: _Scratch

    def first_at(place: jax.Array) -> jax.Array:
        return 2 * load(differing, jnp.minimum(place, number - 1))

    def step(state: State, where: jax.Array) -> State:
        first, begins = first_at(state.place), state.end < 0
        walks = where & (~begins | state.is_new)
        end = jnp.where(begins, first, state.end)
        other = pair.beside(end)
        beyond = load(given, other)
        change = state.change + load(changes, other)
        word = random.mixed(pair.words[1] + random.mixed(pair.words[0] ^ first.astype(jnp.uint32)))
        chance = jnp.where(change < -unit, random.uniform(word), jnp.inf)

        def write(scratch: _Scratch, where: jax.Array) -> _Scratch:
            cycle = store(scratch.cycle, end, state.number, where)
            return scratch._replace(
                cycle=store(cycle, other, state.number, where),
                chance=store(scratch.chance, state.number, chance, where),
                gain=store(scratch.gain, state.number, change, where),
            )

        scratch = memory.when(walks, write, state.scratch, in_place=True)
        ends, goes_on = walks & (beyond == first), walks & (beyond != first)
        place = state.place + (where & ~goes_on).astype(jnp.int32)
        return State(
            place=place,
            is_new=load(scratch.cycle, first_at(place)) < 0,
            end=jnp.where(goes_on, beyond, jnp.where(where, -1, state.end)),
            change=jnp.where(goes_on, change, jnp.where(ends, 0, state.change)),
            number=state.number + ends.astype(jnp.int32),
            least=jnp.where(ends, jnp.minimum(state.least, chance), state.least),
            scratch=scratch,
        )

    zero, none = jnp.int32(0), jnp.zeros((), changes.dtype)
    begin = zero, jnp.bool_(True), jnp.int32(-1), none, zero, jnp.float32(jnp.inf)
    end = memory.while_loop(lambda state: state.place < number, step, State(*begin, scratch))
    return end.scratch, end.number, end.least


def _exchanged(
    pair: _Pair, scratch: _Scratch, number: jax.Array, limit: jax.Array, where: jax.Array
) -> _Scratch:
    """Finds the mates of all ends after AB-cycles up to a chance have changed hands."""

    def stay(position: jax.Array, is_one: jax.Array, mate: jax.Array) -> jax.Array:
        for end in (2 * position, 2 * position + 1):
            mate = store(mate, end, pair.beside(end), is_one & where)
        return mate

    scratch = scratch._replace(mate=pair.each(pair.n, stay, scratch.mate))

    def take(number: jax.Array, is_one: jax.Array, mate: jax.Array) -> jax.Array:
        end = 2 * load(scratch.differing, number)
        takes = is_one & where & (load(scratch.chance, load(scratch.cycle, end)) <= limit)
        for one in (end, pair.beside(end)):
            mate = store(mate, one, load(scratch.given, one), takes)
        return mate

    return scratch._replace(mate=pair.each(number, take, scratch.mate))


def _gain(pair: _Pair, scratch: _Scratch, num_cycles: jax.Array, limit: jax.Array) -> Cost:
    """Returns how much longer the tour gets if AB-cycles up to a chance change hands."""

    def add(number: jax.Array, is_one: jax.Array, total: Cost) -> Cost:
        takes = is_one & (load(scratch.chance, number) <= limit)
        return total + jnp.sum(jnp.where(takes, load(scratch.gain, number), 0), dtype=total.dtype)

    return pair.each(num_cycles, add, jnp.zeros((), scratch.gain.dtype))


def _parts(pair: _Pair, scratch: _Scratch, where: jax.Array) -> tuple[_Scratch, jax.Array]:
    """Finds the parts into which the child has fallen, and the segments that they are made of.

    Returns:
      What is written, and how many parts there are.
    """

    def cut(
        position: jax.Array, is_one: jax.Array, carry: tuple[_Scratch, jax.Array]
    ) -> tuple[_Scratch, jax.Array]:
        scratch, number = carry
        is_one &= where
        is_last = is_one & (load(scratch.mate, 2 * position) != 2 * position + 3)
        segment = number + memory.number_before(is_last)
        scratch = scratch._replace(
            segment=store(scratch.segment, position, segment, is_one),
            last=store(scratch.last, segment, position, is_last),
            part=store(scratch.part, segment, jnp.full_like(segment, -1), is_last),
        )
        return scratch, number + jnp.sum(is_last, dtype=jnp.int32)

    scratch, num_segments = pair.each(pair.n, cut, (scratch, jnp.int32(0)))
    mates, segments = memory.settled(scratch.mate), memory.settled(scratch.segment)
    lasts = memory.settled(scratch.last)

    class State(NamedTuple):
        begin: jax.Array  # the segment with which the walk begins, or is to
        is_new: jax.Array  # whether no walk has come there; read after all that is written
        at: jax.Array  # twice the segment where the walk is, and 1 if it is reversed; or -1
        number: jax.Array  # of the part
        done: jax.Array  # cities of all walks so far
        before: jax.Array  # those of earlier parts
        scratch: _Scratch

    def step(state: State, goes_on: jax.Array) -> State:
        goes_on &= where
        begins, first = state.at < 0, jnp.minimum(state.begin, num_segments - 1)
        walks = goes_on & (~begins | state.is_new)
        at = jnp.where(begins, 2 * first, state.at)
        segment, is_reversed = at >> 1, (at & 1) == 1
        last, low = load(lasts, segment), _low(lasts, segment)
        to = load(mates, jnp.where(is_reversed, 2 * low + 1, 2 * last))
        beyond = 2 * load(segments, to >> 1) + 1 - (to & 1)
        done = state.done + jnp.where(walks, last - low + 1, 0)
        offset = jnp.where(is_reversed, -1 - state.done, state.done)

        def write(scratch: _Scratch, where: jax.Array) -> _Scratch:
            is_counted = where & (state.number < _MOST_PARTS)
            number = jnp.minimum(state.number, _MOST_PARTS - 1)
            return scratch._replace(
                part=store(scratch.part, segment, state.number, where),
                offset=store(scratch.offset, segment, offset, where),
                size=store(scratch.size, number, done - state.before, is_counted),
                member=store(scratch.member, number, low, is_counted),
                whole=store(scratch.whole, number, number, is_counted),
            )

        scratch = memory.when(walks, write, state.scratch, in_place=True)
        ends, walks_on = walks & (beyond == 2 * first), walks & (beyond != 2 * first)
        begin = state.begin + (goes_on & ~walks_on).astype(jnp.int32)
        return State(
            begin=begin,
            is_new=load(scratch.part, jnp.minimum(begin, num_segments - 1)) < 0,
            at=jnp.where(walks_on, beyond, jnp.where(goes_on, -1, state.at)),
            number=state.number + ends.astype(jnp.int32),
            done=done,
            before=jnp.where(ends, done, state.before),
            scratch=scratch,
        )

    zero = jnp.int32(0)
    start = State(zero, jnp.bool_(True), jnp.int32(-1), zero, zero, zero, scratch)
    end = memory.while_loop(lambda state: where & (state.begin < num_segments), step, start)
    return end.scratch, end.number


def _low(lasts: jax.Array, segment: jax.Array) -> jax.Array:
    """Returns the first positions of segments."""
    return jnp.where(segment > 0, load(lasts, jnp.maximum(segment - 1, 0)) + 1, 0)


def _joined(
    pair: _Pair, scratch: _Scratch, num_parts: jax.Array, change: Cost, where: jax.Array
) -> tuple[_Scratch, Cost, jax.Array]:
    """Joins the smallest part to another one by the best 2-opt move, until there is only one.

    Returns:
      What is written, by how much the child is longer than the own tour, and whether it is one.
    """
    number = memory.lanes(_MOST_PARTS)
    is_part = number < num_parts
    number, none = jnp.minimum(number, _MOST_PARTS - 1), jnp.int32(jnp.iinfo(jnp.int32).max)

    class State(NamedTuple):
        left: jax.Array  # parts
        is_stuck: jax.Array
        change: Cost
        scratch: _Scratch

    def join(state: State, goes_on: jax.Array) -> State:
        scratch = state.scratch
        goes_on &= where
        is_left = is_part & (load(scratch.whole, number) == number)
        sizes = jnp.where(is_left, load(scratch.size, number), none)
        size = jnp.min(sizes)
        part = jnp.min(jnp.where(sizes == size, number, _MOST_PARTS - 1))
        scratch, num_own = _members(scratch, part, size, goes_on)
        best, code = _best_join(pair, scratch, part, num_own)
        is_made = goes_on & (best < null_delta(best.dtype))
        end, other = _ends_of(pair, scratch, code)
        one, two = load(scratch.mate, end), load(scratch.mate, other)
        into = _part_of(scratch, other >> 1)
        both = size + load(scratch.size, into)
        moves = load(scratch.whole, number) == part

        def write(scratch: _Scratch, where: jax.Array) -> _Scratch:
            mate = scratch.mate
            for first, second in ((end, other), (other, end), (one, two), (two, one)):
                mate = store(mate, first, second, where)
            into_all = jnp.broadcast_to(into, number.shape)
            return scratch._replace(
                mate=mate,
                size=store(scratch.size, into, both, where),
                whole=store(scratch.whole, number, into_all, where & is_part & moves),
            )

        scratch = memory.when(is_made, write, scratch, in_place=True)
        return State(
            state.left - is_made.astype(jnp.int32),
            jnp.where(goes_on, ~is_made, state.is_stuck),
            jnp.where(is_made, state.change + best, state.change),
            scratch,
        )

    start = State(num_parts, num_parts > _MOST_PARTS, change, scratch)
    end = memory.while_loop(lambda state: where & (state.left > 1) & ~state.is_stuck, join, start)
    return end.scratch, end.change, end.left == 1


def _members(
    scratch: _Scratch, part: jax.Array, size: jax.Array, where: jax.Array
) -> tuple[_Scratch, jax.Array]:
    """Finds positions of a part, at equal intervals if they are many, and returns how many."""
    number = jnp.where(where, size, 0)
    interval = lax.div(number + (_JOINED_AT - 1), jnp.int32(_JOINED_AT))
    mates = memory.settled(scratch.mate)

    def walk(i: jax.Array, carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        end, own = carry
        place, between = lax.div(i, interval), lax.rem(i, interval)
        return load(mates, end) ^ 1, store(own, place, end >> 1, between == 0)

    start = 2 * load(scratch.member, part), scratch.own
    own = memory.fori_loop(number, walk, start)[1]
    return scratch._replace(own=own), lax.div(number + interval - 1, jnp.maximum(interval, 1))


def _part_of(scratch: _Scratch, position: jax.Array) -> jax.Array:
    return load(scratch.whole, load(scratch.part, load(scratch.segment, position)))


def _best_join(
    pair: _Pair, scratch: _Scratch, part: jax.Array, num_own: jax.Array
) -> tuple[Cost, jax.Array]:
    """Returns the least change by which a part is joined to another one, and the move's code."""
    scratch = jax.tree.map(memory.settled, scratch)
    num_candidates = pair.candidates.shape[1]
    most = _JOINED_AT * num_candidates

    def price(
        number: jax.Array, where: jax.Array, best: tuple[Cost, jax.Array]
    ) -> tuple[Cost, jax.Array]:
        number = jnp.minimum(number, most - 1)
        position, other = _near(pair, scratch, number)
        is_move = where & (_part_of(scratch, other) != part)
        mates, lost = [], []
        for one in (position, other):
            mates.append([load(scratch.mate, 2 * one + side) >> 1 for side in (0, 1)])
            lost.append([pair.distance(one, mate) for mate in mates[-1]])
        change, sides = null_delta(best[0].dtype), jnp.zeros_like(number)
        for code in range(4):
            side, other_side = code >> 1, code & 1
            won = pair.distance(mates[0][side], mates[1][other_side]) - lost[0][side]
            won = won - lost[1][other_side]
            sides = jnp.where(won < change, code, sides)
            change = jnp.minimum(won, change)
        change = jnp.where(
            is_move, change + pair.distance(position, other), null_delta(change.dtype)
        )
        least = jnp.min(change)
        code = jnp.min(jnp.where(change == least, 4 * number + sides, 4 * most))
        is_better = least < best[0]
        return jnp.where(is_better, least, best[0]), jnp.where(is_better, code, best[1])

    start = null_delta(scratch.change.dtype), jnp.int32(0)
    return each_index(num_own * num_candidates, most, price, start, pair.tile)


def _near(pair: _Pair, scratch: _Scratch, number: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns positions of the part that is joined, and those of their candidates."""
    num_candidates = pair.candidates.shape[1]
    position = load(scratch.own, lax.div(number, num_candidates))
    near = load(pair.candidates, (load(pair.own, position), lax.rem(number, num_candidates)))
    return position, load(scratch.place, near)


def _ends_of(pair: _Pair, scratch: _Scratch, code: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns the ends that a move joins."""
    position, other = _near(pair, scratch, code >> 2)
    return 2 * position + ((code >> 1) & 1), 2 * other + (code & 1)


def _written(pair: _Pair, scratch: _Scratch, where: jax.Array) -> _Scratch:
    """Writes the child, which is one part."""

    def write(position: jax.Array, is_one: jax.Array, child: jax.Array) -> jax.Array:
        segment = load(scratch.segment, position)
        last, offset = load(scratch.last, segment), load(scratch.offset, segment)
        low = _low(scratch.last, segment)
        place = jnp.where(offset < 0, last - position - 1 - offset, offset + position - low)
        return store(child, place, load(pair.own, position), is_one & where)

    return scratch._replace(child=pair.each(pair.n, write, scratch.child))
