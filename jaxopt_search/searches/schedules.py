"""Cooling schedules: functions from the step to a temperature, as optax has them.

Every optax schedule is one; `linear`, `cosine`, `polynomial`, `warm_restarts` and `join` make some,
and import optax when called. They are plain functions: each new one is compiled anew.

A schedule receives the step as an int32 scalar, held at 2**31 - 1 once
it is reached, and returns a scalar. It is called under tracing, so it must be written in
`jax.numpy`.

`geometric` and `constant` are optax's `exponential_decay` and `constant_schedule` as pytrees: other
temperatures compile nothing, and no compiler rounds them differently from another.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer

from jaxopt_search.checks import check_count, check_number, float32, int32
from jaxopt_search.pytrees import pytree

__all__ = [
    "Geometric",
    "Schedule",
    "as_schedule",
    "check",
    "constant",
    "cosine",
    "geometric",
    "join",
    "linear",
    "num_temperatures",
    "polynomial",
    "temperature",
    "warm_restarts",
]

_MAX_FLOAT32 = float(np.finfo(np.float32).max)
_UNTRACEABLE = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
)

Schedule: TypeAlias = Callable[[jax.Array], Any]
"""From a step, [] int32, to a temperature, as in optax."""


@pytree
@dataclasses.dataclass(frozen=True, kw_only=True)
class Geometric:
    """`start * alpha**((step - first_step) // steps_per_temperature)`. Build it with `geometric`.

    With a period, of the remainder of `step - first_step`. The numbers are leaves: changing them
    compiles nothing.
    """

    start: jax.Array
    log2_alpha: jax.Array
    steps_per_temperature: jax.Array
    first_step: jax.Array
    period: jax.Array | None = None

    def __call__(self, step: jax.Array) -> jax.Array:
        passed = step - self.first_step
        if self.period is not None:
            passed = lax.rem(passed, self.period)
        exponent = passed // self.steps_per_temperature
        # Where `log2_alpha` is a constant, XLA would multiply it by a factor within `exp2` first.
        exponent = lax.optimization_barrier(exponent.astype(jnp.float32) * self.log2_alpha)
        return self.start * jnp.exp2(exponent)

    def on_host(self, step: int) -> float:
        """Returns the temperature at a step, by the host, about as the device has it."""
        start, log2_alpha, per_temperature, first, *period = map(
            float, jax.device_get(jax.tree.leaves(self))
        )
        passed = math.fmod(step - first, *period) if period else step - first
        return start * 2.0 ** (passed // per_temperature * log2_alpha)


def geometric(
    start: float | jax.Array,
    alpha: float | jax.Array,
    steps_per_temperature: int = 1,
    first_step: int = 0,
    period: int | None = None,
) -> Geometric:
    """Returns a schedule that multiplies the temperature by `alpha` once in a while.

    From `first_step` on `optax.exponential_decay(start, steps_per_temperature, alpha, first_step,
    staircase=True)`, within float rounding. Before it, optax stays at `start`.

    Lam, Tsoi, Luk, "Parallel neighbourhood search on many-core platforms", equation 2, with
    `steps_per_temperature` = sweeps x cities.

    Args:
      start: the first temperature, above 0, in units of cost; also a traced scalar, which is taken
        as it is: for a sweep of temperatures by `vmap`.
      alpha: the cooling constant, in (0, 1]; likewise.
      steps_per_temperature: steps between two coolings.
      first_step: the step of the first temperature; before it, it is hotter by the same rule.
      period: the steps after which it is as hot as at first again; None for never.

    Raises:
      ValueError: if an argument is outside these ranges.

    Example:
      >>> schedule = geometric(10_000.0, alpha=0.99, steps_per_temperature=1000)
      >>> [round(float(schedule(jax.numpy.int32(step)))) for step in (0, 999, 1000, 100_000)]
      [10000, 10000, 9900, 3660]
    """
    start, alpha = _scalar("start", start), _scalar("alpha", alpha)
    is_traced = isinstance(alpha, Tracer)
    if not isinstance(start, Tracer) and not 0 < check_number("start", start) <= _MAX_FLOAT32:
        raise ValueError(f"start is {start}, expected a finite float32 above 0")
    if not is_traced and not 0 < check_number("alpha", alpha) <= 1:
        raise ValueError(f"alpha is {alpha}, expected a cooling constant in (0, 1]")
    return Geometric(
        start=float32(start),
        log2_alpha=jnp.log2(alpha.astype(jnp.float32)) if is_traced else float32(math.log2(alpha)),
        steps_per_temperature=int32(check_count("steps_per_temperature", steps_per_temperature)),
        first_step=int32(check_count("first_step", first_step, 0)),
        period=None if period is None else int32(check_count("period", period)),
    )


def _scalar(name: str, value: Any) -> Any:
    """Returns a number, or a traced scalar as it is."""
    if not isinstance(value, np.ndarray | jax.Array):
        return value
    if value.ndim or value.dtype.kind not in "iuf":
        raise ValueError(f"{name} is {value.dtype} of shape {value.shape}, expected one number")
    return value if isinstance(value, Tracer) else value.item()


def constant(value: Any) -> Geometric:
    """Returns a schedule that stays at one temperature; 0 accepts no worse solution.

    `optax.constant_schedule(value)` as a pytree.

    Args:
      value: a number, or a traced scalar, which is taken as it is.

    Example:
      >>> float(constant(5)(jnp.int32(1000)))
      5.0
    """
    value = _scalar("temperature", value)
    if not isinstance(value, Tracer) and not 0 <= value <= _MAX_FLOAT32:
        raise ValueError(f"temperature is {value}, expected a finite number >= 0")
    return Geometric(
        start=float32(value),
        log2_alpha=float32(0),
        steps_per_temperature=int32(1),
        first_step=int32(0),
    )


def linear(start: float, end: float, num_steps: int, first_step: int = 0) -> Schedule:
    """Returns `optax.linear_schedule`: from one temperature to another in so many steps.

    Example:
      >>> schedule = linear(100.0, 0.0, num_steps=1000)
      >>> [float(schedule(step)) for step in (0, 250, 2000)]
      [100.0, 75.0, 0.0]
    """
    return polynomial(start, end, 1, num_steps, first_step)


def polynomial(
    start: float, end: float, power: float, num_steps: int, first_step: int = 0
) -> Schedule:
    """Returns `optax.polynomial_schedule`: what is left to `end` falls by a power of the time left.

    Example:
      >>> float(polynomial(100.0, 0.0, power=2, num_steps=1000)(500))
      25.0
    """
    import optax

    return optax.polynomial_schedule(start, end, power, num_steps, first_step)


def cosine(start: float, num_steps: int, end: float = 0.0) -> Schedule:
    """Returns `optax.cosine_decay_schedule`: half a cosine from one temperature to another.

    Example:
      >>> round(float(cosine(100.0, num_steps=1000)(500)), 3)
      50.0
    """
    import optax

    if not check_number("start", start) > 0:
        raise ValueError(f"start is {start}, expected a temperature above 0")
    return optax.cosine_decay_schedule(start, num_steps, alpha=end / start)


def warm_restarts(
    start: float, num_steps: int, num_cycles: int, end: float = 0.0, longer: float = 1.0
) -> Schedule:
    """Returns `cosine` over and over, hot again at each restart, as `optax.sgdr_schedule` has it.

    Args:
      start, end: temperatures at the beginning and at the end of each cycle.
      num_steps: of the first cycle.
      num_cycles: after the last one it stays at `end`.
      longer: how many times as long as the one before each cycle is.

    Example:
      >>> schedule = warm_restarts(100.0, num_steps=1000, num_cycles=3)
      >>> [round(float(schedule(step)), 3) for step in (500, 999, 1000, 3000)]
      [50.0, 0.0, 100.0, 0.0]
    """
    num_cycles = check_count("num_cycles", num_cycles)
    lengths = [round(num_steps * longer**cycle) for cycle in range(num_cycles)]
    ends = [sum(lengths[: cycle + 1]) for cycle in range(num_cycles - 1)]
    return join([cosine(start, length, end) for length in lengths], ends)


def join(schedules: Sequence[Any], boundaries: Sequence[int]) -> Schedule:
    """Returns `optax.join_schedules`: one after the other, each from its boundary on at step 0.

    Example:
      >>> schedule = join([geometric(100.0, 0.9), constant(5.0)], [50])
      >>> [round(float(schedule(jnp.int32(step))), 3) for step in (0, 1, 50)]
      [100.0, 90.0, 5.0]
    """
    import optax

    return optax.join_schedules(list(schedules), list(boundaries))


def num_temperatures(start: float, end: float, alpha: float) -> int:
    """Returns how many temperatures `start * alpha**k` lie above `end`.

    Example:
      >>> num_temperatures(10_000.0, 0.1, alpha=0.99)
      1146
    """
    if not 0 < end <= start or not 0 < alpha < 1:
        raise ValueError(
            f"start {start}, end {end}, alpha {alpha}: expected 0 < end <= start and 0 < alpha < 1"
        )
    return math.ceil(math.log(end / start) / math.log(alpha))


def as_schedule(schedule: Any) -> Schedule:
    """Returns `schedule` as a pytree: itself, a constant temperature, or a static function.

    Args:
      schedule: a temperature, a pytree dataclass with `__call__`, or any function of the step.

    Raises:
      TypeError: if it is neither a number nor callable, or not written in `jax.numpy`.
      ValueError: if it does not map a step to one number.

    Example:
      >>> as_schedule(7.5) == constant(7.5)
      True
      >>> schedule = as_schedule(lambda step: 100 / (1 + step))
      >>> float(schedule(jnp.int32(3)))
      25.0
    """
    is_number = isinstance(schedule, int | float | np.number) and not isinstance(schedule, bool)
    if is_number or (isinstance(schedule, np.ndarray | jax.Array) and not schedule.ndim):
        return constant(schedule)
    if isinstance(schedule, Geometric):
        return schedule
    if not callable(schedule):
        raise TypeError(f"schedule is a {type(schedule).__name__}, expected a number or a function")
    if jax.tree_util.all_leaves([schedule]):  # a plain function: part of the program, not data
        schedule = jax.tree_util.Partial(schedule)
    try:
        jax.eval_shape(temperature, schedule, jax.ShapeDtypeStruct((), jnp.int32))
    except _UNTRACEABLE as error:
        raise TypeError(
            "schedule takes the step for a number, expected one written in jax.numpy: jnp.where in"
            " place of if, jnp.exp in place of math.exp or np.exp"
        ) from error
    return schedule


def temperature(schedule: Schedule, step: jax.Array) -> jax.Array:
    """Returns the temperature at `step`, [] float32, whatever the schedule returns.

    No compiler regroups its factors with the factors of what is multiplied by it.

    Raises:
      ValueError: if the schedule returns anything but one number.

    Example:
      >>> temperature(lambda step: 100 - step, jnp.int32(30))
      Array(70., dtype=float32)
    """
    value = schedule(step)
    if not isinstance(value, int | float | np.ndarray | np.number | jax.Array):
        raise ValueError(f"schedule returns a {type(value).__name__}, expected one real number")
    value = jnp.asarray(value)
    if value.size != 1 or value.dtype == bool or jnp.issubdtype(value.dtype, jnp.complexfloating):
        raise ValueError(
            f"schedule returns {value.dtype} of shape {value.shape}, expected one real number"
        )
    return lax.optimization_barrier(value.reshape(()).astype(jnp.float32))


def check(schedule: Schedule, max_steps: int | None) -> None:
    """Refuses schedules that are negative or not finite at the start, middle or end of a run.

    Raises:
      ValueError: naming the step and the temperature.

    Example:
      >>> falling = as_schedule(lambda step: 10 - step)
      >>> check(falling, max_steps=10)
      >>> check(falling, max_steps=20)
      Traceback (most recent call last):
        ...
      ValueError: schedule gives temperature -10.0 at step 20, expected a finite number >= 0
    """
    last = min(max_steps or 0, 2**31 - 1)
    for step in sorted({0, last // 2, last}):
        if isinstance(schedule, Geometric):
            value = schedule.on_host(step)
        else:
            value = float(temperature(schedule, jnp.int32(step)))
        if not (math.isfinite(value) and value >= 0):
            raise ValueError(
                f"schedule gives temperature {value} at step {step}, expected a finite number >= 0"
            )
