"""Runs of the three searches, by the library and compiled for one core, and runs to targets."""

import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxopt_search as js
from experiments import common, one_core
from experiments.common import Job
from experiments.multistart import compiled_qap, compiled_tabu, models
from experiments.multistart.tables import CORE, MODELS
from jaxopt_search.backends import choice
from jaxopt_search.datasets.instances import QAPInstance
from jaxopt_search.engine.devices import find_devices
from jaxopt_search.solvers import scales

_SCHEDULE = (0.3, 0.03)  # the first and the last temperature, times the mean change by a swap

_MOVES_OF_ANNEALING = 32

_CHECK_EVERY = 10


class Way(NamedTuple):
    """How searches are run: with which implementation, on which devices."""

    name: str
    implementation: Any
    devices: tuple[jax.Device, ...]


def searches(problem: js.QAP, steps: int) -> dict[str, Any]:
    """Returns the three algorithms for this many steps."""
    hottest, factor = cooling(problem, steps)
    table = js.SwapTable()
    return {
        "hc": js.hill_climbing(table),
        "sa": js.simulated_annealing(
            table,
            js.geometric(hottest, factor, 1),
            moves_per_search=_MOVES_OF_ANNEALING,
            choose="first",
        ),
        "ts": js.tabu_search(table),
    }


def cooling(problem: js.QAP, steps: int) -> tuple[float, float]:
    """Returns the first temperature of annealing and what it is multiplied by in each step."""
    hottest, coldest = (share * float(scales.swap_change(problem)) for share in _SCHEDULE)
    return hottest, (coldest / hottest) ** (1 / max(steps - 1, 1))


def ways(name: str) -> list[Way]:
    """Returns the ways to run searches of `table` or `figure`, the compiled core first if it can.

    Without numba there is nothing to compare with.
    """
    cpu, found = jax.devices("cpu"), find_devices("all")
    core = [Way(CORE, "numba", tuple(cpu[:1]))] if one_core.has_numba() else []
    core.append(Way("1 core, XLA", "native", tuple(cpu[:1])))
    if name == "table":
        return [*core, Way(f"{len(found)} x {found[0].device_kind}", "auto", found)]
    return [*core, *(Way(name, how, found[:1]) for name, how in MODELS.items())]


class Task(NamedTuple):
    """Searches by one algorithm on one instance: in which way, how many, and the steps of each."""

    instance: QAPInstance
    algorithm: str
    way: Way
    searches: int
    steps: int

    def settings(self) -> dict[str, Any]:
        """Returns what tells a run from others on the same instance."""
        way = {"way": self.way.name, "implementation": self.way.implementation}
        sizes = {"searches": self.searches, "steps": self.steps}
        return {"algorithm": self.algorithm} | way | sizes

    def job(self, num_runs: int) -> Job:
        """Returns the runs of the task."""
        name = self.instance.name
        text = f"{name} {self.algorithm} {self.way.name} {self.searches}"
        make = functools.partial(map, functools.partial(measure, self))
        return Job(self.settings(), name, range(num_runs), text, make)


class Found(NamedTuple):
    """What is found by all searches of a run.

    Attributes:
      steps: of a search.
      moves_priced, moves_made: of all of them.
      costs: the best of each.
    """

    seconds: float
    steps: float
    moves_priced: int
    moves_made: int
    costs: Any
    status: str = "MAX_STEPS"


def measure(task: Task, seed: int) -> dict[str, Any]:
    """Returns the record of one run, warm."""
    own = {"numba": _on_a_core, "algorithmic": _by_model, "iteration": _by_model}
    measured = own.get(task.way.implementation, _by_library)(task, seed)._asdict()
    costs = measured.pop("costs")
    measured["mean_gap"] = _gap(float(np.mean(costs)), task.instance)
    measured["best_gap"] = _gap(float(np.min(costs)), task.instance)
    known = task.instance.name, seed, task.settings(), task.way.devices
    return common.record("qap_multistart", *known, **measured)


def _by_library(task: Task, seed: int) -> Found:
    problem, way = js.qap_from_instance(task.instance), task.way
    search = searches(problem, task.steps)[task.algorithm]

    def run(max_steps: int) -> js.Result:
        result = js.solve(
            problem,
            search,
            seed,
            num_searches=task.searches,
            max_steps=max_steps,
            chunk_steps=max_steps,
            check_every=_CHECK_EVERY,
            implementation=way.implementation,
            devices=way.devices,
        )
        return common.unless_interrupted(result)

    run(1)
    is_climbing = task.algorithm == "hc"
    result, seconds = common.timed(run, 100 * task.instance.n if is_climbing else task.steps)
    made = int(np.asarray(result.state.info.accepted).sum())
    return Found(seconds, result.nit, result.nfev, made, result.costs, result.status.name)


