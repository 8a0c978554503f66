"""Tabu search: the best neighbor that is not forbidden, be it better or worse.

Taillard, "Robust taboo search for the quadratic assignment problem", Parallel Computing 17, 1991.
The idea is Glover's ("Tabu search, part I", 1989).
"""

import dataclasses
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp

from jaxopt_search.backends import tables
from jaxopt_search.backends.memory import store
from jaxopt_search.backends.random import below, threefry2x32
from jaxopt_search.checks import check_count, check_number, check_option, float32
from jaxopt_search.neighborhoods.full_evaluation import as_enumerable
from jaxopt_search.pytrees import pytree, static
from jaxopt_search.searches.base import TableSearch
from jaxopt_search.types import (
    Cost,
    Enumerable,
    Info,
    Problem,
    Rank,
    Representation,
    Snapshot,
    Solution,
    Stream,
    null_delta,
)

_MAX_STEPS = 2**30  # of a tenure or an age, so that times may count modulo 2**32
_ASPIRED, _ALLOWED, _FORBIDDEN, _NULL = range(4)


class TabuState(NamedTuple):
    """The state of one search.

    Attributes:
      representation: of the current solution.
      cost: [] its cost.
      best: snapshot of the best solution.
      best_cost: [] its cost.
      now: [] int32, steps made, modulo 2**32.
      until: [rows, columns] int32, for each entry of the table of moves the last step at which it
        is forbidden, modulo 2**32.
      found: the move of the next step, a `base.Found`.
      order: [] uint32, of which of equally good moves comes first; None where the first one does.
    """

    representation: Representation
    cost: Cost
    best: Snapshot
    best_cost: Cost
    now: jax.Array
    until: jax.Array
    found: Any
    order: jax.Array | None


