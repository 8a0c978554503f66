"""Islands of a genetic algorithm on the QAP: Tables I to III of Tsutsui and Fujimoto and more.

    python -m experiments.qap_islands --table 1 --instances tai25b --runs 5
    python -m experiments.qap_islands --table 2 --islands 1,30,60 --runs 30 --out islands.jsonl
    python -m experiments.qap_islands --table 3 --instances all --out one_thread.jsonl
    python -m experiments.qap_islands --table 4 --islands 132,264 --devices 1,2 --out devices.jsonl
    python -m experiments.qap_islands --report islands.jsonl --table 2 --figure 6 --plot fit.png

Each run goes on until one island has found an acceptable assignment, or to a limit. Seconds are
those from the first populations, which lie on the devices, to the end, without compilation. An
island has 128 individuals and starts anew where 60% of it are equally good, as in the paper.
`--mutation 0.1` is the paper's rate; docs/islands.md says why the default is another.

`--local-steps` makes the algorithm memetic.

Runs of one island are made side by side, as many as there are seeds: they exchange nothing, and a
GPU takes no longer for one island on each multiprocessor than for a single one. Every 50
generations, beyond 5000 every hundredth of those made, it is looked which of them are done, and
their seconds are those until then.

Table 1: one island, without and with starting anew.
Table 2: p islands on all devices; beside the mean time T its gain over one island, and M(p): the
time that a gamma distribution predicts, fitted to the runs of one island by least squares.
Table 3: as many islands as the most in `--islands` on all devices, beside one population on one
core of the CPU, of 128 (the paper's Model II), and of that size among `--sizes` which takes the
shortest mean time (Model I). A population makes the same generations everywhere. So they are
counted by runs on the first device, and a core makes some hundreds, which tell how long one takes.
Table 4: islands spread over so many devices; beside T the gain over the fewest devices, with as
many islands in all, and with as many on each, where M(p) predicts it; and how many runs have the
same first finisher, at the same generation and cost, as on the fewest.
Figures 5 and 6, with `--plot`: the times of one island, and their distribution with its fit.
"""

import argparse
import math
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxopt_search as js
from experiments import common, flag_types
from experiments.common import Progress, Runs
from experiments.paper_islands import GAPS, INSTANCES, POPULATION
from experiments.qap_islands_tables import FIGURES, TABLES
from jaxopt_search import parallel, steps
from jaxopt_search.datasets.instances import QAPInstance

RESTART = 0.6
_LOOK_EVERY = 50  # generations
_LOOKS = 100  # at least, in a long run
_CORE_RUNS, _CORE_GENERATIONS = 3, 300
"""What tells how long a generation takes on one core."""


class Setting(NamedTuple):
    """What a run is, beside its instance and seed."""

    islands: int
    population: int = POPULATION
    restarts: bool = True
    mutation: float = 1.0
    local_steps: int = 0
    on: str = "all"
    """`"all"` devices, how many of them, or `"core"`: short runs on one core of the CPU."""


def settings_of(args: argparse.Namespace) -> list[Setting]:
    """Returns the settings of a table."""
    setting = Setting(1, args.individuals, mutation=args.mutation, local_steps=args.local_steps)
    if args.table == 1:
        return [setting._replace(restarts=restarts) for restarts in (False, True)]
    if args.table == 2:
        return [setting._replace(islands=islands) for islands in args.islands]
    if args.table == 4:
        return [
            setting._replace(islands=islands, on=str(devices))
            for islands in args.islands
            for devices in args.devices
        ]
    sizes = sorted({*args.sizes, POPULATION})
    settings = [
        setting._replace(islands=max(args.islands)),
        *(setting._replace(population=size, on=on) for size in sizes for on in ("all", "core")),
    ]
    return [setting for setting in settings if setting.on == (args.only or setting.on)]


@jax.jit
def _further(problem: js.QAP, search: Any, state: Any, target: Any, generations: int) -> Any:
    state = js.advance(problem, search, state, generations)
    return state, state.searches.best_cost <= target


