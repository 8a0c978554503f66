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
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search.backends import Implementation, for_each, memory, random
from jaxopt_search.backends.memory import each_index, load, store
from jaxopt_search.checks import check_count, check_suits
from jaxopt_search.neighborhoods.array_tour import wrap
from jaxopt_search.problems.tsp import traced
from jaxopt_search.problems.tsp.problem import TSP
from jaxopt_search.pytrees import pytree
from jaxopt_search.types import Cost, Crossover, null_delta

_MOST_PARTS = 32  # that are joined
_JOINED_AT = 64  # cities of a part at which it may be joined to another
_CITIES_PER_WARP, _MOST_WARPS = 512, 4  # more are no faster: walks are followed in sequence
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
    cities of the part, at equal intervals, and not if there are more than 32 parts. A child takes a
    few operations for each city; those on edges in which the tours differ are done in sequence.

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
    lists = traced.candidate_lists(problem, num_candidates, "spread")
    return EdgeAssembly(candidates=jnp.asarray(lists))


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
      gain: [n] by how much longer all of an AB-cycle gets then.
      mate: [2n] int32, the mate of each end in the child.
      segment: [n] int32, the number of the segment of `own` in which a position is: positions
        that are neighbors in the child, too.
      last: [n] int32, the last position of each segment.
      part: [n] int32, the part of the child that each segment is in, or -1.
      offset: [n] int32, how many cities of its part come before each segment; -1 less that if the
        segment is reversed.
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


_Counted: TypeAlias = tuple[_Scratch, jax.Array]
"""What is written, and how many there are."""


