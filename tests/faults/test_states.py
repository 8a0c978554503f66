"""States that do not belong to a run, and steering to other searches and settings."""

import contextlib

import jax.numpy as jnp
import numpy as np
from probes import annealing, refuses, small_tsp

import jaxopt_search as js

DISTANCE = np.random.default_rng(0).integers(1, 99, (8, 8))
EDGE = DISTANCE + DISTANCE.T


def solve(problem, search, **options):
    return js.solve(problem, search, 0, **{"num_searches": 2, "max_steps": 9} | options)


def coords_tsp(seed):
    return js.tsp_from_coords(np.random.default_rng(seed).random((8, 2)), metric="EUCLID")


def test_state_of_another_float_instance():
    """A state is not continued on an instance of the same size that has other float costs."""
    search = annealing(0.1)
    state = solve(coords_tsp(0), search, max_steps=60).state
    with refuses(ValueError, "state is of another instance, expected one made with this problem"):
        solve(coords_tsp(1), search, state=state, max_steps=90)
    assert solve(coords_tsp(0), search, state=state, max_steps=90).nit == 90


def test_state_whose_costs_have_drifted():
    """A state is this instance's own as far as rounding since a refresh may have moved its costs.

    Here by 300 of 1000 or less, on the way from costs of 10**9.
    """
    dear = np.where(np.random.default_rng(0).random((8, 8)) < 0.5, 1e9, EDGE + 0.25)
    dear[np.arange(8), np.arange(8) - 1] = dear[np.arange(8) - 1, np.arange(8)] = 30.25
    problem, search = js.tsp(np.minimum(dear, dear.T)), annealing()
    start = js.init(0, problem, search, num_searches=2, solutions=np.tile(np.arange(8), (2, 1)))
    searches = start.searches._replace(cost=start.searches.cost + 300)
    searches = searches._replace(best_cost=searches.cost)
    for steps, is_refused in ((0, True), (5000, False)):
        since = start.since._replace(refresh=jnp.int32(steps))
        state = start._replace(searches=searches, since=since)
        with refuses(ValueError, "another instance") if is_refused else contextlib.nullcontext():
            assert solve(problem, search, state=state).nit == 9


def test_state_from_before_facilities_were_fixed():
    """A state in which fixed facilities stand elsewhere is of another instance."""
    flow, distance = np.random.default_rng(0).integers(1, 99, (2, 7, 7))
    fixed = js.qap(flow, distance, partial_match=[[0, 3], [2, 1]])
    search = js.simulated_annealing(js.DeltaSwap(), 5.0)
    state = js.init(0, js.qap(flow, distance), search, num_searches=4)
    with refuses(ValueError, "state is of another instance"):
        solve(fixed, search, state=state, max_steps=20)


def test_states_with_parts_missing():
    """A state whose parts are no arrays, or not those of such a search, is refused."""
    state = solve(small_tsp(), annealing(), max_steps=0).state
    for change in ({"index": None}, {"best_cost": 3.0}, {"searches": None}):
        with refuses(ValueError, "state is of another problem or search"):
            solve(small_tsp(), annealing(), state=state._replace(**change))
