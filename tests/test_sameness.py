"""The same searches however a run is carried out: devices, chunks, jit, progress.

Runs of integers on several devices, in kernels and resumed are golden; see `golden`.
"""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import coords_tsp, matrix_tsp

import jaxopt_search as js
from jaxopt_search.backends import random
from jaxopt_search.searches import schedules

COOLING = js.geometric(300.0, 0.95, 20)
SEARCH = js.simulated_annealing(js.Relocate(), COOLING, moves_per_search=4)
EXCHANGE = js.recombine(every=25, alike=0.3)


def solve(problem, **options):
    options = {"num_searches": 10, "max_steps": 500, "exchange": EXCHANGE} | options
    return js.solve(problem, SEARCH, 3, **options)


@pytest.mark.devices(4)
def test_float_runs_are_the_same_on_any_number_of_devices():
    """Bit for bit, as the fixed order of sums promises; also where a device has one search."""
    places = np.random.default_rng(0).random((20, 2))
    problem = js.tsp_from_coords(places, storage="coordinates")
    crossover = js.edge_assembly(problem, num_candidates=5)
    exchange = js.recombine(every=40, alike=None, crossover=crossover)
    search = js.simulated_annealing(js.two_opt(problem), 0.05)
    options = {"num_searches": 4, "max_steps": 90, "exchange": exchange}
    one, four = (js.solve(problem, search, 3, devices=number, **options) for number in (1, 4))
    no_info = {"info": None}
    chex.assert_trees_all_equal(one.state._replace(**no_info), four.state._replace(**no_info))
    np.testing.assert_array_equal(one.solutions, four.solutions)


def test_chunks_and_progress_change_nothing(capsys):
    """Nor does the host: `run` inside jit takes the same path; with a target, the same end."""
    problem = matrix_tsp(14)
    for target in (4000, -1):
        whole = solve(problem, target=target, chunk_steps=500)
        for chunk_steps in (13, 25, 499):  # at exchanges, too
            shown = chunk_steps == 13
            cut = solve(problem, target=target, chunk_steps=chunk_steps, show_progress=shown)
            no_info = {"info": None}
            chex.assert_trees_all_equal(
                whole.state._replace(**no_info), cut.state._replace(**no_info)
            )
            assert (whole.status, whole.first_hit) == (cut.status, cut.first_hit)
    assert "best" in capsys.readouterr().err
    options = {"num_searches": 10, "max_steps": 500, "exchange": EXCHANGE}
    run = jax.jit(lambda key, problem: js.run(key, problem, SEARCH, **options))
    jitted = run(jax.random.key(3), problem)
    chex.assert_trees_all_equal(whole.state.searches, jitted.searches)
    chex.assert_trees_all_equal(whole.state.info, jitted.info)  # summed up over exchanges


def test_searches_do_not_depend_on_how_many_there_are():
    """A search is named by its index: the first three of ten are the three of three."""
    ten, three = (js.init(3, matrix_tsp(14), SEARCH, num_searches=number) for number in (10, 3))
    ten, three = (js.advance(matrix_tsp(14), SEARCH, state, 200) for state in (ten, three))
    first = jax.tree.map(lambda leaf: leaf[:3], ten.searches)
    chex.assert_trees_all_equal(first, three.searches)
    assert len(set(ten.searches.cost.tolist())) > 1


def test_a_second_instance_of_one_size_compiles_nothing(monkeypatch):
    """Nor do another temperature, key, target, period, patience or number of steps."""
    traces = []
    delta = js.Relocate.delta
    monkeypatch.setattr(js.Relocate, "delta", lambda *args: traces.append(1) or delta(*args))
    for number in range(3):
        problem = coords_tsp(11, seed=number)
        search = js.simulated_annealing(js.Relocate(), js.geometric(10.0 + number, 0.9, 1 + number))
        result = js.solve(
            problem,
            search,
            number,
            num_searches=4,
            max_steps=100 + number,
            target=number,
            patience=50 + number,
            check_every=10 + number,
            exchange=js.broadcast_best(every=5 + number),
        )
        assert result.nit > 0
        if number == 0:
            first = len(traces)
    assert len(traces) == first > 0


def minus_log(words):
    """Returns float32 of `random.exponential`, in NumPy, which compiles nothing."""
    odd = (words >> 8) | 1
    bits = odd.astype(np.float32).view(np.int32)
    t, log = (bits & 0x7FFFFF) >> 8, 0
    for coefficient in (1049, -4458, 9486, -16113, 32749):
        log = ((log + coefficient) * t + 2**14) >> 15
    return ((24 - ((bits >> 23) - 127)) * 22713 - log).astype(np.float32) * np.float32(2**-15)


def threshold(schedule, step, word):
    return schedules.temperature(schedule, step) * random.exponential(word)


def thresholds_side_by_side(schedule, steps, words):
    return jax.vmap(functools.partial(threshold, schedule))(steps, words)


def thresholds_in_turn(schedule, steps, words):
    """As a search with one move computes them, a scalar in each step."""

    def step(i, found):
        return found.at[i].set(threshold(schedule, steps[i], words[i]))

    return jax.lax.fori_loop(0, words.size, step, jnp.zeros(words.size, jnp.float32))


def thresholds_of_lanes(schedule, steps, words):
    """As a search with several moves computes them, a temperature for all moves of a step."""

    def step(i, found):
        word = jax.lax.dynamic_slice_in_dim(words, 16 * i, 16)
        lanes = jax.vmap(functools.partial(threshold, schedule, steps[16 * i]))(word)
        return jax.lax.dynamic_update_slice_in_dim(found, lanes, 16 * i, 0)

    return jax.lax.fori_loop(0, words.size // 16, step, jnp.zeros(words.size, jnp.float32))


@pytest.mark.parametrize(
    ("schedule", "is_closed_over"), [("30", True), ("geometric", False), ("function", True)]
)
def test_thresholds_are_rounded_once_wherever_they_are_computed(schedule, is_closed_over):
    """Of 32,768 words each has the threshold that NumPy gets, factor by factor, bit for bit."""
    schedule = {
        "30": js.schedules.constant(30.0),
        "geometric": js.geometric(7.3, 0.999),
        "function": schedules.as_schedule(lambda step: 7.3 * jnp.exp(-step / 1000.0)),
    }[schedule]
    words = np.random.default_rng().integers(0, 2**32, 2**15, dtype=np.uint32)
    steps = np.repeat(np.arange(words.size // 16, dtype=np.int32), 16)
    temperatures = jax.jit(jax.vmap(schedules.temperature, (None, 0)))(schedule, steps)
    expected = np.asarray(temperatures) * minus_log(words)
    for found in (thresholds_side_by_side, thresholds_in_turn, thresholds_of_lanes):
        if is_closed_over:
            of_words = jax.jit(functools.partial(found, schedule))(steps, words)
        else:
            of_words = jax.jit(found)(schedule, steps, words)
        np.testing.assert_array_equal(of_words, expected, found.__name__)
