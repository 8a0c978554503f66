"""What searches are built on that walk from one solution to a neighboring one.

Each class is a `types.Search` short of a few methods, its abstract ones. docs/your_own_search.md
shows how to write a search of your own on them.

- `TrajectorySearch` keeps the current solution and the best one. What it lacks is the step.
- `SampledSearch` prices some random moves in a step and puts one of them to a test.
- `TableSearch` looks at all moves of a neighborhood in a step and knows which comes first.
"""

import abc
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

import jax
import jax.numpy as jnp

from jaxopt_search.backends import memory, tables
from jaxopt_search.searches.acceptance import Acceptance, Trial
from jaxopt_search.searches.walks import StateT, TrajectorySearch, Walk
from jaxopt_search.types import Cost, Enumerable, Move, Problem, Stream, null_delta

__all__ = ["SampledSearch", "TableSearch", "TrajectorySearch"]

Rank: TypeAlias = Callable[..., tuple[jax.Array, ...]]
"""What `types.Enumerable.first` ranks moves by."""

_MAX_WARPS = 8
# The schedulers of an H200. With programs enough for all, one of several warps is slower: its warps
# wait for one another.
_WARPS_AT_ONCE = 528


class Chosen(NamedTuple):
    """A move that was put to the test.

    Attributes:
      move: scalars.
      delta: [] the change in cost.
      is_made: [] bool, whether it passed.
    """

    move: Move
    delta: Cost
    is_made: jax.Array


