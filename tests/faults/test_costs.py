"""Problems of a user's own whose costs are infinite or NaN: these never win, and can be left."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from probes import refuses

import jaxopt_search as js
from jaxopt_search.problems import permutation

N, LOWEST = 6, 20.0
FORWARD, BACKWARD = np.arange(N), np.arange(N)[::-1]
BAD = [math.inf, math.nan]


@js.pytree
@dataclasses.dataclass(frozen=True)
class Order(js.Problem):
    """The sum of `i * order[i]`; `bad` where `order[0]` is below `least`. Backward is the best."""

    bad: jax.Array
    least: jax.Array

    space = "permutation"

    def init(self, key):
        return permutation.random_permutation(key, N)

    def cost(self, order):
        cost = jnp.sum(jnp.arange(N) * order, dtype=jnp.int32).astype(jnp.float32)
        return jnp.where(order[0] < self.least, self.bad, cost)


def order(bad, least=N - 1):
    return Order(jnp.float32(bad), jnp.int32(least))


LIGHT = js.simulated_annealing(js.Swap(), 2.0, moves_per_search=2)
FIRST = js.simulated_annealing(
    js.Swap(), 2.0, moves_per_search=2, choose="first", keep_best="standard"
)
TABU = js.tabu_search(js.Swap())
RUNS = {
    "light": (LIGHT, js.broadcast_best(every=5)),
    "first": (FIRST, js.recombine(every=5, alike=0.9)),
    "resampled": (LIGHT, js.resample(2.0, every=5)),
    "tabu": (TABU, None),
    "genetic": (js.genetic(population_size=6), None),
}


@pytest.mark.parametrize("name", RUNS)
def test_what_is_bad_never_wins(name):
    """Searches leave bad starts, well or by all of them, and stay out of what is bad.

    Costs of a run are those of its solutions. One that finds nothing finite is no success and says
    so, with any target.
    """
    search, exchange = RUNS[name]
    mixed = np.stack([FORWARD, FORWARD, BACKWARD, np.roll(BACKWARD, 3)])

    def solve(problem, initial, target=LOWEST - 1, max_steps=300):
        options = {"num_searches": 4, "initial": initial, "exchange": exchange, "target": target}
        return js.solve(problem, search, 0, max_steps=max_steps, **options)

    for bad in BAD:
        for starts in (mixed, FORWARD):
            result = solve(order(bad), starts)
            exact = [float(order(bad).cost(jnp.asarray(one))) for one in result.solutions]
            exact = [math.inf if math.isnan(cost) else cost for cost in exact]
            assert result.costs.tolist() == exact
            assert (result.fun, result.success, result.first_hit) == (LOWEST, False, None)
            assert exchange is not None or np.isfinite(result.costs).all()
            parts = [leaf for leaf in jax.tree.leaves(result.state) if leaf.dtype == np.float32]
            assert not any(np.isnan(part).any() for part in parts)
            assert all(record.best == record.best for record in result.history)
        for target in (LOWEST, math.inf):
            result = solve(order(bad, N), FORWARD, target, max_steps=20)
            assert (result.fun, result.success, result.feasible) == (math.inf, False, False)
            assert "the best cost is inf" in result.message
            assert result.costs.tolist() == [math.inf] * 4


def test_infinite_costs_die_out_in_a_resampling():
    """Those that are infinite have no copies, unless all are."""
    stream = js.random.Stream(js.random.as_key(0), jnp.uint32(5), jnp.int32(5))
    donors = jax.jit(js.resample(2.0, every=5).donors)
    inf = math.inf
    found = donors(stream, jnp.array([inf, 3.0, inf, 3.0], jnp.float32), jnp.int32(4))
    assert set(found[jnp.array([0, 2])].tolist()) <= {1, 3}
    assert found[jnp.array([1, 3])].tolist() == [-1, -1]
    found = donors(stream, jnp.full(4, inf, jnp.float32), jnp.int32(4))
    assert found.tolist() == [-1] * 4


def test_states_with_infinite_costs():
    """Costs that are infinite agree with themselves, and not with others."""
    own, finite = order(math.inf, N), order(1, N)
    options = {"num_searches": 4, "initial": FORWARD}
    state = js.solve(own, TABU, 0, max_steps=0, **options).state
    assert js.solve(own, TABU, 0, state=state, max_steps=9).nit == 9
    with refuses(ValueError, "state is of another instance"):
        js.solve(finite, TABU, 0, state=state, max_steps=9)
