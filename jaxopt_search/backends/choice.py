# pyright: basic
# pyright: reportInvalidTypeForm=false
"""Which implementation runs: a kernel, one compiled CPU function, or XLA, for each search.

Only `"triton"` and `"interpret"` are kernels. The others are named here too, because a user chooses
among all of them by one argument.
"""

import functools
import warnings
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import jax

from jaxopt_search.backends.backend import named
from jaxopt_search.errors import NotPortable

Implementation: TypeAlias = Literal["auto", "xla", "native", "triton", "interpret"]
"""How steps are run; all give the same searches on integer costs.

- `"auto"`: the fastest that the devices and the search allow.
- `"xla"`: all searches side by side, by `vmap`, and all the moves that a search prices in a step.
- `"native"`: on a CPU, one search after the other on each device, in loops compiled as one
  function; for portable searches, and not inside a `jit` or `vmap` of your own.
- `"triton"`: a fused kernel on an NVIDIA GPU of compute capability 8.0 or higher, a program per
  search.
- `"interpret"`: the same kernel, interpreted by Pallas on any device, for tests.
"""

_NAMES = get_args(Implementation)
_GPUS = ("cuda", "gpu")
MAX_STEPS = 2**14
"""Steps per launch: their control values are computed ahead, for all searches together."""


class Choice(NamedTuple):
    """What runs, and why it is not a kernel where it might have been one.

    Attributes:
      implementation: any but `"auto"`.
      reason: one line, or "".
    """

    implementation: Implementation
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.implementation} ({self.reason})" if self.reason else self.implementation


def choose(
    implementation: Implementation,
    device: jax.Device | str,
    is_portable: bool,
    is_traced: bool,
    find_obstacle: Callable[[], str],
) -> Choice:
    """Returns the implementation to run, and why.

    Args:
      implementation: what the user asks for.
      device: one of those that are to run it, or only a platform, such as `"cpu"`.
      is_portable: whether the search says so.
      is_traced: whether the run is part of a function that is being traced.
      find_obstacle: tells in one line what keeps the search out of a kernel, or "".

    Raises:
      ValueError: for an unknown name, or a kernel on a device that has none or is too old.
      NotPortable: if a kernel is asked for and the search cannot run in one.

    Example:
      >>> str(choose("auto", "cpu", is_portable=True, is_traced=False, find_obstacle=lambda: ""))
      'native'
      >>> str(choose("auto", "cpu", is_portable=True, is_traced=True, find_obstacle=lambda: ""))
      'xla'
    """
    if implementation not in _NAMES:
        expected = ", ".join(_NAMES)
        raise ValueError(f"implementation is {implementation!r}, expected one of {expected}")
    if implementation in ("xla", "interpret"):
        return Choice(implementation)
    platform = platform_of(device)
    if platform == "cpu" and implementation != "triton":
        reason = "" if is_portable else "the search does not say that it is portable"
        # Constants of an outer function would end up in what is compiled as one function, which
        # XLA does not allow.
        reason = "inside jit or vmap" if is_traced else reason
        if reason and implementation == "native":
            raise NotPortable(f"implementation is 'native', expected 'auto' or 'xla': {reason}")
        return Choice("xla" if reason else "native")
    if platform not in _GPUS or implementation == "native":
        if implementation == "auto":
            return Choice("xla")
        raise ValueError(
            f"implementation is {implementation!r}, expected 'auto' or 'xla' on {platform!r}"
            " devices"
        )
    if reason := refusal(device):
        if implementation == "triton":
            raise ValueError(f"implementation is 'triton', expected 'auto' or 'xla': {reason}")
        return Choice("xla", reason)
    reason = find_obstacle()
    if reason and implementation == "triton":
        raise NotPortable(reason)
    return Choice("xla", reason) if reason else Choice("triton")


def platform_of(device: jax.Device | str) -> str:
    """Returns the platform of a device, such as `"cpu"` or `"gpu"`; of a platform, itself.

    Example:
      >>> platform_of("gpu")
      'gpu'
    """
    return device if isinstance(device, str) else device.platform


def runs_kernels(device: jax.Device | str) -> bool:
    """Returns whether a device, or one of a platform, is a GPU that runs fused kernels.

    Example:
      >>> runs_kernels("cpu")
      False
    """
    return platform_of(device) in _GPUS and not refusal(device)


def refusal(device: jax.Device | str) -> str:
    """Returns in one line why an NVIDIA GPU runs no fused kernels, or "" if it does.

    Example:
      >>> import types
      >>> refusal(types.SimpleNamespace(compute_capability="7.5"))
      'compute capability 7.5; the Triton kernel needs 8.0'
    """
    return named("triton").refusal(device) if has_triton() else "Pallas-Triton is missing"


@functools.cache
def has_triton() -> bool:
    """Returns whether JAX has Pallas-Triton; warns once if it has not.

    Example:
      >>> print("on a GPU runs", "a fused kernel" if has_triton() else "XLA")
      on a GPU runs ...
    """
    try:
        named("triton")
    except ImportError as error:
        warnings.warn(f"no fused kernels, XLA runs instead: {error}", stacklevel=2)
        return False
    return True


def launch(
    body: Callable[[jax.Array, Any, Any], Any],
    num_steps: jax.Array,
    shared: Any,
    carry: Any,
    *,
    between: Any = (),
    num_warps: int = 1,
    implementation: str = "triton",
) -> Any:
    """Returns `carry` after `num_steps` steps of every search, a program of a kernel per search.

    Inside a kernel, leaves with an axis are buffers, to be used through `memory`, and leaves
    without one are scalars. What a step does not write is not touched.

    Args:
      body: maps (i, shared, carry) of one search to its carry after step i; the same buffers must
        come back. With `between`, its `shared` is a pair of both.
      num_steps: [] int32.
      shared: a pytree of arrays that all searches read.
      carry: a pytree of arrays [S, ...].
      between: a pytree of arrays [S / k, ...], each read by k searches next to one another.
      num_warps: warps per program.
      implementation: a kernel's.

    Example:
      >>> import jax.numpy as jnp
      >>> from jaxopt_search.backends import memory
      >>> def step(i, shared, carry):
      ...     return carry + memory.load(shared, i)
      >>> prices, purses = jnp.array([1, 2, 3]), jnp.array([0, 10])
      >>> launch(step, jnp.int32(3), prices, purses, implementation="interpret").tolist()
      [6, 16]
    """
    kernel = named(implementation)
    return kernel.launch(body, num_steps, shared, carry, between, num_warps)


def launch_grid(
    body: Callable[[tuple[jax.Array, ...], tuple[Any, ...]], jax.Array],
    grid: tuple[int, ...],
    arrays: tuple[jax.Array, ...],
    dtype: Any,
    *,
    num_warps: int = 1,
    implementation: str = "triton",
) -> jax.Array:
    """Returns a number for each place of a grid, of this shape, from a program of a kernel each.

    Args:
      body: maps the place, a tuple of [] int32, and the arrays as buffers to a scalar.
      arrays: what all programs read.
      dtype: of the numbers.
      num_warps, implementation: as in `launch`.

    Example:
      >>> import jax.numpy as jnp
      >>> from jaxopt_search.backends import memory
      >>> def add(place, buffers):
      ...     return memory.load(buffers[0], place[0]) + place[1]
      >>> numbers = jnp.array([10, 20])
      >>> launch_grid(add, (2, 3), (numbers,), "int32", implementation="interpret").tolist()
      [[10, 11, 12], [20, 21, 22]]
    """
    return named(implementation).launch_grid(body, grid, arrays, dtype, num_warps)
