"""Golden digests: what some forty short runs find, so that a redesign shows what it kept.

A case is run in several ways (XLA, natively, as a kernel, on several devices, resumed), which must
all find the same. Costs are integers, so digests hold on any machine. After an intended change,
which the commit names, `pytest tests/golden.py --write-golden` makes `golden.json` anew.
"""

import dataclasses
import functools
import json
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import pytest
from cases import (
    agents_and_jobs,
    dense_qubo,
    few_agents_and_jobs,
    linear_ordering,
    matrices,
    matrix_tsp,
    random_graph,
    small_qap,
    sparse_cut,
)
from digests import digest
from ways import KERNEL, ON_GPU, PORTABLE

import jaxopt_search as js

FILE = pathlib.Path(__file__).with_name("golden.json")
DEVICES = jax.device_count()
XLA, IN_KERNEL, ALL = ("xla",), ("xla", KERNEL), ("xla", *PORTABLE)


def found_by(result: js.Result) -> Any:
    """Returns what a run has found: of each search the best, its cost, and where it stands now."""
    searches, number = result.state.searches, len(result.costs)
    now = jax.vmap(result.search.current, (None, 0))(result.problem, searches)
    now = jax.tree.map(lambda leaf: leaf[:number], now)
    hit = result.first_hit and tuple(result.first_hit)
    ends = (result.fun, int(result.status), result.nit, result.nfev, hit)
    return result.x, result.solutions, result.costs, result.ancestors, now, ends


@dataclasses.dataclass(frozen=True)
class Case:
    """A short run.

    Attributes:
      run: maps an implementation (one of `ways`) and a number of devices to what is found.
      ways: the implementations.
      devices: numbers of devices to run the first way on, besides one.
      note: tells two rows of one case apart, which must find the same.
    """

    name: str
    run: Callable[[str, int], Any]
    ways: tuple[str, ...] = ALL
    devices: tuple[int, ...] = ()
    note: str = ""

    def runs(self) -> Iterator[tuple[str, Callable[[], Any]]]:
        """Returns the runs, by what tells them apart."""
        for way in self.ways:
            yield f"{self.note}{way}", functools.partial(self.run, way, 1)
        for number in self.devices:
            if number <= DEVICES:
                yield f"{number} devices", functools.partial(self.run, self.ways[0], number)


def solved(problem: Any, search: Any, **options: Any) -> Any:
    """Returns a run of `solve`: of ten searches, and of as many steps as `max_steps` says."""

    def run(way: str, devices: int) -> Any:
        settings = {"num_searches": 10, "max_steps": 200} | options
        return found_by(
            js.solve(problem, search, 7, implementation=way, devices=devices, **settings)
        )

    return run


