"""Costs that runs report are true: at the end of every call, and where sums of floats drift."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from probes import Countdown, Course, line

import jaxopt_search as js
from jaxopt_search import Status
from jaxopt_search.types import Info

FLOAT = js.tsp_from_coords(np.random.default_rng(3).random((12, 2)), storage="matrix")
COLD = js.simulated_annealing(js.Relocate(), 0.05, moves_per_search=4)


# Edges that differ so much in size that float32 loses the short ones next to the long ones.
def hidden_cycle(n, dear):
    matrix = np.full((n, n), float(dear))
    cycle = np.random.default_rng(n).permutation(n)
    matrix[cycle, np.roll(cycle, -1)] = matrix[np.roll(cycle, -1), cycle] = 1.5
    return matrix


DRIFTING = js.tsp(hidden_cycle(20, 1e8))
COOLING = js.simulated_annealing(
    js.Relocate(), js.geometric(1e8, 0.99, steps_per_temperature=8), moves_per_search=8
)
EXCHANGE = js.broadcast_best(every=77)


def drift(**options):
    return js.solve(DRIFTING, COOLING, 1, **{"num_searches": 16, "max_steps": 9000} | options)


def test_what_drifts_is_recomputed():
    """Costs belong to the solutions, the best is the best of them, and it never rises.

    The instance does what it is here for: running costs depart from true ones.
    """
    result = drift(exchange=EXCHANGE, chunk_steps=300)
    costs = [DRIFTING.host.cost(tour) for tour in result.solutions]
    np.testing.assert_allclose(result.costs, costs, rtol=1e-6)
    assert result.fun <= min(costs)
    assert result.fun == DRIFTING.host.cost(result.x)
    best = [record.best for record in result.history]
    assert best == sorted(best, reverse=True)
    assert result.state.best_cost == pytest.approx(min(costs), rel=1e-6)
    searches = drift().state.searches
    now = jax.jit(jax.vmap(lambda one: COOLING.current(DRIFTING, one)))(searches)
    true = np.array([DRIFTING.host.cost(tour) for tour in np.asarray(now)])
    assert (np.abs(np.asarray(searches.cost) - true) > 1).any()


def test_success_is_a_cost_within_the_target():
    """A running cost that has drifted below the target is no hit; the run continues."""
    for target in (10.0, -5.0, 30.0):
        result = drift(target=target, check_every=10)
        assert result.success == (result.fun <= target)
        assert result.success == (result.status == Status.TARGET) == (result.first_hit is not None)
        assert target >= 30 or not result.success


def test_a_run_without_a_driver_takes_no_false_hit():
    """Its status and its first finisher are true, too."""
    for check_every in (10, 4000):
        run = functools.partial(js.run, 1, DRIFTING, COOLING, num_searches=16, max_steps=3900)
        state = run(target=10.0, check_every=check_every)
        assert (state.status, js.first_hit(state)[1]) == (Status.MAX_STEPS, -1)
        assert state.step.low == 3900


def test_drift_does_not_depend_on_chunks():
    """What is recomputed, and when, follows from the steps."""
    options = {"target": -5.0, "check_every": 10, "exchange": EXCHANGE}
    whole, pieces = (drift(chunk_steps=size, **options) for size in (9000, 331))
    np.testing.assert_array_equal(whole.solutions, pieces.solutions)
    np.testing.assert_array_equal(whole.state.searches.cost, pieces.state.searches.cost)


def test_patience_is_not_taken_in_by_drift():
    """Improvements that were none do not keep a run going; chunks change nothing."""
    search = js.simulated_annealing(js.Relocate(), 1e7, moves_per_search=8)
    ends = [
        js.solve(DRIFTING, search, 2, num_searches=4, patience=400, check_every=20, **chunks).nit
        for chunks in ({}, {"chunk_steps": 37})
    ]
    assert ends[0] == ends[1] < 20_000


def test_a_target_between_two_costs_on_the_device():
    """A float32 cost may round to a target that the exact one misses: success goes by this one."""
    options = {"num_searches": 4, "max_steps": 4000}
    best = js.solve(FLOAT, COLD, 0, **options).fun
    for below in (1e-9, 1e-8, 3e-8, 1e-7, 1e-5):
        missed = js.solve(FLOAT, COLD, 0, target=best * (1 - below), **options)
        assert (missed.success, missed.fun, missed.first_hit) == (False, best, None)
    met = js.solve(FLOAT, COLD, 0, target=best, **options)
    assert (met.success, met.fun, met.status) == (True, best, Status.TARGET)
    assert met.nit < 4000
    assert met.first_hit.step <= met.nit


def test_donors_are_chosen_by_true_costs():
    """Not by a running cost that has drifted below all others."""
    start = js.init(4, FLOAT, COLD, num_searches=4)
    alone = js.advance(FLOAT, COLD, start, 1)
    tours = np.asarray(jax.jit(jax.vmap(current_tour))(alone.searches))
    best = int(np.argmin([FLOAT.host.cost(tour) for tour in tours]))
    liar = (best + 1) % 4
    low = start.searches.cost.at[liar].set(-100.0)
    start = start._replace(searches=start.searches._replace(cost=low, best_cost=low))
    end = js.advance(FLOAT, COLD, start, 1, exchange=js.broadcast_best(every=1))
    assert set(np.asarray(end.ancestor).tolist()) == {best}


def current_tour(state):
    return COLD.current(FLOAT, state)


@js.pytree
@dataclasses.dataclass(frozen=True)
class Pendulum(Countdown):
    """Forgets its best: its number falls for ten steps, and rises from then on."""

    def step(self, stream, control, problem, state):
        number = state.number + jnp.where(stream.step < 10, -1, 1)
        return Course(number, number), Info(jnp.int32(1))


def test_the_best_never_rises():
    """What a chunk has shown is kept, whatever the search forgets."""
    options = {"num_searches": 1, "max_steps": 30, "chunk_steps": 5}
    result = js.solve(line(17), Pendulum(jnp.int32(0)), 0, **options)
    assert (result.fun, result.x) == (7, 7)
    assert [record.best for record in result.history] == [17, 12, 7, 7, 7, 7, 7]


def test_an_adopted_solution_is_remembered():
    """Better than all before, it is the best of the search also when the next step leaves it."""
    problem = js.qap_from_instance(js.datasets.planted_qap(2, 4, seed=1))
    tabu, hot = js.tabu_search(js.SwapTable()), js.simulated_annealing(js.DeltaSwap(), 1e9)
    best = js.best(problem, tabu, js.run(5, problem, tabu, num_searches=4, max_steps=200))[0]
    start, lowest = js.init(1, problem, hot, num_searches=4), problem.host.cost(np.asarray(best))
    assert (start.best_cost > lowest).all()
    adopt = jax.jit(jax.vmap(hot.adopt, in_axes=(None, 0, None)))
    adopted = adopt(problem, start.searches, best)
    end = js.advance(problem, hot, start._replace(searches=adopted), 1)
    costs, solutions = jax.jit(
        jax.vmap(lambda state: (hot.best_cost(state), hot.best(problem, state)))
    )(end.searches)
    assert (np.asarray(costs) == lowest).all()
    assert {problem.host.cost(one) for one in np.asarray(solutions)} == {lowest}


def test_a_hit_is_kept_through_an_exchange():
    """Tabu search that recombined lost what it had taken over, and called the rest a success."""
    for seed in range(4):
        instance = js.datasets.planted_qap(3, 4, seed=seed)
        result = js.solve_qap(instance, max_steps=50, num_searches=4, devices=1)
        assert (result.status == Status.TARGET) == (result.fun == instance.best_known)
