# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
"""What a run is: where it stands, and the rules by which it continues and ends."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxopt_search.backends import random
from jaxopt_search.backends.costs import no_nan, no_target
from jaxopt_search.backends.counts import Steps
from jaxopt_search.checks import MAX_INT32, highest_cost_that_meets, int32, number
from jaxopt_search.types import Cost, Exchange, Info, Problem, Search, null_delta

MAX_PATIENCE = 2**30 - 1
"""The largest `patience` and `check_every`: two of them add up in int32."""
_CHECK_EVERY = 100
_NEVER = MAX_INT32
"""A patience of more steps than are ever counted."""


class Since(NamedTuple):
    """[] int32 steps since each event last happened, or another value for each event."""

    refresh: Any
    stop_test: Any
    exchange: Any


class RunState(NamedTuple):
    """Where a run stands. Leaves marked [S] have one entry per search, padding included.

    Attributes:
      key: the run's key, two uint32 words.
      step: steps made by each search: a number of 64 bits, see `backends.counts.Count`.
      since: steps since the last refresh, stop test and exchange.
      best_cost: [] best of all searches, at the end of the last `init`, `advance` or `run`.
      device_best: [] the same as the device counts, like all costs below.
      device_tested: [] the lowest that any stop test has seen.
      stale: [] int32 steps between stop tests that brought no better `device_tested`.
      status: [] int32 `Status`.
      index: [S] int32 global index of each search; -1 for padding.
      searches: states of the searches, leaves [S, ...].
      ancestor: [S] int32 index of the search from whose start each one's solution descends.
      hit: [S] steps after which each search first met the target.
      info: [S] sums over the steps of the last `advance`.
    """

    key: random.Key
    step: Steps
    since: Since
    best_cost: Cost
    device_best: Cost
    device_tested: Cost
    stale: jax.Array
    status: jax.Array
    index: jax.Array  # pyright: ignore[reportIncompatibleMethodOverride]: a tuple's is not used
    searches: Any
    ancestor: jax.Array
    hit: Steps
    info: Info


class Rules(NamedTuple):
    """What a run is told, as data of its compiled program.

    Attributes:
      exchange: what searches learn from one another; None for nothing.
      target: [] the highest cost that meets the target, of the dtype of costs.
      patience: [] int32 steps without a better cost after which the run ends.
      check_every: [] int32 steps between stop tests.
    """

    exchange: Exchange | None
    target: jax.Array
    patience: jax.Array
    check_every: jax.Array


def make_rules(
    search: Search,
    dtype: Any,
    *,
    exchange: Exchange | None = None,
    target: jax.Array | None = None,
    patience: jax.Array | int | None = None,
    check_every: jax.Array | int | None = None,
) -> Rules:
    """Returns the rules of a run from the arguments of `advance`, but for the target.

    A target or a patience that is missing never ends a run: all runs share their program.

    Args:
      search: asked for its `check_every` where that is None.
      dtype: of costs on the device.
      target: as the device counts, see `device_target`.
    """
    if target is None and patience is None and search.is_done is None:
        check_every = MAX_PATIENCE
    return Rules(
        exchange,
        no_target(dtype) if target is None else target,
        int32(_NEVER if patience is None else patience),
        int32(check_interval(search, check_every)),
    )


def with_best(problem: Problem, state: RunState, cost: Cost) -> RunState:
    """Returns a state with the best cost of all searches, as the device counts."""
    return state._replace(best_cost=problem.cost_in_full(cost), device_best=cost)


def check_interval(search: Search, check_every: Any) -> Any:
    """Returns the steps between stop tests: `check_every`, what the search asks for, or 100."""
    wanted = search.check_every if check_every is None else check_every
    return _CHECK_EVERY if wanted is None else wanted


def device_target(problem: Problem, target: Any, dtype: Any) -> Any:
    """Returns the highest cost on the device, [] of a dtype, that meets a target; None for none."""
    units = problem.device_units
    if target is None:
        return None
    if isinstance(target, np.ndarray):
        target = target[()]
    if isinstance(target, int | float | np.integer | np.floating):
        return highest_cost_that_meets(target, dtype, *(units or ()))
    if units not in (None, (1, 0)):
        return units.highest_below(target, dtype)
    is_rounded = jnp.issubdtype(dtype, jnp.integer) and jnp.issubdtype(target.dtype, jnp.floating)
    return number(jnp.floor(target) if is_rounded else target, dtype)


def best_costs(search: Search, searches: Any, index: jax.Array) -> jax.Array:
    """Returns [S] the best cost of each search; the highest number for padding and for NaN."""
    costs = no_nan(jax.vmap(search.best_cost)(searches))
    return jnp.where(index >= 0, costs, null_delta(costs.dtype))


def choose(where: jax.Array, tree: Any, other: Any) -> Any:
    """Returns the leaves of `tree` where `where` holds, and the leaves of `other` elsewhere.

    Args:
      where: [S] bool, for leaves [S, ...]; or [].
    """

    def choose(leaf: jax.Array, instead: jax.Array) -> jax.Array:
        return jnp.where(where.reshape(where.shape + (1,) * (leaf.ndim - 1)), leaf, instead)

    return jax.tree.map(choose, tree, other)


def drifts(costs: Any) -> bool:
    """Returns whether running costs differ from true ones in time: sums of floats do."""
    return jnp.issubdtype(costs.dtype, jnp.floating)


def settled(problem: Any, search: Search, searches: Any) -> Any:
    """Returns the states of searches with costs recomputed if they may have drifted: float ones."""
    if not drifts(jax.eval_shape(jax.vmap(search.best_cost), searches)):
        return searches
    return jax.vmap(search.refresh, in_axes=(None, 0))(problem, searches)
