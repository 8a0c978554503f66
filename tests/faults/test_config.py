"""JAX's own switches and transformations around the library change no result."""

import contextlib
import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P
from probes import annealing, assert_same, line, small_tsp, walk
from queens import repair
from ways import wide_types

import jaxopt_search as js
from jaxopt_search.backends import random

OPTIONS = {"num_searches": 2, "max_steps": 7, "check_every": 5}
XY = np.random.default_rng(0).random((7, 2))
ONE_WAY = np.random.default_rng(0).integers(1, 50, (2, 6, 6)) * (1 - np.eye(6, dtype=int))
SHUFFLED = np.random.default_rng(0).permutation(60).astype(np.int32)
COOLING = js.geometric(30.0, 0.9, steps_per_temperature=3)


def anneal(neighborhood, **options):
    return js.simulated_annealing(neighborhood, COOLING, moves_per_search=2, **options)


def resampled():
    """Returns the whole state of a run of `solve`, and what its result has."""
    search = anneal(js.Swap(), keep_best="standard")
    limits = {
        "target": 1,
        "patience": 50,
        "initial": range(6),
        "exchange": js.resample(COOLING, every=4),
    }
    found = js.solve(js.qap(*ONE_WAY), search, 3, **OPTIONS | limits)
    return found.state._replace(info=None), found.fun, found.x, found.first_hit, found.ancestors


def repaired():
    return repair(random.as_key(2), js.nqueens(60), SHUFFLED, max_rounds=50)


def in_regions():
    plane = js.tsp_from_coords(np.random.default_rng(0).random((40, 2)), storage="coordinates")
    search = js.regional_search(plane, 1.0, looks=3, num_regions=2)
    return js.run(3, plane, search, num_searches=1, max_steps=3)


def kicked():
    """With room for more cities, as in `solve_tsp`, and without."""
    xy = np.random.default_rng(0).integers(0, 99, (12, 2))
    plane, found = js.tsp_from_coords(xy), js.solve_tsp(xy, 3, max_steps=7, num_searches=2)
    search = js.iterated_local_search(js.two_opt(plane), js.DoubleBridge())
    return js.run(3, plane, search, **OPTIONS), found.costs, found.x


def bifurcated():
    chain = js.qubo({(i, i + 1): 2 for i in range(80)})
    assert chain.cost(np.ones(81, np.int32)) == 160
    return js.run(3, chain, js.simulated_bifurcation(), **OPTIONS)


def measured():
    found = js.anneal(js.qap(*ONE_WAY), js.Insert(), 3, max_steps=7)
    return found.search, found.costs, found.x


def priced():
    return js.tsp(ONE_WAY[0]).cost(np.arange(6))


@contextlib.contextmanager
def switched():
    with (
        wide_types(True),
        jax.numpy_dtype_promotion("strict"),
        jax.threefry_partitionable(False),
        jax.default_prng_impl("rbg"),
        jax.debug_nans(True),
    ):
        yield


CALLS = [resampled, repaired, in_regions, kicked, bifurcated, measured, priced]


@pytest.mark.parametrize("call", CALLS)
def test_switches_change_nothing(call):
    """Results are the same, dtypes included, under JAX's switches, several at once."""
    plain = call()
    with switched():
        found = call()
    assert_same(*jax.tree.map(np.asarray, jax.device_get((found, plain))))


def eax():
    plane = js.tsp_from_coords(XY, storage="coordinates")
    exchange = js.recombine(every=3, alike=None, crossover=js.edge_assembly(plane))
    return plane, anneal(js.two_opt(plane), choose="first"), exchange


def memetic():
    climb = js.hill_climbing(js.SwapTable())
    search = js.genetic(population_size=4, local_search=climb, local_steps=2)
    return js.qap(*(ONE_WAY * 0.3)), search, js.shuffle(every=3)


PARTS = {
    "eax": eax,
    "memetic": memetic,
    "tabu": lambda: (
        js.qap(*ONE_WAY, partial_match=[[0, 1]]),
        js.tabu_search(js.SwapTable()),
        js.ring(every=3),
    ),
    "queens": lambda: (js.nqueens(6), js.min_conflicts(js.QueenSwap()), None),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PARTS)
def test_no_part_has_64_bits(name):
    """Nor is it refused, where JAX would widen numbers and refuses to promote them."""
    with switched():
        problem, search, exchange = PARTS[name]()
        found = jax.eval_shape(lambda: js.run(3, problem, search, exchange=exchange, **OPTIONS))
    assert not [leaf for leaf in jax.tree.leaves(found) if leaf.dtype.itemsize > 4]


def test_no_tracer_leaks():
    problem = js.tsp(ONE_WAY[0])
    with jax.checking_leaks():
        jax.eval_shape(lambda: js.run(3, problem, anneal(js.Relocate()), **OPTIONS))


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
    """Of keys that are spread over a mesh, with an exchange; other parts can be traced there."""
    problem = small_tsp(8)
    search = js.simulated_annealing(js.two_opt(problem), 2.0)
    keys = jax.random.split(jax.random.key(0), 2)
    mesh = jax.make_mesh((2,), ("x",), (jax.sharding.AxisType.Auto,))

    def best(problem, search, exchange):
        def of(key):
            state = js.run(key, problem, search, exchange=exchange, **OPTIONS)
            return js.best(problem, search, state)

        return jax.vmap(of)

    def spread(function):
        return jax.shard_map(function, mesh=mesh, in_specs=P("x"), out_specs=P("x"))

    walks = best(line(20), walk(), js.ring(every=2))
    assert_same(jax.jit(spread(walks))(keys), walks(keys))
    for crossover in (None, js.edge_assembly(problem)):
        exchange = js.recombine(every=5, crossover=crossover)
        jax.eval_shape(spread(best(problem, search, exchange)), keys)
