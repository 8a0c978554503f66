"""Swaps of a QAP with the deltas of all of them in a table, brought up to date after each swap."""

import dataclasses
import functools
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp

from jaxopt_search.checks import check_suits
from jaxopt_search.neighborhoods.swap import Positions, Swap
from jaxopt_search.portable import floats, memory, tables
from jaxopt_search.portable.memory import load, store
from jaxopt_search.problems import permutation
from jaxopt_search.problems.qap.problem import QAP
from jaxopt_search.types import null_delta


class SwapDeltas(NamedTuple):
    """An assignment and what its swaps would change. A snapshot has the first field only.

    Attributes:
      location: [n] int32, the location of each facility: the assignment.
      facility: [n] int32, the facility at each location.
      deltas: [n, n], at (facility, location) the delta if that facility went there and the one
        that is there came here; `null_delta` where it is there itself.
      costs: [n, n], at (facility, location) the cost of the facility's flows if it were there and
        all others, and once more itself, where they are.
    """

    location: jax.Array
    facility: Any
    deltas: Any
    costs: Any


_Parts: TypeAlias = tuple[jax.Array, ...]
"""Flows that leave and flows that come, or distances; of symmetric matrices flows both ways."""


class _Swap(NamedTuple):
    """Facilities r and s leave locations a and b for one another's, if `is_made` holds."""

    r: jax.Array
    s: jax.Array
    a: jax.Array
    b: jax.Array
    is_made: jax.Array

    def flows(self, problem: QAP, u: jax.Array) -> _Parts:
        """Returns the flows between facility `u` and r less those between `u` and s.

        0 if the exchange is not made.
        """
        parts = _differences(problem, problem.flow, (self.r, self.s), u)
        parts = tuple(jnp.where(self.is_made, part, jnp.zeros_like(part)) for part in parts)
        return tuple(2 * part for part in parts) if problem.is_symmetric else parts

    def distances(self, problem: QAP, place: jax.Array) -> _Parts:
        """Returns how much farther from `place` r is than before."""
        return _differences(problem, problem.distance, (self.b, self.a), place)


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class SwapTable:
    """All n (n - 1) / 2 swaps of a QAP; O(1) a price, O(n * n) a swap that is made.

    Its deltas change in O(1) each if they belong to other facilities than those that were swapped
    (Frieze, Yadegar, El-Horbaty, Parkinson, "Algorithms for assignment problems on an array
    processor", 1989; Taillard, "Robust taboo search for the quadratic assignment problem", 1991).
    The others took O(n) each; with a second table, which changes in O(1) per entry, they do not.

    In tables, rows are facilities, columns are locations, and each swap has two entries.
    """

    num_words = 2
    is_portable = True
    space = "permutation"

    def init(self, problem: QAP, solution: jax.Array) -> SwapDeltas:
        check_suits("SwapTable", "a QAP", problem, isinstance(problem, QAP))
        n = problem.n
        facility = permutation.inverse(solution)
        flow, distance = problem.flow.reshape(n, n), problem.distance.reshape(n, n)
        costs = floats.matmul(flow, distance[:, solution].T)
        costs = costs + floats.matmul(flow.T, distance[solution])
        moved = SwapDeltas(solution, facility, costs, costs)
        (deltas,) = tables.update((n, n), _from_costs(problem, moved), (costs,), jnp.bool_(True))
        return moved._replace(deltas=deltas)

    def solution(self, problem: QAP, snapshot: SwapDeltas) -> jax.Array:
        return snapshot.location

    def snapshot(self, representation: SwapDeltas) -> SwapDeltas:
        return SwapDeltas(representation.location, None, None, None)

    def propose(
        self, problem: QAP, representation: SwapDeltas, words: tuple[jax.Array, ...]
    ) -> Positions:
        return Swap().propose(problem, representation.location, words)

    def delta(self, problem: QAP, representation: SwapDeltas, move: Positions) -> jax.Array:
        location = load(representation.location, move.second)
        return load(representation.deltas, (move.first, location))

    def commit(
        self, problem: QAP, representation: SwapDeltas, move: Positions, accept: jax.Array
    ) -> SwapDeltas:
        moved, body, prepare = _make(problem, representation, move, accept)
        shape, both = self.shape(problem), (moved.deltas, moved.costs)
        deltas, costs = tables.update(shape, body, both, accept, prepare)
        return moved._replace(deltas=deltas, costs=costs)

    def commit_and_first(
        self,
        problem: QAP,
        representation: SwapDeltas,
        move: Positions,
        accept: jax.Array,
        rank: Any,
        others: Any,
    ) -> tuple[SwapDeltas, tables.First, Positions]:
        def keys_of(place: tables.Place, entries: tables.Values) -> Any:
            delta, _, *further = entries
            return rank(place.row * problem.n + place.column, delta, *further)

        moved, body, prepare = _make(problem, representation, move, accept)
        shape, both = self.shape(problem), (moved.deltas, moved.costs)
        both, found = tables.update_and_first(shape, body, keys_of, both, others, accept, prepare)
        moved = moved._replace(deltas=both[0], costs=both[1])
        return moved, found, _move_at(problem, moved, found.number)

    def num_warps(self, problem: QAP) -> int:
        return tables.num_warps(self.shape(problem))

    def num_moves(self, problem: QAP) -> int:
        return problem.num_free * (problem.num_free - 1) // 2

    def shape(self, problem: QAP) -> tuple[int, int]:
        return problem.n, problem.n

    def first(
        self, problem: QAP, representation: SwapDeltas, rank: Any, others: Any
    ) -> tuple[tables.First, Positions]:
        def keys_of(place: tables.Place, entries: tables.Values) -> Any:
            return rank(place.row * problem.n + place.column, *entries)

        found = tables.first(self.shape(problem), keys_of, (representation.deltas, *others))
        return found, _move_at(problem, representation, found.number)

    def undone(
        self, problem: QAP, representation: SwapDeltas, move: Positions
    ) -> tuple[tuple[jax.Array, jax.Array], ...]:
        return tuple((u, load(representation.location, u)) for u in move)


