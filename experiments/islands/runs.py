"""Runs of islands: on devices, many of one island side by side, and by the compiled loop."""

import concurrent.futures
import dataclasses
import math
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import jaxopt_search as js
from experiments import common
from experiments.common import Progress, Runs
from experiments.islands import compiled
from experiments.islands.paper import FLOW, GAPS, POPULATION
from jaxopt_search.checks import num_cores
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
        makers = {
            "none": None,
            "ring": js.ring(every=RING_EVERY),
            "shuffle": js.shuffle(every=SHUFFLE_EVERY),
        }
        self.exchange = makers[setting.exchange]
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

    def seeds(self, seeds: range) -> range:
        """Returns the `seeds` for which there is a run."""
        return seeds[:_CORE_RUNS] if self.setting.on == "core" else seeds

    def prepare(self, seeds: Sequence[int]) -> None:
        """Compiles what `make` runs on devices."""
        if not seeds or self.setting.on in ("core", "cores"):
            return
        if self._is_side_by_side:
            self._advance(self._start(seeds), 0)
        else:
            self._one(seeds[0], 0)

    def make(self, seeds: Sequence[int]) -> Iterable[dict[str, Any]]:
        """Makes runs, after `prepare` of them, and gives the record of each once it is there."""
        if not seeds:
            return ()
        if self.setting.on in ("core", "cores"):
            return self._by_the_loop(seeds)
        if self._is_side_by_side:
            return self._side_by_side(seeds)
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
        began = time.perf_counter()
        state = jax.block_until_ready(
            split.advance(self.problem, self.search, state, generations, rules)
        )
        seconds = time.perf_counter() - began
        state = split.join(state, islands)
        count, island = js.first_hit(state)
        reached = int(island) >= 0
        made = int(count if reached else state.step)
        solution, _ = js.best(self.problem, self.search, state)
        cost = self.problem.host.cost(np.asarray(solution))
        won = {"island": int(island), "best_cost": cost}
        return self._record(seed, seconds, made, reached, **won)

    def _start(self, seeds: Sequence[int]) -> js.RunState:
        with jax.default_device(self.devices[0]):
            return js.init(seeds[0], self.problem, self.search, num_searches=len(seeds))

    def _side_by_side(self, seeds: Sequence[int]) -> list[dict[str, Any]]:
        """Returns the records of runs of one island each, made together."""
        state = jax.block_until_ready(self._start(seeds))
        seconds, made, done = 0.0, 0, np.zeros(len(seeds), bool)
        records: dict[int, dict[str, Any]] = {}
        while made < self.generations and not done.all():
            left = -(-(self.generations - made) // _LOOKS_IN_A_CALL)
            each = min(max(_LOOK_EVERY, made // _LOOKS_IN_A_RUN), left)
            began = time.perf_counter()
            state, are_there = self._advance(state, each)
            between = (time.perf_counter() - began) / _LOOKS_IN_A_CALL
            for is_there in np.asarray(are_there):
                seconds, made = seconds + between, made + each
                for place in np.flatnonzero(is_there & ~done):
                    records[place] = self._record(seeds[place], seconds, made, True)
                done = is_there
        for place in np.flatnonzero(~done):
            records[place] = self._record(seeds[place], seconds, made, False)
        return [records[place] for place in range(len(seeds))]

    def _advance(self, state: js.RunState, generations: int) -> tuple[js.RunState, jax.Array]:
        with jax.default_device(self.devices[0]):
            return jax.block_until_ready(
                _further(self.problem, self.search, state, self.own_target, jnp.int32(generations))
            )

    def _by_the_loop(self, seeds: Sequence[int]) -> Iterator[dict[str, Any]]:
        """Yields the records of runs of the compiled loop: short ones, or to their ends."""
        is_short = self.setting.on == "core"
        limits = (_CORE_GENERATIONS, -1) if is_short else (self.generations, self.target)
        for seed in seeds:
            end, seconds = compiled.timed(*self._loop(), seed, *limits)
            reached = not is_short and end.cost <= self.target
            more = {} if is_short else {"best_cost": end.cost}
            yield self._record(seed, seconds, end.made, reached, **more)

    def _loop(self) -> tuple[Any, ...]:
        alike = RESTART if self.setting.restarts else math.inf
        setup = compiled.Setup(self.setting.population, self.setting.mutation, alike)
        return self.instance.flow, self.instance.distance, setup

    def settings(self) -> dict[str, Any]:
        """Returns what tells a run from others on the same instance."""
        return self.setting._asdict() | {"limit": self.generations}

    def _record(
        self, seed: int, seconds: float, made: int, reached: bool, **more: Any
    ) -> dict[str, Any]:
        found = {"reached": reached, "seconds": seconds, "generations": made, **more}
        return common.record("qap_islands", self.name, seed, self.settings(), self.devices, **found)


def execute(planned: tuple[Sequence[Task], range], runs: Runs) -> list[dict[str, Any]]:
    """Makes the runs that are not in the file yet; returns the records of all."""
    plan, seeds = planned
    progress, wanted = Progress(sum(len(task.seeds(seeds)) for task in plan)), []
    missing = [
        [s for s in task.seeds(seeds) if not runs.has(task.settings(), task.name, s)]
        for task in plan
    ]
    # Several at a time, unless they talk between devices: then all have to do so in one order.
    is_spread = any(len(task.devices) > 1 for task in plan)
    with concurrent.futures.ThreadPoolExecutor(1 if is_spread else num_cores()) as pool:
        list(pool.map(Task.prepare, plan, missing))
    for task, left in zip(plan, missing, strict=True):
        wanted += [(task.settings(), task.name, seed) for seed in task.seeds(seeds)]
        progress.skip(len(task.seeds(seeds)) - len(left))
        for record in task.make(left):
            runs.add(record)
            progress.step(1, f"{task.name}, {task.setting.islands} x {task.setting.population}")
    return runs.those(wanted)
