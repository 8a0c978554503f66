"""What is run: all variables of all states get a new value, some times over."""

import statistics
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

import jaxopt_search as js
from experiments import common, one_core
from experiments.common import Job
from experiments.fang import compiled
from experiments.fang.heuristic import Nearer, start
from experiments.fang.paper import Row
from jaxopt_search.backends import random
from jaxopt_search.engine.devices import find_devices

WAYS = ("cuda", "xla", "native", "compiled")
_FEWEST, _MOST = 3, 100
"""Executions: so many however long they take, and at most."""
_SECONDS_OF_A_PROGRAM = 0.1
_PROGRAMS = 5


class Setting(NamedTuple):
    """What is run and how.

    Attributes:
      load, states, variables, possibilities: as in `paper.Row`.
      way: `"cuda"`, `"xla"` or `"native"`, how the library does it; or `"compiled"`: the loop of
        `compiled.py` on one core.
      devices: one in all records.
      in_floats: as in `Nearer`.
    """

    load: int
    states: int
    variables: int
    possibilities: int
    way: str
    devices: int = 1
    in_floats: bool = False

    @classmethod
    def of(cls, record: dict[str, Any]) -> "Setting":
        return cls(*(record["settings"][name] for name in cls._fields))

    @property
    def row(self) -> Row:
        return Row(*self[:4])

    @property
    def name(self) -> str:
        return "{1} x {2} x {3}, load {0}".format(*self.row)

    @property
    def heuristic(self) -> Nearer:
        side = round((self.possibilities + 1) ** 0.5)
        return Nearer(
            num_variables=self.variables, side=side, load=self.load, in_floats=self.in_floats
        )


def device_of(way: str) -> jax.Device:
    """Returns the device on which a way runs.

    Raises:
      ValueError: if there is none of its kind, or numba is missing for `"compiled"`.
    """
    if way == "compiled" and not one_core.has_numba():
        raise ValueError("ways has 'compiled', which needs numba, from the extra peers")
    return find_devices({"cuda": "gpu", "xla": "all"}.get(way, "cpu"))[0]


def measure(setting: Setting, device: jax.Device, max_seconds: float) -> dict[str, Any]:
    """Returns the record of a setting; after `max_seconds` no further execution begins.

    Its `seconds` are the times of the executions, as a caller finds them: from the call until all
    successors are in the memory that the states had. `seconds_in_a_program` are the times of an
    execution among many in one program, where no call is in between; only on one GPU.
    """
    time_calls = _time_compiled if setting.way == "compiled" else _time_calls
    compile_seconds, seconds = time_calls(setting, device, max_seconds)
    in_a_program = []
    if device.platform == "gpu":
        in_a_program = in_one_program(setting, device, statistics.median(seconds))
    return common.record(
        "fang",
        setting.name,
        0,
        setting._asdict(),
        (device,),
        seconds=seconds,
        seconds_in_a_program=in_a_program,
        compile_seconds=compile_seconds,
    )


def _timed(execute: Callable[[int], Any], max_seconds: float) -> tuple[float, list[float]]:
    """Returns the seconds of the first call, and of those after it."""
    _, first = common.timed(execute, 0)
    seconds: list[float] = []
    while len(seconds) < _FEWEST or (len(seconds) < _MOST and sum(seconds) <= max_seconds):
        seconds.append(common.timed(execute, len(seconds) + 1)[1])
    return first, seconds


def _time_compiled(
    setting: Setting, device: jax.Device, max_seconds: float
) -> tuple[float, list[float]]:
    heuristic = setting.heuristic
    goals, points = start(setting.states, heuristic)

    def execute(number: int) -> None:
        loop = one_core.compiled(compiled.build, heuristic.side, heuristic.load)
        loop(points.x, points.y, goals.x, goals.y, 0, number)

    return _timed(execute, max_seconds)


def _time_calls(
    setting: Setting, device: jax.Device, max_seconds: float
) -> tuple[float, list[float]]:
    heuristic = setting.heuristic
    goals, points = start(setting.states, heuristic)
    options = {"implementation": setting.way, "devices": (device,), "donate": True}
    with jax.default_device(device):
        goals, states = jax.tree.map(jnp.asarray, (goals, points))
        keys = [random.as_key(number) for number in range(_MOST + 1)]
        jax.block_until_ready((goals, states, keys))

        def execute(number: int) -> Any:
            nonlocal states
            found = js.successors.generate(keys[number], heuristic, goals, states, **options)
            states = found.states
            return found

        return _timed(execute, max_seconds)


def in_one_program(setting: Setting, device: jax.Device, seconds: float) -> list[float]:
    """Returns the seconds of an execution in programs of many.

    Args:
      seconds: about how long an execution takes.
    """
    heuristic = setting.heuristic

    @jax.jit
    def run(goals: Any, states: Any, number: jax.Array) -> Any:
        def one(i: jax.Array, states: Any) -> Any:
            key = random.Key(jnp.uint32(0), i.astype(jnp.uint32))
            options = {"implementation": setting.way}
            return js.successors.generate(key, heuristic, goals, states, **options).states

        return lax.fori_loop(0, number, one, states)

    number = min(max(int(_SECONDS_OF_A_PROGRAM / seconds), 1), 1000)
    with jax.default_device(device):
        given = jax.tree.map(jnp.asarray, start(setting.states, heuristic))
        jax.block_until_ready(run(*given, jnp.int32(1)))
        times = [common.timed(run, *given, jnp.int32(number))[1] for _ in range(_PROGRAMS)]
    return [seconds / number for seconds in times]


def job(setting: Setting, device: jax.Device, max_seconds: float) -> Job:
    """Returns the one run of a setting."""
    text, make = f"{setting.name}, {setting.way}", lambda _: [measure(setting, device, max_seconds)]
    return Job(setting._asdict(), setting.name, [0], text, make)