class Task:
    """How runs of a setting on an instance are made, of at most so many generations."""

    def __init__(self, instance: QAPInstance, setting: Setting, generations: int):
        self.problem = js.qap_from_instance(instance)
        self.search = js.genetic(
            population_size=setting.population,
            mutation_rate=setting.mutation,
            alike=RESTART if setting.restarts else None,
            local_search=js.hill_climbing(js.SwapTable()) if setting.local_steps else None,
            local_steps=max(setting.local_steps, 1),
        )
        self.name, self.setting, self.generations = instance.name, setting, generations
        on = {"core": "cpu", "all": "all"}.get(setting.on) or int(setting.on)
        devices = parallel.find_devices(on)
        is_single = setting.on == "core" or (setting.on == "all" and setting.islands == 1)
        self.devices = devices[:1] if is_single else devices
        self.target = math.floor((instance.best_known or 0) * (1 + GAPS.get(instance.name, 0.0)))
        host = self.problem.host
        self.own_target = jnp.int32(self.target // host.unit - host.offset)

    def seeds(self, seeds: range) -> range:
        """Returns those of `seeds` for which there is a run."""
        return seeds[:_CORE_RUNS] if self.setting.on == "core" else seeds

    def make(self, seeds: Sequence[int]) -> Iterable[dict[str, Any]]:
        """Makes runs, and gives the record of each once it is there."""
        if not seeds:
            return ()
        if self.setting.on == "core":
            return self._on_a_core(seeds)
        if self.setting.on == "all" and self.setting.islands == 1:
            return self._side_by_side(seeds)
        return self._one_by_one(seeds)

    def _one_by_one(self, seeds: Sequence[int]) -> Iterator[dict[str, Any]]:
        """Yields the records of runs, one after the other."""
        self._run(seeds[0], 0)
        for seed in seeds:
            state, seconds = self._run(seed, self.generations)
            count, island = js.first_hit(state)
            reached = int(island) >= 0
            made = steps.as_python(count if reached else state.step)
            cost = float(js.best(self.problem, self.search, state)[1])
            won = {"island": int(island), "best_cost": cost}
            yield self._record(seed, seconds, made, reached) | won

    def _run(self, seed: int, generations: int) -> tuple[Any, float]:
        """Returns the state after a run, and its seconds."""
        islands, placement = self.setting.islands, parallel.Placement(self.devices)
        with jax.default_device(self.devices[0]):
            state = js.init(seed, self.problem, self.search, num_searches=islands)
        state = jax.block_until_ready(placement.split(state))
        began = time.perf_counter()
        state = jax.block_until_ready(
            placement.advance(
                self.problem,
                self.search,
                state,
                generations,
                target=self.own_target,
            )
        )
        seconds = time.perf_counter() - began
        return placement.join(state, islands), seconds

    def _side_by_side(self, seeds: Sequence[int]) -> list[dict[str, Any]]:
        """Returns the records of runs of one island each, made together."""
        with jax.default_device(self.devices[0]):
            state = js.init(seeds[0], self.problem, self.search, num_searches=len(seeds))
            self._advance(state, 0)
            seconds, made, done = 0.0, 0, np.zeros(len(seeds), bool)
            records: dict[int, dict[str, Any]] = {}
            while made < self.generations and not done.all():
                further = max(_LOOK_EVERY, made // _LOOKS)
                began = time.perf_counter()
                state, is_there = self._advance(state, further)
                seconds += time.perf_counter() - began
                made += further
                for place in np.flatnonzero(np.asarray(is_there) & ~done):
                    records[place] = self._record(seeds[place], seconds, made, True)
                done = np.asarray(is_there)
        for place in np.flatnonzero(~done):
            records[place] = self._record(seeds[place], seconds, made, False)
        return [records[place] for place in range(len(seeds))]

    def _on_a_core(self, seeds: Sequence[int]) -> Iterator[dict[str, Any]]:
        """Yields the records of short runs, which tell how long a generation takes."""
        with jax.default_device(self.devices[0]):
            for seed in seeds:
                state = js.init(seed, self.problem, self.search, num_searches=1)
                self._advance(state, 0)
                began = time.perf_counter()
                self._advance(state, _CORE_GENERATIONS)
                seconds = time.perf_counter() - began
                yield self._record(seed, seconds, _CORE_GENERATIONS, False)

    def _advance(self, state: Any, generations: int) -> tuple[Any, jax.Array]:
        return jax.block_until_ready(
            _further(self.problem, self.search, state, self.own_target, generations)
        )

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
    for task in plan:
        settings, own = task.settings(), task.seeds(seeds)
        wanted += [(settings, task.name, seed) for seed in own]
        missing = [seed for seed in own if not runs.has(settings, task.name, seed)]
        progress.skip(len(own) - len(missing))
        for record in task.make(missing):
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
        "--only", choices=("all", "core"), help="Table 3: the runs on all devices, or on a core"
    )
    flags.add_argument("--devices", type=flag_types.integers, default=[1, 2], help="Table 4")
    flags.add_argument(
        "--runs", type=flag_types.positive, default=5, help="of each, seeds from 0 on"
    )
    flags.add_argument("--mutation", type=float, default=1.0, help="rate (paper: 0.1)")
    flags.add_argument(
        "--individuals", type=flag_types.positive, default=POPULATION, help="of an island"
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