class _Facility(NamedTuple):
    """What a swap of r and s changes about a facility, and its deltas with those two."""

    flow: _Parts
    distance: _Parts
    with_r: jax.Array
    with_s: jax.Array


class _Location(NamedTuple):
    """What it changes about a location, and the facility that is there."""

    facility: jax.Array
    flow: _Parts
    distance: _Parts


def _move_at(problem: QAP, representation: SwapDeltas, number: jax.Array) -> Positions:
    u, place = number // problem.n, number % problem.n
    return Positions(u, load(representation.facility, place))


def _make(
    problem: QAP, representation: SwapDeltas, move: Positions, accept: jax.Array
) -> tuple[SwapDeltas, tables.Body, tables.Prepare]:
    """Returns the representation after a swap, of which the rest of the tables is to be updated.

    Besides, what does that: it maps deltas and costs to new ones.
    """
    n, (location, facility, deltas, costs) = problem.n, representation
    r, s = move
    swap = _Swap(r, s, load(location, r), load(location, s), accept)
    memory.barrier()
    location = store(store(location, r, swap.b, accept), s, swap.a, accept)
    facility = store(store(facility, swap.b, r, accept), swap.a, s, accept)
    memory.barrier()
    # XLA copies a table if it changes it in a pass and reads it before, at other entries.
    in_one_pass = memory.is_in_kernel()
    if not in_one_pass:
        costs = _update_costs(problem, costs, swap)
    moved = SwapDeltas(location, facility, deltas, costs)
    fresh = _from_costs(problem, moved, swap if in_one_pass else None)
    for u in (r, s):
        (deltas,) = tables.update_row(u, n, fresh, (deltas,), accept)
    memory.barrier()

    at_r, at_s = load(location, r), load(location, s)

    def of_facility(u: jax.Array) -> _Facility:
        here = load(location, u)
        return _Facility(
            swap.flows(problem, u),
            swap.distances(problem, here),
            with_r=load(deltas, (r, here)),
            with_s=load(deltas, (s, here)),
        )

    def of_location(place: jax.Array) -> _Location:
        v = load(facility, place)
        return _Location(v, swap.flows(problem, v), swap.distances(problem, place))

    def change(place: tables.Place, old: tables.Values) -> tables.Values:
        u, location, here, there = place
        cost = old[1] + _product(here.flow, there.distance) if in_one_pass else old[1]
        flow = tuple(map(jnp.subtract, here.flow, there.flow))
        distance = tuple(map(jnp.subtract, there.distance, here.distance))
        delta = old[0] + _product(flow, distance)
        delta = jnp.where(location == at_r, here.with_r, delta)
        delta = jnp.where(location == at_s, here.with_s, delta)
        stays = (u == r) | (u == s) | _is_fixed(problem, u, there.facility)
        return jnp.where(stays, old[0], delta), cost

    return moved._replace(deltas=deltas), change, tables.Prepare(of_facility, of_location)


