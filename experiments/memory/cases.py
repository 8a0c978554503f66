"""What is measured: problems, searches and exchanges, by name."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import jaxopt_search as js

EVERY = 5  # steps between exchanges
_PRICED = 8  # moves per search and step


class Parts(NamedTuple):
    """What a run is made of."""

    problem: Any
    search: Any
    exchange: Any = None


class Case(NamedTuple):
    """A run to measure.

    Attributes:
      build: makes its parts.
      num_searches: on a CPU, and on a GPU, where there is more memory.
    """

    build: Callable[[], Parts]
    num_searches: tuple[int, int]


def _tsp(n: int, storage: str) -> Any:
    return js.tsp_from_instance(js.datasets.uniform_tsp(n, seed=0, size=10_000), storage=storage)


def _tour_annealing(n: int, storage: str, moves: str, exchange: str | None = None) -> Parts:
    problem = _tsp(n, storage)
    neighborhood = js.two_opt(problem) if moves == "two_opt" else js.Relocate()
    search = js.simulated_annealing(neighborhood, 1000.0, moves_per_search=_PRICED)
    rule = None
    if exchange == "edge_assembly":
        rule = js.recombine(every=EVERY, alike=None, crossover=js.edge_assembly(problem))
    elif exchange == "pmx":
        rule = js.recombine(every=EVERY)
    elif exchange == "ring":
        rule = js.ring(every=EVERY)
    return Parts(problem, search, rule)


def _tour_swaps(storage: str, make: Callable[[Any], Any]) -> Parts:
    return Parts(_tsp(100, storage), make(js.Swap()))


def _qap(n: int, search: Any, exchange: Any = None) -> Parts:
    return Parts(js.qap_from_instance(js.datasets.uniform_qap(n, seed=0)), search, exchange)


def _islands(crossover: str, is_memetic: bool) -> Parts:
    better = js.tabu_search(js.SwapTable()) if is_memetic else None
    search = js.genetic(population_size=64, crossover=crossover, local_search=better)
    return _qap(30, search, js.shuffle(every=EVERY))


def _queens(make: Callable[[], Any]) -> Parts:
    return Parts(js.nqueens(1000), make())


def _qubo(search: Any) -> Parts:
    weights = np.random.default_rng(0).integers(-50, 51, (200, 200))
    return Parts(js.qubo(weights, storage="dense"), search)


def _coloring(search: Any) -> Parts:
    upper = np.triu(np.random.default_rng(0).random((200, 200)) < 0.1, 1)
    return Parts(js.graph_coloring(upper | upper.T, 8), search)


def _cases() -> dict[str, Case]:
    one, found = functools.partial, dict[str, Case]()
    for storage in ("matrix", "coordinates"):
        for n, sizes in ((100, (2**15, 2**18)), (1002, (2**12, 2**15))):
            for moves in ("two_opt", "relocate"):
                name = f"tsp{n}-{storage}-annealing-{moves}"
                found[name] = Case(one(_tour_annealing, n, storage, moves), sizes)
        for kind, make in (("hill_climbing", js.hill_climbing), ("tabu", js.tabu_search)):
            found[f"tsp100-{storage}-{kind}"] = Case(one(_tour_swaps, storage, make), (16, 2**10))
    for exchange in ("edge_assembly", "pmx", "ring"):
        for n, sizes in ((100, (2**13, 2**17)), (1002, (2**10, 2**14))):
            run = one(_tour_annealing, n, "coordinates", "two_opt", exchange)
            found[f"tsp{n}-{exchange}"] = Case(run, sizes)
    for n, sizes in ((30, (2**14, 2**16)), (100, (2**10, 2**13))):
        tabu, climbing = js.tabu_search(js.SwapTable()), js.hill_climbing(js.SwapTable())
        found[f"qap{n}-tabu"] = Case(one(_qap, n, tabu), sizes)
        found[f"qap{n}-hill_climbing"] = Case(one(_qap, n, climbing), sizes)
        annealing = js.simulated_annealing(js.DeltaSwap(), 1000.0)
        found[f"qap{n}-annealing"] = Case(one(_qap, n, annealing), (sizes[0] * 4, sizes[1] * 16))
        found[f"qap{n}-ring"] = Case(one(_qap, n, tabu, js.ring(every=EVERY)), sizes)
    for crossover in ("pmx", "ox"):
        found[f"qap30-islands-{crossover}"] = Case(one(_islands, crossover, False), (2**10, 2**13))
    found["qap30-islands-memetic"] = Case(one(_islands, "pmx", True), (2**7, 2**10))
    for name, make in (
        ("annealing", lambda: js.simulated_annealing(js.QueenSwap(), 0.4)),
        ("min_conflicts", lambda: js.min_conflicts(js.QueenSwap())),
    ):
        found[f"queens1000-{name}"] = Case(one(_queens, make), (2**12, 2**15))
    annealing, tabu = js.simulated_annealing(js.Assign(), 5.0), js.tabu_search(js.Assign())
    for name, search in (("annealing", annealing), ("tabu", tabu)):
        found[f"qubo200-{name}"] = Case(one(_qubo, search), (2**15, 2**18))
        found[f"coloring200-{name}"] = Case(one(_coloring, search), (2**12, 2**15))
    return found


CASES = _cases()
