"""The host's part of an instance, besides the arrays on the device."""

import dataclasses
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxopt_search.checks import check_number
from jaxopt_search.pytrees import IgnoredByJit


def nothing(solution: np.ndarray) -> str:
    """Returns "": where nothing is forbidden, all solutions are feasible."""
    return ""


class Units(NamedTuple):
    """How costs on the device stand for the problem's costs; see `Original`.

    A static field of the problem: inside `jit`, instances with the same ones share their programs,
    and what a program does with them is exact. The drivers' programs do without them.
    """

    unit: int = 1
    offset: int | float = 0

    def in_full(self, cost: jax.Array) -> jax.Array:
        """Returns the full cost that a cost on the device, of any shape, stands for.

        As it is without a unit and an offset; else float32, or float64 in JAX's x64 mode.
        """
        if self == SAME:
            return cost
        dtype = jnp.result_type(float)
        # In two parts each, of which large ones may cancel: then their difference is exact.
        upper, lower = cost.astype(dtype), jnp.zeros_like(cost, dtype)
        if jnp.issubdtype(cost.dtype, jnp.integer):
            upper, lower = (cost >> 16 << 16).astype(dtype), (cost & 0xFFFF).astype(dtype)
        first = dtype.type(self.offset).item()
        rest = self.offset - (int(first) if isinstance(self.offset, int) else first)
        return ((upper + first) + (lower + rest)) * float(self.unit)

    def highest_below(self, target: jax.Array, dtype: Any) -> jax.Array:
        """Returns the highest cost on the device, int32 or float32, that is in full up to a target.

        Found bit by bit, so that it is `in_full` which decides.
        """
        is_float = jnp.issubdtype(dtype, jnp.floating)
        top = jnp.uint32(2**31)

        def cost_of(word: jax.Array) -> jax.Array:
            """Returns costs in the order of words."""
            bits = jnp.where(word >= top, word ^ top, ~word) if is_float else word ^ top
            return lax.bitcast_convert_type(bits, dtype)

        def with_bit(i: jax.Array, word: jax.Array) -> jax.Array:
            higher = word | (top >> i.astype(jnp.uint32))
            return jnp.where(self.in_full(cost_of(higher)) <= target, higher, word)

        return cost_of(lax.fori_loop(0, 32, with_bit, jnp.zeros(jnp.shape(target), jnp.uint32)))


SAME = Units()
"""The device counts as the problem does."""


def counted_on_device(problem: Any) -> Any:
    """Returns the problem with `device_cost` for its `cost`, so that all units share programs."""
    return problem if problem.device_units is None else replace(problem, device_units=SAME)


def counted_in_full(problem: Any) -> Any:
    """Returns the problem as it was before `counted_on_device`."""
    if problem.device_units is None:
        return problem
    return replace(problem, device_units=problem.host.units)


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Original(IgnoredByJit):
    """The instance as it was given: exact costs, and facts about it.

    A problem carries it as a static field. Its functions are no closures, so that a problem can be
    pickled.

    Attributes:
      cost: maps a solution to its exact cost, an `int` for integer instances.
      check: maps a start solution and its name to an array of the right dtype, or raises
        `ValueError`.
      remaining: says in words why a solution is not feasible; "" if it is.
      max_feasible: every solution that is not feasible costs more, as the device counts; None
        where all solutions are feasible.
      unit: the device counts in multiples of this: a common divisor of all costs. Temperatures
        are also in multiples of it.
      offset: the part that the device leaves out: a cost is `(cost on the device + offset) * unit`.
      best_known: the best-known cost, where there is one.
      is_optimal: whether that is proven to be the lowest there is.
      coords: [n, 2] float64, the places of a TSP's cities in the plane; None where it was not
        given by them.
      starts: maps the problem and a number to that many good solutions, where random ones cost more
        than the device can count; else None.
      note: a sentence about changes of the data, or "".
      num_entries: how many entries of a solution are the user's, if the device's have more: see
        `padding`. The rest is padding.
      as_given: maps these entries, [..., m], to a solution as the user has it, where that is
        something else (`tsp.paths.Ends`); `check` maps it back.
    """

    cost: Callable[[np.ndarray], int | float]
    check: Callable[[Any, str], np.ndarray]
    remaining: Callable[[np.ndarray], str] = nothing
    max_feasible: int | float | None = None
    unit: int = 1
    offset: int | float = 0
    best_known: int | float | None = None
    is_optimal: bool = False
    coords: np.ndarray | None = None
    starts: Callable[[Any, int], np.ndarray] | None = None
    note: str = ""
    num_entries: int | None = None
    as_given: Any = None

    def __post_init__(self) -> None:
        best = self.best_known
        if best is not None and not math.isfinite(check_number("best_known", best)):
            raise ValueError(f"best_known is {best!r}, expected a finite number or None")

    def is_feasible(self, solution: np.ndarray) -> bool:
        """Returns whether a solution avoids everything forbidden."""
        return not self.remaining(solution)

    def own(self, solutions: np.ndarray) -> np.ndarray:
        """Returns the user's solutions, [..., n], from those on the device."""
        own = solutions[..., : self.num_entries]
        return own if self.as_given is None else self.as_given(own)

    @property
    def units(self) -> Units:
        """How the device counts, for the problem's field of this name."""
        return Units(self.unit, self.offset)

    def in_full(self, cost: Any) -> Any:
        """Returns the full cost that a cost on the device, a Python number, stands for."""
        return (cost + self.offset) * self.unit

    def all_in_full(self, costs: np.ndarray) -> np.ndarray:
        """Like `in_full`, but of an array: int64 or float64, or Python integers."""
        if self.unit == 1 and not self.offset:
            return costs
        if costs.dtype.kind == "f" or not isinstance(self.offset, int):
            return self.in_full(costs.astype(np.float64))
        in_full = [self.in_full(cost) for cost in costs.tolist()]
        fits = max(map(abs, in_full)) < 2**63
        return np.array(in_full, np.int64 if fits else object)


def with_host(problem: Any, **changes: Any) -> Any:
    """Returns a problem of which the host's part has changed, by the names of its fields."""
    return replace(problem, host=replace(problem.host, **changes))


def _refuse(*_: Any) -> Any:
    raise ValueError("the instance is on the device only and has no exact cost")


ON_DEVICE = Original(cost=_refuse, check=_refuse)
"""Stands for an instance that is nowhere but on the device; asked for anything, it raises."""