def _update_costs(problem: QAP, costs: Any, swap: _Swap) -> Any:
    """Returns the costs of all facilities everywhere after a swap."""
    prepare = tables.Prepare(
        lambda u: swap.flows(problem, u), lambda place: swap.distances(problem, place)
    )

    def change(place: tables.Place, old: tables.Values) -> tables.Values:
        return (old[0] + _product(place.here, place.there),)

    return tables.update((problem.n, problem.n), change, (costs,), swap.is_made, prepare)[0]


def _from_costs(problem: QAP, moved: SwapDeltas, swap: _Swap | None = None) -> tables.Body:
    """Returns what computes deltas from the other fields of `moved`, in O(1) each.

    Args:
      swap: if given, the costs are those before it.
    """

    def costs(facility: jax.Array, location: jax.Array) -> jax.Array:
        cost = load(moved.costs, (facility, location))
        if swap is None:
            return cost
        return cost + _product(swap.flows(problem, facility), swap.distances(problem, location))

    def delta(place: tables.Place, old: tables.Values) -> tables.Values:
        u, there, *_ = place
        v, here = load(moved.facility, there), load(moved.location, u)
        change = costs(u, there) + costs(v, here) - costs(u, here) - costs(v, there)
        # The costs count the flows between u and v as if the other one stayed, and came too.
        flow = _second_difference(problem, problem.flow, u, v)
        distance = _second_difference(problem, problem.distance, here, there)
        change = change + floats.product(flow, distance)
        is_null = (u == v) | _is_fixed(problem, u, v)
        return (jnp.where(is_null, null_delta(change.dtype), change),)

    return delta


def _is_fixed(problem: QAP, u: jax.Array, v: jax.Array) -> jax.Array:
    """Returns whether facility `u` or `v` may not move."""
    if (is_free := problem.is_free) is None:
        return jnp.bool_(False)
    return (load(is_free, u) & load(is_free, v)) == 0


def _differences(
    problem: QAP, matrix: Any, pair: tuple[jax.Array, jax.Array], k: jax.Array
) -> _Parts:
    """Returns the entry for the first of `pair` less that for the second, in row and column `k`.

    The row alone where matrices are symmetric.
    """
    n, (i, j) = problem.n, pair
    coming = load(matrix, i * n + k) - load(matrix, j * n + k)
    if problem.is_symmetric:
        return (coming,)
    return load(matrix, k * n + i) - load(matrix, k * n + j), coming


def _product(flow: _Parts, distance: _Parts) -> jax.Array:
    return functools.reduce(jnp.add, map(floats.product, flow, distance))


def _second_difference(problem: QAP, matrix: Any, i: jax.Array, j: jax.Array) -> jax.Array:
    def entry(i: jax.Array, j: jax.Array) -> jax.Array:
        return load(matrix, i * problem.n + j)

    return entry(i, i) + entry(j, j) - entry(i, j) - entry(j, i)
