"""What a run takes of memory is known before it begins; it is what programs and arrays take."""

import functools
import gc
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import coords_tsp, small_qap
from probes import annealing, refuses, small_tsp
from ways import needs_cpu

import jaxopt_search as js
from jaxopt_search.driver.run import Run
from jaxopt_search.engine import compile as compiling
from jaxopt_search.engine import memory, starting
from jaxopt_search.engine.compile import Program

PROBLEM, SEARCH = small_tsp(), annealing()
S = 1000


def with_edge_assembly():
    problem = coords_tsp(20)
    search = js.simulated_annealing(js.two_opt(problem), 5.0)
    crossover = js.edge_assembly(problem)
    return problem, search, js.recombine(every=5, alike=None, crossover=crossover)


RUNS = {
    "edge assembly": with_edge_assembly,
    "islands": lambda: (small_qap(9), js.genetic(population_size=8), js.shuffle(every=5)),
}


@pytest.fixture
def analyses(monkeypatch):
    """Returns what XLA says of each program whose temporaries are asked for."""
    found, ask = [], Program.temporaries

    def noted(program):
        found.append(compiling.compile(program).memory_analysis())
        return ask(program)

    monkeypatch.setattr(Program, "temporaries", noted)
    return found


@needs_cpu
@pytest.mark.parametrize("name", RUNS)
def test_what_its_programs_take(name, analyses):
    """The largest program's arguments, results and temporaries, within a tenth, and what stays."""
    problem, search, exchange = RUNS[name]()
    needed = js.memory_estimate(problem, search, S, exchange=exchange)
    most = max(
        one.argument_size_in_bytes + one.output_size_in_bytes + one.temp_size_in_bytes
        for one in analyses
    )
    # At a look also what it reads not.
    spare = memory.num_bytes(starting.shape(problem, search, S)) if needed.when == "look" else 0
    assert 0.99 * most <= needed.total <= 1.1 * most + spare


@needs_cpu
def test_what_is_there_in_a_run(monkeypatch):
    """Before the first chunk and after it, states are alive as they are counted, and no others."""
    problem, search, exchange = with_edge_assembly()
    needed = memory.estimate((problem, search, exchange), starting.shape(problem, search, S), [CPU])
    counted, advance = [], Run.advance

    def noted(run, num_steps):
        earlier = run.state  # as a program holds it
        advance(run, num_steps)
        counted.append(alive() - before)
        assert earlier is not run.state

    monkeypatch.setattr(Run, "advance", noted)
    before = alive()
    js.solve(problem, search, num_searches=S, max_steps=20, chunk_steps=10, exchange=exchange)
    assert max(counted) == pytest.approx(needed.states, rel=0.05)


CPU = jax.devices("cpu")[0]


def alive():
    gc.collect()
    return sum(array.nbytes for array in jax.live_arrays())


@needs_cpu
def test_several_devices():
    """Those of a CPU share its memory, and take about as much as one; and all is joined there."""
    one, four = (js.memory_estimate(PROBLEM, SEARCH, S, devices=count) for count in (1, 4))
    assert 0.8 * one.total <= four.total <= 1.6 * one.total
    parts, state = (PROBLEM, SEARCH), starting.shape(PROBLEM, SEARCH, S)
    joined = memory.estimate(parts, state, jax.devices("cpu")[:4])
    assert joined.when in ("steps", "end") and joined.states >= 2 * memory.num_bytes(state)


def of_runs(compiled):
    """Returns which programs of runs were compiled, in order of their names."""
    found = (re.search("fresh|advance_by|packed", name) for name in compiled)
    return sorted(name[0] for name in found if name)


@pytest.mark.devices(4)
def test_nothing_is_compiled_twice(compiled):
    """An estimate compiles each program once, and a run thereafter none; on one of several."""
    devices, (problem, search, exchange) = jax.devices()[3:], with_edge_assembly()
    options = {"exchange": exchange, "devices": devices}
    js.memory_estimate(problem, search, 60, **options)
    assert of_runs(compiled) == ["advance_by", "fresh", "packed"]
    compiled.clear()
    js.solve(problem, search, num_searches=60, max_steps=12, **options)
    assert not of_runs(compiled)


@needs_cpu
def test_refused_by_all_that_it_takes(monkeypatch):
    """Also where only what the programs need besides does not fit; before anything starts."""
    problem, search, _ = RUNS["islands"]()
    solve = functools.partial(js.solve, devices=1)
    needed = js.memory_estimate(problem, search, S, devices=1)
    least = memory.estimate((problem, search), starting.shape(problem, search, S), [CPU])
    assert needed.total > 1.1 * least.total
    present = memory.num_bytes(problem)
    monkeypatch.setattr(compiling.Jitted, "__call__", lambda *_, **__: pytest.fail("it starts"))
    for free, words in ((needed.total - present - 1, ""), (least.total - present - 1, " at least")):
        monkeypatch.setattr(memory, "free_bytes", lambda device, free=free: free)
        with pytest.raises(MemoryError, match=f"GiB{words}, and .* use fewer searches$"):
            solve(problem, search, num_searches=S, max_steps=1)
    monkeypatch.undo()
    monkeypatch.setattr(memory, "free_bytes", lambda device: needed.total - present)
    assert solve(problem, search, num_searches=S, max_steps=1).nit == 1


def test_a_run_that_is_continued_is_refused_too(monkeypatch):
    """Its states are there, those after a chunk are not."""
    state = js.solve(PROBLEM, SEARCH, num_searches=S, max_steps=1).state
    monkeypatch.setattr(memory, "free_bytes", lambda device: 1000)
    with refuses(MemoryError, "num_searches is 1000"):
        js.solve(PROBLEM, SEARCH, state=state, max_steps=2)


def test_a_large_matrix_is_told_of_coordinates(monkeypatch):
    """As long as the instance takes most; the dense 20,000 cities are refused at any rate."""
    with refuses(ValueError, "20000 cities takes 1.5 GiB", "use tsp_from_coords"):
        js.tsp(np.broadcast_to(np.float32(1), (20_000, 20_000)))
    cities = jax.ShapeDtypeStruct((16_000, 16_000), jnp.float32)
    problem = jax.eval_shape(lambda matrix: js.tsp(matrix, is_symmetric=True), cities)
    solution = jax.ShapeDtypeStruct((16_000,), jnp.int32)
    monkeypatch.setattr(memory, "free_bytes", lambda device: 2.0**29)
    with refuses(MemoryError, "take 1.0 GiB at least", "0.5 GiB are free", "tsp_from_coords"):
        starting.check_room(problem, SEARCH, solution, 8, [CPU])
    with pytest.raises(MemoryError, match="use fewer searches$"):
        starting.check_room(problem, SEARCH, solution, 10**5, [CPU])


def test_bad_arguments():
    """As in `solve`."""
    with refuses(ValueError, "num_searches is 0"):
        js.memory_estimate(PROBLEM, SEARCH, 0)
    with pytest.raises(RuntimeError, match="memory_estimate is a host driver"):
        jax.jit(lambda problem: js.memory_estimate(problem, SEARCH).total)(PROBLEM)
