"""The quadratic assignment problem: n facilities to n locations, large flows to short distances.

Introduced by Koopmans and Beckmann, "Assignment problems and the location of economic activities",
Econometrica 25 (1957). Integer instances have exact int32 costs on the device, other instances
float32 ones. `build` builds instances.
"""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search.portable import floats
from jaxopt_search.portable.memory import load
from jaxopt_search.portable.rows import Block
from jaxopt_search.problems import permutation
from jaxopt_search.problems.host import Original
from jaxopt_search.pytrees import pytree

_PERTURBED_FACILITIES = 4


class Partial(NamedTuple):
    """The facilities that are fixed to locations.

    Attributes:
      assignment: [n] int32, a permutation, with the fixed facilities where they belong.
      free: [m] int32, as `QAP.free`.
      is_free: [n] int32, as `QAP.is_free`.
    """

    assignment: jax.Array
    free: jax.Array
    is_free: jax.Array


@functools.partial(
    pytree,
    data_fields=("flow", "distance", "offset", "partial"),
    meta_fields=("n", "is_symmetric", "host"),
)
@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class QAP:
    """A QAP instance on the device. Build it with `qap` or `qap_from_instance`.

    A solution is an assignment, [n] int32: the location of each facility, a permutation. Matrices
    may be asymmetric, with nonzero diagonals and negative entries.

    Attributes:
      flow: [n * n] from facility to facility, int32 or float32, row by row.
      distance: [n * n] from location to location, row by row, of the same dtype.
      offset: [] of this dtype, what `cost` leaves out so that all costs fit int32; mostly 0. It is
        modulo 2**32; `host` has it in full.
      partial: what is fixed, from which `free`, `is_free` and `num_free` follow; None if nothing.
      n: the number of facilities.
      is_symmetric: whether both matrices are.
      host: the instance as it was given.
    """

    flow: jax.Array = dataclasses.field(repr=False)
    distance: jax.Array = dataclasses.field(repr=False)
    offset: jax.Array = dataclasses.field(repr=False)
    partial: Partial | None = dataclasses.field(repr=False)
    n: int
    is_symmetric: bool
    host: Original = dataclasses.field(repr=False)

    space = "permutation"

    @property
    def is_trivial(self) -> bool:
        """Whether there is only one assignment."""
        return self.num_free <= 1

    @property
    def free(self) -> jax.Array | None:
        """The facilities that may move, [m] int32, ascending; None for all."""
        return None if self.partial is None else self.partial.free

    @property
    def is_free(self) -> jax.Array | None:
        """[n] int32, 1 for these facilities and 0 for the others; None if all may move."""
        return None if self.partial is None else self.partial.is_free

    @property
    def num_free(self) -> int:
        """How many facilities may move."""
        return self.n if self.free is None else self.free.shape[0]

    def init(self, key: jax.Array) -> jax.Array:
        """Returns a random assignment, [n] int32: the location of each facility."""
        order = permutation.random_permutation(key, self.num_free)
        if self.partial is None:
            return order
        assignment, free, _ = self.partial
        return assignment.at[free].set(assignment[free][order])

    def perturb(self, key: jax.Array, assignment: jax.Array) -> jax.Array:
        """Returns an assignment near `assignment`: a few random facilities change places."""
        facilities = permutation.random_permutation(key, self.num_free)[:_PERTURBED_FACILITIES]
        if self.free is not None:
            facilities = self.free[facilities]
        return assignment.at[facilities].set(jnp.roll(assignment[facilities], 1))

    def cost(self, assignment: jax.Array) -> jax.Array:
        """Returns the sum of `flow[i, j] * distance[assignment[i], assignment[j]]`, less `offset`.

        In the device's units; `host.in_full` turns it into the user's, which are mostly the same.
        The sum is over all i and j, the diagonal included: O(n * n). Integers may wrap on the way;
        the result is exact.

        Returns:
          [] int32 or float32.
        """
        between = load(self.distance, assignment[:, None] * self.n + assignment[None, :])
        return floats.total(floats.product(self.flow, between.ravel())) - self.offset

    def row_costs(self, block: Block, assignments: Any) -> jax.Array:
        """Returns the costs of several assignments, [R]; portable.

        Args:
          block: of rows of the table.
          assignments: [P, n] int32 buffer, a table of assignments by facilities.
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
        return block.sums(lax.fori_loop(0, self.n, add, start)) - self.offset

    def swap_delta(self, assignment: jax.Array, r: jax.Array, s: jax.Array) -> jax.Array:
        """Returns the change in cost if facilities `r` and `s` exchange their locations; portable.

        O(n) from scratch (Burkard and Rendl, "A thermodynamically motivated simulation procedure
        for combinatorial optimization problems", EJOR 17, 1984; for asymmetric matrices and
        diagonals Taillard, "Robust taboo search for the quadratic assignment problem", Parallel
        Computing 17, 1991). Where both matrices are symmetric, half of it is computed.

        Args:
          assignment: [n] int32.
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
        others = lax.fori_loop(0, self.n, add_facility, jnp.zeros_like(own))
        if self.is_symmetric:
            return own + others + others
        return own + others + times(flow(r, s) - flow(s, r), distance(b, a) - distance(a, b))
