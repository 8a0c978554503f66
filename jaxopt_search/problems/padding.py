"""Padded instances: arrays with room for more, so that one compiled program serves many sizes.

A padded problem has `capacity`, the static length of its solutions, and `num_entries`, [] int32 on
the device: the size of the instance. Its solutions are permutations of which only the first
`num_entries` entries ever change; entry i behind them is i. What is behind is never drawn, priced
or summed, so that a search takes the same course whatever the capacity is.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from jaxopt_search.checks import check_count
from jaxopt_search.problems.host import Original

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


def check_capacity(n: int, capacity: Any) -> int:
    """Returns the room that a problem of n entries is to have; None stands for `capacity_for`."""
    return capacity_for(n) if capacity is None else check_count("capacity", capacity, n, None)


def number_on_device(n: int) -> jax.Array:
    """Returns the size of an instance as its problem has it, [] int32."""
    return jax.device_put(np.int32(n))  # unlike `asarray`, this compiles nothing


def filled(values: np.ndarray, capacity: int) -> np.ndarray:
    """Returns [..., capacity] permutations from [..., n]: the entries behind are their numbers."""
    n = values.shape[-1]
    rest = np.arange(n, capacity, dtype=values.dtype)
    return np.concatenate([values, np.broadcast_to(rest, (*values.shape[:-1], len(rest)))], axis=-1)


def with_room(values: np.ndarray, capacity: int) -> np.ndarray:
    """Returns [capacity, ...] with zeros behind the first axis of [n, ...]."""
    more = np.zeros((capacity - len(values), *values.shape[1:]), values.dtype)
    return np.concatenate([values, more])


def of_padded(host: Original, n: int, capacity: int) -> Original:
    """Returns what the host keeps of an instance of n entries that is padded."""
    return dataclasses.replace(
        host,
        cost=functools.partial(_of_own, host.cost, n),
        is_feasible=functools.partial(_of_own, host.is_feasible, n),
        check=functools.partial(_check_and_fill, host.check, n, capacity),
        num_entries=n,
    )


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
