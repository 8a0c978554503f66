"""Faults 51-53: JAX's own switches and transformations around the library."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import pytest
from probes import annealing, assert_same, assert_same_results, line, small_tsp, walk

import jaxopt_search as js

OPTIONS = {"num_searches": 2, "max_steps": 7, "check_every": 5}
PROBLEMS = {
    "matrix": small_tsp,
    "coordinates": lambda: js.tsp_from_coords(
        [[0, 0], [3, 1], [1, 5], [4, 4], [2, 2], [6, 3]], storage="coordinates"
    ),
}
SWITCHES = {
    "x64": lambda: jax.enable_x64(True),
    "strict promotion": lambda: jax.numpy_dtype_promotion("strict"),
    "debug_nans": lambda: jax.debug_nans(True),
    "checking_leaks": jax.checking_leaks,
    "disable_jit": jax.disable_jit,
}


def solve(name):
    problem = PROBLEMS[name]()
    search = annealing(js.geometric(30.0, 0.9, steps_per_temperature=3))
    options = OPTIONS | {"exchange": js.broadcast_best(every=3), "target": 1, "patience": 50}
    return js.solve(problem, search, 3, initial=range(problem.n), **options)


@functools.cache
def expected(name):
    return solve(name)


@pytest.mark.parametrize(
    ("switch", "problem"),
    [
        ("x64", "matrix"),
        ("x64", "coordinates"),
        ("strict promotion", "coordinates"),
        ("debug_nans", "coordinates"),
        ("checking_leaks", "matrix"),
        ("disable_jit", "matrix"),
    ],
)
@pytest.mark.slow
def test_switches_change_nothing(switch, problem):
    """Rows 51, 52: a run and its result are the same, dtypes included, under JAX's switches."""
    plain = expected(problem)
    with SWITCHES[switch]():
        result = solve(problem)
    assert_same_results(result, plain)


def test_key_reuse_is_checked():
    """Row 52: the check for reused keys is on in all tests, by the suite's settings."""
    assert jax.config.jax_debug_key_reuse


@pytest.mark.parametrize(
    "switch",
    [lambda: jax.default_prng_impl("rbg"), lambda: jax.threefry_partitionable(False)],
    ids=["rbg", "old threefry"],
)
def test_generators_change_nothing(switch):
    """Rows 48, 52: start solutions are the same whatever JAX's own generator is set to."""
    problem, search = small_tsp(), annealing()
    plain = js.init(3, problem, search, num_searches=2)
    with switch():
        assert_same(js.init(3, problem, search, num_searches=2), plain)


def run(key, problem, search):
    return js.run(key, problem, search, **OPTIONS)


def test_run_inside_jit():
    """Row 53: the pure layer works inside a user's own `jit`."""
    problem, search = small_tsp(), annealing()
    inside = jax.jit(lambda key: run(key, problem, search))(jax.random.key(1))
    assert_same(inside, run(1, problem, search))


def test_run_inside_vmap():
    """Row 53: under `vmap` over keys each run is what it is alone, bit for bit."""
    problem, search = line(20), walk()
    keys = jax.random.split(jax.random.key(0), 3)

    def hit_and_best(key):
        state = js.run(key, problem, search, target=5, **OPTIONS | {"max_steps": 900})
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
        coords = problem.coords._replace(first=x)
        moved = dataclasses.replace(problem, coords=coords)
        return js.best(moved, search, run(0, moved, search))[1]

    with pytest.raises((TypeError, ValueError), match="differentia"):
        jax.grad(cost)(problem.coords.first)


def test_seeds_under_vmap_are_refused():
    """Row 53: traced integers are no seeds, and the error says what is."""
    problem, search = small_tsp(), annealing()
    with pytest.raises(TypeError, match="expected an integer seed or a jax.random.key") as caught:
        jax.vmap(lambda seed: run(seed, problem, search))(jnp.arange(2))
    assert "\n" not in str(caught.value)
