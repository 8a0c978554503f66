# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false
"""What a run takes of a device's memory: counted here only, and refused if it is too much.

The most is taken at one of few moments. What stays there then follows from shapes; what programs
need besides only compiling them tells: see `memory_use`.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax

from jaxopt_search.engine import apart
from jaxopt_search.engine.processes import Team
from jaxopt_search.engine.state import RunState
from jaxopt_search.guards import capacity

_MIB = 2**20


class MemoryEstimate(NamedTuple):
    """The bytes that a run takes on the device that holds most, at the moment when it holds most.

    Devices of a CPU share its memory and count together. `str` tells all of it in one line.

    Attributes:
      instance: the problem, the search and the exchange.
      states: of the searches: from before and after a program, both while it runs.
      temporaries: what the compiled program needs besides.
      solutions: the best one of each search, read out after each chunk, and their costs; or those
        that an exchange offers.
      when: the moment: `"start"`, `"steps"`, `"exchange"` and `"adoption"` for one by programs of
        its own, `"look"` at the best solutions, or `"end"`, when the devices' states are joined.
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
    *,
    solution: Any = None,
    temporaries: Mapping[str, int] | None = None,
    states_at_a_look: int = 1,
) -> MemoryEstimate:
    """Returns what a run takes when it takes most.

    Args:
      parts: the problem, the search and, if there is one, the exchange; or their shapes.
      state: of all searches, or its shapes.
      devices: those over which the searches are spread.
      solution: the shape of one.
      temporaries: what a program needs besides, by the moment; without, only what stays.
      states_at_a_look: 2 if it makes another one.
    """
    # Then a chunk has a third state, and solutions that are offered.
    is_apart = any(apart.is_apart(part, devices[0]) for part in parts[2:])
    (num_searches,), num = state.index.shape, len(devices)
    instance, everyone = num_bytes(parts), num_bytes(state)
    # On one device, or in the memory that all of them share.
    times = len(Team(tuple(devices)).own) if capacity.is_shared(devices) else 1
    own = times * -(-num_searches // num) / num_searches
    each = math.ceil(own * everyone)
    read_out = math.ceil(own * num_searches * (num_bytes(solution) + 4))
    moments = {"start": (everyone, 0), "steps": ((3 if is_apart else 2) * each, 0)}
    if is_apart:
        moments |= {"exchange": (2 * each, read_out), "adoption": (3 * each, read_out)}
    moments["look"] = (states_at_a_look * each, read_out)
    if num > 1:
        moments["end"] = (each + everyone, read_out)
    found = temporaries or {}
    return max(
        (
            MemoryEstimate(
                instance=instance * (1 if name == "start" else times),
                states=states,
                temporaries=found.get(name, 0) * (1 if name == "start" else times),
                solutions=solutions,
                when=name,
            )
            for name, (states, solutions) in moments.items()
        ),
        key=lambda one: one.total,
    )


def check(
    parts: Sequence[Any], needed: MemoryEstimate, num_searches: int, devices: Sequence[jax.Device]
) -> None:
    """Refuses searches that do not fit into the memory that is free on the first device.

    Args:
      parts: the problem and others, as in `estimate`.

    Raises:
      MemoryError: with what they take, what is free, and what to change.
    """
    lighter = parts[0].lighter if 2 * needed.instance > needed.total else ""
    bound = "" if needed.temporaries else " at least"
    to_come = needed.total - _already_on(Team(tuple(devices)).own[0], parts)
    capacity.check_searches(to_come, num_searches, devices, bound, lighter)


def _already_on(device: jax.Device, tree: Any) -> int:
    """Returns the bytes of arrays that a device holds, which are not free there any more."""
    arrays = (leaf for leaf in jax.tree.leaves(tree) if isinstance(leaf, jax.Array))
    return sum(num_bytes(leaf) for leaf in arrays if device in leaf.devices())


def num_bytes(tree: Any) -> int:
    """Returns the bytes of a pytree's arrays, or of arrays of its shapes."""
    avals = map(jax.typeof, jax.tree.leaves(tree))
    return sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in avals)
