"""Islands of a genetic algorithm on the QAP: Tables I to III of Tsutsui and Fujimoto and more.

    python -m experiments.qap_islands --table 1 --instances tai25b --runs 5
    python -m experiments.qap_islands --table 2 --islands 1,30,60 --runs 30 --out islands.jsonl
    python -m experiments.qap_islands --table 3 --instances all --out one_core.jsonl
    python -m experiments.qap_islands --table 4 --islands 132,264 --devices 1,2 --out devices.jsonl
    python -m experiments.qap_islands --table 5 --islands 30 --out variants.jsonl
    python -m experiments.qap_islands --report islands.jsonl,more.jsonl --table 2 --markdown
    python -m experiments.qap_islands --report islands.jsonl --table 2 --figure 6 --plot fit.png

Each run goes on until one island has found an acceptable assignment, or to a limit. Seconds are
those from the first populations, which lie on the devices, to the end, without compilation. An
island has 128 individuals and starts anew where 60% of it are equally good, as in the paper.
Matrices are read as the paper's equation 1 has them (`paper_islands.FLOW`); `--encoding file` takes
the first of each file as the flow. `--mutation 0.1` is the paper's rate; docs/islands.md says why
the default is another. `--local-steps` makes the algorithm memetic.

Runs of one island are made side by side, as many as there are seeds: they exchange nothing, and a
GPU takes no longer for one island on each multiprocessor than for a single one. Every 50
generations, beyond 5000 every hundredth of those made, it is looked which of them are done, and
their seconds are those until then.

Table 1: one island, without and with starting anew.
Table 2: p islands on all devices; beside the mean time T its gain over one island, and M(p): the
time that a gamma distribution predicts, fitted to the runs of one island by least squares.
Table 3: as many islands as the most in `--islands` on all devices, beside one population on one
core of the CPU, of 128 (the paper's Model II), and of that size among `--sizes` which takes the
shortest mean time (Model I). The core runs a compiled loop (`compiled_islands.py`), which makes
a thousand generations, so that it is known how long one takes. How many a population makes is
counted by runs on the first device, or by runs of the loop on all cores (`--only cores`).
Table 4: islands spread over so many devices; beside T the gain over the fewest devices, with as
many islands in all, and with as many on each, where M(p) predicts it; and how many runs have the
same first finisher, at the same generation and cost, as on the fewest.
Table 5: islands that differ from those of Table 2 in one thing: the rate of mutation, crossover,
what is kept where one starts anew, migration, or the encoding.
Table 6: how far distributions are from the times of one island.
Table 7: generations of one island by encoding.
Table 8: how many runs of one island without restarts find it, by the rate of mutation.
Figures 5 and 6, with `--plot`: the times of one island, and their distribution with its fit.
"""

import argparse
import concurrent.futures
import dataclasses
import functools
import math
import multiprocessing
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import jaxopt_search as js
from experiments import common, compiled_islands, flag_types
from experiments.common import Progress, Runs
from experiments.paper_islands import FLOW, GAPS, INSTANCES, POPULATION
from experiments.qap_islands_tables import FIGURES, TABLES, VARIANTS
from jaxopt_search.datasets.instances import QAPInstance
from jaxopt_search.engine import device_split
from jaxopt_search.engine.state import make_rules
from jaxopt_search.portable import counts
from jaxopt_search.problems.queens.attacks.host import num_cores

RESTART = 0.6
RING_EVERY, SHUFFLE_EVERY = 50, 500
"""Generations between exchanges; the second is that of an earlier model of the authors."""
RATES = (0.1, 1.0)
"""Of mutation: the paper's, and the one with which ours takes fewer generations."""
_LOOK_EVERY = 50  # generations
_LOOKS_IN_A_RUN = 100  # at least, in a long run
_LOOKS_IN_A_CALL = 10
_CORE_RUNS, _CORE_GENERATIONS = 3, 1000
"""What tells how long a generation takes on one core."""


class Setting(NamedTuple):
    """What a run is, beside its instance and seed."""

    islands: int
    population: int = POPULATION
    restarts: bool = True
    mutation: float = 1.0
    local_steps: int = 0
    on: str = "all"
    """`"all"` devices, or how many of them; `"core"`: short runs of the compiled loop on one core,
    which tell its pace; `"cores"`: runs of it to their end, as many at a time as there are cores,
    which tell how many generations they take."""
    encoding: str = "paper"
    """`"paper"`: as in its equation 1; `"file"`: the first matrix of a QAPLIB file is the flow."""
    crossover: str = "pmx"
    keep_best: bool = False
    exchange: str = "none"


