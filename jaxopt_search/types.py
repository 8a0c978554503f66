"""The contracts between the parts of the library: this page is the design.

A part inherits from the class named here. It must have the abstract methods; the others have a
default, which tells the behavior without them. Names without a value (`num_words`, `every`) must be
there, too, as attributes, properties or fields of a dataclass.

Shapes are written for one search; the library adds a leading axis of searches with `jax.vmap`.
Letters: `n` problem size, `S` searches, `M` moves priced at once, `P` individuals.

Portable code, which runs under XLA and inside a fused kernel alike, touches buffers only through
the functions of `memory`, and otherwise computes elementwise on scalars and on one axis of lanes.
`propose`, `delta` and `commit` of a neighborhood and `step` of a search are meant to be portable;
everything else runs under XLA only.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxopt_search.backends import Implementation, counts, memory, random, tables
from jaxopt_search.backends.costs import null_delta

if TYPE_CHECKING:
    from jaxopt_search.problems.host import Original, Units

Cost: TypeAlias = jax.Array
"""[] int32 (exact) or float32."""
Solution: TypeAlias = Any
"""A candidate; for permutation problems [n] int32."""
Representation: TypeAlias = Any
"""A pytree of whatever makes `delta` cheap. Opaque to the search."""
Snapshot: TypeAlias = Any
"""The part of a representation that `Neighborhood.solution` needs."""
Move: TypeAlias = Any
"""A pytree of scalars, or of [M] arrays when M moves are handled at once."""
Words: TypeAlias = tuple[jax.Array, ...]
"""Random words: uint32 arrays of one shape."""
Stream: TypeAlias = random.Stream
"""The random words of one search at one step: a pure function of (key, search, step, slot)."""
State: TypeAlias = Any
Rank: TypeAlias = Callable[..., tuple[jax.Array, ...]]
"""Maps numbers of entries, deltas, and entries of other tables to keys: see `Enumerable.first`."""
Entries: TypeAlias = tuple[tuple[jax.Array, jax.Array], ...]
"""[] int32 row and column each."""


class Problem(abc.ABC):
    """What is minimized: a pytree whose data are leaves and whose sizes are static."""

    space: ClassVar[str | None] = None
    """What solutions are. `"permutation"`: [n] int32 with each of 0 to n - 1 once. `"vector"`: see
    `VectorProblem`. None for anything else; what is for permutations or vectors refuses it then.
    """

    @abc.abstractmethod
    def init(self, key: jax.Array, /) -> Solution:
        """Returns a random feasible solution. `key` is a typed Threefry key."""

    @abc.abstractmethod
    def cost(self, solution: Solution, /) -> Cost:
        """Returns the cost of `solution` in full: the definition of truth.

        An int32 or a float32 scalar. It may be +inf, for what must not be; NaN counts as that.
        """

    def perturb(self, key: jax.Array, solution: Solution, /) -> Solution:
        """Returns a solution nearby, drawn at random by a typed key."""
        return solution

    swap_delta: Any = None
    """`swap_delta(permutation, first, second)`: the change in cost if the entries at two different
    positions are exchanged; portable and elementwise. With it, `DeltaSwap` prices moves.
    """
    row_costs: Any = None
    """`row_costs(block, table)`: the costs, [R], of the solutions in the rows of a `rows.Block` of
    a table [P, n] int32; portable. With it, `genetic` runs in a kernel.
    """

    # Of a permutation of which only some entries may change.

    free: Any = None
    """[m] int32, the positions that may change; None for all."""
    is_free: Any = None
    """[n] int32, 1 at the positions of `free` and 0 at the others; with `free`."""
    num_entries: Any = None
    """[] int32, this many first entries count, and the others stay; None for all: see
    `problems.padding`.
    """
    num_free: Any = None
    """[] int32, this many first ones of `free` may change; with `free` and `num_entries`."""

    # What the library's own problems keep of an instance.

    host: Original | None = None
    """The instance as it was given, for exact costs on the host."""
    device_units: Units | None = None
    """How `device_cost` stands for `cost`; None where they are the same."""
    is_trivial: bool = False
    """Whether all solutions have the same cost, so that none is searched for."""
    lighter: str = ""
    """How to build the same problem in less memory."""

    @property
    def has_hooks(self) -> bool:
        """Whether it prices moves of vectors by itself: see `VectorProblem`."""
        return False

    def device_cost(self, solution: Solution, /) -> Cost:
        """Returns the cost as searches count it."""
        return self.cost(solution)

    def picture(self, solution: Solution, /) -> Callable[[Any], Any] | None:
        """Returns a function that draws a solution on axes of matplotlib, or None.

        With a second argument `coords`, it also draws at places that `Result.plot` is given.
        """
        return None

    def lower_bound(self) -> int | float | None:
        """Returns a lower bound of all costs, on the host, in full; None if none is known."""
        return None

    def cost_in_full(self, cost: Cost, /) -> Cost:
        """Returns the `cost` that a `device_cost`, of any shape, stands for."""
        return cost if self.device_units is None else self.device_units.in_full(cost)


class VectorProblem(Problem):
    """A problem whose solutions are vectors: each variable has one of finitely many values.

    A solution is [n] int32 with `0 <= solution[i] < domain_sizes[i]`. `init` and `cost` are all
    that `Assign`, `SwapValues` and `genetic` need; every move is priced by a full evaluation then.

    With the four methods below it has *hooks*: moves are priced from a *tally*, a pytree (a
    `NamedTuple` of arrays of up to two axes) of whatever makes that cheap, such as the neighbors
    of each vertex by color, and searches run in kernels. It has all four or none.

    Integer costs and deltas are int32 and exact, others float32. No array of a problem or of a
    tally may be empty: kernels and compiled CPU functions take none.
    """

    space = "vector"

    domain_sizes: jax.Array
    """[n] int32, how many values each variable has, at least 1; a leaf."""
    max_domain: int
    """The largest of them, static."""

    tally: Any = None
    """`tally(solution)`: the tally of a solution. Under XLA only; O(size of the problem)."""
    assign_delta: Any = None
    """`assign_delta(solution, tally, variable, value)`: the change in cost if `variable` gets
    `value`, 0 if that is the value it has. Portable and elementwise over int32 arrays of one shape,
    or scalars, all in range: `value` below `max_domain`, but where it is not below the variable's
    own domain size, anything may be returned.
    """
    swap_values_delta: Any = None
    """`swap_values_delta(solution, tally, first, second)`: the change in cost if two variables
    exchange their values. Portable and elementwise. Where `first` equals `second`, or a value lies
    outside the other's domain, anything may be returned.
    """
    assigned: Any = None
    """`assigned(solution, tally, variable, value, where)`: the tally after `variable` got `value`.
    Portable: scalars, lanes within, and O(degree) stores that write only where the scalar `where`
    holds. `solution` is the one before and is not written; the caller stores the value. If
    `value` is the one that the variable has, the tally stays as it is.
    """
    scan: Any = None
    """`scan(solution, tally)`, besides the hooks: a `Scan`, portable. It makes one pass over the
    deltas of all assignments, as tabu search and hill climbing make, faster than as many calls of
    `assign_delta`, and must come to the same numbers.
    """

    @property
    def has_hooks(self) -> bool:
        """Whether it has the four hooks.

        Raises:
          TypeError: if it has some of them, but not all.
        """
        hooks = ("tally", "assign_delta", "swap_values_delta", "assigned")
        has = [name for name in hooks if getattr(self, name) is not None]
        lacks = [name for name in hooks if name not in has]
        if has and lacks:
            raise TypeError(
                f"problem is a {type(self).__name__} with {has[0]} but no {lacks[0]}, expected all"
                f" of {', '.join(hooks)}, or none"
            )
        return not lacks


class Scan(NamedTuple):
    """How all assignments are priced in one pass over a table [n, max_domain].

    What belongs to a variable or to a value alone is loaded once for its whole row or column, and
    the entries of tables come in blocks, as in `tables.first`.

    Attributes:
      tables: buffers [n, max_domain], of the tally or of the problem, of which `delta` gets the
        entries; none if `()`.
      of_variable: maps the rows of a pass, int32 variables of any shape, to what is needed of them:
        a pytree of arrays of that shape. `tables.in_rows(buffer, variable)` reads a buffer [n].
      of_value: likewise of values, below `max_domain`.
      delta: maps a `tables.Place` and the tables' entries there, a tuple, to deltas. `place.row`
        and `place.column` are the variables and the values, `place.here` and `place.there` what
        `of_variable` and `of_value` gave; their shapes broadcast, such as [R, 1] and [1, C]. As
        `assign_delta`, but where a variable has the value already anything may be returned, too.
    """

    tables: tuple[Any, ...]
    of_variable: Callable[[jax.Array], Any]
    of_value: Callable[[jax.Array], Any]
    delta: Callable[[Any, tuple[jax.Array, ...]], Cost]


class Tallied(NamedTuple):
    """A vector and what makes its moves cheap; in a snapshot the tally is None.

    Attributes:
      solution: [n] int32.
      tally: what `VectorProblem.tally` returns of it.
    """

    solution: jax.Array
    tally: Any


class Span(NamedTuple):
    """Places from `low` up to `high` - 1, [] int32 each: `NOWHERE` for none."""

    low: Any
    high: Any

    def with_other(self, other: Span, where: jax.Array) -> Span:
        """Returns the least span that holds both, or this one where `where` does not hold."""
        low, high = jnp.minimum(self.low, other.low), jnp.maximum(self.high, other.high)
        return Span(jnp.where(where, low, self.low), jnp.where(where, high, self.high))


EVERYWHERE = Span(np.int32(0), np.int32(counts.MAX_INT32))
NOWHERE = Span(np.int32(counts.MAX_INT32), np.int32(0))


class Neighborhood(abc.ABC):
    """Small changes of a solution, with the rules to price and to make them."""

    num_words: int
    """The number of uint32 random words that one proposal takes."""
    space: str | None = None
    """The `Problem.space` that it is for; None for any."""
    is_portable: bool = False
    """Whether `propose`, `delta`, `commit` and `snapshot` are portable: needed to be compiled as
    one function on a CPU. On a GPU it is tried.
    """

    @abc.abstractmethod
    def init(self, problem: Any, solution: Solution, /) -> Representation:
        """Returns the representation of `solution`."""

    @abc.abstractmethod
    def snapshot(self, representation: Representation, /) -> Snapshot:
        """Returns the part of `representation` worth remembering; the leaves are shared."""

    @abc.abstractmethod
    def solution(self, problem: Any, snapshot: Snapshot, /) -> Solution:
        """Returns the solution that a snapshot stands for."""

    @abc.abstractmethod
    def propose(self, problem: Any, representation: Representation, words: Words, /) -> Move:
        """Returns the random move that `words` stand for.

        Args:
          words: `num_words` uint32 arrays, all scalars or all [M]; the move's leaves follow.
        """

    @abc.abstractmethod
    def delta(self, problem: Any, representation: Representation, move: Move, /) -> Cost:
        """Returns cost after minus cost before; `null_delta` for a move that changes nothing.

        Finite but for that: an infinite cost must not be left again, short of `known_cost`.
        """

    @abc.abstractmethod
    def commit(
        self, problem: Any, representation: Representation, move: Move, accept: jax.Array, /
    ) -> Representation:
        """Returns the representation after one scalar `move`; unchanged where not `accept`."""

    def span(self, problem: Any, representation: Representation, move: Move, /) -> Span:
        """Returns where `move`, if it is made, changes the representation; by default anywhere.

        For searches that often go back, such as `iterated_local_search`: with `copy_span` they
        undo what has changed, and not all. Both are meant to be portable.
        """
        return EVERYWHERE

    def copy_span(self, to: Any, source: Any, span: Span, where: jax.Array, /) -> Any:
        """Returns `source` where the scalar `where` holds, else `to`; it is written over `to`.

        Args:
          to: a representation or a snapshot, which differs from `source` in the span at most.
          source: likewise.
        """
        return memory.copy(to, source, where)

    def known_cost(self, representation: Representation, /) -> Cost | None:
        """Returns the cost if it is at hand, in place of a sum of deltas; else None."""
        return None

    def num_warps(self, problem: Any, /) -> int:
        """Returns how many warps of a program in a kernel serve to make a move."""
        return 1


class ByElement(Neighborhood):
    """A neighborhood that lists the moves of an element: of a city, a facility, a variable.

    For searches that look for moves only where something has changed, such as
    `iterated_local_search`. What it adds is meant to be portable.
    """

    @abc.abstractmethod
    def elements(self, problem: Any, /) -> tuple[int, Any]:
        """Returns for how many elements there is room, and how many there are.

        The latter is an integer, or [] int32; the first ones count.
        """

    @abc.abstractmethod
    def num_moves_of(self, problem: Any, /) -> int:
        """Returns how many moves an element has at most."""

    @abc.abstractmethod
    def moves_of(
        self, problem: Any, representation: Representation, element: jax.Array, number: jax.Array, /
    ) -> tuple[Move, Any]:
        """Returns moves of an element, [] int32, and whether there are any.

        Args:
          number: [M] int32, below `num_moves_of`.
        """

    def promising(self, problem: Any, representation: Representation, element: jax.Array, /) -> Any:
        """Returns how many of its first moves may be better, [] int32; by default all."""
        return self.num_moves_of(problem)

    def best_of(
        self, problem: Any, representation: Representation, element: jax.Array, /
    ) -> tuple[Move, Cost]:
        """Returns the best of these moves, of several the first one, and its delta."""
        lane, most = memory.lanes(memory.LANES), self.num_moves_of(problem)
        count = jnp.minimum(self.promising(problem, representation, element), most)
        lanes = lane.shape[0]

        def price(number: jax.Array) -> tuple[Move, Cost]:
            move, is_move = self.moves_of(problem, representation, element, number)
            delta = self.delta(problem, representation, move)
            return move, jnp.where(is_move & (delta == delta), delta, null_delta(delta.dtype))

        def price_tile(tile: jax.Array, best: tuple[Cost, jax.Array]) -> tuple[Cost, jax.Array]:
            number = tile * lanes + lane
            _, deltas = price(jnp.minimum(number, most - 1))
            deltas = jnp.where(number < count, deltas, null_delta(deltas.dtype))
            delta = jnp.min(deltas)
            first = jnp.min(jnp.where(deltas == delta, number, jnp.int32(most)))
            is_better = delta < best[0]
            return jnp.where(is_better, delta, best[0]), jnp.where(is_better, first, best[1])

        dtype = jax.eval_shape(price, jnp.int32(0))[1].dtype  # pyright: ignore
        num_tiles = lax.div(count + (lanes - 1), jnp.int32(lanes))
        best = null_delta(dtype), jnp.int32(0)
        delta, number = memory.fori_loop(num_tiles, price_tile, best)
        return price(number)[0], delta

    @abc.abstractmethod
    def touched(
        self, problem: Any, representation: Representation, move: Move, /
    ) -> tuple[jax.Array, ...]:
        """Returns elements, [] int32 each, that may have better moves once `move` is made."""


class Enumerable(ByElement):
    """A neighborhood whose moves stand in a table, for searches that look at all of them.

    An entry of the table stands for something that a move brings about, such as a facility (row)
    that comes to a location (column); a move has one entry or more. `move_at`, `first` and `undone`
    are meant to be portable.
    """

    @abc.abstractmethod
    def num_moves(self, problem: Any, /) -> int:
        """Returns how many moves there are, each counted once."""

    @abc.abstractmethod
    def shape(self, problem: Any, /) -> tuple[int, int]:
        """Returns the rows and the columns of the table."""

    def extent(self, problem: Any, /) -> tuple[Any, Any]:
        """Returns how many first rows and columns count: integers, or [] int32.

        A problem may have room for more than its size: see `problems.padding`. Entries behind are
        never `first`, and entries are numbered as in a table of this size.
        """
        return self.shape(problem)

    @abc.abstractmethod
    def move_at(
        self, problem: Any, representation: Representation, row: jax.Array, column: jax.Array, /
    ) -> tuple[Move, Any]:
        """Returns the moves of entries, [] or arrays of one shape, and whether there are any."""

    def first(
        self,
        problem: Any,
        representation: Representation,
        rank: Rank,
        others: tuple[jax.Array, ...],
        /,
    ) -> tuple[tables.First, Move]:
        """Returns the entry that comes first, and its move.

        Args:
          rank: maps numbers of entries (row * columns + column), their deltas, and what `others`
            have there, elementwise to keys, which are compared one after the other; the lowest
            comes first. Entries that stand for no move have `null_delta`.
          others: buffers of the shape of the table.
        """
        rows, columns = self.extent(problem)

        def keys_of(place: tables.Place, entries: tables.Values) -> tables.Values:
            row, column = jnp.broadcast_arrays(place.row, place.column)
            move, is_move = self.move_at(problem, representation, row, column)
            change = self.delta(problem, representation, move)
            delta = jnp.where(is_move, change, null_delta(change.dtype))
            return rank(row * columns + column, delta, *entries)

        within = tables.within(rows, columns)
        found = tables.first(self.shape(problem), keys_of, others, within=within)
        row, column = tables.row_and_column(found.number, columns)
        return found, self.move_at(problem, representation, row, column)[0]

    @abc.abstractmethod
    def undone(self, problem: Any, representation: Representation, move: Move, /) -> Entries:
        """Returns one entry or more, [] int32 row and column each, for what `move` undoes."""

    def elements(self, problem: Any, /) -> tuple[int, Any]:
        return self.shape(problem)[0], self.extent(problem)[0]

    def num_moves_of(self, problem: Any, /) -> int:
        return self.shape(problem)[1]

    def moves_of(
        self, problem: Any, representation: Representation, element: jax.Array, number: jax.Array, /
    ) -> tuple[Move, Any]:
        """Returns the moves of a row, by columns."""
        row, column = jnp.broadcast_arrays(element, number)
        move, is_move = self.move_at(problem, representation, row, column)
        return move, is_move & (column < self.extent(problem)[1])

    def touched(
        self, problem: Any, representation: Representation, move: Move, /
    ) -> tuple[jax.Array, ...]:
        """Returns the rows of what the move undoes."""
        return tuple(row for row, _ in self.undone(problem, representation, move))


class Moves(abc.ABC):
    """How to change a solution, priced by evaluating it in full: a few lines to start with.

    A move must change the solution: if it changed nothing, its price 0 would win. Under XLA only;
    hashable, because it is part of the compiled program. Searches take it for a neighborhood:
    `FullEvaluation`.
    """

    num_words: int
    """The number of uint32 random words that one proposal takes."""
    space: str | None = None
    """The `Problem.space` that it is for; None for any."""

    @abc.abstractmethod
    def propose(self, problem: Any, solution: Solution, words: Words, /) -> Move:
        """Returns the random move that `words` (`num_words` uint32 scalars) stand for."""

    @abc.abstractmethod
    def apply(self, problem: Any, solution: Solution, move: Move, /) -> Solution:
        """Returns the solution after `move`."""


class EnumerableMoves(Moves):
    """Moves that stand in a table, for searches that look at them all: see `Enumerable`."""

    @abc.abstractmethod
    def num_moves(self, problem: Any, solution: Solution, /) -> int:
        """Returns how many moves there are, each counted once; only shapes are known."""

    @abc.abstractmethod
    def shape(self, problem: Any, solution: Solution, /) -> tuple[int, int]:
        """Returns the rows and the columns of the table; only shapes are known."""

    def extent(self, problem: Any, solution: Solution, /) -> tuple[Any, Any]:
        """Returns how many first rows and columns count, as `Enumerable.extent`."""
        return self.shape(problem, solution)

    @abc.abstractmethod
    def move_at(
        self, problem: Any, solution: Solution, row: jax.Array, column: jax.Array, /
    ) -> tuple[Move, jax.Array]:
        """Returns the move of an entry, and whether there is one, [] bool."""

    @abc.abstractmethod
    def undone(self, problem: Any, solution: Solution, move: Move, /) -> Entries:
        """Returns one entry or more, [] int32 row and column each, for what `move` undoes."""


class Search(abc.ABC):
    """An algorithm that improves one solution step by step.

    An exchange that passes on solutions needs `adopt`, and one that passes on current ones
    `current_cost` and `current`, too. Float costs need `refresh`.
    """

    space: str | None = None
    """The `Problem.space` that it is for; None for any."""
    local_search: Any = None
    """The search that improves what this one makes; None for none."""
    check_every: int | None = None
    """Steps between stop tests where a run is not told; None for the default."""

    @property
    def parts(self) -> tuple[Any, ...]:
        """What of it may be for one `space` only."""
        return (self,)

    @abc.abstractmethod
    def evaluations_per_step(self, problem: Any, /) -> int:
        """Returns how many moves or solutions are priced in a step, for `Result.nfev`."""

    @abc.abstractmethod
    def init(self, problem: Any, solution: Solution, /) -> State:
        """Returns the state from which a search starts at `solution`."""

    def init_with(self, key: jax.Array, problem: Any, solution: Solution, /) -> State:
        """Returns `init` where a run starts, with a typed key for what else is drawn then.

        Such as the other individuals of an island. The key is equal for equal keys of a run and
        equal indices of the search.
        """
        return self.init(problem, solution)

    def control(self, step: jax.Array, /) -> Any:
        """Returns scalars that steer all searches at `step`, [] int32, such as a temperature.

        Computed under XLA and handed to `step`, so that a kernel gets the same bits.
        """
        return None

    @abc.abstractmethod
    def step(self, stream: Stream, control: Any, problem: Any, state: State, /) -> Any:
        """Returns the state after one step, of the same types and shapes, and its `Info`.

        Args:
          control: what `self.control` returned for this step.
        """

    @abc.abstractmethod
    def best_cost(self, state: State, /) -> Cost:
        """Returns the lowest cost met so far, the start and the last step included."""

    @abc.abstractmethod
    def best(self, problem: Any, state: State, /) -> Solution:
        """Returns a solution of cost `best_cost(state)`."""

    def current_cost(self, state: State, /) -> Cost:
        """Returns the cost of the solution from which the next step starts."""
        raise NotImplementedError(f"{type(self).__name__} has no current_cost")

    def current(self, problem: Any, state: State, /) -> Solution:
        """Returns that solution."""
        raise NotImplementedError(f"{type(self).__name__} has no current")

    def adopt(self, problem: Any, state: State, solution: Solution, /) -> State:
        """Returns the state that continues from `solution`; the best so far is kept."""
        raise NotImplementedError(f"{type(self).__name__} has no adopt")

    def refresh(self, problem: Any, state: State, /) -> State:
        """Returns the state with running costs computed again, against drift of float costs."""
        return state

    is_done: Any = None
    """`is_done(state)`, [] bool: whether further steps would change nothing. A run in which all
    searches are done ends.
    """
    individuals: Any = None
    """`individuals(state)`, leaves [P, ...], of an island."""
    with_individuals: Any = None
    """`with_individuals(state, individuals)`: the state with others; with `individuals`."""

    def check(self, problem: Any, max_steps: int | None, /) -> None:
        """Refuses settings that suit neither the problem nor so long a run; on the host."""
        return

    def is_portable(self, problem: Any, /) -> bool:
        """Returns whether `step` is portable. On a CPU such searches run several times faster."""
        return False

    def obstacle(self, problem: Any, /) -> str:
        """Returns why the step cannot run in a kernel, in one line; "" if nothing is known."""
        return ""

    def num_warps(self, problem: Any, num_searches: int, /) -> int:
        """Returns the warps of a program in a kernel, a power of two."""
        return 1


class Crossover(abc.ABC):
    """Makes a solution of two, for `recombine`."""

    space: str | None = None
    """The `Problem.space` that it is for; None for any."""

    @abc.abstractmethod
    def child(self, key: jax.Array, problem: Any, own: Any, given: Any, share: jax.Array, /) -> Any:
        """Returns the solution from which the search with the best `own` continues.

        Args:
          key: typed.
          given: the best of another search.
          share: [] float32, how much the child has of it.
        """

    def children(
        self,
        keys: jax.Array,
        problem: Any,
        own: Any,
        given: Any,
        share: jax.Array,
        implementation: Implementation = "xla",
        /,
    ) -> Any:
        """Returns a child for each of S searches.

        Args:
          keys, own, given: as `child` has them, with an axis [S].
          implementation: one of `backends.Implementation`, by which steps are made.
        """
        make_one = jax.vmap(self.child, in_axes=(0, None, 0, 0, None))
        return make_one(keys, problem, own, given, share)


class Exchange(abc.ABC):
    """What searches learn from one another, between steps: it has `donors`, or `order`."""

    every: jax.Array
    """[] int32, the number of steps between exchanges."""
    passes_on: str = "best"
    """Which solution of the donor a search continues from: its `"best"` or its `"current"`."""
    is_generational: bool = False
    """Whether searches forget their best as they continue from another solution, but for the first
    one, which continues from the best of all.
    """
    space: str | None = None
    """The `Problem.space` that it is for; None for any."""

    def donors(self, stream: Stream, costs: jax.Array, num_searches: jax.Array, /) -> jax.Array:
        """Returns for each search the index of the one whose solution it continues from.

        Args:
          costs: [S] the cost of the solution that each search would pass on, by global index.
            Entries from `num_searches` on are padding and hold the highest cost there is.

        Returns:
          [S] int32, each below `num_searches`, or -1 to leave a search as it is.
        """
        raise NotImplementedError(f"{type(self).__name__} has neither donors nor order")

    order: Any = None
    """`order(stream, is_padding)`, in place of all others: where the individuals of all islands
    come from, a permutation, [S * P] int32. `is_padding`, [S * P] bool, tells which are of no
    island; they are to stay behind the others.
    """
    combine: Any = None
    """`combine(words, problem, own, given, implementation)`: what searches continue from, made of
    their own best and of their donors' solutions, leaves [S, ...]. `words`: two uint32 [S];
    `implementation`: by what steps are made. Without it they continue from their donors'.
    """

    def starts_anew(self, costs: jax.Array, num_searches: jax.Array, /) -> jax.Array | None:
        """Returns whether all but the first search restart at random, [] bool; None for never.

        The first one then continues from the best of all. Arguments as `donors` has them.
        """
        return None


class Info(NamedTuple):
    """What a person may want to see of a step. Fields are counts: sums over steps make sense."""

    accepted: jax.Array
    """[] int32, 1 if the solution changed."""
