"""The heuristic of the paper's evaluation: points on a grid move towards goals (its section 4)."""

import dataclasses
import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxopt_search.backends.memory import load, store
from jaxopt_search.successors import Aggregate, LocalHeuristic

EXTENT = 1024
"""Points and goals begin in a square of this many cells on a side."""


class Points(NamedTuple):
    """A state: where the points are, one for each variable.

    Attributes:
      x, y: [V] int32.
    """

    x: jax.Array
    y: jax.Array


class Goals(NamedTuple):
    """A problem: where the points are to go. Those of variable v are from `v * load` on.

    Attributes:
      x, y: [V * load] int32.
    """

    x: jax.Array
    y: jax.Array


@functools.cache
def division_by(side: int) -> tuple[int, int]:
    """Returns (factor, shift): `cell * factor >> shift` is `cell // side`, below `side * side`.

    Products are below 2**31.

    Raises:
      ValueError: if there are no such numbers.
    """
    cells = np.arange(side * side, dtype=np.int64)
    for shift in range(31):
        factor = (1 << shift) // side + 1
        if cells[-1] * factor < 2**31 and np.array_equal(cells * factor >> shift, cells // side):
            return factor, shift
    raise ValueError(f"side is {side}, which is too large")


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True, kw_only=True)
class Nearer(LocalHeuristic):
    """A point goes to another cell of the window around it, the likelier the nearer to its goals.

    Possibilities are the cells of a square of odd side, row by row, but for the point's own in the
    middle. One is rated by the sum of its Manhattan distances to the goals of the point, each of
    which is computed; its weight is the highest rating there is, minus its own, plus 1. The grid
    has no border.

    Attributes:
      num_variables: points of a state.
      side: cells on a side of the window, odd.
      load: goals of a point.
      in_floats: whether distances are added up as float32, which a GPU does twice as fast. They are
        whole numbers below 2**23, so nothing is rounded. Ratings are then the bits of 2**23 plus
        the sum: all of them have the same number on top, and weights do not change.
    """

    num_variables: int
    side: int
    load: int = 1
    in_floats: bool = False

    aggregates = (Aggregate(jnp.maximum, np.int32(0)),)
    is_portable = True

    @property
    def max_possibilities(self) -> int:
        return self.side * self.side - 1

    @property
    def max_weight(self) -> int:
        # Two cells of a window are at most this much nearer to a goal, one than the other.
        return 2 * (self.side - 1) * self.load + 1

    def rate(self, problem: Goals, state: Points, variable: jax.Array, possibility: jax.Array):
        row, column = self._place(possibility)
        left, top = self._corner(state, variable)
        if self.in_floats:
            row, column, rating = _above_2_23(row), _above_2_23(column), _2_23
        else:
            rating = jnp.int32(0)
        for k in range(self.load):
            goal = variable * self.load + k
            right, down = left - load(problem.x, goal), top - load(problem.y, goal)
            if self.in_floats:
                right, down = (one.astype(jnp.float32) - _2_23 for one in (right, down))
            rating = rating + jnp.abs(column + right) + jnp.abs(row + down)
        return lax.bitcast_convert_type(rating, jnp.int32) if self.in_floats else rating

    def weight(self, problem: Goals, rating: jax.Array, aggregates: tuple[jax.Array, ...]):
        (highest,) = aggregates
        return (highest + 1) - rating

    def assign(
        self,
        problem: Goals,
        state: Points,
        variable: jax.Array,
        possibility: jax.Array,
        where: jax.Array,
    ) -> Points:
        row, column = self._place(possibility)
        left, top = self._corner(state, variable)
        return Points(
            store(state.x, variable, left + column, where),
            store(state.y, variable, top + row, where),
        )

    def _place(self, possibility: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Returns the row and the column of a cell in the window."""
        factor, shift = division_by(self.side)
        cell = possibility + (possibility >= self.max_possibilities // 2).astype(jnp.int32)
        row = (cell * factor) >> shift
        return row, cell - row * self.side

    def _corner(self, state: Points, variable: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Returns the cell at the corner of the window from which places are counted."""
        half = self.side // 2
        return load(state.x, variable) - half, load(state.y, variable) - half


_2_23 = np.float32(2**23)
_BITS = int(_2_23.view(np.int32))


def _above_2_23(number: jax.Array) -> jax.Array:
    """Returns 2**23 + number as float32: the bits of the number are the bits of the fraction.

    A GPU takes several times longer for a conversion.
    """
    return lax.bitcast_convert_type(number | _BITS, jnp.float32)


def start(states: int, heuristic: Nearer, seed: int = 0) -> tuple[Goals, Points]:
    """Returns random goals and points, as NumPy arrays.

    Returns:
      Goals, and points with leaves [states, V].
    """
    rng, num = np.random.default_rng(seed), heuristic.num_variables
    goals = rng.integers(0, EXTENT, (2, num * heuristic.load), np.int32)
    points = rng.integers(0, EXTENT, (2, states, num), np.int32)
    return Goals(*goals), Points(*points)