def settings_of(args: argparse.Namespace) -> list[Setting]:
    """Returns the settings of a table."""
    setting = Setting(
        1,
        args.individuals,
        mutation=args.mutation,
        local_steps=args.local_steps,
        encoding=args.encoding,
        crossover=args.crossover,
        keep_best=args.keep_best,
        exchange=args.exchange,
    )
    if args.table == 1:
        with_restarts = (False,) if args.no_restarts else (False, True)
        return [setting._replace(restarts=restarts) for restarts in with_restarts]
    if args.table == 4:
        return [
            setting._replace(islands=islands, on=str(devices))
            for islands in args.islands
            for devices in args.devices
        ]
    if args.table == 8:
        return [setting._replace(restarts=False, mutation=rate) for rate in RATES]
    if args.table == 5:
        setting = setting._replace(islands=max(args.islands))
        return [setting._replace(**changes) for changes in VARIANTS.values()]
    if args.table != 3:
        return [setting._replace(islands=islands) for islands in args.islands]
    on = (args.only,) if args.only else ("all", "core")
    sizes = sorted({*args.sizes, *(() if args.only == "cores" else (POPULATION,))})
    settings = [setting._replace(population=size, on=each) for size in sizes for each in on]
    together = [setting._replace(islands=max(args.islands))] if "all" in on else []
    return together + settings


@functools.cache
def _processes() -> concurrent.futures.ProcessPoolExecutor:
    """Returns as many processes as cores; not forks, as JAX has threads."""
    context = multiprocessing.get_context("spawn")
    return concurrent.futures.ProcessPoolExecutor(num_cores(), context)


@jax.jit
def _further(problem: js.QAP, search: Any, state: Any, target: Any, generations: Any) -> Any:
    """Returns the state after some looks, and who was done at each, with so many generations."""

    def look(state: Any, _: None) -> tuple[Any, jax.Array]:
        state = js.advance(problem, search, state, generations)
        return state, state.searches.best_cost <= target

    return lax.scan(look, state, None, length=_LOOKS_IN_A_CALL)


