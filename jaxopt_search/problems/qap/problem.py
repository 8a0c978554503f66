"""The quadratic assignment problem: n facilities to n locations, large flows to short distances.

Introduced by Koopmans and Beckmann, "Assignment problems and the location of economic activities",
Econometrica 25 (1957). Integer instances have exact int32 costs on the device, other instances
float32 ones. `build` builds instances.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxopt_search.backends import floats, loops
from jaxopt_search.backends.memory import load
from jaxopt_search.backends.rows import Block
from jaxopt_search.problems import lower_bounds, padding, permutation
from jaxopt_search.problems.host import SAME, Original, Units
from jaxopt_search.problems.matrix_input import on_device
from jaxopt_search.pytrees import pytree, static

Parts: TypeAlias = tuple[jax.Array, ...]
"""Flows that leave and flows that come, or distances; of symmetric matrices flows both ways."""

_PERTURBED_FACILITIES = 4


@pytree
@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class QAP(padding.SizedProblem):
    """A QAP instance on the device. Build it with `qap` or `qap_from_instance`.

    A solution is an assignment, [capacity] int32: the location of each facility, a permutation.
    Its cost is the sum of `flow[i, j] * distance[assignment[i], assignment[j]]`. Matrices may be
    asymmetric, with nonzero diagonals and negative entries.

    Attributes:
      flow: [capacity * capacity] from facility to facility, int32 or float32, row by row of n.
      distance: [capacity * capacity] from location to location, likewise, of the same dtype.
      offset: [] of this dtype, what `device_cost` leaves out so that all costs fit int32; mostly 0.
        It is modulo 2**32; `units` has it in full.
      assignment: [capacity] int32, a permutation, with the fixed facilities where they belong; None
        if nothing is fixed.
      free: the facilities that may move, [m] int32, ascending; None for all. Where there is room
        for more facilities, [capacity] int32, these and then all others.
      is_free: [capacity] int32, 1 for these and 0 for the others; None if all may move.
      num_first: [] int32, how many first ones of `free` may move, where there is room for more.
      num_entries: [] int32 the number of facilities, if there is room for more (see `padding`).
      capacity: the length of solutions: the number of facilities, or more.
      is_symmetric: whether both matrices are.
      device_units: how `device_cost` counts.
      host: the instance as it was given.
    """

    flow: jax.Array = dataclasses.field(repr=False)
    distance: jax.Array = dataclasses.field(repr=False)
    offset: jax.Array = dataclasses.field(repr=False)
    assignment: jax.Array | None = dataclasses.field(default=None, repr=False)
    free: jax.Array | None = dataclasses.field(default=None, repr=False)
    is_free: jax.Array | None = dataclasses.field(default=None, repr=False)
    num_first: jax.Array | None = None
    num_entries: jax.Array | None = None
    capacity: int = static()
    is_symmetric: bool = static()
    device_units: Units = static(default=SAME)
    host: Original = static(repr=False)

    @property
    def is_trivial(self) -> bool:
        """Whether there is only one assignment."""
        return int(self.num_free) <= 1

    @property
    def num_free(self) -> Any:
        """How many facilities may move, as `n` counts."""
        if self.free is None:
            return self.n
        return self.free.shape[0] if self.num_first is None else self.num_first

    def fields_with_room(self, capacity: int) -> dict[str, Any]:
        matrices = {"flow": self.flow, "distance": self.distance}
        fields = padding.put_with_room(matrices, capacity**2)
        if self.free is None:
            return fields
        free = np.asarray(self.free)
        fixed = np.setdiff1d(np.arange(capacity, dtype=free.dtype), free)
        return fields | {
            "assignment": jax.device_put(padding.filled(np.asarray(self.assignment), capacity)),
            "free": jax.device_put(np.concatenate([free, fixed])),
            "is_free": padding.put_with_room(self.is_free, capacity),
            "num_first": on_device(len(free), np.int32),
        }

    def matrices_on_host(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns flow and distance as on the device, [n, n]."""
        n = int(self.n)
        flow, distance = (np.asarray(each)[: n * n] for each in (self.flow, self.distance))
        return flow.reshape(n, n), distance.reshape(n, n)

    def free_on_host(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns the facilities that may move, [m], and where all may be that are fixed, [n]."""
        n = int(self.n)
        if self.free is None:
            return np.arange(n, dtype=np.int32), np.arange(n, dtype=np.int32)
        assignment, free = np.asarray(self.assignment), np.asarray(self.free)
        return free[: int(self.num_free)], assignment[:n].copy()

    def init(self, key: jax.Array) -> jax.Array:
        """Returns a random assignment, [capacity] int32: the location of each facility."""
        order = self._order(key)
        if self.assignment is None:
            return order
        return self.assignment.at[self.free].set(self.assignment[self.free][order])

    def _order(self, key: jax.Array) -> jax.Array:
        """Returns a random permutation of the places in `free`; those behind stay."""
        room = self.capacity if self.free is None else self.free.shape[0]
        return permutation.random_permutation(key, room, self.num_free)

    def perturb(self, key: jax.Array, assignment: jax.Array) -> jax.Array:
        """Returns an assignment near `assignment`: a few random facilities change places."""
        facilities = self._order(key)[:_PERTURBED_FACILITIES]
        if self.free is not None:
            facilities = self.free[facilities]
        place, number = lax.iota(jnp.int32, facilities.shape[0]), self.num_free
        before = jnp.where(place == 0, jnp.minimum(number, place.size) - 1, place - 1)
        locations = assignment[facilities]
        moved = jnp.where(place < number, locations[before], locations)
        return assignment.at[facilities].set(moved)

    def lower_bound(self) -> int | float | None:
        """Returns a cost that no assignment is below, if up to 200 facilities may move."""
        free, assignment = self.free_on_host()
        if len(free) > lower_bounds.MOST_FACILITIES:
            return None
        flow, distance = self.matrices_on_host()
        fixed = np.setdiff1d(np.arange(len(flow)), free)
        bound = lower_bounds.of_assignments(flow, distance, fixed, assignment[fixed])
        return bound * self.host.unit  # what the device leaves out is in these matrices

    def picture(self, assignment: np.ndarray) -> Callable[[Any], Any]:
        from jaxopt_search.results import plotting

        own = self.host.own(self.host.check(assignment, "assignment"))
        (flow, distance), number = self.matrices_on_host(), len(own)
        flow, distance = flow[:number, :number], distance[np.ix_(own, own)]
        return functools.partial(plotting.plot_assignment, flow, distance, np.arange(number))

    def device_cost(self, assignment: jax.Array) -> jax.Array:
        """Returns the cost in the device's units, less `offset`; mostly the same as `cost`.

        The sum is over all i and j, the diagonal included: O(n * n). Integers may wrap on the way;
        the result is exact.

        Returns:
          [] int32 or float32.
        """
        if self.num_entries is None:
            between = load(self.distance, assignment[:, None] * self.n + assignment[None, :])
            return floats.total(floats.product(self.flow, between.ravel())) - self.offset
        # Entry by entry, as the matrices stand, so that floats are summed in the same order.
        place = lax.iota(jnp.int32, self.flow.shape[0])
        is_real = place < self.n * self.n
        place = jnp.where(is_real, place, 0)
        first = load(assignment, lax.div(place, self.n))
        second = load(assignment, lax.rem(place, self.n))
        terms = floats.product(self.flow, load(self.distance, first * self.n + second))
        return floats.total(jnp.where(is_real, terms, jnp.zeros_like(terms))) - self.offset

    def row_costs(self, block: Block, assignments: Any) -> jax.Array:
        """Returns the costs of several assignments, [R]; portable.

        Args:
          block: of rows of the table.
          assignments: [P, capacity] int32 buffer, a table of assignments by facilities.
        """
        locations = [tile.get(assignments) for tile in block.tiles]

        def add(k: jax.Array, totals: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
            terms = []
            for tile, location in zip(block.tiles, locations, strict=True):
                here = tile.get_column(assignments, k)
                flow = load(self.flow, k * self.n + tile.column)
                distance = load(self.distance, here * self.n + location)
                terms.append(floats.product(flow, distance))
            return tuple(map(jnp.add, totals, terms))

        start = tuple(jnp.zeros_like(location, self.flow.dtype) for location in locations)
        totals = loops.fori_loop(0, self.n, add, start)
        if self.num_entries is not None:
            pairs = zip(block.tiles, totals, strict=True)
            totals = [jnp.where(tile.column < self.n, sums, 0) for tile, sums in pairs]
        return block.sums(totals) - self.offset

    def swap_delta(self, assignment: jax.Array, r: jax.Array, s: jax.Array) -> jax.Array:
        """Returns the change in cost if facilities `r` and `s` exchange their locations; portable.

        O(n) from scratch (Burkard and Rendl, "A thermodynamically motivated simulation procedure
        for combinatorial optimization problems", EJOR 17, 1984; for asymmetric matrices and
        diagonals Taillard, "Robust taboo search for the quadratic assignment problem", Parallel
        Computing 17, 1991). Where both matrices are symmetric, half of it is computed.

        Args:
          assignment: [capacity] int32.
          r: int32 facilities, a scalar or [M].
          s: int32 facilities, of the shape of `r`. Where it equals `r`, the delta is 0.

        Returns:
          The delta, of the shape of `r`, with the dtype of `flow`.
        """
        a, b, times = load(assignment, r), load(assignment, s), floats.product

        def flow(i: jax.Array, j: jax.Array) -> jax.Array:
            return load(self.flow, i * self.n + j)

        def distance(i: jax.Array, j: jax.Array) -> jax.Array:
            return load(self.distance, i * self.n + j)

        def add_facility(k: jax.Array, total: jax.Array) -> jax.Array:
            c = load(assignment, k)
            term = times(flow(r, k) - flow(s, k), distance(b, c) - distance(a, c))
            if not self.is_symmetric:
                term = term + times(flow(k, r) - flow(k, s), distance(c, b) - distance(c, a))
            return total + jnp.where((k == r) | (k == s), jnp.zeros_like(term), term)

        own = times(flow(r, r) - flow(s, s), distance(b, b) - distance(a, a))
        others = loops.fori_loop(0, self.n, add_facility, jnp.zeros_like(own))
        if self.is_symmetric:
            return own + others + others
        return own + others + times(flow(r, s) - flow(s, r), distance(b, a) - distance(a, b))


def square(problem: QAP, matrix: jax.Array) -> jax.Array:
    """Returns a matrix as [capacity, capacity], with zeros from n on."""
    n, size = problem.n, problem.capacity
    if problem.num_entries is None:
        return matrix.reshape(n, n)
    row, column = (lax.broadcasted_iota(jnp.int32, (size, size), axis) for axis in (0, 1))
    entry = load(matrix, row * n + column)
    return jnp.where((row < n) & (column < n), entry, jnp.zeros_like(entry))


def differences(
    problem: QAP, matrix: Any, pair: tuple[jax.Array, jax.Array], k: jax.Array
) -> Parts:
    """Returns the entry of the first of `pair` minus the second's, in column and row `k`.

    Where matrices are symmetric, one of the two.
    """
    n, (i, j) = problem.n, pair
    coming = load(matrix, i * n + k) - load(matrix, j * n + k)
    if problem.is_symmetric:
        return (coming,)
    return load(matrix, k * n + i) - load(matrix, k * n + j), coming


def product(flow: Parts, distance: Parts) -> jax.Array:
    """Returns the sum of flows times distances."""
    return functools.reduce(jnp.add, map(floats.product, flow, distance))


def second_difference(problem: QAP, matrix: Any, i: jax.Array, j: jax.Array) -> jax.Array:
    """Returns the entries within `i` and `j` minus those between them."""

    def entry(i: jax.Array, j: jax.Array) -> jax.Array:
        return load(matrix, i * problem.n + j)

    return entry(i, i) + entry(j, j) - entry(i, j) - entry(j, i)
