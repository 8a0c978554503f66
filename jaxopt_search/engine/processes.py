# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false
"""The processes that share a run, each with devices of its own; most runs have but one.

All make the same calls in the same order, and see the same results. What depends on a clock, a
person or a file is up to the first of them, the lead, who tells the others.
"""

import contextlib
import dataclasses
import functools
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from typing import Any

import jax
import numpy as np

from jaxopt_search.errors import is_about_memory

# What goes wrong between processes shows where results are waited for, as one of several errors.
_OF_XLA = re.compile(r"[A-Z_]{5,}: ")
_REFUSED, _MOST_LETTERS = np.zeros(2, np.uint32), 400


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
        if jax.process_count() == 1:
            return self.devices
        me = jax.process_index()
        return tuple(device for device in self.devices if device.process_index == me)

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
        """Has the error of a device tell that another process may be gone."""
        try:
            yield
        except (jax.errors.JaxRuntimeError, ValueError) as error:
            is_told = _OF_XLA.match(str(error)) and not is_about_memory(error)
            if not self.is_shared or not is_told:
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


def in_order(devices: Sequence[jax.Device]) -> tuple[jax.Device, ...]:
    """Returns devices in order of their processes.

    Raises:
      ValueError: if they are of several processes, but not as many of each.
    """
    counts = Counter(device.process_index for device in devices)
    if set(counts) == {jax.process_index()}:
        return tuple(devices)
    if len(counts) < jax.process_count() or len(set(counts.values())) > 1:
        found = ", ".join(f"{count} of process {one}" for one, count in sorted(counts.items()))
        raise ValueError(
            f"devices are {found}, expected those of this process alone or as many of each of the"
            f" {jax.process_count()} processes"
        )
    return tuple(sorted(devices, key=lambda device: device.process_index))
