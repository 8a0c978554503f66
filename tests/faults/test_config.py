"""JAX's own switches and transformations around the library change no result."""

import contextlib
import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P
from probes import annealing, assert_same, line, small_tsp, walk

import jaxopt_search as js
from jaxopt_search.backends import random
from jaxopt_search.searches.queens_repair import repair

OPTIONS = {"num_searches": 2, "max_steps": 7, "check_every": 5}
XY = np.random.default_rng(0).random((2, 7, 2))
ONE_WAY = np.random.default_rng(0).integers(1, 50, (2, 6, 6)) * (1 - np.eye(6, dtype=int))
BOTH_WAYS = ONE_WAY + ONE_WAY.swapaxes(1, 2)
SHUFFLED = np.random.default_rng(0).permutation(60).astype(np.int32)
COOLING = js.geometric(30.0, 0.9, steps_per_temperature=3)


def plane():
    return js.tsp_from_coords(XY[0], storage="coordinates")


def floats():
    return js.qap(*(BOTH_WAYS * 0.3))


def solve(problem, search, exchange=None, **options):
    return js.solve(problem, search, 3, exchange=exchange, **OPTIONS | options)


def anneal(problem, neighborhood, exchange=None, limits=None, **options):
    search = js.simulated_annealing(neighborhood, COOLING, moves_per_search=2, **options)
    limits = {"target": 1, "patience": 50, "initial": range(problem.n)} | (limits or {})
    return solve(problem, search, exchange, **limits)


def breed(problem, exchange, **options):
    return solve(problem, js.genetic(population_size=4, **options), exchange)


def solver(solve, *data, max_steps=9, **options):
    return solve(*data, key=3, max_steps=max_steps, num_searches=3, devices=1, **options)


# What a user calls, as small as it can be.
CALLS = {
    "solve_tsp stacked": lambda: solver(js.solve_tsp, XY, max_steps=20),
    "solve_qap tabu": lambda: solver(js.solve_qap, *ONE_WAY, partial_match=[[0, 1]]),
    "solve_nqueens": lambda: solver(js.solve_nqueens, 6, 2, max_steps=400),
    "repair": lambda: repair(random.as_key(2), js.nqueens(60), SHUFFLED, max_rounds=50),
    "resample": lambda: anneal(
        js.qap(*ONE_WAY), js.Swap(), js.resample(COOLING, every=4), keep_best="standard"
    ),
    "eax": lambda: anneal(
        plane(),
        js.two_opt(plane()),
        js.recombine(every=3, alike=None, crossover=js.edge_assembly(plane())),
        choose="first",
    ),
    "memetic": lambda: breed(
        floats(),
        js.shuffle(every=3),
        local_search=js.hill_climbing(js.SwapTable()),
        local_steps=2,
    ),
}
# The same for a switch that makes everything slow.
SHORT_CALLS = {
    "relocate": lambda: anneal(js.tsp(ONE_WAY[0]), js.Relocate(), js.broadcast_best(every=3)),
    "two steps": lambda: anneal(
        js.tsp(ONE_WAY[0][:4, :4]), js.Relocate(), limits={"max_steps": 2, "num_searches": 1}
    ),
}
SWITCHES = {
    "x64": lambda: jax.enable_x64(True),
    "strict promotion": lambda: jax.numpy_dtype_promotion("strict"),
    "old threefry": lambda: jax.threefry_partitionable(False),
    "debug_nans": lambda: jax.debug_nans(True),
    "checking_leaks": jax.checking_leaks,
    "disable_jit": jax.disable_jit,
}
TOGETHER = ("x64", "strict promotion", "old threefry", "debug_nans")
QUICK = ("repair", "resample")


def outcome(result):
    """Returns what must be the same, of what any of these calls returns, as NumPy arrays."""
    if isinstance(result, js.Result):
        names = ("fun", "x", "nit", "first_hit", "costs", "solutions", "ancestors")
        state = result.state._replace(info=None)
        result = {"state": state} | {name: getattr(result, name) for name in names}
    elif isinstance(result, js.StackedResult):
        result = result.fun, result.x
    elif isinstance(result, js.QueensResult):
        result = result.solutions
    return jax.tree.map(np.asarray, jax.device_get(result))


def check(call, switches):
    call = (CALLS | SHORT_CALLS)[call]
    plain = outcome(call())
    with contextlib.ExitStack() as stack:
        for switch in switches:
            stack.enter_context(SWITCHES[switch]())
        switched = outcome(call())
    assert_same(switched, plain)


@pytest.mark.parametrize(
    "call",
    [pytest.param(call, marks=[pytest.mark.slow] * (call not in QUICK)) for call in CALLS],
)
def test_switches_change_nothing(call):
    """Results are the same, dtypes included, under JAX's switches, several at once."""
    check(call, TOGETHER)


@pytest.mark.parametrize(
    ("call", "switch"),
    [
        ("relocate", "checking_leaks"),
        ("two steps", "disable_jit"),
    ],
)
@pytest.mark.slow
def test_each_switch_changes_nothing(call, switch):
    """One switch by itself, which may let through what another refuses."""
    check(call, [switch])


def run(key, problem, search):
    return js.run(key, problem, search, **OPTIONS)


def test_run_inside_vmap():
    """Under `vmap` over keys each run is what it is alone, bit for bit."""
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
    """A gradient through a search is zero."""
    points = jnp.arange(16.0).reshape(2, 8) ** 2
    problem = js.tsp_from_coords(points.T, storage="coordinates")
    search = annealing()

    def cost(x):
        coords = problem.coords._replace(first=x)
        moved = dataclasses.replace(problem, coords=coords)
        return js.best(moved, search, run(0, moved, search))[1]

    assert not jax.grad(cost)(problem.coords.first).any()


def test_seeds_under_vmap_are_refused():
    """Traced integers are no seeds, and the error says what is."""
    problem, search = small_tsp(), annealing()
    with pytest.raises(TypeError, match="expected an integer seed or a jax.random.key") as caught:
        jax.vmap(lambda seed: run(seed, problem, search))(jnp.arange(2))
    assert "\n" not in str(caught.value)


@pytest.mark.devices(2)
def test_run_inside_shard_map():
    """Of keys that are spread over a mesh, with an exchange."""
    problem = small_tsp(8)
    search = js.simulated_annealing(js.two_opt(problem), 2.0)
    exchange = js.recombine(every=5)
    keys = jax.random.split(jax.random.key(0), 2)

    def best(key):
        state = js.run(key, problem, search, num_searches=3, max_steps=20, exchange=exchange)
        return js.best(problem, search, state)

    mesh = jax.make_mesh((2,), ("x",), (jax.sharding.AxisType.Auto,))
    spread = jax.shard_map(jax.vmap(best), mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    assert_same(jax.jit(spread)(keys), jax.vmap(best)(keys))
