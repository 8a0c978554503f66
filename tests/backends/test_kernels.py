"""Kernels: the same searches as XLA, bit for bit.

On a machine with a GPU the kernels run there; elsewhere XLA evaluates them, and `test_cuda.py`
plays what is emitted.
"""

import dataclasses
import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import NEIGHBORHOOD_CASES, coords_tsp, ends, matrix_tsp
from ways import FASTEST, KERNEL, ON_GPU, PORTABLE, needs_cpu

import jaxopt_search as js
from jaxopt_search import backends
from jaxopt_search.backends import memory
from jaxopt_search.engine import loop
from jaxopt_search.engine.state import make_rules

# Other metrics, candidates and sizes differ in numbers only; test_nqueens.py has queens, and
# test_graph_coloring.py colorings, test_tabu.py tables of swaps without fixed facilities.
ELSEWHERE = (
    *("relocate-matrix-3", "relocate-EUC_2D", "relocate-float"),
    *("swap_table-asymmetric-2", "swap_table-qap", "two_opt-matrix", "two_opt-ATT"),
    *("queen_swap", "delta_swap-asymmetric"),
    *("Assign-coloring", "SwapValues-coloring", "Guided-coloring", "Guided-labeling"),
    *("Assign-max_cut", "SwapValues-labeling"),
)
CASES = [
    case for case in NEIGHBORHOOD_CASES if case.is_portable and not case.name.startswith(ELSEWHERE)
]

ALSO_NATIVE = ("relocate-matrix-20", "two_opt-large-150", "swap_table-fixed-8", "Assign-qubo-6")
"""A case of each kind of move; other tests run the rest natively by default."""


def run(problem, search, implementation, *, max_steps=1000, **options):
    options = {"num_searches": 3, "max_steps": max_steps} | options
    return js.run(5, problem, search, implementation=implementation, **options)


def annealing(neighborhood, **options):
    options = {"moves_per_search": 6} | options
    return js.simulated_annealing(neighborhood, js.geometric(300.0, 0.9, 50), **options)


@pytest.mark.slow
@pytest.mark.parametrize("case", ends(CASES), ids=str)
def test_every_implementation_makes_the_same_searches(case):
    """1000 steps in a kernel, one search after the other, and side by side: the same bits."""
    search = annealing(case.neighborhood)
    expected = run(case.problem, search, "xla")
    for implementation in PORTABLE if case.name in ALSO_NATIVE else (KERNEL,):
        found = run(case.problem, search, implementation)
        if case.is_exact:
            chex.assert_trees_all_equal(expected, found)
        else:
            np.testing.assert_array_equal(expected.step.low, found.step.low)
    assert int(expected.info.accepted.sum()) > 0


@pytest.mark.parametrize(
    ("moves_per_search", "choose", "keep_best", "exchange"),
    [
        (1, "best", "standard", "broadcast"),
        (12, "first", "light", "resample"),
    ],
)
def test_everything_around_the_kernel(moves_per_search, choose, keep_best, exchange):
    """Exchanges, a target, hits: between and inside kernels."""
    problem = matrix_tsp(12)
    rule = {
        "broadcast": js.broadcast_best(every=70),
        "resample": js.resample(js.geometric(300.0, 0.9, 50), every=100),
    }[exchange]
    search = annealing(
        js.two_opt(problem),
        moves_per_search=moves_per_search,
        choose=choose,
        keep_best=keep_best,
    )
    states = [
        run(problem, search, name, max_steps=400, exchange=rule, target=2200, num_searches=5)
        for name in ("xla", KERNEL)
    ]
    chex.assert_trees_all_equal(*states)
    assert js.first_hit(states[0])[1] >= 0


@pytest.mark.slow
def test_hot_searches_take_the_same_course():
    """Many searches at temperature 30, where XLA once rounded a threshold in another way."""
    max_steps = 2000 if ON_GPU else 200
    problem = coords_tsp(100)
    search = js.simulated_annealing(js.Relocate(), 30.0, moves_per_search=12)
    states = [
        run(problem, search, name, num_searches=2112 if ON_GPU else 264, max_steps=max_steps)
        for name in ("xla", FASTEST)
    ]
    chex.assert_trees_all_equal(*states)


def test_many_steps_take_several_launches(monkeypatch):
    """The table of temperatures is as long as a launch; a run is not."""
    monkeypatch.setattr(backends, "MAX_STEPS", 64)
    problem = matrix_tsp(8)
    search = annealing(js.Relocate(), keep_best="standard", moves_per_search=5)
    expected = run(problem, search, "xla", max_steps=203)
    found = run(problem, search, KERNEL, max_steps=203)
    chex.assert_trees_all_equal(expected, found)