def resumed(problem: Any, search: Any, **options: Any) -> Any:
    """Returns a run as `solved` has it, cut after a third and resumed on other devices."""

    def run(way: str, devices: int) -> Any:
        settings = {"max_steps": 200, "implementation": way} | options
        first = settings | {"max_steps": settings["max_steps"] // 3, "devices": min(DEVICES, 3)}
        part = js.solve(problem, search, 7, num_searches=10, **first)
        whole = js.solve(problem, search, state=part.state, devices=devices, **settings)
        return found_by(whole._replace(nfev=whole.nfev + part.nfev))

    return run


COOLING = js.geometric(300.0, 0.95, 20)
COMPUTED: Any = {"metric": "EUC_2D", "storage": "coordinates"}


def regional(way: str, devices: int) -> Any:
    """Returns a regional search of few tours, which runs its regions in some way by itself."""
    problem = js.tsp_from_coords(np.random.default_rng(0).integers(0, 999, (90, 2)), **COMPUTED)
    search = js.regional_search(problem, 0.3, looks=4, num_regions=3, implementation=way)
    steps = {"num_searches": 3, "max_steps": 3, "devices": devices}
    return found_by(js.solve(problem, search, 7, **steps))


tour, one_way = matrix_tsp(14), matrix_tsp(12, symmetric=False)
clustered = js.datasets.clustered_tsp(60, seed=1)
cities = js.tsp_from_instance(clustered)
plan, lopsided = small_qap(9), small_qap(8, symmetric=False)
with_fixed = js.qap(*np.random.default_rng(0).integers(0, 9, (2, 8, 8)), partial_match=[[1, 3]])
graph = js.graph_coloring(random_graph(30, 0.4), 5)
annealing, islands = js.simulated_annealing, functools.partial(js.genetic, population_size=8)
pspm = annealing(js.Relocate(), COOLING, moves_per_search=4)
first_kept = annealing(js.Relocate(), COOLING, keep_best="standard")
two_opt = annealing(js.two_opt(cities), 5.0, moves_per_search=4, choose="first")
three_opt = annealing(js.three_opt(one_way), COOLING, moves_per_search=6)
in_order = annealing(js.Flip(), 9.0, moves_per_search=5, choose="next")
priced_in_full = annealing(js.FullEvaluation(js.Swap()), 30.0)
tabu = js.tabu_search(js.SwapTable())
any_tie = js.tabu_search(js.SwapTable(), tenure=(3, 9), ties="random")
tabu_coloring = js.tabu_search(js.Guided(js.successors.ConflictsOnly()), tenure=(0, 9))
restarting = islands(alike=0.0, restart_every=5)
memetic = islands(local_search=tabu, local_steps=3)
worse_may_pass = js.iterated_local_search(
    js.two_opt(cities, num_candidates=7),
    js.DoubleBridge(9),
    acceptance=js.acceptance.metropolis(500.0),
)
below, late = js.acceptance.threshold(50.0), js.acceptance.late_acceptance(5)
broadcast, ring = js.broadcast_best(every=30), js.ring(every=5)
mixing = js.shuffle(every=9)
assembly = js.recombine(every=25, alike=None, crossover=js.edge_assembly(cities, num_candidates=5))
generations = js.recombine(every=25, reach=2, crossover=js.greedy_partition(), generational=True)
merge = js.merge(every=25, crossover=js.component_partition())
sawtooth = annealing(
    js.Flip(), js.geometric(9.0, 0.9, period=25), moves_per_search=5, choose="next"
)
steps, few = {"max_steps": 200}, {"max_steps": 40}

CASES = [
    Case("pspm", solved(tour, pspm), devices=(3,)),
    Case("pspm asymmetric", solved(one_way, pspm)),
    Case("3-opt", solved(one_way, three_opt)),
    Case("sspm", solved(tour, pspm, num_searches=1)),
    Case("keeping the first best", solved(tour, first_kept)),
    Case("broadcast", solved(tour, pspm, exchange=broadcast), devices=(4,)),
    Case("broadcast", resumed(tour, pspm, exchange=broadcast), XLA, note="resumed, "),
    Case("ring", solved(tour, pspm, exchange=js.ring(every=7)), XLA, (4,)),
    Case("resample", solved(tour, pspm, exchange=js.resample(COOLING, every=40)), XLA, (4,)),
    Case("recombine", solved(tour, pspm, exchange=js.recombine(every=25, alike=0.3)), XLA, (3,)),
    Case("edge assembly", solved(cities, two_opt, exchange=assembly), devices=(4,)),
    Case("generations", solved(graph, tabu_coloring, exchange=generations), devices=(4,)),
    Case("target", solved(tour, pspm, target=4000, max_steps=2000), devices=(4,)),
    Case("target", resumed(tour, pspm, target=4000, max_steps=2000), XLA, note="resumed, "),
    Case("patience", solved(tour, pspm, patience=100, max_steps=5000), XLA),
    Case("2-opt", solved(cities, two_opt)),
    Case("iterated tours", solved(cities, worse_may_pass, max_steps=2000)),
    Case("regional", regional),
    Case("iterated assignments", solved(plan, js.iterated_local_search(js.SwapTable()))),
    Case("delta swap", solved(plan, annealing(js.DeltaSwap(), 99.0, moves_per_search=3))),
    Case("delta swap asymmetric", solved(lopsided, annealing(js.DeltaSwap(), 99.0))),
    Case("swap table", solved(plan, annealing(js.SwapTable(), 99.0))),
    Case("queens", solved(js.nqueens(9), annealing(js.QueenSwap(), 0.5))),
    Case("full evaluation", solved(linear_ordering(6), priced_in_full), XLA),
    Case("threshold", solved(tour, js.local_search(js.Relocate(), below))),
    Case("late acceptance", solved(tour, js.local_search(js.Relocate(), late))),
    Case("hill climbing fixed", solved(with_fixed, js.hill_climbing(js.SwapTable()))),
    Case("tabu", solved(plan, tabu), devices=(3,)),
    Case("tabu any tie", solved(plan, any_tie)),
    Case("tabu qubo", solved(dense_qubo(12), js.tabu_search(js.Assign()))),
    Case("tabu cut", solved(sparse_cut(40), js.tabu_search(js.Assign()))),
    Case("assign", solved(agents_and_jobs(3, 7), annealing(js.Assign(), 9.0))),
    Case("flips in order", solved(sparse_cut(40), in_order)),
    Case("flips that merge", solved(sparse_cut(40), sawtooth, exchange=merge), devices=(4,)),
    Case("swap values", solved(graph, annealing(js.SwapValues(), 0.5))),
    Case("assign or swap", solved(agents_and_jobs(3, 7), annealing(few_agents_and_jobs(), 9.0))),
    Case("guided", solved(graph, annealing(js.Guided(js.successors.ConflictsOnly()), 0.5))),
    Case("min-conflicts", solved(js.nqueens(9), js.min_conflicts(js.QueenSwap(), 0.1))),
    Case("islands", solved(plan, islands(), exchange=ring, **few), IN_KERNEL, (4,)),
    Case("islands that restart", solved(plan, restarting, **few), IN_KERNEL),
    Case("islands that mix", solved(plan, islands(), exchange=mixing, **few), XLA, (3,)),
    Case("islands of tours", solved(cities, islands(crossover="ox"), **few), IN_KERNEL),
    Case("islands of vectors", solved(graph, islands(crossover="uniform"), **few), XLA),
    Case("memetic islands", solved(plan, memetic, max_steps=9), XLA),
]


def one_liner(solve: Callable[..., Any], *data: Any, **options: Any) -> Callable[[str, int], Any]:
    """Returns a run of `solve_tsp` and the like; of batches the solutions."""

    def run(way: str, devices: int) -> Any:
        result = solve(*data, key=3, devices=devices, **options)
        return result.x, result.fun, result.nit

    return run


def queens(n: int, num_solutions: int) -> Callable[[str, int], Any]:
    def run(way: str, devices: int) -> Any:
        limits = {"max_steps": 10_000, "devices": devices}
        return js.solve_nqueens(n, num_solutions, key=3, **limits).solutions

    return run


def successors(order: str) -> Callable[[str, int], Any]:
    """Returns FANG on a coloring: three successors of each of five states."""

    def run(way: str, devices: int) -> Any:
        colors = jax.vmap(graph.init)(jax.random.split(jax.random.key(1), 5))
        states = js.types.Tallied(colors, jax.vmap(graph.tally)(colors))
        heuristic = js.successors.ByDelta(num_variables=30, max_possibilities=5)
        options = {"num_successors": 3, "order": order, "implementation": way, "devices": devices}
        return js.successors.generate(2, heuristic, graph, states, **options).states.solution

    return run


def schemes(way: str, devices: int) -> Any:
    """Returns the attacking pairs of a placement by each of the schemes."""
    placement = jax.numpy.asarray(np.random.default_rng(0).integers(0, 300, 300), "int32")
    return [
        int(js.evaluation.scheme(name, placement.size)(placement)) for name in js.evaluation.SCHEMES
    ]


tables = np.random.default_rng(0).integers(0, 50, (2, 3, 8, 8))
CASES += [
    Case("solve_tsp", one_liner(js.solve_tsp, clustered, **steps), XLA, (4,)),
    Case("solve_tsp asymmetric", one_liner(js.solve_tsp, one_way, **steps), XLA),
    Case("solve_qap", one_liner(js.solve_qap, *matrices(12), **steps), XLA, (4,)),
    Case("solve_qap batch", one_liner(js.solve_qap, *tables, **steps), XLA),
    Case("solve_nqueens", queens(20, 30), XLA),
    Case("solve_nqueens many", queens(200, 5), XLA),
    Case("fang", successors("fixed"), devices=(4,)),
    Case("fang in random order", successors("random")),
    Case("schemes", schemes, XLA),
]
if ON_GPU:  # where the one-liners have other recipes
    CASES = [dataclasses.replace(case, devices=()) for case in CASES if "solve_" not in case.name]


NAMES = dict.fromkeys(case.name for case in CASES)


@pytest.mark.parametrize("name", NAMES)
def test_runs_find_what_they_found(name, request):
    """Bit for bit, in whatever way they are carried out."""
    runs = dict(run for case in CASES if case.name == name for run in case.runs())
    with jax.debug_key_reuse(True):
        found = {way: digest(run()) for way, run in runs.items()}
    kept = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    if request.config.getoption("--write-golden"):
        kept = {other: kept[other] for other in NAMES if other in kept}
        kept[name] = next(iter(found.values()))
        FILE.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    assert found == dict.fromkeys(found, kept[name])
