# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false
"""Devices and processes: which there are, where arrays lie, and what they tell one another.

`split` spreads a run over them. Nothing else asks JAX about devices.
"""

import contextlib
import dataclasses
import functools
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import ShapedArray, Tracer
from jax.extend.core import Primitive
from jax.interpreters import mlir
from jax.sharding import Mesh, Sharding, SingleDeviceSharding

from jaxopt_search.backends.choice import platform_of
from jaxopt_search.errors import is_about_memory
from jaxopt_search.interrupts import refuse_orphans

Parameters = ParamSpec("Parameters")
T = TypeVar("T")
Devices: TypeAlias = int | str | jax.Device | Sequence[jax.Device] | None

AXIS = "devices"
"""The name that `pmap` has for the devices; another name would compile for arrays of this one."""

# What goes wrong between processes shows where results are waited for, as one of several errors.
_OF_XLA = re.compile(r"[A-Z_]{5,}: ")
_REFUSED, _MOST_LETTERS = np.zeros(2, np.uint32), 400
_MULTIPROCESSORS = 132  # of an NVIDIA H100


# Which devices there are.


def find_devices(devices: Devices) -> tuple[jax.Device, ...]:
    """Returns the devices a user means, in order of their processes.

    Args:
      devices: None for the default device; `"all"`; a platform such as `"gpu"` for all of it; how
        many of this process's devices; one device, or several. After `jax.distributed.initialize`,
        those of all processes count as all.

    Raises:
      ValueError: if there are no such devices, with the list of those there are; or if they are of
        several processes, but not as many of each.
      RuntimeError: if JAX cannot work here; see `interrupts.refuse_orphans`.
    """
    refuse_orphans()
    found: Sequence[jax.Device] = ()
    match devices:
        case None:
            found = (default_device(),)
        case "all":
            found = jax.devices()
        case str():
            with contextlib.suppress(RuntimeError):
                found = jax.devices(devices) if devices else ()
        case jax.Device():
            found = (devices,)
        case int() | np.integer() if not isinstance(devices, bool):
            local = jax.local_devices()
            found = local[:devices] if 0 < devices <= len(local) else ()
        case Sequence() if all(isinstance(device, jax.Device) for device in devices):
            found = devices
        case _:
            pass
    if not found or len(set(found)) < len(found):
        names = ", ".join(str(device) for device in jax.devices())
        if isinstance(devices, str):
            raise ValueError(f"devices is {devices!r}, of which JAX sees none; it sees {names}")
        raise ValueError(f"devices is {devices!r}, expected different ones of: {names}")
    counts = Counter(device.process_index for device in found)
    if set(counts) == {jax.process_index()}:
        return tuple(found)
    if len(counts) < jax.process_count() or len(set(counts.values())) > 1:
        each = ", ".join(f"{count} of process {one}" for one, count in sorted(counts.items()))
        raise ValueError(
            f"devices are {each}, expected those of this process alone or as many of each of the"
            f" {jax.process_count()} processes"
        )
    return tuple(sorted(found, key=lambda device: device.process_index))


def default_device() -> jax.Device:
    """Returns JAX's default device, or the one that the user has set for it."""
    default = getattr(jax.config, "jax_default_device", None)
    return default if isinstance(default, jax.Device) else jax.local_devices()[0]


def host_device() -> jax.Device:
    """Returns a CPU of this process, or the default device where JAX is told to have no CPU."""
    with contextlib.suppress(RuntimeError):
        return jax.local_devices(backend="cpu")[0]
    return default_device()


def is_cpu(device: jax.Device | str) -> bool:
    """Returns whether a device, or a platform, is a CPU; a CPU's devices share one memory."""
    return platform_of(device) == "cpu"


def for_device(number: int, device: jax.Device) -> int:
    """Returns how many searches a device runs at once, where an NVIDIA H100 runs `number`.

    In proportion to the multiprocessors of a GPU, at least one.

    Example:
      >>> import types
      >>> for_device(2112, types.SimpleNamespace(platform="gpu", core_count=40))  # such as a T4
      640
    """
    count = None if is_cpu(device) else getattr(device, "core_count", None)
    return number if count is None else max(1, number * int(count) // _MULTIPROCESSORS)


def describe(devices: Sequence[jax.Device]) -> str:
    """Returns the number and the kind of devices, such as "4 x cpu"."""
    return f"{len(devices)} x {devices[0].device_kind}"


def device_of(array: jax.Array) -> jax.Device:
    """Returns a device that holds `array`; one of JAX's default platform while it is traced."""
    return jax.local_devices()[0] if isinstance(array, Tracer) else next(iter(array.devices()))


def devices_of(tree: Any) -> list[jax.Device]:
    """Returns the devices of arrays, and of shapes that are told where they lie, each once."""
    known = (jax.Array, jax.ShapeDtypeStruct)
    placed = [leaf.sharding for leaf in jax.tree.leaves(tree) if isinstance(leaf, known)]
    return list(set().union(*(sharding.device_set for sharding in placed if sharding is not None)))


# Where a call is made: inside a function that is being traced, or outside, and with what settings.

_has_mesh = ContextVar("has_mesh", default=False)
"""Whether a driver was called within a mesh."""


def is_traced(tree: Any) -> bool:
    """Returns whether the caller is being traced, by `jit` or another transformation."""
    return any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves((_probe.bind(), tree)))


