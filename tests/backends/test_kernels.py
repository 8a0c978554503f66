"""Kernels: the same searches as XLA, bit for bit, beside those of `golden.py`.

On a machine with a GPU the kernels run there; elsewhere XLA evaluates them, and `test_cuda.py`
plays what is emitted.
"""

import functools
import json

import chex
import golden
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import matrix_tsp
from digests import digest
from ways import KERNEL, needs_cpu

import jaxopt_search as js
from jaxopt_search import backends


def run(problem, search, implementation, *, max_steps=1000, **options):
    options = {"num_searches": 3, "max_steps": max_steps} | options
    return js.run(5, problem, search, implementation=implementation, **options)


def annealing(neighborhood, **options):
    options = {"moves_per_search": 6} | options
    return js.simulated_annealing(neighborhood, js.geometric(300.0, 0.9, 50), **options)


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
    case = next(case for case in golden.CASES if case.name == "broadcast")
    kept = json.loads(golden.FILE.read_text(encoding="utf-8"))
    found = case.run(KERNEL, min(3, jax.local_device_count()))
    assert digest(found) == kept[case.name]


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
def test_native_loops_are_not_part_of_a_users_function():
    """Arrays that a user's function closes over would become constants: XLA runs instead."""
    problem, search = matrix_tsp(20), annealing(js.Relocate())
    go = functools.partial(js.run, problem=problem, search=search, num_searches=2, max_steps=20)
    expected = go(3, implementation="native")
    found = jax.jit(jax.vmap(lambda key: go(key)))(jax.random.key(3)[None])
    np.testing.assert_array_equal(found.searches.cost[0], expected.searches.cost)
    state = js.init(3, problem, search, num_searches=2)
    enclosed = jax.jit(lambda: js.advance(problem, search, state, 20))()  # nothing is an argument
    chex.assert_trees_all_equal(enclosed.searches, expected.searches)
    with pytest.raises(js.NotPortable, match="expected 'auto' or 'xla': inside jit or vmap"):
        jax.jit(lambda key: go(key, implementation="native"))(jax.random.key(3))


@needs_cpu
def test_schedules_with_constants_run_natively():
    """Constant arrays in a schedule stay outside of what is compiled as one function."""
    problem = matrix_tsp(9)
    search = js.simulated_annealing(js.Relocate(), lambda step: jnp.arange(2000.0)[step])
    states = [run(problem, search, name, max_steps=1100) for name in ("xla", "native")]
    chex.assert_trees_all_equal(*states)
