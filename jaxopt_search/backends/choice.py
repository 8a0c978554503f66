# pyright: basic
# pyright: reportInvalidTypeForm=false
"""Which implementation runs: a kernel, one compiled CPU function, or XLA, for each search.

Only `"cuda"` and `"interpret"` are kernels. The others are named here too, because a user chooses
among all of them by one argument.
"""

import functools
import importlib
import re
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import jax
import jax.numpy as jnp

from jaxopt_search.backends.backend import named
from jaxopt_search.backends.native import as_one_function
from jaxopt_search.errors import NotPortable

Implementation: TypeAlias = Literal["auto", "xla", "native", "cuda", "interpret"]
"""How steps are run; all give the same searches on integer costs.

- `"auto"`: the fastest that the devices and the search allow.
- `"xla"`: all searches side by side, by `vmap`, and all the moves that a search prices in a step.
- `"native"`: on a CPU, one search after the other on each device, in loops compiled as one
  function; for portable searches, and not inside a `jit` or `vmap` of your own.
- `"cuda"`: a fused kernel on an NVIDIA GPU of compute capability 7.5 or higher, a block of threads
  per search.
- `"interpret"`: the same kernel, evaluated by XLA on any device, for tests.
"""

_NAMES = get_args(Implementation)
_GPUS = ("cuda", "gpu")
_LEAST_CAPABILITY = 7, 5
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
    if platform == "cpu" and implementation != "cuda":
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
        if implementation == "cuda":
            raise ValueError(f"implementation is 'cuda', expected 'auto' or 'xla': {reason}")
        return Choice("xla", reason)
    reason = find_obstacle()
    if reason and implementation == "cuda":
        raise NotPortable(reason)
    return Choice("xla", reason) if reason else Choice("cuda")


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
      >>> refusal(types.SimpleNamespace(compute_capability="7.0"))
      'compute capability 7.0; a fused kernel needs 7.5'
    """
    capability = str(getattr(device, "compute_capability", ""))
    found = re.fullmatch(r"(\d+)\.(\d+)", capability)  # other makers have other names
    if found and tuple(map(int, found.groups())) < _LEAST_CAPABILITY:
        least = ".".join(map(str, _LEAST_CAPABILITY))
        return f"compute capability {capability}; a fused kernel needs {least}"
    return ""


@functools.cache
def distrust(device: jax.Device) -> str:
    """Returns in one line why kernels cannot be trusted on a device, or ""; found by running one.

    Example:
      >>> print(distrust(jax.devices("cpu")[0]))
      a kernel fails here: ...
    """
    return _kernels().distrust(device)


def _kernels() -> Any:
    """Returns the module of kernels, which is imported where one is wanted."""
    return importlib.import_module("jaxopt_search.backends.cuda.launch")


def launch(
    body: Callable[[jax.Array, Any, Any], Any],
    num_steps: jax.Array,
    shared: Any,
    carry: Any,
    *,
    between: Any = (),
    num_warps: int = 1,
    implementation: str = "cuda",
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


def for_each(
    fn: Callable[[Any, Any, Any], Any],
    shared: Any,
    own: Any,
    scratch: Any,
    never: jax.Array,
    *,
    implementation: Implementation,
    num_warps: int = 1,
) -> Any:
    """Returns `fn(shared, own, scratch)` for each search, leaves [S, ...], by an implementation.

    Args:
      fn: portable; returns `scratch` after it has written to it, where leaves with an axis are
        buffers of zeros at first.
      shared: a pytree of arrays that all searches read.
      own: a pytree of arrays [S, ...].
      scratch: a pytree of `jax.ShapeDtypeStruct`, of one search.
      never: [] bool, False when it runs but not known to be so when it is compiled.
      num_warps: of a program of a kernel.

    Example:
      >>> import jax.numpy as jnp
      >>> from jaxopt_search.backends import memory
      >>> def doubled(table, number, scratch):
      ...     return memory.store(scratch, number, 2 * memory.load(table, number), jnp.bool_(True))
      >>> table, numbers = jnp.array([5, 6]), jnp.array([0, 1, 1])
      >>> own = numbers, jax.ShapeDtypeStruct((2,), jnp.int32), jnp.bool_(False)
      >>> for_each(doubled, table, *own, implementation="xla").tolist()
      [[10, 0], [0, 12], [0, 12]]
    """
    size = jax.tree.leaves(own)[0].shape[0]

    def zeros(*axes: int) -> Any:
        return jax.tree.map(lambda leaf: jnp.zeros((*axes, *leaf.shape), leaf.dtype), scratch)

    def alone(shared: Any, own: Any) -> Any:
        return fn(shared, own, zeros())

    if implementation == "xla":
        return jax.vmap(alone, (None, 0))(shared, own)
    if implementation == "native":
        return jax.vmap(as_one_function(alone), (None, None, 0))(never, shared, own)
    return launch(
        lambda _, read, buffers: fn(read[0], read[1], buffers),
        jnp.int32(1),
        shared,
        zeros(size),
        between=own,
        num_warps=num_warps,
        implementation=implementation,
    )


def obstacle(fn: Callable[..., Any], *args: Any) -> str:
    """Returns in one line what keeps `fn` from running in kernels, or "" if nothing does.

    Args:
      fn: launches kernels on an NVIDIA GPU.
      args: arrays, or their shapes.

    Example:
      >>> from jaxopt_search.backends import memory
      >>> def sort(i, shared, carry):
      ...     return jax.numpy.sort(memory.load(shared, memory.lanes(4)))[0] + carry
      >>> numbers = jax.numpy.arange(4)
      >>> obstacle(lambda *own: launch(sort, jax.numpy.int32(1), *own), numbers, numbers)
      'sort (<doctest ...>:2) uses sort, which a fused kernel cannot'
    """
    return _kernels().obstacle(fn, *args)