@pytree
@dataclasses.dataclass(frozen=True, kw_only=True)
class TabuSearch(TableSearch):
    """Build it with `tabu_search`."""

    neighborhood: Enumerable
    tenure: tuple[int, int] | None = static()
    aspiration_age: int | None = static()
    ties: str = static()
    tenure_per_cost: jax.Array | None = None

    def init(self, problem: Problem, solution: Solution) -> TabuState:
        # None is forbidden, and they come of age one after the other.
        row, column = tables.rows_and_columns(self.neighborhood.shape(problem))
        _, columns = self.neighborhood.extent(problem)
        until = -1 - (row * columns + column)
        start = self.start(problem, solution)
        order = jnp.uint32(0) if self.ties == "random" else None
        return self.look(problem, TabuState(*start, jnp.int32(0), until, None, order))

    def step(
        self, stream: Stream, control: None, problem: Problem, state: TabuState
    ) -> tuple[TabuState, Info]:
        hood, representation, move = self.neighborhood, state.representation, state.found.move
        delta = hood.delta(problem, representation, move)
        # A key above `_NULL`: the table has no rows. The move waits for its delta, which spares XLA
        # for CPUs a copy of what the move changes.
        is_move = (state.found.key < _NULL) & (delta != null_delta(delta.dtype))
        rows, _ = hood.extent(problem)
        low, high = self.tenure or (9 * rows // 10, (11 * rows + 9) // 10)
        more = jnp.int32(0)
        if self.tenure_per_cost is not None:
            # One product, which is rounded alike everywhere, and a conversion that rounds down.
            more = jnp.maximum(state.cost.astype(jnp.float32), 0) * self.tenure_per_cost
            more = jnp.minimum(more, jnp.float32(_MAX_STEPS)).astype(jnp.int32)
        num_words = 3 if self.ties == "random" else 2
        first, second, *order = words = stream.words(jnp.uint32(0), num_words)
        for k, entry in enumerate(hood.undone(problem, representation, move)):
            if k < 2:
                word = words[k]
            else:
                word, _ = threefry2x32((first, second), (jnp.uint32(k), jnp.uint32(0)))
            tenure = jnp.minimum(low + below(word, high - low + 1), _MAX_STEPS - more) + more
            until = store(state.until, entry, state.now + tenure, is_move)
            state = state._replace(until=until)
        state = state._replace(now=state.now + 1, order=order[0] if order else None)
        state = self.make_found(problem, state, delta, is_move)
        return self.remember(state), Info(is_move.astype(jnp.int32))

    def others(self, state: TabuState) -> tuple[jax.Array, ...]:
        return (state.until,)

    def rank(self, problem: Problem, state: TabuState) -> Rank:
        """Returns what ranks moves: aspired ones by delta, then allowed ones, then the others."""
        age = self.aspiration_age
        if age is None:
            rows, columns = self.neighborhood.extent(problem)
            age = 5 * jnp.minimum(rows * columns, _MAX_STEPS // 5)
        best = self.best_cost(state)

        def rank(entry: jax.Array, delta: Cost, until: jax.Array) -> tuple[jax.Array, ...]:
            left = until - state.now
            is_aspired = (state.cost + delta < best) | (left < -age)
            kind = jnp.where(left < 0, jnp.int32(_ALLOWED), jnp.int32(_FORBIDDEN))
            kind = jnp.where(is_aspired, jnp.int32(_ASPIRED), kind)
            kind = jnp.where(delta == null_delta(delta.dtype), jnp.int32(_NULL), kind)
            # Where all are forbidden, the one with the shortest time to go.
            key = jnp.where(kind == _FORBIDDEN, left.astype(delta.dtype), delta)
            if state.order is None:
                return kind, key
            return kind, key, jnp.broadcast_to(_shuffled(entry, state.order), key.shape)

        return rank


def _shuffled(entry: jax.Array, order: jax.Array) -> jax.Array:
    """Returns int32 from 0 up that stand for the places of entries in a random order; portable.

    It mixes bits in the manner of MurmurHash3 (Appleby, 2011).
    """
    mixed = (entry.astype(jnp.uint32) ^ order) * jnp.uint32(0x85EBCA6B)
    mixed = (mixed ^ (mixed >> 15)) * jnp.uint32(0xC2B2AE35)
    return ((mixed ^ (mixed >> 16)) >> 1).astype(jnp.int32)


def tabu_search(
    neighborhood: Any,
    *,
    tenure: int | tuple[int, int] | None = None,
    tenure_per_cost: float | None = None,
    aspiration_age: int | None = None,
    ties: Literal["first", "random"] = "first",
) -> TabuSearch:
    """Returns robust tabu search: in each step the best move is made that is not forbidden.

    A move stands in a table in one entry or more, each for a thing it brings about: of the QAP, a
    facility that comes to a location. What a move undoes is forbidden for a random number of steps,
    and a move is forbidden if all of its entries are. Forbidden or not, a move is preferred, of
    several the best, if it leads to a solution better than all before, or if an entry of it was
    undone longer ago than `aspiration_age`. Where all are forbidden, the one is made that has the
    shortest time to go.

    Args:
      neighborhood: as in `hill_climbing`.
      tenure: for how many steps, a number, or the least and the most, which are drawn with equal
        chances; None for 0.9 to 1.1 times the rows of the table, for the QAP the facilities, as
        Taillard recommends. 0 forbids nothing.
      tenure_per_cost: how many steps more for each unit of the cost, where it is above 0, of the
        solution that a move leaves; rounded down. None adds no steps. Where the lowest cost is 0,
        as in graph coloring, the tenure thus falls on the way there (Galinier, Hao, "Hybrid
        evolutionary algorithms for graph coloring", 1999, who count vertices in conflict instead of
        edges).
      aspiration_age: in steps; None for 5 times the entries of the table. Entries never undone
        count as undone one after the other before the start.
      ties: which of equally good moves is made: the one that stands first in the table, or a random
        one. Where costs are small integers, as in graph coloring or on graphs with weights of 1,
        many moves are equal: take `"random"` there, since searches that always prefer the first get
        stuck.

    Raises:
      ValueError: if a number is out of range, or `ties` is not one of the two.
      TypeError: if the moves of `neighborhood` do not stand in a table.

    Example:
      >>> import jaxopt_search as js
      >>> flow, distance = [[0, 5, 2], [5, 0, 3], [2, 3, 0]], [[0, 8, 15], [8, 0, 13], [15, 13, 0]]
      >>> search = tabu_search(js.SwapTable())
      >>> js.solve(js.qap(flow, distance), search, 0, num_searches=4, max_steps=100).fun
      218
    """
    if aspiration_age is not None:
        aspiration_age = check_count("aspiration_age", aspiration_age, 0, _MAX_STEPS)
    if tenure is not None:
        bounds = tenure if isinstance(tenure, tuple | list) else (tenure, tenure)
        if len(bounds) != 2:
            raise ValueError(f"tenure is {tenure!r}, expected a number, or the least and the most")
        low = check_count("tenure", bounds[0], 0, _MAX_STEPS)
        tenure = low, check_count("tenure", bounds[1], low, _MAX_STEPS)
    if (
        tenure_per_cost is not None
        and check_number("tenure_per_cost", tenure_per_cost, 0) > _MAX_STEPS
    ):
        raise ValueError(f"tenure_per_cost is {tenure_per_cost}, expected at most {_MAX_STEPS}")
    check_option("ties", ties, ("first", "random"))
    return TabuSearch(
        neighborhood=as_enumerable(neighborhood),
        tenure=tenure,
        aspiration_age=aspiration_age,
        ties=ties,
        tenure_per_cost=None if tenure_per_cost is None else float32(tenure_per_cost),
    )