def test_kernels_run_on_several_devices():
    """`pmap` over kernels gives what one device gives."""
    num_devices = min(3, jax.local_device_count())
    problem = matrix_tsp(9)
    search = annealing(js.two_opt(problem))
    options = {"num_searches": 6, "max_steps": 150, "exchange": js.broadcast_best(every=40)}
    results = [
        js.solve(problem, search, 1, devices=devices, implementation=implementation, **options)
        for devices, implementation in ((1, "xla"), (num_devices, KERNEL))
    ]
    chex.assert_trees_all_equal(*(result.state._replace(info=None) for result in results))
    assert results[1].env["implementation"] == KERNEL


def test_a_vmap_over_keys_runs_kernels():
    """Whole runs are batched with the kernel inside."""
    problem = matrix_tsp(9)
    search = annealing(js.two_opt(problem))

    def go(implementation):
        return jax.vmap(
            lambda key: js.run(
                key, problem, search, num_searches=2, max_steps=60, implementation=implementation
            )
        )(jax.vmap(jax.random.key)(jnp.arange(3)))

    chex.assert_trees_all_equal(go("xla").searches, go(KERNEL).searches)


@needs_cpu
def test_portable_searches_are_one_function_on_a_cpu():
    """XLA runs the loop over steps as one function: no list of small ones, no scatter."""
    problem = matrix_tsp(150)
    search = annealing(js.two_opt(problem))
    state = js.init(0, problem, search, num_searches=2)

    def go(problem, search, state):
        rules = make_rules(search, state.best_cost.dtype)
        return loop.advance_by(problem, search, state, 10, rules, implementation="native")

    text = jax.jit(go).lower(problem, search, state).compile().as_text()
    calls = [
        line for line in text.splitlines() if "xla_cpu_small_call" in line and " call(" in line
    ]
    assert calls
    assert " scatter(" not in text


@needs_cpu
def test_native_loops_are_not_part_of_a_users_function():
    """Arrays that a user's function closes over would become constants: XLA runs instead."""
    problem, search = matrix_tsp(20), annealing(js.Relocate())
    go = functools.partial(js.run, problem=problem, search=search, num_searches=2, max_steps=20)
    expected = go(3, implementation="native")
    for found in (
        jax.jit(lambda key: go(key))(jax.random.key(3)),
        jax.vmap(lambda key: go(key))(jax.random.key(3)[None]),
    ):
        np.testing.assert_array_equal(np.ravel(found.searches.cost), expected.searches.cost)
    state = js.init(3, problem, search, num_searches=2)
    enclosed = jax.jit(lambda: js.advance(problem, search, state, 20))()  # nothing is an argument
    chex.assert_trees_all_equal(enclosed.searches, expected.searches)
    with pytest.raises(js.NotPortable, match="expected 'auto' or 'xla': inside jit or vmap"):
        jax.jit(lambda key: go(key, implementation="native"))(jax.random.key(3))


@needs_cpu
def test_schedules_with_constants_run_natively():
    """Constant arrays in a schedule stay outside of what is compiled as one function."""
    problem = matrix_tsp(60)
    search = js.simulated_annealing(
        js.Relocate(), lambda step: jnp.arange(2000.0)[step], moves_per_search=4
    )
    states = [run(problem, search, name, max_steps=1100) for name in ("xla", "native")]
    chex.assert_trees_all_equal(*states)


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Cautious(js.Relocate):
    """A neighborhood whose commit copies, branches and stores by lanes, to the same effect."""

    def commit(self, problem, representation, move, accept):
        tour = super().commit(problem, representation, move, accept)
        successor = memory.copy(tour.successor, tour.successor, accept)
        lane = memory.lanes(4)
        value = memory.load(successor, jnp.int32(0))
        successor = memory.store(successor, lane, value, accept & (lane < 1))
        return tour._replace(successor=successor)


def test_copies_and_scalars_for_all_lanes():
    """`copy` inside of a commit, and one value and one condition for all lanes, are fine."""
    problem, search = matrix_tsp(20), annealing(Cautious())
    assert js.why_not_portable(problem, search) == ""
    expected = run(problem, annealing(js.Relocate()), "xla", max_steps=60)
    chex.assert_trees_all_equal(run(problem, search, KERNEL, max_steps=60), expected)
