# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false
"""Memory: how much a run takes, counted here only, and refused if it is more than is free.

It is asked before any is allocated: on a CPU, running out of memory ends in a process that hangs or
is killed, not in an exception. The most is taken at one of few moments. What stays there then
follows from shapes; what programs need besides only compiling them tells.
"""

import contextlib
import math
import pathlib
import re
from collections.abc import Generator, Mapping, Sequence
from typing import Any, NamedTuple

import jax

from jaxopt_search import contracts
from jaxopt_search.checks import MAX_INT32
from jaxopt_search.engine import devices as on
from jaxopt_search.engine.compile import Program
from jaxopt_search.engine.devices import Team
from jaxopt_search.engine.state import RunState
from jaxopt_search.errors import is_about_memory

_MIB, _GIB = 2**20, 2**30
_CGROUP = pathlib.Path("/sys/fs/cgroup")
_PROC = pathlib.Path("/proc")
_TOUR_BYTES = 16  # per city: a current tour and the best one, before and after a chunk


class MemoryEstimate(NamedTuple):
    """The bytes that a run takes on the device that holds most, at the moment when it holds most.

    Devices of a CPU share its memory and count together. `str` tells all of it in one line.

    Attributes:
      instance: the problem, the search and the exchange.
      states: of the searches: from before and after a program, both while it runs.
      temporaries: what the compiled program needs besides.
      solutions: the best one of each search, read out after each chunk, and their costs.
      when: the moment: `"start"`, `"steps"`, `"look"` at the best solutions, or `"end"`, when the
        devices' states are joined.
    """

    instance: int
    states: int
    temporaries: int
    solutions: int
    when: str

    @property
    def total(self) -> int:
        """All of these bytes."""
        return self.instance + self.states + self.temporaries + self.solutions

    def __str__(self) -> str:
        names = ("instance", "states", "temporaries", "solutions")
        parts = ", ".join(f"{name} {getattr(self, name) / _MIB:,.1f}" for name in names)
        return f"{self.total / _MIB:,.1f} MiB ({self.when}: {parts})"


def estimate(
    parts: Sequence[Any],
    state: RunState,
    devices: Sequence[jax.Device],
    programs: Mapping[str, Program] | None = None,
    states_at_a_look: int = 1,
) -> MemoryEstimate:
    """Returns the memory of a run at the moment when it takes most.

    Args:
      parts: the problem, the search and, if there is one, the exchange; or their shapes.
      state: of all searches, or its shapes.
      devices: those over which the searches are spread.
      programs: by the moments of `MemoryEstimate`; those that are not there yet are compiled. None
        to count only what stays in memory.
      states_at_a_look: 2 if it makes another one.
    """
    (num_searches,), num = state.index.shape, len(devices)
    instance, everyone = num_bytes(parts), num_bytes(state)
    # On one device, or in the memory that all of them share.
    times = len(Team(tuple(devices)).own) if on.is_cpu(devices[0]) else 1
    own = times * -(-num_searches // num) / num_searches
    each = math.ceil(own * everyone)
    read_out = math.ceil(own * num_searches * (num_bytes(contracts.solution_shape(parts[0])) + 4))
    moments = {"start": (everyone, 0), "steps": (2 * each, 0)}
    moments["look"] = states_at_a_look * each, read_out
    if num > 1:
        moments["end"] = (each + everyone, read_out)
    estimates = list[MemoryEstimate]()
    for when, (states, solutions) in moments.items():
        copies = 1 if when == "start" else times
        program = (programs or {}).get(when)
        temporaries = 0 if program is None else copies * program.temporaries()
        held = copies * instance, states, temporaries, solutions
        estimates.append(MemoryEstimate(*held, when))
    return max(estimates, key=lambda one: one.total)


def check_fit(
    parts: Sequence[Any], needed: MemoryEstimate, num_searches: int, devices: Sequence[jax.Device]
) -> None:
    """Refuses searches that do not fit into the memory that is free on the first device.

    Args:
      parts: the problem and others, as in `estimate`.

    Raises:
      MemoryError: with what they take, what is free, and what to change.
    """
    device = Team(tuple(devices)).own[0]
    arrays = (leaf for leaf in jax.tree.leaves(parts) if isinstance(leaf, jax.Array))
    there = num_bytes([leaf for leaf in arrays if device in leaf.devices()])  # not free any more
    check_searches(
        needed.total - there,
        num_searches,
        devices,
        bound="" if needed.temporaries else " at least",
        further=parts[0].lighter if 2 * needed.instance > needed.total else "",
    )


def num_bytes(tree: Any) -> int:
    """Returns the bytes of a pytree's arrays, or of arrays of its shapes."""
    avals = map(jax.typeof, jax.tree.leaves(tree))
    return sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in avals)


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
    needed = _TOUR_BYTES * n * (num_tours if on.is_cpu(devices[0]) else each)
    check_searches(needed, num_searches, devices, " at least")


def check_searches(
    needed: float, num_searches: int, devices: Sequence[jax.Device], bound: str, further: str = ""
) -> None:
    """Refuses searches that do not fit into the memory that is free on the first device.

    Args:
      needed: bytes.
      bound: " at least" if they may take more.
      further: another way out; "" for none.

    Raises:
      MemoryError: with the sizes.
    """
    advice = "fewer searches" + ("" if on.is_cpu(devices[0]) else " or more devices")
    advice += f"; or, {further}" if further else ""
    check_bytes(needed, f"num_searches is {num_searches}", devices[0], bound, advice)


def check_bytes(needed: float, what: str, device: jax.Device, bound: str, advice: str) -> None:
    """Refuses more bytes than are free on a device.

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
    if not on.has(device):
        device = jax.local_devices(backend=device.platform)[0]
    if on.is_cpu(device):
        available = _kilobytes(_PROC / "meminfo", "MemAvailable", math.inf)  # on Linux
        return max(0, min(available, _left_to_the_group(), _left_to_the_process()))
    stats = device.memory_stats() or {}
    return stats.get("bytes_limit", math.inf) - stats.get("bytes_in_use", 0)


def _left_to_the_group() -> float:
    """Returns the bytes left to the control group, such as a container's."""
    try:
        path = (_PROC / "self" / "cgroup").read_text().partition("0::/")[2].split("\n")[0]
        folder = next(one for one in (_CGROUP / path, _CGROUP) if (one / "memory.max").exists())
        limit, used = ((folder / f"memory.{name}").read_text() for name in ("max", "current"))
        cached = re.search(r"^inactive_file (\d+)", (folder / "memory.stat").read_text(), re.M)
        return int(limit) - int(used) + (int(cached[1]) if cached else 0)
    except (OSError, ValueError, StopIteration):  # none, or "max"
        return math.inf


def _left_to_the_process() -> float:
    """Returns the bytes left of the limit that `ulimit -v` sets."""
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


@contextlib.contextmanager
def memory_errors_explained(what: str) -> Generator[None]:
    """Has a `MemoryError` of a device or of the host's arrays say what to change.

    Results come late: block until they are ready before leaving the context.

    Args:
      what: is asked for, such as "num_searches=8".
    """
    try:
        yield
    except (jax.errors.JaxRuntimeError, MemoryError) as error:
        if not is_about_memory(error):
            raise
        if isinstance(error, MemoryError):
            raise MemoryError(f"the host ran out of memory with {what}; use fewer") from error
        raise MemoryError(
            f"the device ran out of memory with {what}; use fewer, or more devices"
        ) from error
