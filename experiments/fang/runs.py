"""What is run: all variables of all states get a new value, some times over."""

import statistics
from collections.abc import Callable, Sequence
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
_FEWEST = 3
"""Executions, however long they take."""
_SECONDS_OF_A_PROGRAM = 0.1
_PROGRAMS = 5


class Setting(NamedTuple):
    """What is run and how.

    Attributes:
      load, states, variables, possibilities: as in `paper.Row`.
      way: `"cuda"`, `"xla"` or `"native"`, how the library does it; or `"compiled"`: the loop of
        `compiled.py` on one core.
      devices: how many.
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


class Limits(NamedTuple):
    """How often a setting is executed.

    Attributes:
      executions: at most.
      seconds: no further execution begins after this many, but for the first three.
    """

    executions: int
    seconds: float


def devices_of(way: str, number: int) -> tuple[jax.Device, ...]:
    """Returns this many devices on which a way runs.

    Raises:
      ValueError: if there are none of their kind, or too few, or numba is missing for `"compiled"`.
    """
    if way == "compiled" and not one_core.has_numba():
        raise ValueError("ways has 'compiled', which needs numba, from the extra peers")
    found = find_devices({"cuda": "gpu", "xla": "all"}.get(way, "cpu"))
    most = 1 if way == "compiled" else len(found)
    if number > most:
        raise ValueError(f"devices is {number}, expected at most {most} for {way}")
    return found[:number]


def measure(setting: Setting, limits: Limits) -> dict[str, Any]:
    """Returns the record of a setting.

    Its `seconds` are the times of the executions, as a caller finds them: from the call until all
    successors are in the memory that the states had. `seconds_in_a_program` are the times of an
    execution among many in one program, where no call is in between; only on one GPU.
    """
    devices = devices_of(setting.way, setting.devices)
    if setting.way == "compiled":
        compile_seconds, seconds = _time_compiled(setting, limits)
        in_a_program = []
    else:
        compile_seconds, seconds = _time_calls(setting, limits, devices)
        is_on_gpu = devices[0].platform == "gpu" and len(devices) == 1
        in_a_program = in_one_program(setting, statistics.median(seconds)) if is_on_gpu else []
    return common.record(
        "fang",
        setting.name,
        0,
        setting._asdict(),
        devices,
        seconds=seconds,
        seconds_in_a_program=in_a_program,
        compile_seconds=compile_seconds,
    )


def _timed(execute: Callable[[int], Any], limits: Limits) -> tuple[float, list[float]]:
    """Returns the seconds of the first call, and of those after it."""
    _, first = common.timed(execute, 0)
    seconds: list[float] = []
    while len(seconds) < limits.executions and (
        len(seconds) < _FEWEST or sum(seconds) <= limits.seconds
    ):
        seconds.append(common.timed(execute, len(seconds) + 1)[1])
    return first, seconds


def _time_compiled(setting: Setting, limits: Limits) -> tuple[float, list[float]]:
    heuristic = setting.heuristic
    goals, points = start(setting.states, heuristic)

    def execute(number: int) -> None:
        loop = one_core.compiled(compiled.build, heuristic.side, heuristic.load)
        loop(points.x, points.y, goals.x, goals.y, 0, number)

    return _timed(execute, limits)


def _time_calls(
    setting: Setting, limits: Limits, devices: Sequence[Any]
) -> tuple[float, list[float]]:
    heuristic = setting.heuristic
    goals, points = start(setting.states, heuristic)
    options = {"implementation": setting.way, "devices": devices, "donate": True}
    with jax.default_device(devices[0]):
        goals, states = jax.tree.map(jnp.asarray, (goals, points))
        keys = [random.as_key(number) for number in range(limits.executions + 1)]
        jax.block_until_ready((goals, states, keys))

        def execute(number: int) -> Any:
            nonlocal states
            found = js.successors.generate(keys[number], heuristic, goals, states, **options)
            states = found.states
            return found

        return _timed(execute, limits)


def in_one_program(setting: Setting, seconds: float) -> list[float]:
    """Returns the seconds of an execution in programs of many, on one device.

    Args:
      seconds: about how long an execution takes.
    """
    heuristic, (device,) = setting.heuristic, devices_of(setting.way, setting.devices)

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


def job(setting: Setting, limits: Limits) -> Job:
    """Returns the one run of a setting."""
    text = f"{setting.name}, {setting.way}"
    return Job(setting._asdict(), setting.name, [0], text, lambda _: [measure(setting, limits)])