class Task:
    """How runs of a setting on an instance are made, of at most so many generations."""

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
        devices = device_split.find_devices(on)
        self.devices = devices[:1] if is_single or is_compiled else devices
        self.target = math.floor((instance.best_known or 0) * (1 + GAPS.get(instance.name, 0.0)))
        host = self.problem.host
        self.own_target = jnp.int32(self.target // host.unit - host.offset)
        self._is_side_by_side = is_single
        self._begun: dict[concurrent.futures.Future, int] = {}

    def seeds(self, seeds: range) -> range:
        """Returns those of `seeds` for which there is a run."""
        return seeds[:_CORE_RUNS] if self.setting.on == "core" else seeds

    def prepare(self, seeds: Sequence[int]) -> None:
        """Compiles what `make` runs on devices, or begins runs of the loop on all cores."""
        if not seeds or self.setting.on == "core":
            return
        if self.setting.on == "cores":
            limits = self.generations, self.target
            self._begun = {
                _processes().submit(compiled_islands.timed, *self._loop(), seed, *limits): seed
                for seed in seeds
            }
        elif self._is_side_by_side:
            self._advance(self._start(seeds), 0)
        else:
            self._one(seeds[0], 0)

    def make(self, seeds: Sequence[int]) -> Iterable[dict[str, Any]]:
        """Makes runs, after `prepare` of them, and gives the record of each once it is there."""
        if not seeds:
            return ()
        if self.setting.on == "core":
            return self._on_a_core(seeds)
        if self.setting.on == "cores":
            return self._on_all_cores()
        if self._is_side_by_side:
            return self._side_by_side(seeds)
        return (self._one(seed, self.generations) for seed in seeds)

    def _one(self, seed: int, generations: int) -> dict[str, Any]:
        """Returns the record of a run."""
        islands, placement = self.setting.islands, device_split.DeviceSplit(self.devices)
        with jax.default_device(self.devices[0]):
            state = js.init(seed, self.problem, self.search, num_searches=islands)
        state = jax.block_until_ready(placement.split(state))
        rules = make_rules(
            self.search, state.best_cost.dtype, exchange=self.exchange, target=self.own_target
        )
        began = time.perf_counter()
        state = jax.block_until_ready(
            placement.advance(self.problem, self.search, state, generations, rules)
        )
        seconds = time.perf_counter() - began
        state = placement.join(state, islands)
        count, island = js.first_hit(state)
        reached = int(island) >= 0
        made = counts.as_python(count if reached else state.step)
        cost = self.problem.host.in_full(js.best(self.problem, self.search, state)[1].item())
        won = {"island": int(island), "best_cost": cost}
        return self._record(seed, seconds, made, reached) | won

    def _start(self, seeds: Sequence[int]) -> Any:
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

    def _advance(self, state: Any, generations: int) -> tuple[Any, jax.Array]:
        with jax.default_device(self.devices[0]):
            return jax.block_until_ready(
                _further(self.problem, self.search, state, self.own_target, jnp.int32(generations))
            )

    def _on_a_core(self, seeds: Sequence[int]) -> Iterator[dict[str, Any]]:
        """Yields the records of short runs of the compiled loop."""
        for seed in seeds:
            end, seconds = compiled_islands.timed(*self._loop(), seed, _CORE_GENERATIONS, -1)
            yield self._record(seed, seconds, end.made, False)

    def _on_all_cores(self) -> list[dict[str, Any]]:
        """Returns the records of the runs of the compiled loop that `prepare` began.

        All of them at once: of an interrupted script those would be left that ended early.
        """
        records = []
        for future, seed in self._begun.items():
            end, seconds = future.result()
            record = self._record(seed, seconds, end.made, end.cost <= self.target)
            records.append(record | {"best_cost": end.cost})
        return records

    def _loop(self) -> tuple[Any, ...]:
        alike = RESTART if self.setting.restarts else math.inf
        setup = compiled_islands.Setup(self.setting.population, self.setting.mutation, alike)
        return self.instance.flow, self.instance.distance, setup

    def settings(self) -> dict[str, Any]:
        """Returns what tells a run from others on the same instance."""
        return self.setting._asdict() | {"limit": self.generations}

    def _record(self, seed: int, seconds: float, made: int, reached: bool) -> dict[str, Any]:
        return {
            "experiment": "qap_islands",
            "instance": self.name,
            "seed": seed,
            "settings": self.settings(),
            "reached": reached,
            "seconds": seconds,
            "generations": made,
            **common.provenance(self.devices),
        }


def plan_from_arguments(args: argparse.Namespace) -> list[Task]:
    """Returns what to run.

    Raises:
      ValueError, FileNotFoundError: if instances cannot be had, or a setting is out of range.
    """
    names = list(INSTANCES) if args.instances == ["all"] else args.instances
    instances = common.find_instances(
        names, args.data, "tai25b", lambda: js.datasets.planted_qap(3, 4, seed=0)
    )
    for instance in instances:
        if instance.best_known is None:
            raise ValueError(f"{instance.name} has no best known cost")
    return [
        Task(instance, setting, args.generations)
        for instance in instances
        for setting in settings_of(args)
    ]


def execute(plan: Sequence[Task], seeds: range, runs: Runs) -> list[dict[str, Any]]:
    """Makes the runs that are not in the file yet; returns the records of all."""
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


def parser() -> argparse.ArgumentParser:
    """Returns the flags of this script."""
    flags = argparse.ArgumentParser(
        prog="experiments.qap_islands", description="Islands of a genetic algorithm on the QAP."
    )
    flags.add_argument("--table", type=int, choices=tuple(TABLES), default=1)
    flags.add_argument("--figure", type=int, choices=tuple(FIGURES), default=6, help="for --plot")
    flags.add_argument(
        "--instances", type=flag_types.words, help="names, or all: those of the paper"
    )
    flags.add_argument("--islands", type=flag_types.integers, default=[1, 30, 60])
    flags.add_argument(
        "--sizes", type=flag_types.integers, default=[64, 128, 256, 512, 1024, 2048], help="Table 3"
    )
    flags.add_argument(
        "--only",
        choices=("all", "core", "cores"),
        help="Table 3: only the runs on all devices, the short ones of the compiled loop on a core,"
        " or those of it to their end on all cores",
    )
    flags.add_argument(
        "--no-restarts", action="store_true", help="Table 1: only the runs without restarts"
    )
    flags.add_argument("--devices", type=flag_types.integers, default=[1, 2], help="Table 4")
    flags.add_argument(
        "--runs", type=flag_types.positive, default=5, help="of each, seeds from 0 on"
    )
    flags.add_argument("--mutation", type=float, default=1.0, help="rate (paper: 0.1)")
    flags.add_argument(
        "--individuals", type=flag_types.positive, default=POPULATION, help="of an island"
    )
    flags.add_argument("--crossover", choices=("pmx", "ox"), default="pmx")
    flags.add_argument("--exchange", choices=("none", "ring", "shuffle"), default="none")
    flags.add_argument(
        "--keep-best", action="store_true", help="islands that start anew keep their best"
    )
    flags.add_argument(
        "--encoding",
        choices=("paper", "file"),
        default="paper",
        help="matrices as in the paper's equation 1, or the first one of the file as flow",
    )
    flags.add_argument(
        "--local-steps", type=int, default=0, help="of hill climbing from each child; 0 for none"
    )
    flags.add_argument(
        "--generations", type=flag_types.positive, default=100_000, help="of the longest run"
    )
    flags.add_argument("--plot", metavar="FILE", help="where to draw a figure of these runs")
    common.add_data_argument(flags)
    common.add_record_arguments(flags, "qap_islands")
    return flags


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the script and returns its exit status."""
    flags = parser()
    args = flags.parse_args(arguments)
    records, status = common.measured_or_read(
        flags, args, plan_from_arguments, lambda plan, runs: execute(plan, range(args.runs), runs)
    )
    if status:
        return status
    try:
        print(TABLES[args.table](records, markdown=args.markdown))
        if args.plot:
            common.save_plot(args.plot, FIGURES[args.figure](records), (6.4, 4.8))
    except ValueError as error:
        flags.error(str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main())
