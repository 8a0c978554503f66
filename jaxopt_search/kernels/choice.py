"""Which implementation runs: the kernel where there is one for the search, XLA elsewhere."""

import functools
import warnings
from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias

from jaxopt_search.errors import NotPortable

Implementation: TypeAlias = Literal["auto", "xla", "sequential", "triton", "interpret"]
"""How steps are run; all give the same searches on integer costs.

`"xla"`: all searches abreast, by `vmap`. `"sequential"`: under XLA, too, but one search after the
other, with real branches: for few searches on a CPU, where moves are long to make. `"triton"`: a
fused kernel on an NVIDIA GPU, a program per search. `"interpret"`: the same, interpreted by Pallas
on any device, for tests. `"auto"`: the fastest that the devices and the search allow.
"""

_NAMES = ("auto", "xla", "sequential", "triton", "interpret")


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
    platform: str,
    prefers_branches: bool,
    find_obstacle: Callable[[], str],
) -> Choice:
    """Returns what is to run.

    Args:
      implementation: what the user asks for.
      platform: of the devices, such as `"cpu"`.
      prefers_branches: whether `"sequential"` suits the search on a CPU.
      find_obstacle: tells in one line what keeps the search out of a kernel, or "".

    Raises:
      ValueError: for an unknown name, or a kernel on a device that has none.
      NotPortable: if a kernel is asked for and the search cannot run in one.
    """
    if implementation not in _NAMES:
        expected = ", ".join(_NAMES)
        raise ValueError(f"implementation is {implementation!r}, expected one of {expected}")
    is_cuda = platform in ("cuda", "gpu")
    if implementation == "triton" and not is_cuda:
        raise ValueError(
            f"implementation is 'triton', expected 'auto' or 'xla' on {platform!r} devices"
        )
    if implementation == "auto" and not is_cuda:
        return Choice("sequential" if platform == "cpu" and prefers_branches else "xla")
    if implementation not in ("auto", "triton"):
        return Choice(implementation)
    if not has_triton():
        return Choice("xla", "Pallas-Triton is missing")
    reason = find_obstacle()
    if not reason:
        return Choice("triton")
    if implementation == "triton":
        raise NotPortable(reason)
    return Choice("xla", reason)


@functools.cache
def has_triton() -> bool:
    """Returns whether JAX has Pallas-Triton; warns once if it has not."""
    try:
        import jax.experimental.pallas.triton  # noqa: F401
    except ImportError as error:
        warnings.warn(f"no fused kernels, XLA runs instead: {error}", stacklevel=2)
        return False
    return True
