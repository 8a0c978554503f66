"""Padded instances: arrays with room for more, so that one compiled program serves many sizes.

A padded problem has `capacity`, the static length of its solutions, and `num_entries`, [] int32 on
the device: the size of the instance. Its solutions are permutations of which only the first
`num_entries` entries ever change; entry i behind them is i. These are never drawn, priced or
summed, so that a search takes the same course whatever the capacity is.
"""

import abc
import dataclasses
import functools
from collections.abc import Callable
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from jaxopt_search.checks import check_count, check_shape
from jaxopt_search.problems import permutation
from jaxopt_search.problems.host import Original
from jaxopt_search.problems.matrix_input import on_device
from jaxopt_search.types import Problem

_LEAST, _LEAST_STEP = 16, 8


def capacity_for(n: int, per_doubling: int = 2) -> int:
    """Returns the least of few sizes that is at least n, from 16 up.

    Args:
      n: entries that there are.
      per_doubling: sizes from one power of two to the next, a power of two: the more, the less room
        is left.
    """
    power_below = 1 << max(n - 1, 1).bit_length() - 1
    step = max(power_below // per_doubling, _LEAST_STEP)
    return max(-(-n // step) * step, _LEAST)


def list_room(number: int) -> int:
    """Returns one of few lengths of lists, at least 1, from `number` to an eighth above it."""
    unit = 1 << max(number.bit_length() - 4, 0)
    return max(-(-number // unit) * unit, 1)


class SizedProblem(Problem):
    """A problem on permutations that may have room for more; a base class.

    Attributes:
      capacity: the length of solutions: the size of the instance, or more.
      num_entries: [] int32, that size, if there is room for more; else None.
      host: the instance as it was given.
    """

    space = "permutation"
    capacity: int
    num_entries: jax.Array | None
    host: Original

    @property
    def n(self) -> Any:
        """The size: a Python integer, or [] int32 where there is room for more."""
        return self.capacity if self.num_entries is None else self.num_entries

    def init(self, key: jax.Array) -> jax.Array:
        """Returns a random solution, [capacity] int32."""
        return permutation.random_permutation(key, self.capacity, self.num_entries)

    def perturb(self, key: jax.Array, solution: jax.Array) -> jax.Array:
        """Returns a solution nearby: two neighboring segments change places.

        On a tour this is a random double bridge.
        """
        return permutation.exchange_segments(key, solution, self.n)

    def cost(self, solution: jax.Array) -> jax.Array:
        """Returns the cost in full, of a problem that has a `device_cost` of its own.

        [] int32 or float32; float32 where neither holds all costs, see `host.Units`.

        Args:
          solution: [capacity] int32; or without the room, such as the one of a `Result`.
        """
        solution = jnp.asarray(solution)
        if self.num_entries is not None and solution.shape != (self.capacity,):
            if not isinstance(self.num_entries, Tracer):
                n = int(self.num_entries)
                # A path is told without the city that joins its ends.
                if self.host.as_given is None or solution.shape != (n - 1,):
                    check_shape(solution, "solution", (n,))
            solution = filled(solution, self.capacity)
        check_shape(solution, "solution", (self.capacity,))
        return self.cost_in_full(self.device_cost(solution))

    @abc.abstractmethod
    def fields_with_room(self, capacity: int) -> dict[str, Any]:
        """Returns the arrays of a problem with room for more, by the names of its fields."""

    def padded(self, capacity: int | None = None) -> Self:
        """Returns the same instance with room for more; its searches take the same course.

        Problems of equal capacity share their compiled programs, whatever their sizes.

        Args:
          capacity: the length of solutions, at least the size; None for the least of few sizes.

        Raises:
          ValueError: if the size is larger, or it is padded already; for `NQueens` also if its
            scheme is not `"histogram"`, as all others count what is no queen.
        """
        if self.num_entries is not None:
            raise ValueError("problem is padded already, expected one that is not")
        problem: Any = self
        n, host = self.capacity, problem.host
        room = capacity_for(n) if capacity is None else check_count("capacity", capacity, n, None)
        host = dataclasses.replace(
            host,
            cost=functools.partial(_of_own, host.cost, n),
            remaining=functools.partial(_of_own, host.remaining, n),
            check=functools.partial(_check_and_fill, host.check, n, room),
            num_entries=n,
        )
        size, arrays = on_device(n, np.int32), self.fields_with_room(room)
        return dataclasses.replace(problem, **arrays, num_entries=size, capacity=room, host=host)


def filled(values: Any, capacity: int) -> Any:
    """Returns [..., capacity] permutations from [..., n]: the entries behind are their numbers."""
    xp: Any = jnp if isinstance(values, jax.Array) else np
    rest = xp.arange(values.shape[-1], capacity, dtype=values.dtype)
    return xp.concatenate([values, xp.broadcast_to(rest, (*values.shape[:-1], len(rest)))], axis=-1)


def with_room(values: Any, capacity: int) -> np.ndarray:
    """Returns [capacity, ...] with zeros behind the first axis of [n, ...]."""
    values = np.asarray(values)
    more = np.zeros((capacity - len(values), *values.shape[1:]), values.dtype)
    return np.concatenate([values, more])


def put_with_room(arrays: Any, capacity: int) -> Any:
    """Returns a pytree of arrays as `with_room` returns them, on the device."""
    return jax.tree.map(lambda values: jax.device_put(with_room(values, capacity)), arrays)


def _of_own(fn: Callable[[np.ndarray], Any], n: int, solution: np.ndarray) -> Any:
    return fn(solution[:n])


def _check_and_fill(
    check: Callable[[Any, str], np.ndarray], n: int, capacity: int, values: Any, name: str
) -> np.ndarray:
    """Checks a start, of the instance or already filled, and returns it filled, [capacity]."""
    rest = np.arange(n, capacity)
    if np.shape(values) == (capacity,) and np.array_equal(np.asarray(values)[n:], rest):
        values = np.asarray(values)[:n]
    return filled(check(values, name), capacity)
