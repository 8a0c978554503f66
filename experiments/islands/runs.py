"""Runs of islands: on devices, many of one island side by side, and by the compiled loop."""

import dataclasses
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import jaxopt_search as js
from experiments import common, one_core
from experiments.common import Job
from experiments.islands import compiled
from experiments.islands.paper import FLOW, GAPS, POPULATION
from jaxopt_search.datasets.instances import QAPInstance
from jaxopt_search.engine.devices import find_devices
from jaxopt_search.engine.split import DeviceSplit
from jaxopt_search.engine.state import make_rules
from jaxopt_search.types import Search

RESTART = 0.6

RING_EVERY, SHUFFLE_EVERY = 50, 500
"""Generations between exchanges; the second as in an earlier model of the authors."""

_LOOK_EVERY = 50  # generations

_LOOKS_IN_A_RUN = 100  # at least, in a long run

_LOOKS_IN_A_CALL = 10

_CORE_RUNS, _CORE_GENERATIONS = 3, 1000
"""What tells how long a generation takes on one core."""


class Setting(NamedTuple):
    """What a run is, besides its instance and seed."""

    islands: int
    population: int = POPULATION
    restarts: bool = True
    mutation: float = 1.0
    local_steps: int = 0
    on: str = "all"
    """`"all"` devices, or how many of them; `"core"`: short runs of the compiled loop on one core,
    which tell its pace; `"cores"`: runs of it to their ends, which tell how many generations they
    take."""
    encoding: str = "paper"
    """`"paper"`: as in its equation 1; `"file"`: the first matrix of a QAPLIB file is the flow."""
    crossover: str = "pmx"
    keep_best: bool = False
    exchange: str = "none"


@jax.jit
def _further(
    problem: js.QAP, search: Search, state: js.RunState, target: jax.Array, generations: jax.Array
) -> tuple[js.RunState, jax.Array]:
    """Returns the state after some looks, and who was done at each.

    Args:
      generations: from one look to the next.
    """

    def look(state: js.RunState, _: None) -> tuple[js.RunState, jax.Array]:
        state = js.advance(problem, search, state, generations)
        return state, state.searches.best_cost <= target

    return lax.scan(look, state, None, length=_LOOKS_IN_A_CALL)


