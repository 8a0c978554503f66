"""N-Queens: n queens on an n x n board, one in each row and column, of which none attack another.

The cost is the number of pairs that attack each other along a diagonal, 0 for a valid placement.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxopt_search.backends import memory, random
from jaxopt_search.backends.memory import load
from jaxopt_search.checks import MAX_INT32, check_count, check_permutation
from jaxopt_search.problems import padding
from jaxopt_search.problems.host import Original
from jaxopt_search.problems.queens.attacks import Scheme, histogram, scheme
from jaxopt_search.pytrees import pytree, static

MAX_QUEENS = 2**29
"""Diagonals are numbered in int32."""


@pytree
@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class NQueens(padding.SizedProblem):
    """The placements of n queens as permutations. Build it with `nqueens`.

    A solution is [capacity] int32: the column of the queen in each row.

    Attributes:
      capacity: the length of solutions: the number of queens, or more.
      evaluation: the scheme by which `cost` counts, one of `evaluation.SCHEMES`.
      count: that scheme, as `evaluation.scheme` returns it; None where there is room for more.
      num_entries: [] int32 the number of queens, if there is room for more (see `padding`).
      host: the host's part.
    """

    capacity: int = static()
    evaluation: str = static()
    count: Scheme | None = dataclasses.field(repr=False)
    num_entries: jax.Array | None = None
    host: Original = static(repr=False)

    @property
    def is_trivial(self) -> bool:
        """Whether there is one placement only."""
        return int(self.n) == 1

    def fields_with_room(self, capacity: int) -> dict[str, Any]:
        check_count("capacity", capacity, self.capacity, MAX_QUEENS)
        if self.evaluation != "histogram":
            raise ValueError(
                f"evaluation is {self.evaluation!r}, expected 'histogram': no other scheme leaves"
                " out what is no queen"
            )
        return {"count": None}

    def picture(self, queens: np.ndarray) -> Callable[[Any], Any]:
        from jaxopt_search.results import plotting

        return functools.partial(plotting.plot_board, queens, attacks=True)

    def device_cost(self, queens: jax.Array) -> jax.Array:
        """Returns the number of attacking pairs, [] int32, if it is below 2**31."""
        count = self.count or functools.partial(histogram, num_entries=self.num_entries)
        return count(queens).low.astype(jnp.int32)


def nqueens(n: int, evaluation: str = "histogram", **options: int | None) -> NQueens:
    """Returns the problem of n queens.

    Args:
      n: queens, up to 2**29.
      evaluation: how placements are evaluated in full, one of `evaluation.SCHEMES`.
      options: of the scheme, as in `evaluation.scheme`.

    Raises:
      ValueError: if `n`, `evaluation` or an option is out of range.
      MemoryError: as `evaluation.scheme`.

    Example:
      >>> problem = nqueens(4)
      >>> int(problem.cost(jax.numpy.array([1, 3, 0, 2])))
      0
    """
    n = check_count("n", n, 1, MAX_QUEENS)
    count = scheme(evaluation, n, **options)
    # No best known cost: a gap to 0 tells nothing.
    host = Original(cost=count_on_host, check=functools.partial(_check_placement, n))
    return NQueens(capacity=n, evaluation=evaluation, count=count, host=host)


def _check_placement(n: int, queens: Any, name: str) -> np.ndarray:
    checked = check_permutation(queens, name, n)
    # Random placements never reach the most.
    check_count(f"the number of attacking pairs of {name}", count_on_host(checked), 0, MAX_INT32)
    return checked


def count_on_host(queens: np.ndarray) -> int:
    """Returns the number of attacking pairs of [n] integers, as an exact `int`; with NumPy."""
    queens = np.asarray(queens)
    row = np.arange(len(queens))
    on = np.concatenate([np.bincount(queens + row), np.bincount(queens - row + len(queens))])
    return int(np.sum(on.astype(np.int64) * (on - 1) // 2))


def greedy_placement(
    key: jax.Array, n: Any, tries: int = 16, capacity: int | None = None
) -> jax.Array:
    """Returns a random placement of which few queens are attacked, [capacity] int32; to be vmapped.

    Row by row, a queen is put on the first of `tries` random free columns on which no queen before
    attacks it, else on any. Of 1000 queens some 40 are attacked in the end; of 1000 at random, some
    700.

    Source: the start of Sosic, Gu, "Efficient local search with conflict minimization: a case study
    of the n-queens problem", 1994, which has a limit of tries for all rows together.

    Args:
      key: [] a `jax.random.key`.
      n: queens, static; with `capacity` also [] int32.
      tries: static; more of them take longer and leave fewer queens attacked.
      capacity: static, the length of the placement, at least n, whose entries from n on are their
        numbers; None for n.

    Raises:
      TypeError: if `key` is no typed key.
      ValueError: if `n`, `capacity` or `tries` is out of range.

    Example:
      >>> import jaxopt_search as js
      >>> queens = greedy_placement(jax.random.key(0), 30)
      >>> sorted(queens.tolist()) == list(range(30)), js.attacking_pairs(queens) < 10
      (True, True)
    """
    if capacity is None:
        capacity = n = check_count("n", n, 1, MAX_QUEENS)
    least = n if isinstance(n, int) else 1
    capacity = check_count("capacity", capacity, least, MAX_QUEENS)
    tries = check_count("tries", tries)
    lane, data = lax.iota(jnp.int32, tries), random.data_of(key)

    def diagonals(row: jax.Array, column: jax.Array) -> tuple[jax.Array, jax.Array]:
        return column + row, column - row + 3 * capacity

    def place(row: jax.Array, state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        queens, is_taken = state
        counter = lane.astype(jnp.uint32), jnp.asarray(row, jnp.uint32)
        word, _ = random.threefry2x32((data[0], data[1]), counter)
        behind = row + random.below(word, n - row)  # what is behind a row are the free columns
        column = load(queens, behind)
        rising, falling = (load(is_taken, each) for each in diagonals(row, column))
        first = jnp.min(jnp.where(rising | falling, tries, lane))
        first = jnp.where(first < tries, first, 0)
        other, column = behind[first], column[first]
        # With one write for both diagonals, and at `row` one that is no scatter, it is faster.
        last = lax.dynamic_index_in_dim(queens, row, keepdims=False)
        queens = queens.at[other].set(last, **memory.IN_BOUNDS)
        queens = lax.dynamic_update_index_in_dim(queens, column, row, 0)
        places = jnp.stack(diagonals(row, column))
        return queens, is_taken.at[places].set(True, **memory.IN_BOUNDS)

    none = jnp.zeros(4 * capacity, bool)
    return lax.fori_loop(0, n, place, (lax.iota(jnp.int32, capacity), none))[0]


def hoffman(n: int) -> np.ndarray:
    """Returns the one placement that Hoffman's construction gives, [n] int32; for n = 1 and n >= 4.

    Source: Hoffman, Loessi, Moore, "Constructions for the solution of the m queens problem", 1969.

    Raises:
      ValueError: if `n` is 2 or 3, where no placement is valid, or out of range.

    Example:
      >>> hoffman(6).tolist()
      [1, 3, 5, 0, 2, 4]
    """
    n = check_count("n", n, 1, MAX_QUEENS)
    refuse_impossible(n)
    if n % 2:  # the main diagonal of the even ones is empty
        return np.append(hoffman(n - 1) if n > 1 else np.zeros(0, np.int32), np.int32(n - 1))
    row = np.arange(n // 2)
    if n % 6 != 2:
        first = 2 * row + 1
        return np.concatenate([first, first - 1]).astype(np.int32)
    upper = (n // 2 + 2 * row - 1) % n
    return np.concatenate([upper, n - 1 - upper[::-1]]).astype(np.int32)


def refuse_impossible(n: int) -> None:
    """Raises a `ValueError` for numbers of queens that have no valid placement."""
    if n in (2, 3):
        raise ValueError(f"n is {n}, expected 1 or at least 4: no placement of {n} queens is valid")