class SampledSearch(TrajectorySearch[StateT]):
    """A `TrajectorySearch` that prices some random moves in a step and puts one to the test.

    A subclass has `rule`, the test, and `moves_per_search`, how many moves it prices: M. Each has a
    lane, as `memory.lanes(M)` counts them; `only_real` makes those in excess worthless.
    """

    moves_per_search: int

    @abc.abstractmethod
    def rule(self) -> Acceptance:
        """Returns the rule by which moves are made."""

    def evaluations_per_step(self, problem: Any) -> int:
        return self.moves_per_search

    def check(self, problem: Problem, max_steps: int | None) -> None:
        self.rule().check(problem, max_steps)

    def control(self, step: jax.Array) -> Any:
        return self.rule().control(step)

    def num_warps(self, problem: Problem, num_searches: int) -> int:
        """Returns the warps of a program in a kernel, a power of two."""
        most = min(self.moves_per_search // 32, _MAX_WARPS, _WARPS_AT_ONCE // num_searches)
        to_price = 1 << max(1, most).bit_length() - 1
        return max(to_price, self.neighborhood.num_warps(problem))

    def num_lanes(self) -> int:
        """Returns the most lanes that M moves take where words are drawn ahead: for `draws`."""
        with memory.one_search("native"):
            return jax.eval_shape(lambda: memory.lanes(self.moves_per_search)).shape[0]

    def only_real(self, lane: jax.Array, deltas: Cost) -> Cost:
        """Returns the deltas, above all others in lanes in excess and for NaN; portable."""
        counts = (lane < self.moves_per_search) & (deltas == deltas)  # NaN never wins
        return jnp.where(counts, deltas, null_delta(deltas.dtype))

    def cheapest(
        self, stream: Stream, words: tuple[jax.Array, ...], trial: Trial, moves: Move
    ) -> Chosen:
        """Returns the cheapest move, the first of equals, put to the test; portable.

        Args:
          words: drawn in the slots of all lanes, [lanes] each.
          trial: with the deltas of all lanes, and without words.
          moves: leaves [lanes].
        """
        deltas, lane = trial.delta, memory.lanes(self.moves_per_search)
        delta = jnp.min(deltas)
        # Two minima take fewer instructions than an argmin.
        winner = jnp.min(jnp.where(deltas == delta, lane, jnp.int32(lane.shape[0])))
        words = self._words_of_the_test(stream, words)
        is_made = self.passes(trial._replace(delta=delta, words=words))
        return Chosen(memory.pick(moves, winner), delta, is_made)

    def _words_of_the_test(
        self, stream: Stream, words: tuple[jax.Array, ...]
    ) -> tuple[jax.Array, ...]:
        """Returns the words in the slot behind the moves', which a lane in excess has drawn."""
        slot, number = self.moves_per_search, self.rule().num_words
        if number <= len(words) and all(slot < drawn.shape[0] for drawn in words):
            return memory.pick(words[:number], jnp.int32(slot))
        return stream.words(jnp.uint32(slot), number)

    def first_to_pass(self, trial: Trial, moves: Move) -> Chosen:
        """Returns the first move that passes the test, if there is one; portable.

        Args:
          trial: with the deltas and the words of all lanes.
          moves: leaves [lanes].
        """
        lane = memory.lanes(self.moves_per_search)
        none = jnp.int32(lane.shape[0])
        winner = jnp.min(jnp.where(self.passes(trial), lane, none))
        move, delta = memory.pick((moves, trial.delta), jnp.minimum(winner, none - 1))
        return Chosen(move, delta, winner < none)

    def passes(self, trial: Trial) -> jax.Array:
        """Returns whether moves pass the test and change something; portable."""
        return self.rule().passes(trial) & (trial.delta < null_delta(trial.delta.dtype))


class Found(NamedTuple):
    """The move that comes first of all.

    Attributes:
      move: the move.
      entry: [] int32, where it stands in the table of moves.
      key: [] the first of its keys.
    """

    move: Move
    entry: jax.Array
    key: jax.Array


class TableWalk(Walk, Protocol):
    """The state of a `TableSearch`: a `Walk` with one more field."""

    @property
    def found(self) -> Any:
        """The `Found` move of the next step; None before the first look."""
        ...


TableStateT = TypeVar("TableStateT", bound=TableWalk)


class TableSearch(TrajectorySearch[TableStateT]):
    """A `TrajectorySearch` that looks at all moves of an enumerable neighborhood in each step.

    The table is brought up to date and searched in one pass, so that the state holds, in `found`,
    the move of the next step: `init` ends with `look`, and a step makes its move by `make_found`.
    A subclass has `rank`, which says what comes first.
    """

    neighborhood: Enumerable

    @abc.abstractmethod
    def rank(self, problem: Any, state: TableStateT) -> Rank:
        """Returns what ranks moves: `rank` of `types.Enumerable.first`; portable."""

    def others(self, state: TableStateT) -> tuple[Any, ...]:
        """Returns the buffers that `rank` needs besides the table of moves, of the same shape."""
        return ()

    def evaluations_per_step(self, problem: Any) -> int:
        return self.neighborhood.num_moves(problem)

    def num_warps(self, problem: Problem, num_searches: int) -> int:
        return tables.num_warps(self.neighborhood.shape(problem))

    def look(self, problem: Any, state: TableStateT) -> TableStateT:
        """Returns the state with what comes next; of the found move before, only `entry` counts."""
        rank, others = self.rank(problem, state), self.others(state)
        first, move = self.neighborhood.first(problem, state.representation, rank, others)
        return state._replace(found=Found(move, first.number, first.keys[0]))

    def make_found(
        self, problem: Problem, state: TableStateT, delta: Cost, where: jax.Array
    ) -> TableStateT:
        """Returns the state after its found move, if `where` holds, with what comes next.

        Args:
          delta: [] the change in cost that the move makes.
        """
        hood, move = self.neighborhood, state.found.move
        commit_and_first = hood.commit_and_first
        if commit_and_first is None:
            representation = hood.commit(problem, state.representation, move, where)
            cost = self.cost_after(state.cost, delta, where, representation)
            memory.barrier()
            return self.look(problem, state._replace(representation=representation, cost=cost))
        state = state._replace(cost=state.cost + jnp.where(where, delta, jnp.zeros_like(delta)))
        rank, others = self.rank(problem, state), self.others(state)
        representation, first, move = commit_and_first(
            problem, state.representation, move, where, rank, others
        )
        memory.barrier()
        found = Found(move, first.number, first.keys[0])
        return state._replace(representation=representation, found=found)
