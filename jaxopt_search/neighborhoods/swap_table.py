"""Swaps of a QAP with the deltas of all of them in a table, brought up to date after each swap."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxopt_search.backends import floats, memory, tables
from jaxopt_search.backends.memory import load, store
from jaxopt_search.checks import check_suits
from jaxopt_search.neighborhoods.swap import Positions, Swap
from jaxopt_search.problems import permutation
from jaxopt_search.problems.qap.problem import (
    QAP,
    Parts,
    differences,
    product,
    second_difference,
    square,
)
from jaxopt_search.types import Entries, Enumerable, Rank, Words, null_delta


class SwapDeltas(NamedTuple):
    """An assignment and what its swaps would change. A snapshot has the first field only.

    Attributes:
      location: [capacity] int32, the location of each facility: the assignment.
      facility: [capacity] int32, the facility at each location.
      deltas: [capacity, capacity], at (facility, location) the delta if that facility went there
        and the one that is there came here; `null_delta` where it is there itself, and from n on.
      costs: [capacity, capacity], at (facility, location) the cost of the facility's flows if it
        were there and all others, and once more itself, where they are; 0 from n on.
    """

    location: jax.Array
    facility: Any
    deltas: Any
    costs: Any


class _Swap(NamedTuple):
    """Facilities r and s leave locations a and b for one another's, if `is_made` holds."""

    r: jax.Array
    s: jax.Array
    a: jax.Array
    b: jax.Array
    is_made: jax.Array

    def flows(self, problem: QAP, u: jax.Array) -> Parts:
        """Returns the flows between `u` and r, minus the flows between `u` and s.

        0 if the swap is not made.
        """
        parts = differences(problem, problem.flow, (self.r, self.s), u)
        parts = tuple(jnp.where(self.is_made, part, jnp.zeros_like(part)) for part in parts)
        return tuple(2 * part for part in parts) if problem.is_symmetric else parts

    def distances(self, problem: QAP, place: jax.Array) -> Parts:
        """Returns how much farther from `place` r is than before."""
        return differences(problem, problem.distance, (self.b, self.a), place)


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class SwapTable(Enumerable):
    """All n (n - 1) / 2 swaps of a QAP, other problems are refused.

    A price is O(1), a swap that is made O(n * n). Then the deltas of all other facilities change
    in O(1) each (Frieze, Yadegar, El-Horbaty, Parkinson, "Algorithms for assignment problems on an
    array processor", 1989; Taillard, "Robust taboo search for the quadratic assignment problem",
    1991). There, the deltas of the swapped ones take O(n) each; here O(1), from a second table,
    which itself changes in O(1) per entry.

    In tables, rows are facilities, columns are locations, and each swap has two entries.

    Example:
      >>> import jaxopt_search as js
      >>> flow, distance = [[0, 5, 2], [5, 0, 3], [2, 3, 0]], [[0, 8, 15], [8, 0, 13], [15, 13, 0]]
      >>> table = jax.jit(SwapTable().init)(js.qap(flow, distance), jnp.arange(3)).deltas
      >>> jnp.where(table == null_delta(table.dtype), 0, table).tolist()
      [[0, 4, 20], [4, 0, 42], [20, 42, 0]]
    """

    num_words = 2
    is_portable = True
    space = "permutation"

    def init(self, problem: QAP, solution: jax.Array) -> SwapDeltas:
        check_suits("SwapTable", "a QAP", problem, isinstance(problem, QAP))
        facility = permutation.inverse(solution)
        flow, distance = square(problem, problem.flow), square(problem, problem.distance)
        costs = floats.matmul(flow, distance[:, solution].T)
        costs = memory.computed_once(costs + floats.matmul(flow.T, distance[solution]))
        moved, none = SwapDeltas(solution, facility, costs, costs), null_delta(costs.dtype)
        (deltas,) = tables.update(
            self.shape(problem),
            _from_costs(problem, moved),
            (jnp.full_like(costs, none),),
            jnp.bool_(True),
            within=_within(problem),
        )
        return moved._replace(deltas=deltas)

    def solution(self, problem: QAP, snapshot: SwapDeltas) -> jax.Array:
        return snapshot.location

    def snapshot(self, table: SwapDeltas) -> SwapDeltas:
        return SwapDeltas(table.location, None, None, None)

    def propose(self, problem: QAP, table: SwapDeltas, words: Words) -> Positions:
        return Swap().propose(problem, table.location, words)

    def delta(self, problem: QAP, table: SwapDeltas, move: Positions) -> jax.Array:
        location = load(table.location, move.second)
        return load(table.deltas, (move.first, location))

    def commit(
        self, problem: QAP, table: SwapDeltas, move: Positions, accept: jax.Array
    ) -> SwapDeltas:
        """Returns the tables after a swap of facilities r and s, whose rows change first.

        Taillard's update of the deltas of all pairs of other facilities: let F(u) be the flow
        between u and r less the flow between u and s, and D(x) how much farther from location x
        facility r is than before. If v is the facility at x, and u is at y,

            delta[u, x] += (F(u) - F(v)) * (D(x) - D(y))
            cost[u, x] += F(u) * D(x)

        each for the flows and distances of both directions. Rows r and s are new already then, and
        what the columns of r and s have stands there, too: a swap has two entries.
        """
        (location, facility, deltas, costs), (r, s) = table, move
        shape, within = self.shape(problem), _within(problem)
        swap = _Swap(r, s, load(location, r), load(location, s), accept)
        location = store(store(location, r, swap.b, accept), s, swap.a, accept)
        facility = store(store(facility, swap.b, r, accept), swap.a, s, accept)
        # XLA copies a table if it changes it in a pass and reads it before, at other entries.
        changes_costs = memory.is_in_kernel()
        if not changes_costs:

            def change(place: tables.Place, old: tables.Values) -> tables.Values:
                return (old[0] + product(place.here, place.there),)

            prepare = tables.Prepare(
                lambda u: swap.flows(problem, u), lambda place: swap.distances(problem, place)
            )
            (costs,) = tables.update(shape, change, (costs,), accept, prepare, within)
        moved = SwapDeltas(location, facility, deltas, costs)
        fresh = _from_costs(problem, moved, swap if changes_costs else None)
        (deltas,) = tables.update_rows((r, s), problem.capacity, fresh, (deltas,), accept, within)
        at_r, at_s, known = load(location, r), load(location, s), memory.settled(deltas)

        def of_facility(u: jax.Array) -> Any:
            here = load(location, u)
            with_r, with_s = (load(known, (each, here)) for each in (r, s))
            return swap.flows(problem, u), swap.distances(problem, here), with_r, with_s

        def of_location(place: jax.Array) -> Any:
            v = load(facility, place)
            return v, swap.flows(problem, v), swap.distances(problem, place)

        def update(place: tables.Place, old: tables.Values) -> tables.Values:
            (u, x, here, there), (delta, cost) = place, old
            (flow_u, distance_y, with_r, with_s), (v, flow_v, distance_x) = here, there
            if changes_costs:
                cost = cost + product(flow_u, distance_x)
            flow = tuple(map(jnp.subtract, flow_u, flow_v))
            new = delta + product(flow, tuple(map(jnp.subtract, distance_x, distance_y)))
            new = jnp.where(x == at_r, with_r, new)
            new = jnp.where(x == at_s, with_s, new)
            stays = (u == r) | (u == s) | _is_fixed(problem, u, v)
            return jnp.where(stays, delta, new), cost

        prepare = tables.Prepare(of_facility, of_location)
        deltas, costs = tables.update(shape, update, (deltas, costs), accept, prepare, within)
        return SwapDeltas(location, facility, deltas, costs)

    def num_warps(self, problem: QAP) -> int:
        return tables.num_warps(self.shape(problem))

    def num_moves(self, problem: QAP) -> int:
        number = int(problem.num_free)
        return number * (number - 1) // 2

    def shape(self, problem: QAP) -> tuple[int, int]:
        return problem.capacity, problem.capacity

    def extent(self, problem: QAP) -> tuple[Any, Any]:
        return problem.n, problem.n

    def move_at(
        self, problem: QAP, table: SwapDeltas, row: jax.Array, column: jax.Array
    ) -> tuple[Positions, bool]:
        return Positions(row, load(table.facility, column)), True

    def first(
        self, problem: QAP, table: SwapDeltas, rank: Rank, others: tables.Values
    ) -> tuple[tables.First, Positions]:
        def keys_of(place: tables.Place, entries: tables.Values) -> Any:
            return rank(place.row * problem.n + place.column, *entries)

        entries = table.deltas, *others
        found = tables.first(self.shape(problem), keys_of, entries, within=_within(problem))
        at = tables.row_and_column(found.number, problem.n)
        return found, self.move_at(problem, table, *at)[0]

    def undone(self, problem: QAP, table: SwapDeltas, move: Positions) -> Entries:
        return tuple((u, load(table.location, u)) for u in move)