def _by_model(task: Task, seed: int) -> Found:
    """Returns what tabu search by one of the paper's models finds."""
    instance, way, steps = task.instance, task.way, task.steps
    problem = js.qap_from_instance(instance)
    search = searches(problem, steps)[task.algorithm]
    implementation = "cuda" if choice.runs_kernels(way.devices[0]) else "xla"
    with jax.default_device(way.devices[0]):
        state = js.init(seed, problem, search, num_searches=task.searches)
        starts = jax.vmap(search.best, in_axes=(None, 0))(problem, state.searches)
        matrices = [jnp.asarray(each, jnp.int32) for each in (instance.flow, instance.distance)]

        def run(num_steps: int) -> models.Found:
            if way.implementation == "iteration":
                return models.iteration(problem, search, state, num_steps)
            return models.algorithmic(*matrices, starts, state.key, num_steps, implementation)

        jax.block_until_ready(run(1))
        found, seconds = common.timed(run, steps)
    priced = task.searches * steps * math.comb(instance.n, 2)
    costs = _costs(_matrices(instance), np.asarray(found.best))
    return Found(seconds, steps, priced, int(found.moves.sum()), costs)


def _on_a_core(task: Task, seed: int) -> Found:
    """Returns what searches compiled for one core find, one after the other."""
    run = {"hc": _climb, "sa": _anneal, "ts": _tabu}[task.algorithm]
    run(task.instance, 1, 1, seed)
    return run(task.instance, task.searches, task.steps, seed)


def _climb(instance: QAPInstance, num_searches: int, steps: int, seed: int) -> Found:
    data, climb = _matrices(instance), one_core.compiled(compiled_qap.build_climber)
    found = compiled_qap.starts(instance.n, num_searches, seed)
    made, seconds = common.timed(climb, *data, found)
    priced, each = made * math.comb(instance.n, 2), made / num_searches
    return Found(seconds, each, priced, made - num_searches, _costs(data, found), "LOCAL_OPTIMA")


def _anneal(instance: QAPInstance, num_searches: int, steps: int, seed: int) -> Found:
    data, anneal = _matrices(instance), one_core.compiled(compiled_qap.build_annealer)
    hottest, factor = cooling(js.qap_from_instance(instance), steps)
    found = compiled_qap.starts(instance.n, num_searches, seed)
    # The matrices have all costs twice as high.
    how = 2 * hottest, factor, steps, _MOVES_OF_ANNEALING, seed
    (priced, made), seconds = common.timed(anneal, *data, found, *how)
    return Found(seconds, steps, priced, made, _costs(data, found))


def _tabu(instance: QAPInstance, num_searches: int, steps: int, seed: int) -> Found:
    data, advance = _matrices(instance), one_core.compiled(compiled_tabu.build)
    found = [compiled_tabu.start(*data, seed * num_searches + k) for k in range(num_searches)]
    never = -(2**62)  # a cost at which it would stop
    seconds = sum(common.timed(advance, *data, search, steps, never)[1] for search in found)
    made, costs = num_searches * steps, _costs(data, [search.best for search in found])
    return Found(seconds, steps, made * math.comb(instance.n, 2), made, costs)


def _matrices(instance: QAPInstance) -> tuple[np.ndarray, np.ndarray]:
    return compiled_qap.symmetric(instance.flow, instance.distance)


def _costs(data: tuple[np.ndarray, np.ndarray], assignments: Any) -> np.ndarray:
    return np.array([compiled_qap.cost(*data, each) // 2 for each in assignments])


def reach(
    instance: QAPInstance, gap: float, seconds: float, seeds: Sequence[int]
) -> Iterator[dict[str, Any]]:
    """Yields the records of runs of `solve_qap` until they are within `gap`, all warm."""
    limits = {"max_seconds": seconds, "target": math.floor(instance.best_known * (1 + gap))}
    js.solve_qap(instance, key=seeds[0], **limits)
    for seed in seeds:
        result = common.unless_interrupted(js.solve_qap(instance, key=seed, **limits))
        yield common.record(
            "qap_targets",
            instance.name,
            seed,
            {"gap": gap, "seconds": seconds},
            find_devices("all"),
            reached=result.success,
            seconds=result.elapsed,
            best_gap=_gap(result.fun, instance),
        )


def _gap(cost: float, instance: QAPInstance) -> float | None:
    best_known = instance.best_known
    return (cost - best_known) / best_known if best_known else None
