"""Swaps of a QAP with the deltas of all of them in a table, brought up to date after each swap."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search import memory, tables
from jaxopt_search.memory import load, store
from jaxopt_search.neighborhoods.swap import Positions, Swap
from jaxopt_search.problems.qap import QAP
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


class _Both(NamedTuple):
    """What belongs to flows from a facility, and to flows to it."""

    leaving: jax.Array
    coming: jax.Array


class _Exchange(NamedTuple):
    """Facilities r and s leave locations a and b for one another's."""

    r: jax.Array
    s: jax.Array
    a: jax.Array
    b: jax.Array

    def flows(self, problem: QAP, u: jax.Array) -> _Both:
        """Returns the flows between facility `u` and r less those between `u` and s."""
        return _differences(problem, problem.flow, (self.r, self.s), u)

    def distances(self, problem: QAP, place: jax.Array) -> _Both:
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

    def init(self, problem: QAP, solution: jax.Array) -> SwapDeltas:
        n = problem.n
        facility = jnp.zeros_like(solution).at[solution].set(lax.iota(jnp.int32, n))
        flow, distance = problem.flow.reshape(n, n), problem.distance.reshape(n, n)

        def add_flow(k: jax.Array, costs: jax.Array) -> jax.Array:
            leaving = flow[:, k, None] * distance[:, solution[k]][None]
            return costs + leaving + flow[k][:, None] * distance[solution[k]][None]

        costs = lax.fori_loop(0, n, add_flow, jnp.zeros_like(flow))
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
        location, facility, deltas, costs = representation
        r, s = move
        a, b = load(location, r), load(location, s)
        swap = _Exchange(r, s, a, b)
        costs = _update_costs(problem, costs, swap, accept)
        memory.barrier()
        location = store(store(location, r, b, accept), s, a, accept)
        facility = store(store(facility, b, r, accept), a, s, accept)
        memory.barrier()
        moved = SwapDeltas(location, facility, deltas, costs)
        return moved._replace(deltas=_update_deltas(problem, moved, swap, accept))

    def num_moves(self, problem: QAP) -> int:
        return problem.num_free * (problem.num_free - 1) // 2

    def shape(self, problem: QAP) -> tuple[int, int]:
        return problem.n, problem.n

    def first(
        self, problem: QAP, representation: SwapDeltas, rank: Any, others: Any
    ) -> tuple[tables.First, Positions]:
        def keys_of(u: jax.Array, place: jax.Array, _: None, entries: tables.Values) -> Any:
            return rank(u * problem.n + place, *entries)

        found = tables.first(self.shape(problem), keys_of, (representation.deltas, *others))
        u, place = found.number // problem.n, found.number % problem.n
        return found, Positions(u, load(representation.facility, place))

    def undone(
        self, problem: QAP, representation: SwapDeltas, move: Positions
    ) -> tuple[tuple[jax.Array, jax.Array], ...]:
        return tuple((u, load(representation.location, u)) for u in move)


def _update_costs(problem: QAP, costs: Any, swap: _Exchange, accept: jax.Array) -> Any:
    """Returns the costs of all facilities everywhere after a swap."""

    def change(u: jax.Array, place: jax.Array, far: _Both, old: tables.Values) -> tables.Values:
        return (old[0] + _product(swap.flows(problem, u), far),)

    def far(place: jax.Array) -> _Both:
        return swap.distances(problem, place)

    return tables.update((problem.n, problem.n), change, (costs,), accept, far)[0]


def _update_deltas(problem: QAP, moved: SwapDeltas, swap: _Exchange, accept: jax.Array) -> Any:
    """Returns the deltas after a swap, of which `moved` has all but them."""
    n, (r, s, a, b) = problem.n, swap
    deltas = moved.deltas
    for u in (r, s):
        (deltas,) = tables.update_row(u, n, _from_costs(problem, moved), (deltas,), accept)
    memory.barrier()

    def there(place: jax.Array) -> tuple[_Both, _Both]:
        return swap.flows(problem, load(moved.facility, place)), swap.distances(problem, place)

    def change(
        u: jax.Array, place: jax.Array, there: tuple[_Both, _Both], old: tables.Values
    ) -> tables.Values:
        here = load(moved.location, u)
        flow = jax.tree.map(jnp.subtract, swap.flows(problem, u), there[0])
        distance = jax.tree.map(jnp.subtract, there[1], swap.distances(problem, here))
        new = old[0] + _product(flow, distance)
        # A swap with r or s, whose rows are fresh.
        new = jnp.where(place == b, load(deltas, (r, here)), new)
        new = jnp.where(place == a, load(deltas, (s, here)), new)
        stays = (u == r) | (u == s) | _is_fixed(problem, u, load(moved.facility, place))
        return (jnp.where(stays, old[0], new),)

    return tables.update((n, n), change, (deltas,), accept, there)[0]


def _from_costs(problem: QAP, moved: SwapDeltas) -> tables.Body:
    """Returns what computes deltas from the other fields of `moved`, in O(1) each."""

    def costs(facility: jax.Array, location: jax.Array) -> jax.Array:
        return load(moved.costs, (facility, location))

    def delta(u: jax.Array, place: jax.Array, _: None, old: tables.Values) -> tables.Values:
        v, here = load(moved.facility, place), load(moved.location, u)
        change = costs(u, place) + costs(v, here) - costs(u, here) - costs(v, place)
        # The costs count the flows between u and v as if the other one stayed, and came too.
        flow = _second_difference(problem, problem.flow, u, v)
        change = change + flow * _second_difference(problem, problem.distance, here, place)
        is_null = (u == v) | _is_fixed(problem, u, v)
        return (jnp.where(is_null, null_delta(change.dtype), change),)

    return delta


def _is_fixed(problem: QAP, u: jax.Array, v: jax.Array) -> jax.Array:
    """Returns whether facility `u` or `v` may not move."""
    if problem.partial is None:
        return jnp.bool_(False)
    is_free = problem.partial.is_free
    return (load(is_free, u) & load(is_free, v)) == 0


def _differences(
    problem: QAP, matrix: Any, pair: tuple[jax.Array, jax.Array], k: jax.Array
) -> _Both:
    """Returns the entry for the first of `pair` less that for the second, in row and column `k`."""
    n, (i, j) = problem.n, pair
    coming = load(matrix, i * n + k) - load(matrix, j * n + k)
    if problem.is_symmetric:
        return _Both(coming, coming)
    return _Both(load(matrix, k * n + i) - load(matrix, k * n + j), coming)


def _product(flow: _Both, distance: _Both) -> jax.Array:
    return flow.leaving * distance.leaving + flow.coming * distance.coming


def _second_difference(problem: QAP, matrix: Any, i: jax.Array, j: jax.Array) -> jax.Array:
    def entry(i: jax.Array, j: jax.Array) -> jax.Array:
        return load(matrix, i * problem.n + j)

    return entry(i, i) + entry(j, j) - entry(i, j) - entry(j, i)
