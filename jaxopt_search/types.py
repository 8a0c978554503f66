"""The contracts between the parts of the library: this page is the design.

Shapes are written for one search; the library adds a leading axis of searches with `jax.vmap`.
Letters: `n` problem size, `S` searches, `M` moves priced at once, `D` devices.

Portable code, which runs under XLA and inside a fused kernel alike, touches buffers only through
the functions of `memory`, and otherwise computes elementwise on scalars and on one axis of lanes.
`propose`, `delta` and `commit` of a neighborhood and `step` of a search are meant to be portable;
everything else runs under XLA only.

What a part may have besides is in `capabilities`, member by member, with what holds without it.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

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
State: TypeAlias = Any


class Problem(Protocol):
    """What is minimized: a pytree whose data are leaves and whose sizes are static.

    It may say which `space` its solutions are of. Otherwise random starts are looked at where that
    matters.
    """

    def init(self, key: jax.Array, /) -> Solution:
        """Returns a random feasible solution. `key` is a typed Threefry key."""
        ...

    def cost(self, solution: Solution, /) -> Cost:
        """Returns the cost of `solution` in full: the definition of truth.

        An int32 or a float32 scalar. It may be +inf, for what must not be; NaN counts as that.
        """
        ...


class VectorProblem(Problem, Protocol):
    """A problem whose solutions are vectors: each variable has one of finitely many values.

    A solution is [n] int32 with `0 <= solution[i] < domain_sizes[i]`. `init` and `cost` are all
    that `Assign`, `SwapValues` and `genetic` need; every move is priced by a full evaluation then.

    With the four methods below it has *hooks*: moves are priced from a *tally*, a pytree (a
    `NamedTuple` of arrays of up to two axes) of whatever makes that cheap, such as the neighbors
    of each vertex by color, and searches run in kernels. It has all four or none:

    - `tally(solution)`: the tally of a solution. Under XLA only; O(size of the problem).
    - `assign_delta(solution, tally, variable, value)`: the change in cost if `variable` gets
      `value`, 0 if that is the value it has. Portable and elementwise over int32 arrays of one
      shape, or scalars, all in range: `value` below `max_domain`, but where it is not below the
      variable's own domain size, anything may be returned.
    - `swap_values_delta(solution, tally, first, second)`: the change in cost if two variables
      exchange their values. Portable and elementwise. Where `first` equals `second`, or a value
      lies outside the other's domain, anything may be returned.
    - `assigned(solution, tally, variable, value, where)`: the tally after `variable` got `value`.
      Portable: scalars, lanes within, and O(degree) stores that write only where the scalar `where`
      holds. `solution` is the one before and is not written; the caller stores the value, behind
      a `memory.barrier`. Where a lane reads what another lane writes, a barrier of its own stands
      between. If `value` is the one that the variable has, the tally stays as it is.

    Integer costs and deltas are int32 and exact, others float32. No array of a problem or of a
    tally may be empty: kernels and compiled CPU functions take none.

    Besides the hooks it may have `scan(solution, tally)`, portable, a `Scan`: what makes one pass
    over the deltas of all assignments, as tabu search and hill climbing make, faster than as many
    calls of `assign_delta`. It must come to the same numbers.
    """

    @property
    def domain_sizes(self) -> jax.Array:
        """[n] int32, how many values each variable has, at least 1; a leaf."""
        ...

    @property
    def max_domain(self) -> int:
        """The largest of them, static."""
        ...


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


class Neighborhood(Protocol):
    """Small changes of a solution, with the rules to price and to make them."""

    @property
    def num_words(self) -> int:
        """The number of uint32 random words that one proposal takes."""
        ...

    def init(self, problem: Any, solution: Solution, /) -> Representation:
        """Returns the representation of `solution`."""
        ...

    def solution(self, problem: Any, snapshot: Snapshot, /) -> Solution:
        """Returns the solution that a representation, or only its snapshot, stands for."""
        ...

    def snapshot(self, representation: Representation, /) -> Snapshot:
        """Returns the part of `representation` worth remembering; the leaves are shared."""
        ...

    def propose(
        self, problem: Any, representation: Representation, words: tuple[jax.Array, ...], /
    ) -> Move:
        """Returns the random move that `words` stand for.

        Args:
          words: `num_words` uint32 arrays, all scalars or all [M]; the move's leaves follow.
        """
        ...

    def delta(self, problem: Any, representation: Representation, move: Move, /) -> Cost:
        """Returns cost after minus cost before; `null_delta` for a move that changes nothing.

        Finite but for that: an infinite cost must not be left again, short of `known_cost`.
        """
        ...

    def commit(
        self, problem: Any, representation: Representation, move: Move, accept: jax.Array, /
    ) -> Representation:
        """Returns the representation after one scalar `move`; unchanged where not `accept`."""
        ...


class Enumerable(Neighborhood, Protocol):
    """A neighborhood whose moves stand in a table, for searches that look at all of them.

    An entry of the table stands for something that a move brings about, such as a facility (row)
    that comes to a location (column); a move has one entry or more. `first` and `undone` are meant
    to be portable.
    """

    def num_moves(self, problem: Any, /) -> int:
        """Returns how many moves there are, each counted once."""
        ...

    def shape(self, problem: Any, /) -> tuple[int, int]:
        """Returns the rows and the columns of the table."""
        ...

    def first(
        self,
        problem: Any,
        representation: Representation,
        rank: Callable[..., tuple[jax.Array, ...]],
        others: tuple[jax.Array, ...],
        /,
    ) -> tuple[Any, Move]:
        """Returns the entry that comes first, as `tables.First`, and its move.

        Args:
          rank: maps numbers of entries (row * columns + column), their deltas, and what `others`
            have there, elementwise to keys, which are compared one after the other; the lowest
            comes first. Entries that stand for no move have `null_delta`.
          others: buffers of the shape of the table.
        """
        ...

    def undone(
        self, problem: Any, representation: Representation, move: Move, /
    ) -> tuple[tuple[jax.Array, jax.Array], ...]:
        """Returns one entry or more, [] int32 row and column each, for what `move` undoes."""
        ...


class Stream(Protocol):
    """The random words of one search at one step: a pure function of (key, search, step, slot)."""

    @property
    def step(self) -> jax.Array:
        """[] int32, the number of steps made so far; stays at 2**31 - 1 from there on."""
        ...

    def words(self, slot: jax.Array, num_words: int, /) -> tuple[jax.Array, ...]:
        """Returns `num_words` uint32 arrays of the shape of `slot` (uint32, below 2**24)."""
        ...


class Search(Protocol):
    """An algorithm that improves one solution step by step."""

    def evaluations_per_step(self, problem: Any, /) -> int:
        """Returns how many moves or solutions are priced in a step, for `Result.nfev`."""
        ...

    def init(self, problem: Any, solution: Solution, /) -> State:
        """Returns the state from which a search starts at `solution`."""
        ...

    def control(self, step: jax.Array, /) -> Any:
        """Returns scalars that steer all searches at `step`, [] int32, such as a temperature.

        Computed under XLA and handed to `step`, so that a kernel gets the same bits.
        """
        ...

    def step(
        self, stream: Stream, control: Any, problem: Any, state: State, /
    ) -> tuple[State, "Info"]:
        """Returns the state after one step, of the same types and shapes, and what happened.

        Args:
          control: what `self.control` returned for this step.
        """
        ...

    def best_cost(self, state: State, /) -> Cost:
        """Returns the lowest cost met so far, the start and the last step included."""
        ...

    def best(self, problem: Any, state: State, /) -> Solution:
        """Returns a solution of cost `best_cost(state)`."""
        ...

    def current_cost(self, state: State, /) -> Cost:
        """Returns the cost of the solution from which the next step starts."""
        ...

    def current(self, problem: Any, state: State, /) -> Solution:
        """Returns that solution."""
        ...

    def adopt(self, problem: Any, state: State, solution: Solution, /) -> State:
        """Returns the state that continues from `solution`; the best so far is kept."""
        ...

    def refresh(self, problem: Any, state: State, /) -> State:
        """Returns the state with running costs computed again, against drift of float costs."""
        ...


class Crossover(Protocol):
    """Makes a solution of two, for `recombine`.

    Where many are made sooner at once, it may have `children` too: see `capabilities`.
    """

    def child(self, key: jax.Array, problem: Any, own: Any, given: Any, share: jax.Array, /) -> Any:
        """Returns the solution from which the search with the best `own` continues.

        Args:
          key: typed.
          given: the best of another search.
          share: [] float32, how much the child has of it.
        """
        ...


class Exchange(Protocol):
    """What searches learn from one another, between steps."""

    @property
    def every(self) -> jax.Array:
        """[] int32, the number of steps between exchanges."""
        ...

    @property
    def passes_on(self) -> str:
        """Which solution of the donor a search continues from: its `"best"` or its `"current"`."""
        ...

    def donors(self, stream: Stream, costs: jax.Array, num_searches: jax.Array, /) -> jax.Array:
        """Returns for each search the index of the one whose solution it continues from.

        Args:
          costs: [S] the cost of the solution that each search would pass on, by global index.
            Entries from `num_searches` on are padding and hold the highest cost there is.

        Returns:
          [S] int32, each below `num_searches`, or -1 to leave a search as it is.
        """
        ...


class Info(NamedTuple):
    """What a person may want to see of a step. Fields are counts: sums over steps make sense."""

    accepted: jax.Array
    """[] int32, 1 if the solution changed."""


def null_delta(dtype: Any) -> Any:
    """Returns the delta of a move that changes nothing: above every other, and never accepted.

    Priced at 0, such a move would win whenever all the others are worse, and a search that picks
    the best of several moves would freeze.

    Example:
      >>> int(null_delta("int32")), float(null_delta("float32"))
      (2147483647, inf)
    """
    dtype = jnp.dtype(dtype)
    limit = np.inf if jnp.issubdtype(dtype, jnp.floating) else jnp.iinfo(dtype).max
    return dtype.type(limit)