class Task:
    """How runs of a setting on an instance are made, of at most this many generations."""

    def __init__(self, instance: QAPInstance, setting: Setting, generations: int):
        if setting.encoding == "paper" and FLOW.get(instance.name) == 2:
            matrices = {"flow": instance.distance, "distance": instance.flow}
            instance = dataclasses.replace(instance, **matrices)
        self.instance, self.problem = instance, js.qap_from_instance(instance)
        self.search = js.genetic(
            population_size=setting.population,
            crossover=setting.crossover,
            mutation_rate=setting.mutation,
            alike=RESTART if setting.restarts else None,
            keep_best=setting.keep_best,
            local_search=js.hill_climbing(js.SwapTable()) if setting.local_steps else None,
            local_steps=max(setting.local_steps, 1),
        )
        exchanges = {"ring": js.ring(every=RING_EVERY), "shuffle": js.shuffle(every=SHUFFLE_EVERY)}
        self.exchange = exchanges.get(setting.exchange)
        self.name, self.setting, self.generations = instance.name, setting, generations
        is_single = setting.on == "all" and setting.islands == 1
        is_compiled = setting.on in ("core", "cores")
        on = "cpu" if is_compiled else "all" if setting.on == "all" else int(setting.on)
        devices = find_devices(on)
        self.devices = devices[:1] if is_single or is_compiled else devices
        self.target = math.floor((instance.best_known or 0) * (1 + GAPS.get(instance.name, 0.0)))
        host = self.problem.host
        self.own_target = jnp.int32(self.target // host.unit - host.offset)
        self._is_side_by_side = is_single

    def make(self, seeds: Sequence[int]) -> Iterable[dict[str, Any]]:
        """Makes runs, and gives the record of each once it is there."""
        if self.setting.on in ("core", "cores"):
            return self._by_the_loop(seeds)
        if self._is_side_by_side:
            return self._side_by_side(seeds)
        self._one(seeds[0], 0)  # compiles
        return (self._one(seed, self.generations) for seed in seeds)

    def _one(self, seed: int, generations: int) -> dict[str, Any]:
        """Returns the record of a run."""
        islands, split = self.setting.islands, DeviceSplit(self.devices)
        with jax.default_device(self.devices[0]):
            state = js.init(seed, self.problem, self.search, num_searches=islands)
        state = jax.block_until_ready(split.split(state))
        rules = make_rules(
            self.search, state.best_cost.dtype, exchange=self.exchange, target=self.own_target
        )
        own = self.problem, self.search, state
        state, seconds = common.timed(split.steps(*own, generations, rules))
        state = split.join(state, islands)
        count, island = js.first_hit(state)
        reached = int(island) >= 0
        made = int(count if reached else state.step)
        solution, _ = js.best(self.problem, self.search, state)
        cost = self.problem.host.cost(np.asarray(solution))
        won = {"island": int(island), "best_cost": cost}
        return self._record(seed, seconds, made, reached, **won)

    def _side_by_side(self, seeds: Sequence[int]) -> list[dict[str, Any]]:
        """Returns the records of runs of one island each, made together."""
        with jax.default_device(self.devices[0]):
            state = js.init(seeds[0], self.problem, self.search, num_searches=len(seeds))
            jax.block_until_ready(self._further(state, 0))  # compiles
            seconds, made, done = 0.0, 0, np.zeros(len(seeds), bool)
            records: dict[int, dict[str, Any]] = {}
            while made < self.generations and not done.all():
                left = -(-(self.generations - made) // _LOOKS_IN_A_CALL)
                each = min(max(_LOOK_EVERY, made // _LOOKS_IN_A_RUN), left)
                (state, are_there), took = common.timed(self._further, state, each)
                for is_there in np.asarray(are_there):
                    seconds, made = seconds + took / _LOOKS_IN_A_CALL, made + each
                    for place in np.flatnonzero(is_there & ~done):
                        records[place] = self._record(seeds[place], seconds, made, True)
                    done = is_there
        for place in np.flatnonzero(~done):
            records[place] = self._record(seeds[place], seconds, made, False)
        return [records[place] for place in range(len(seeds))]

    def _further(self, state: js.RunState, each: int) -> tuple[js.RunState, jax.Array]:
        return _further(self.problem, self.search, state, self.own_target, jnp.int32(each))

    def _by_the_loop(self, seeds: Sequence[int]) -> Iterator[dict[str, Any]]:
        """Yields the records of runs of the compiled loop: short ones, or to their ends."""
        is_short, loop = self.setting.on == "core", one_core.compiled(compiled.build)
        limits = (_CORE_GENERATIONS, -1) if is_short else (self.generations, self.target)
        alike = RESTART if self.setting.restarts else math.inf
        setup = compiled.Setup(self.setting.population, self.setting.mutation, alike)
        matrices = self.instance.flow, self.instance.distance
        data = *(np.ascontiguousarray(matrix, np.int32) for matrix in matrices), setup
        loop(*data, 0, 1, -1)  # compiles
        for seed in seeds:
            (made, cost, _), seconds = common.timed(loop, *data, seed, *limits)
            reached = not is_short and cost <= self.target
            more = {} if is_short else {"best_cost": cost}
            yield self._record(seed, seconds, made, reached, **more)

    def settings(self) -> dict[str, Any]:
        """Returns what tells a run from others on the same instance."""
        return self.setting._asdict() | {"limit": self.generations}

    def _record(
        self, seed: int, seconds: float, made: int, reached: bool, **more: Any
    ) -> dict[str, Any]:
        found = {"reached": reached, "seconds": seconds, "generations": made, **more}
        return common.record("qap_islands", self.name, seed, self.settings(), self.devices, **found)


def job(task: Task, seeds: range) -> Job:
    """Returns the runs of a task, of which the compiled loop needs few to tell its pace."""
    setting, seeds = task.setting, seeds[:_CORE_RUNS] if task.setting.on == "core" else seeds
    text = f"{task.name}, {setting.islands} x {setting.population}"
    return Job(task.settings(), task.name, seeds, text, task.make)