def _within(problem: QAP) -> tables.Within | None:
    return tables.within(problem.n, problem.n)


def _from_costs(problem: QAP, moved: SwapDeltas, swap: _Swap | None = None) -> tables.Body:
    """Returns what computes deltas from the other fields of `moved`, in O(1) each.

    Args:
      swap: if given, the costs are from before it.
    """

    def cost(facility: jax.Array, location: jax.Array) -> jax.Array:
        return load(moved.costs, (facility, location))

    def delta(place: tables.Place, old: tables.Values) -> tables.Values:
        u, there, *_ = place
        v, here = load(moved.facility, there), load(moved.location, u)
        change = cost(u, there) + cost(v, here) - cost(u, here) - cost(v, there)
        if swap is not None:
            # What the swap adds to the four costs, each a product, is a product of differences.
            flow = map(jnp.subtract, swap.flows(problem, u), swap.flows(problem, v))
            distance = (swap.distances(problem, at) for at in (there, here))
            change = change + product(tuple(flow), tuple(map(jnp.subtract, *distance)))
        # The costs count the flows between u and v as if the other one did not move.
        flow = second_difference(problem, problem.flow, u, v)
        distance = second_difference(problem, problem.distance, here, there)
        change = change + floats.product(flow, distance)
        is_null = (u == v) | _is_fixed(problem, u, v)
        return (jnp.where(is_null, null_delta(change.dtype), change),)

    return delta


def _is_fixed(problem: QAP, u: jax.Array, v: jax.Array) -> jax.Array:
    """Returns whether facility `u` or `v` may not move."""
    if (is_free := problem.is_free) is None:
        return jnp.bool_(False)
    return (load(is_free, u) & load(is_free, v)) == 0
