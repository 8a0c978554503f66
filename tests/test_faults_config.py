"""Faults 51-53: JAX's own switches and transformations around the library."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from probes import annealing, assert_same, assert_same_results, small_tsp

import jaxopt_search as js

OPTIONS = {"num_searches": 2, "max_steps": 12, "check_every": 5}


def runs():
    """Returns an integer and a float run, and the results of both, with everything switched on."""
    points = np.array([[0, 0], [3, 1], [1, 5], [4, 4], [2, 2], [6, 3], [5, 0], [0, 3]])
    problems = (small_tsp(), js.tsp_from_coords(points, storage="coordinates"))
    search = annealing(js.geometric(30.0, 0.9, steps_per_temperature=3))
    options = OPTIONS | {"exchange": js.broadcast_best(every=3), "target": 1, "patience": 50}
    states, results = [], []
    for problem in problems:
        states.append(js.run(3, problem, search, **options))
        results.append(js.solve(problem, search, 3, initial=range(8), **options))
    return states, results


@pytest.fixture(scope="module")
def expected():
    return runs()


SWITCHES = {
    "x64": lambda: jax.enable_x64(True),
    "strict promotion": lambda: jax.numpy_dtype_promotion("strict"),
    "debug_nans": lambda: jax.debug_nans(True),
    "debug_infs": lambda: jax.debug_infs(True),
    "checking_leaks": jax.checking_leaks,
    "debug_key_reuse": lambda: jax.debug_key_reuse(True),
    "disable_jit": jax.disable_jit,
    "rbg": lambda: jax.default_prng_impl("rbg"),
    "old threefry": lambda: jax.threefry_partitionable(False),
}


@pytest.mark.parametrize("switch", SWITCHES)
def test_switches_change_nothing(expected, switch):
    """Rows 51, 52: runs and results are the same, dtypes included, under JAX's switches."""
    with SWITCHES[switch]():
        states, results = runs()
    for state, result, plain_state, plain_result in zip(states, results, *expected, strict=True):
        assert_same(state, plain_state)
        assert_same_results(result, plain_result)


def run(key, problem, search):
    return js.run(key, problem, search, **OPTIONS)


def test_run_inside_jit():
    """Row 53: the pure layer works inside a user's own `jit`."""
    problem, search = small_tsp(), annealing()
    inside = jax.jit(lambda key: run(key, problem, search))(jax.random.key(1))
    assert_same(inside, run(1, problem, search))


def test_run_inside_vmap():
    """Row 53: under `vmap` over keys each run is what it is alone, bit for bit."""
    problem, search = small_tsp(), annealing()
    keys = jax.random.split(jax.random.key(0), 3)

    def hit_and_best(key):
        state = js.run(key, problem, search, target=150, **OPTIONS | {"max_steps": 60})
        return state, js.first_hit(state), js.best(problem, search, state)

    together = jax.vmap(hit_and_best)(keys)
    assert len(set(together[0].step.low.tolist())) > 1, "the runs end at one step, too easy"
    for i in range(3):
        assert_same(jax.tree.map(lambda leaf, i=i: leaf[i], together), hit_and_best(keys[i]))


def test_run_inside_grad():
    """Row 53: a gradient through a search is refused in words, or is zero."""
    points = jnp.arange(16.0).reshape(2, 8) ** 2
    problem = js.tsp_from_coords(points.T, storage="coordinates")
    search = annealing()

    def cost(x):
        moved = js.TSP(x=x, y=problem.y, n=8, metric="EUCLID", is_symmetric=True, host=problem.host)
        return js.best(moved, search, run(0, moved, search))[1]

    with pytest.raises((TypeError, ValueError), match="differentia"):
        jax.grad(cost)(problem.x)


def test_seeds_under_vmap_are_refused():
    """Row 53: traced integers are no seeds, and the error says what is."""
    problem, search = small_tsp(), annealing()
    with pytest.raises(TypeError, match="expected an integer seed or a jax.random.key") as caught:
        jax.vmap(lambda seed: run(seed, problem, search))(jnp.arange(2))
    assert "\n" not in str(caught.value)
