"""Whether searches fit into memory, asked before any is allocated.

On a CPU, running out of memory ends in a process that hangs or is killed, not in an exception.
"""

import contextlib
import math
import pathlib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax

from jaxopt_search.checks import MAX_INT32

_GIB = 2**30
_CGROUP = pathlib.Path("/sys/fs/cgroup")
_PROC = pathlib.Path("/proc")
_TOUR_BYTES = 16  # per city: a current tour and the best one, before and after a chunk

_QUEEN_BYTES = 64  # of 100 that were measured for one that is repaired


def check_size(solution: Any, num: int, num_searches: int | None = None) -> None:
    """Refuses more solutions than an array can index.

    Args:
      num: how many there are in one array.
      num_searches: for the message; None for `num`.

    Raises:
      ValueError: with the number of elements.
    """
    elements = num * max(leaf.size for leaf in jax.tree.leaves(solution))
    if elements > MAX_INT32:
        raise ValueError(
            f"num_searches is {num_searches or num}, expected fewer: their solutions"
            f" have {elements} elements in all, beyond {MAX_INT32}"
        )


def check_tours(n: int, num_tours: int, num_searches: int, devices: Sequence[jax.Device]) -> None:
    """Refuses more tours of n cities than fit into memory, judged by the least that they take.

    Raises:
      ValueError, MemoryError: as `check_size` and `check_bytes`.
    """
    each = -(-num_tours // len(devices))
    check_size(jax.ShapeDtypeStruct((n,), "int32"), each, num_searches)
    needed = _TOUR_BYTES * n * (num_tours if is_shared(devices) else each)
    check_searches(needed, num_searches, devices, " at least")


def check_searches(
    needed: float, num_searches: int, devices: Sequence[jax.Device], bound: str, further: str = ""
) -> None:
    """Refuses searches that do not fit into the memory that is free on the first device.

    Args:
      needed: bytes.
      bound: " at least" if they may take more.
      further: what else may help; "" for nothing.

    Raises:
      MemoryError: with the sizes.
    """
    advice = "fewer searches" + ("" if is_shared(devices) else " or more devices")
    advice += f"; or, {further}" if further else ""
    check_bytes(needed, f"num_searches is {num_searches}", devices[0], bound, advice)


def is_shared(devices: Sequence[jax.Device]) -> bool:
    """Returns whether all devices have one memory."""
    return devices[0].platform == "cpu"


def check_queens(n: int, device: jax.Device) -> None:
    """Refuses more queens than can be repaired in memory, judged by the least that they take.

    Raises:
      MemoryError: with the sizes.
    """
    check_bytes(_QUEEN_BYTES * n, f"n is {n}", device, " at least", "fewer queens")


def check_bytes(needed: float, what: str, device: jax.Device, bound: str, advice: str) -> None:
    """Refuses what does not fit into the memory that is free on a device.

    Args:
      what: is asked for, such as "n is 8".
      bound: " at least" if it may take more.
      advice: what to use instead.

    Raises:
      MemoryError: with the sizes.
    """
    if needed > (free := free_bytes(device)):
        raise MemoryError(
            f"{what}, expected fewer: they take {needed / _GIB:.1f} GiB{bound}, and"
            f" {free / _GIB:.1f} GiB are free on {device}; use {advice}"
        )


def free_bytes(device: jax.Device) -> float:
    """Returns how much memory a device has left; infinity if that is unknown.

    A device of another process counts as one of this process's.
    """
    if device.process_index != jax.process_index():
        device = jax.local_devices(backend=device.platform)[0]
    if device.platform == "cpu":
        return max(0, min(_available(), _left_to_the_group(), _left_to_the_process()))
    stats = device.memory_stats() or {}
    return stats.get("bytes_limit", math.inf) - stats.get("bytes_in_use", 0)


def _available() -> float:
    """Returns what is left of the machine's memory, on Linux."""
    return _kilobytes(_PROC / "meminfo", "MemAvailable", math.inf)


def _left_to_the_group() -> float:
    """Returns what is left to the control group, such as a container's."""
    try:
        path = (_PROC / "self" / "cgroup").read_text().partition("0::/")[2].split("\n")[0]
        folder = next(one for one in (_CGROUP / path, _CGROUP) if (one / "memory.max").exists())
        limit, used = ((folder / f"memory.{name}").read_text() for name in ("max", "current"))
        cached = re.search(r"^inactive_file (\d+)", (folder / "memory.stat").read_text(), re.M)
        return int(limit) - int(used) + (int(cached[1]) if cached else 0)
    except (OSError, ValueError, StopIteration):  # none, or "max"
        return math.inf


def _left_to_the_process() -> float:
    """Returns what is left of the limit that `ulimit -v` sets."""
    try:
        import resource
    except ImportError:  # on Windows
        return math.inf
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return math.inf
    return limit - _kilobytes(_PROC / "self" / "status", "VmSize", 0)


def _kilobytes(file: pathlib.Path, name: str, unknown: float) -> float:
    """Returns the bytes in a line of one of the kernel's files."""
    try:
        found = re.search(rf"^{name}:\s*(\d+) kB", file.read_text(), re.M)
    except OSError:
        return unknown
    return int(found[1]) * 1024 if found else unknown


def is_about_memory(error: Exception) -> bool:
    """Returns whether an error says that there is too little memory."""
    found = re.search("RESOURCE_EXHAUSTED|[Oo]ut of memory|Unable to allocate", str(error))
    return found is not None


@contextlib.contextmanager
def memory_errors_explained(what: str) -> Iterator[Callable[[int], None]]:
    """Has a `MemoryError` of a device or of the host's arrays say what to change.

    Yields a function that takes note of the bytes that a device was estimated to need. Results come
    late: block until they are ready before leaving the context.

    Args:
      what: is asked for, such as "num_searches=8".
    """
    noted: list[int] = []
    try:
        yield noted.append
    except (jax.errors.JaxRuntimeError, MemoryError) as error:
        if not is_about_memory(error):
            raise
        if isinstance(error, MemoryError):
            raise MemoryError(f"the host ran out of memory with {what}; use fewer") from error
        needed = f", estimated to need {noted[-1] / _GIB:.1f} GiB" if noted else ""
        raise MemoryError(
            f"the device ran out of memory with {what}{needed}; use fewer, or more devices"
        ) from error
