"""Runs of the three searches, by the library and compiled for one core, and runs to targets."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxopt_search as js
from experiments import common, one_core
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
    core = [Way(CORE, "numba", ())] if one_core.has_numba() else []
    core.append(Way("1 core, XLA", "native", tuple(cpu[:1])))
    if name == "table":
        return [*core, Way(f"{len(found)} x {found[0].device_kind}", "auto", found)]
    return [*core, *(Way(name, how, found[:1]) for name, how in MODELS.items())]


def measure(
    instance: QAPInstance, algorithm: str, way: Way, num_searches: int, steps: int, seed: int
) -> dict[str, Any]:
    """Returns the record of one run, warm."""
    if way.implementation == "numba":
        return _measure_compiled(instance, algorithm, way, num_searches, steps, seed)
    if way.implementation in ("algorithmic", "iteration"):
        return _measure_model(instance, way, num_searches, steps, seed)
    problem = js.qap_from_instance(instance)
    search = searches(problem, steps)[algorithm]
    is_climbing = algorithm == "hc"

    def run(max_steps: int) -> js.Result:
        result = js.solve(
            problem,
            search,
            seed,
            num_searches=num_searches,
            max_steps=max_steps,
            chunk_steps=max_steps or None,
            check_every=_CHECK_EVERY,
            implementation=way.implementation,
            devices=way.devices,
        )
        return common.unless_interrupted(result)

    run(1)
    result, seconds = common.timed(run, 100 * instance.n if is_climbing else steps)
    made = int(np.asarray(result.state.info.accepted).sum())
    known = settings(algorithm, way, num_searches, steps)
    counts = result.nit, result.nfev, made
    costs, status = result.costs, result.status.name
    return _record(instance, seed, known, way.devices, seconds, counts, costs, status)


def _record(
    instance: QAPInstance,
    seed: int,
    known: dict[str, Any],
    devices: tuple[jax.Device, ...],
    seconds: float,
    counts: tuple[float, int, int],
    costs: Any,
    status: str,
) -> dict[str, Any]:
    """Returns the record of a run.

    Args:
      counts: steps of a search, and moves that all of them have priced and made.
      costs: the best of each search.
    """
    steps, priced, made = counts
    return common.record(
        "qap_multistart",
        instance.name,
        seed,
        known,
        devices,
        seconds=seconds,
        steps=steps,
        moves_priced=priced,
        moves_made=made,
        mean_gap=_gap(float(np.mean(costs)), instance),
        best_gap=_gap(float(np.min(costs)), instance),
        status=status,
    )


def _measure_model(
    instance: QAPInstance, way: Way, num_searches: int, steps: int, seed: int
) -> dict[str, Any]:
    """Returns the record of tabu search by one of the paper's models, warm."""
    problem = js.qap_from_instance(instance)
    search = searches(problem, steps)["ts"]
    implementation = "cuda" if choice.runs_kernels(way.devices[0]) else "xla"
    with jax.default_device(way.devices[0]):
        state = js.init(seed, problem, search, num_searches=num_searches)
        starts = jax.vmap(search.best, in_axes=(None, 0))(problem, state.searches)
        matrices = [jnp.asarray(each, jnp.int32) for each in (instance.flow, instance.distance)]

        def run(num_steps: int) -> models.Found:
            if way.implementation == "iteration":
                return models.iteration(problem, search, state, num_steps)
            return models.algorithmic(*matrices, starts, state.key, num_steps, implementation)

        jax.block_until_ready(run(1))
        found, seconds = common.timed(run, steps)
    costs = _costs(_matrices(instance), np.asarray(found.best))
    counts = steps, num_searches * steps * math.comb(instance.n, 2), int(found.moves.sum())
    known = settings("ts", way, num_searches, steps)
    return _record(instance, seed, known, way.devices, seconds, counts, costs, "MAX_STEPS")


def _measure_compiled(
    instance: QAPInstance, algorithm: str, way: Way, num_searches: int, steps: int, seed: int
) -> dict[str, Any]:
    """Returns the record of searches compiled for one core, one after the other."""
    run = _COMPILED[algorithm]
    run(instance, 1, 1, seed)
    seconds, made, priced, moves, costs = run(instance, num_searches, steps, seed)
    known = settings(algorithm, way, num_searches, steps)
    status = "LOCAL_OPTIMA" if algorithm == "hc" else "MAX_STEPS"
    on, counts = tuple(jax.devices("cpu")[:1]), (made / num_searches, priced, moves)
    return _record(instance, seed, known, on, seconds, counts, costs, status)


Measured = tuple[float, int, int, int, np.ndarray]
"""Seconds, steps, moves priced and moves made of all searches, and the best cost of each."""


def _climb(instance: QAPInstance, num_searches: int, steps: int, seed: int) -> Measured:
    data, climb = _matrices(instance), one_core.compiled(compiled_qap.build_climber)
    found = compiled_qap.starts(instance.n, num_searches, seed)
    made, seconds = common.timed(climb, *data, found)
    return seconds, made, made * math.comb(instance.n, 2), made - num_searches, _costs(data, found)


def _anneal(instance: QAPInstance, num_searches: int, steps: int, seed: int) -> Measured:
    data, anneal = _matrices(instance), one_core.compiled(compiled_qap.build_annealer)
    hottest, factor = cooling(js.qap_from_instance(instance), steps)
    found = compiled_qap.starts(instance.n, num_searches, seed)
    # The matrices have all costs twice as high.
    how = 2 * hottest, factor, steps, _MOVES_OF_ANNEALING, seed
    (priced, moves), seconds = common.timed(anneal, *data, found, *how)
    return seconds, num_searches * steps, priced, moves, _costs(data, found)


def _tabu(instance: QAPInstance, num_searches: int, steps: int, seed: int) -> Measured:
    data, advance = _matrices(instance), one_core.compiled(compiled_tabu.build)
    found = [compiled_tabu.start(*data, seed * num_searches + k) for k in range(num_searches)]
    never = -(2**62)  # a cost at which it would stop
    seconds = sum(common.timed(advance, *data, search, steps, never)[1] for search in found)
    made, costs = num_searches * steps, _costs(data, [search.best for search in found])
    return seconds, made, made * math.comb(instance.n, 2), made, costs


_COMPILED = {"hc": _climb, "sa": _anneal, "ts": _tabu}


def _matrices(instance: QAPInstance) -> tuple[np.ndarray, np.ndarray]:
    return compiled_qap.symmetric(instance.flow, instance.distance)


def _costs(data: tuple[np.ndarray, np.ndarray], assignments: Any) -> np.ndarray:
    return np.array([compiled_qap.cost(*data, each) // 2 for each in assignments])


def settings(algorithm: str, way: Way, num_searches: int, steps: int) -> dict[str, Any]:
    """Returns what tells a run from others on the same instance."""
    return {
        "algorithm": algorithm,
        "way": way.name,
        "implementation": way.implementation,
        "searches": num_searches,
        "steps": steps,
    }


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