# An operation without a program of its own, unlike all others: what it returns tells who runs it.
_probe = Primitive("probe")
_probe.def_impl(lambda: np.float32(0))
_probe.def_abstract_eval(lambda: ShapedArray((), np.dtype("float32")))
mlir.register_lowering(_probe, mlir.lower_fun(lambda: jnp.float32(0), multiple_results=False))


def host_driver(driver: Callable[Parameters, T]) -> Callable[Parameters, T]:
    """Returns a driver that leaves its caller's mesh and transfer guard: it places its arrays.

    It refuses to be called where JAX would hang, and inside a traced function.
    """

    @functools.wraps(driver)
    def called(*args: Parameters.args, **kwargs: Parameters.kwargs) -> T:
        refuse_orphans()
        given = (*args, *kwargs.values())
        if is_traced([one for one in given if not isinstance(one, list)]):  # which may be long
            raise RuntimeError(
                f"{driver.__name__} is a host driver and was called inside jit or vmap; use run"
                " there"
            )
        before = _has_mesh.set(not jax.sharding.get_abstract_mesh().empty)
        try:
            with settings_left():
                return driver(*args, **kwargs)
        finally:
            _has_mesh.reset(before)

    return called


@contextlib.contextmanager
def settings_left() -> Generator[None]:
    """Leaves the caller's mesh and guard, as `host_driver` does; also for the driver's threads."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(jax.transfer_guard("allow"))
        if _has_mesh.get():  # else programs were compiled once more
            stack.enter_context(jax.set_mesh(Mesh(np.empty((), object), ())))
        yield


# Where arrays lie. It tells programs apart: one that is compiled ahead serves a call only if the
# arrays of the call lie where the shapes said that they would.


def only_on(device: jax.Device) -> Sharding:
    """Returns where arrays lie that are bound to a device."""
    return SingleDeviceSharding(device)


def is_bound(tree: Any) -> bool:
    """Returns whether an array is bound to its device, and so is all that is made of it."""
    arrays = (leaf for leaf in jax.tree.leaves(tree) if isinstance(leaf, jax.Array))
    return any(array.committed for array in arrays)


def is_all_on(tree: Any, device: jax.Device) -> bool:
    """Returns whether a device is the default one and has all arrays; elsewhere they are bound."""
    arrays = (leaf for leaf in jax.tree.leaves(tree) if isinstance(leaf, jax.Array))
    return device == default_device() and all(
        array.devices() == {device} and jax.typeof(array).sharding.mesh.empty for array in arrays
    )


def shapes(tree: Any, where: Sharding | None = None) -> Any:
    """Returns the shapes of arrays that lie there; None for where JAX puts them."""

    def shape(leaf: Any) -> jax.ShapeDtypeStruct:
        one = leaf if isinstance(leaf, jax.ShapeDtypeStruct) else jax.typeof(leaf)
        kind: Any = {"dtype": one.dtype, "weak_type": one.weak_type}
        return jax.ShapeDtypeStruct(one.shape, sharding=where, **kind)

    return jax.tree.map(shape, tree)


def split_leaf(num_devices: int, leaf: Any) -> np.ndarray:
    """Returns a leaf [N, ...] in equal parts, [D, ...]; copies of the last entry fill them up."""
    leaf = np.asarray(leaf)
    filled = np.concatenate([leaf, np.repeat(leaf[-1:], -len(leaf) % num_devices, axis=0)])
    return filled.reshape(num_devices, -1, *leaf.shape[1:])


def split_shape(num_devices: int, leaf: Any) -> jax.ShapeDtypeStruct:
    """Returns the shape of the array that `split_leaf` returns."""
    size, *rest = leaf.shape
    return jax.ShapeDtypeStruct((num_devices, -(-size // num_devices), *rest), leaf.dtype)


# What devices tell one another within a program: identities where there is no device axis.


def all_gather(tree: Any, axis_name: str | None) -> Any:
    """Returns the leaves of all devices joined along their first axis, in device order."""
    if axis_name is None:
        return tree
    return jax.tree.map(lambda leaf: lax.all_gather(leaf, axis_name, tiled=True), tree)


def minimum(value: jax.Array, axis_name: str | None) -> jax.Array:
    """Returns the smallest value of any device."""
    return value if axis_name is None else lax.pmin(value, axis_name)


def total(value: jax.Array, axis_name: str | None) -> jax.Array:
    """Returns the sum over devices."""
    return value if axis_name is None else lax.psum(value, axis_name)


def device_index(axis_name: str | None) -> jax.Array:
    """Returns the number of this device along the axis, int32."""
    return jnp.int32(0) if axis_name is None else lax.axis_index(axis_name).astype(jnp.int32)


# The processes that share a run, each with devices of its own; most runs have but one. All make the
# same calls in the same order, and see the same results. What depends on a clock, a person or a
# file is up to the first of them, the lead, who tells the others.


@dataclasses.dataclass(frozen=True)
class Team:
    """The processes of some devices.

    Attributes:
      devices: of all of them, in order of the processes, as many of each.
    """

    devices: tuple[jax.Device, ...]

    @functools.cached_property
    def own(self) -> tuple[jax.Device, ...]:
        """Those of this process."""
        return tuple(filter(has, self.devices))

    @property
    def is_shared(self) -> bool:
        """Whether there are other processes."""
        return len(self.own) < len(self.devices)

    @property
    def is_lead(self) -> bool:
        """Whether this is the process that decides, and writes files."""
        return self.own[:1] == self.devices[:1]

    @property
    def rows(self) -> slice:
        """Where the own devices are among all."""
        first = self.devices.index(self.own[0])
        return slice(first, first + len(self.own))

    def gathered(self, tree: Any) -> Any:
        """Returns leaves [D, ...], NumPy's, of all devices, from the leaves of the own ones.

        One leaf after the other: each of them is on every device for a moment.
        """
        return jax.tree.map(_from_all, tree) if self.is_shared else jax.device_get(tree)

    def told(self, number: float) -> float:
        """Returns the lead's number."""
        if not self.is_shared:
            return number
        words = np.array([number], np.float64).view(np.uint32)  # JAX may know no float64
        return _from_all(words[None])[0].view(np.float64).item()

    def highest(self, number: int) -> int:
        """Returns the highest number of any process."""
        return int(_from_all(np.array([number], np.int32)).max()) if self.is_shared else number

    @contextlib.contextmanager
    def same_call(self) -> Generator[Callable[..., None]]:
        """Compares the calls of the processes at the end of the block.

        Yields a function that takes the parts that must be the same, by `repr`. Where the block
        fails in a process, the others fail with it.

        Raises:
          ValueError: if it is not the same in all processes.
          RuntimeError: if another process has refused the call, with its reason.
        """
        digest = hashlib.sha256()

        def note(*parts: Any) -> None:
            digest.update(repr(parts).encode())

        if not self.is_shared:
            yield note
            return
        try:
            yield note
        except BaseException as error:
            with contextlib.suppress(Exception):
                _compared(_REFUSED, str(error) or type(error).__name__)
            raise
        words = np.frombuffer(digest.digest()[:8], np.uint32)
        with self.losses_explained():
            found, reasons = _compared(words)
        for number, reason in enumerate(reasons):
            if reason:
                raise RuntimeError(f"process {number} has refused this call: {reason}")
        for number, own in enumerate(found):
            if (own != found[0]).any():
                raise ValueError(
                    f"process {number} was called with other arguments than process 0, expected the"
                    " same in all processes"
                )

    @contextlib.contextmanager
    def losses_explained(self) -> Generator[None]:
        """Has the error of a device tell that another of several processes may be gone."""
        try:
            yield
        except (jax.errors.JaxRuntimeError, ValueError) as error:
            if not _OF_XLA.match(str(error)) or is_about_memory(error):
                raise
            number, line = jax.process_count(), str(error).splitlines()[0]
            raise RuntimeError(
                f"one of the {number} processes of this run has ended or is out of reach: {line}"
            ) from error


def _compared(words: np.ndarray, reason: str = "") -> tuple[np.ndarray, list[str]]:
    """Returns the words of all processes and, if one of them refuses, the reasons of all."""
    found = _from_all(words[None])
    if not (found == _REFUSED).all(axis=1).any():
        return found, []
    letters = reason.encode()[:_MOST_LETTERS].ljust(_MOST_LETTERS)
    all_letters = _from_all(np.frombuffer(letters, np.uint8)[None])
    return found, [bytes(each).decode(errors="ignore").strip() for each in all_letters]


def _from_all(array: Any) -> np.ndarray:
    """Returns the arrays [N, ...] of all processes after one another."""
    from jax.experimental import multihost_utils

    return np.asarray(multihost_utils.process_allgather(np.asarray(array), tiled=True))


def has(device: jax.Device) -> bool:
    """Returns whether a device is of this process."""
    return device.process_index == jax.process_index()


def are_alone() -> bool:
    """Returns whether there is no other process."""
    return jax.process_count() == 1


ALONE = Team(())
"""One process, where no devices are known."""