def _num_warps(problem: TSP) -> int:
    return min(memory.power_of_two(max(1, problem.capacity // _CITIES_PER_WARP)), _MOST_WARPS)


def _scratch(problem: TSP) -> _Scratch:
    n, city = problem.capacity, jax.ShapeDtypeStruct((), jnp.int32)
    sizes = dict.fromkeys(("given", "change", "cycle", "mate"), 2 * n)
    sizes |= dict.fromkeys(("size", "member", "whole"), _MOST_PARTS) | {"own": _JOINED_AT}
    distance = jax.eval_shape(problem.distance, city, city).dtype
    dtypes = {"change": distance, "gain": distance}
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

    def beside(self, end: jax.Array) -> jax.Array:
        """Returns the mates of ends in the own tour."""
        side = end & 1
        return 2 * wrap((end >> 1) + 1 - 2 * side, self.n) + 1 - side

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
    child = memory.copy(scratch.child, tour, jnp.bool_(True))
    scratch = _located(pair, scratch._replace(child=child))
    scratch, number, unit = _differing(pair, scratch)
    scratch, num_cycles = _cycles(pair, scratch, number)

    def chance(scratch: _Scratch, cycle: jax.Array) -> jax.Array:
        """Returns a random number for AB-cycles that make the tour shorter, for others infinity."""
        word = random.mixed(words[1] + random.mixed(words[0] ^ cycle.astype(jnp.uint32)))
        is_better = load(scratch.gain, cycle) < -unit
        return jnp.where(is_better, random.uniform(word), jnp.float32(jnp.inf))

    def lower(cycle: jax.Array, where: jax.Array, least: jax.Array) -> jax.Array:
        return jnp.minimum(least, jnp.min(jnp.where(where, chance(scratch, cycle), jnp.inf)))

    least = pair.each(num_cycles, lower, jnp.float32(jnp.inf))

    def change_hands(scratch: _Scratch, where: jax.Array) -> _Scratch:
        def is_taken(cycle: jax.Array) -> jax.Array:
            return chance(scratch, cycle) <= jnp.maximum(share, least)

        def add(cycle: jax.Array, is_one: jax.Array, change: Cost) -> Cost:
            own = jnp.where(is_one & is_taken(cycle), load(scratch.gain, cycle), 0)
            return change + jnp.sum(own, dtype=change.dtype)

        def take(number: jax.Array, is_one: jax.Array, mate: jax.Array) -> jax.Array:
            end = 2 * load(scratch.differing, number)
            takes = is_one & where & is_taken(load(scratch.cycle, end))
            for one in (end, pair.beside(end)):
                mate = store(mate, one, load(scratch.given, one), takes)
            return mate

        change = pair.each(num_cycles, add, jnp.zeros((), scratch.gain.dtype))
        changed = scratch._replace(mate=pair.each(number, take, scratch.mate))
        changed, num_parts = _parts(pair, changed, where)
        changed, change, is_one = _joined(pair, changed, num_parts, change, where)

        def write(scratch: _Scratch, where: jax.Array) -> _Scratch:
            return _written(pair, _parts(pair, scratch, where)[0], where)

        return memory.when(where & is_one & (change < -unit), write, changed)

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

    def compare(position: jax.Array, where: jax.Array, carry: _Counted) -> _Counted:
        scratch, number = carry
        after, before = wrap(position + 1, pair.n), wrap(position - 1, pair.n)
        rank = load(scratch.rank, position)
        other_after = load(scratch.order, wrap(rank + 1, pair.n))
        other_before = load(scratch.order, wrap(rank - 1, pair.n))
        is_along = (after == other_after) | (before == other_before)
        is_against = (after == other_before) | (before == other_after)
        coin = random.mixed(pair.words[0] ^ position.astype(jnp.uint32)) & 1 != 0
        is_crossed = jnp.where(is_along | is_against, is_against, coin).astype(jnp.int32)
        differs = where & (after != other_after) & (after != other_before)
        place = number + memory.number_before(differs)
        scratch = scratch._replace(
            is_crossed=store(scratch.is_crossed, position, is_crossed, where),
            differing=store(scratch.differing, place, position, differs),
            mate=store(scratch.mate, 2 * position, 2 * after + 1, where),
        )
        mate = store(scratch.mate, 2 * position + 1, 2 * before, where)
        return scratch._replace(mate=mate), number + jnp.sum(differs, dtype=jnp.int32)

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
            rank = wrap(load(scratch.rank, position) + 1 - 2 * side, pair.n)
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


class _Walk(NamedTuple):
    """Where closed walks are followed, one after the other.

    Attributes:
      begin: the number of the place at which the walk begins, if it is new.
      is_new: whether no walk has come there.
      at: where the walk is, or -1.
      number: how many walks came before it.
      total: the sum of what it has passed.
    """

    begin: jax.Array
    is_new: jax.Array
    at: jax.Array
    number: jax.Array
    total: Cost
    scratch: _Scratch


def _followed(
    scratch: _Scratch,
    number: jax.Array,
    place: Callable[[jax.Array], jax.Array],
    ahead: Callable[[jax.Array], tuple[jax.Array, Cost]],
    write: Callable[[_Scratch, _Walk, Cost, jax.Array], _Scratch],
    walk_of: Callable[[_Scratch, jax.Array], jax.Array],
    where: jax.Array,
) -> _Counted:
    """Follows closed walks, and returns what is written and how many they are.

    Args:
      number: of the places at which walks may begin.
      place: maps a number to the place.
      ahead: maps a place to the next one of its walk, and what is added up there.
      write: called at each place, with the sum behind it.
      walk_of: returns the number of the walk that a place has been found to be part of, or -1.
    """

    def place_at(begin: jax.Array) -> jax.Array:
        return place(jnp.minimum(begin, number - 1))

    def step(walk: _Walk, goes_on: jax.Array) -> _Walk:
        goes_on &= where
        begins, first = walk.at < 0, place_at(walk.begin)
        walks = goes_on & (~begins | walk.is_new)
        walk = walk._replace(at=jnp.where(begins, first, walk.at))
        beyond, amount = ahead(walk.at)
        total, walks_on = walk.total + amount, walks & (beyond != first)

        def write_here(scratch: _Scratch, where: jax.Array) -> _Scratch:
            return write(scratch, walk, total, where)

        scratch = memory.when(walks, write_here, walk.scratch, in_place=True)
        begin = walk.begin + (goes_on & ~walks_on).astype(jnp.int32)
        return _Walk(
            begin=begin,
            # Read after all that is written: XLA for CPUs would copy what it reads before.
            is_new=walk_of(scratch, place_at(begin)) < 0,
            at=jnp.where(walks_on, beyond, -1),
            number=walk.number + (walks & ~walks_on).astype(jnp.int32),
            total=jnp.where(walks_on, total, jnp.zeros_like(total)),
            scratch=scratch,
        )

    none = jax.tree.map(jnp.zeros_like, ahead(jnp.int32(0))[1])
    start = _Walk(jnp.int32(0), jnp.bool_(True), jnp.int32(-1), jnp.int32(0), none, scratch)
    end = memory.while_loop(lambda walk: where & (walk.begin < number), step, start)
    return end.scratch, end.number


def _cycles(pair: _Pair, scratch: _Scratch, number: jax.Array) -> _Counted:
    """Follows the AB-cycles, and returns what is written and how many they are."""
    given, changes = memory.settled(scratch.given), memory.settled(scratch.change)
    differing = memory.settled(scratch.differing)

    def ahead(end: jax.Array) -> tuple[jax.Array, Cost]:
        other = pair.beside(end)
        return load(given, other), load(changes, other)

    def write(scratch: _Scratch, walk: _Walk, change: Cost, where: jax.Array) -> _Scratch:
        cycle = store(scratch.cycle, walk.at, walk.number, where)
        return scratch._replace(
            cycle=store(cycle, pair.beside(walk.at), walk.number, where),
            gain=store(scratch.gain, walk.number, change, where),
        )

    def cycle_of(scratch: _Scratch, end: jax.Array) -> jax.Array:
        return load(scratch.cycle, end)

    def place(number: jax.Array) -> jax.Array:
        return 2 * load(differing, number)

    return _followed(scratch, number, place, ahead, write, cycle_of, jnp.bool_(True))


def _parts(pair: _Pair, scratch: _Scratch, where: jax.Array) -> _Counted:
    """Finds the parts into which the child has fallen, and the segments that they are made of.

    Returns:
      What is written, and how many parts there are.
    """

    def cut(position: jax.Array, is_one: jax.Array, carry: _Counted) -> _Counted:
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

    # A walk is at twice a segment, and one more if it is reversed.
    def ahead(at: jax.Array) -> tuple[jax.Array, jax.Array]:
        low, last = _low(lasts, at >> 1), load(lasts, at >> 1)
        to = load(mates, jnp.where(at & 1 == 1, 2 * low + 1, 2 * last))
        return 2 * load(segments, to >> 1) + 1 - (to & 1), last - low + 1

    def write(scratch: _Scratch, walk: _Walk, size: jax.Array, where: jax.Array) -> _Scratch:
        segment, is_counted = walk.at >> 1, where & (walk.number < _MOST_PARTS)
        part = jnp.minimum(walk.number, _MOST_PARTS - 1)
        offset = jnp.where(walk.at & 1 == 1, -1 - walk.total, walk.total)
        return scratch._replace(
            part=store(scratch.part, segment, walk.number, where),
            offset=store(scratch.offset, segment, offset, where),
            size=store(scratch.size, part, size, is_counted),
            member=store(scratch.member, part, _low(lasts, segment), is_counted),
            whole=store(scratch.whole, part, part, is_counted),
        )

    def part_of(scratch: _Scratch, at: jax.Array) -> jax.Array:
        return load(scratch.part, at >> 1)

    return _followed(scratch, num_segments, lambda i: 2 * i, ahead, write, part_of, where)


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
        position, place = _near(pair, scratch, code >> 2)
        into = _part_of(scratch, place)
        end, other = 2 * position + ((code >> 1) & 1), 2 * place + (code & 1)
        one, two = load(scratch.mate, end), load(scratch.mate, other)
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


def _members(scratch: _Scratch, part: jax.Array, size: jax.Array, where: jax.Array) -> _Counted:
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
        change = change + pair.distance(position, other)
        change = jnp.where(is_move, change, null_delta(change.dtype))
        least = jnp.min(change)
        code = jnp.min(jnp.where(change == least, 4 * number + sides, 4 * most))
        is_better = least < best[0]
        return jnp.where(is_better, least, best[0]), jnp.where(is_better, code, best[1])

    start = null_delta(scratch.change.dtype), jnp.int32(0)
    return each_index(num_own * num_candidates, most, price, start, pair.tile)


def _near(pair: _Pair, scratch: _Scratch, number: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns positions of the part that is joined, and those of their candidates."""
    num_candidates = jnp.int32(pair.candidates.shape[1])
    position = load(scratch.own, lax.div(number, num_candidates))
    near = load(pair.candidates, (load(pair.own, position), lax.rem(number, num_candidates)))
    return position, load(scratch.place, near)


def _written(pair: _Pair, scratch: _Scratch, where: jax.Array) -> _Scratch:
    """Writes the child, which is one part."""

    def write(position: jax.Array, is_one: jax.Array, child: jax.Array) -> jax.Array:
        segment = load(scratch.segment, position)
        last, offset = load(scratch.last, segment), load(scratch.offset, segment)
        low = _low(scratch.last, segment)
        place = jnp.where(offset < 0, last - position - 1 - offset, offset + position - low)
        return store(child, place, load(pair.own, position), is_one & where)

    return scratch._replace(child=pair.each(pair.n, write, scratch.child))
