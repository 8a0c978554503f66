"""The loop that runs many searches and stops: pure functions over `RunState`.

`init`, `advance` and `run` are jit-compiled and can be called inside a user's own `jit` and `vmap`.
All searches step together. Between steps, at fixed distances from the start, come the events:
float costs are refreshed, the stop test is made, solutions are exchanged. So the course of a run
does not depend on how it is cut into calls of `advance`.
"""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer

from jaxopt_search.checks import check_count, highest_cost_that_meets, int32, number
from jaxopt_search.engine import collectives, exchanging, stepping
from jaxopt_search.engine.stepping import Fixed, Running
from jaxopt_search.guards import capacity, contracts, spaces
from jaxopt_search.guards.forks import refuse_orphans
from jaxopt_search.guards.interrupts import held_back
from jaxopt_search.kernels import Implementation
from jaxopt_search.portable import counts, random
from jaxopt_search.portable.counts import Steps
from jaxopt_search.types import Cost, Exchange, Info, Problem, Search, Solution, Status

REFRESH_EVERY = 10_000
"""Steps after which running float costs are computed anew."""

MAX_PATIENCE = 2**30 - 1
"""The largest `patience` and `check_every`: two of them add up in int32."""
_CHECK_EVERY = 100


class Since(NamedTuple):
    """[] int32 steps since each event last happened."""

    refresh: jax.Array
    stop_test: jax.Array
    exchange: jax.Array


class RunState(NamedTuple):
    """Where a run stands. Leaves marked [S] have one entry per search, padding included.

    Attributes:
      key: the run's key, two uint32 words.
      step: steps made by each search.
      since: steps since the last refresh, stop test and exchange.
      best_cost: [] best of all searches, at the end of the last `init`, `advance` or `run`.
      tested_cost: [] the lowest that any stop test has seen.
      stale: [] int32 steps between stop tests that brought no better `tested_cost`.
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
    tested_cost: Cost
    stale: jax.Array
    status: jax.Array
    index: jax.Array
    searches: Any
    ancestor: jax.Array
    hit: Steps
    info: Info


def run(
    key: Any,
    problem: Problem,
    search: Search,
    *,
    num_searches: int,
    max_steps: jax.Array | int,
    solutions: Solution | None = None,
    exchange: Exchange | None = None,
    target: jax.Array | float | None = None,
    patience: jax.Array | int | None = None,
    check_every: jax.Array | int | None = None,
    implementation: Implementation = "auto",
) -> RunState:
    """Returns the state at the end of a run: `init`, `advance`, and the status why it ended.

    Arguments are those of `init` and `advance`; `max_steps` is at most 2**31 - 1.

    Example:
      >>> import jaxopt_search as js
      >>> problem = js.tsp_from_coords([[0, 0], [2, 2], [0, 2], [2, 0], [1, 3]])
      >>> search = js.simulated_annealing(js.Relocate(), 0.1)
      >>> state = run(0, problem, search, num_searches=4, max_steps=200)
      >>> solution, cost = js.best(problem, search, state)
      >>> round(float(cost), 3)
      8.828
    """
    state = init(key, problem, search, num_searches=num_searches, solutions=solutions)
    state = advance(
        problem,
        search,
        state,
        max_steps,
        exchange=exchange,
        target=target,
        patience=patience,
        check_every=check_every,
        implementation=implementation,
    )
    device_target = None if target is None else _device_target(target, state.best_cost.dtype)
    return _ended(problem, search, state, device_target)


@jax.jit
def _ended(problem: Problem, search: Search, state: RunState, target: Any) -> RunState:
    """Returns the state with its last status, and with the hits that are true."""
    state = _confirmed(state, _settled_costs(problem, search, state), target)
    ended = jnp.where(_num_hits(state, None) > 0, Status.TARGET, Status.MAX_STEPS)
    is_running = state.status == Status.RUNNING
    return state._replace(status=jnp.where(is_running, ended.astype(jnp.int32), state.status))


def init(
    key: Any,
    problem: Problem,
    search: Search,
    *,
    num_searches: int,
    solutions: Solution | None = None,
) -> RunState:
    """Returns the state of a run before its first step.

    Args:
      key: an integer seed or a `jax.random.key`.
      num_searches: S, how many searches run side by side.
      solutions: start solutions, leaves [S, ...]; None for random ones.

    Raises:
      ValueError: if `num_searches` is no positive integer, or beyond what arrays can index, or the
        search is for solutions of another kind.
      MemoryError: if the searches do not fit into memory.
      TypeError: if `problem` or `search` is none.
    """
    refuse_orphans()
    solution, _ = contracts.check_problem(problem)
    contracts.check_search(search)
    num_searches = check_count("num_searches", num_searches, 1, None)
    spaces.check(problem, search)
    words = random.as_key(key)
    if is_traced((words, problem, search, solutions)):
        return _init(words, problem, search, solutions, num_searches)
    check_room(problem, search, solution, num_searches, [default_device()])
    return start(words, problem, search, solutions, num_searches)


def start(
    key: random.Key,
    problem: Problem,
    search: Search,
    solutions: Solution | None,
    num_searches: int,
) -> RunState:
    """Returns what `init` does, of checked arguments, once it is there."""
    with held_back(), capacity.memory_errors_explained(num_searches):
        return jax.block_until_ready(_init(key, problem, search, solutions, num_searches))


def check_room(
    problem: Problem,
    search: Search,
    solution: Any,
    num_searches: int,
    devices: Sequence[jax.Device],
) -> None:
    """Refuses more searches than arrays can index or memory holds.

    Args:
      solution: the shape of one.
      devices: those over which the searches will be spread.

    Raises:
      ValueError, MemoryError: with the sizes.
    """
    capacity.check_size(solution, num_searches)
    capacity.check_state(shape(problem, search, num_searches), num_searches, devices)


def shape(problem: Problem, search: Search, num_searches: int) -> RunState:
    """Returns the shapes and dtypes of the state of a run; remembered for shapes alike."""
    return _shape.eval_shape(random.as_key(0), problem, search, None, num_searches)


def default_device() -> jax.Device:
    """Returns JAX's default device, or the one that the user has set for it."""
    default = getattr(jax.config, "jax_default_device", None)
    return default if isinstance(default, jax.Device) else jax.local_devices()[0]


def fresh(
    key: random.Key,
    problem: Problem,
    search: Search,
    solutions: Solution | None,
    num_searches: int,
) -> RunState:
    """Returns what `init` does, without checks and without `jit`."""
    index = lax.iota(jnp.int32, num_searches)
    keys = jax.vmap(random.start_key, in_axes=(None, 0))(key, index.astype(jnp.uint32))
    if solutions is None:
        solutions = jax.vmap(problem.init)(keys)
    searches = exchanging.start(keys, problem, search, solutions)
    never_yet, best_cost = jnp.int32(0), exchanging.best_costs(search, searches, index).min()
    return RunState(
        key=key,
        step=counts.zero(),
        since=Since(*[never_yet] * len(Since._fields)),
        best_cost=best_cost,
        tested_cost=best_cost,
        stale=jnp.int32(0),
        status=jnp.int32(Status.RUNNING),
        index=index,
        searches=searches,
        ancestor=index,
        hit=counts.never((num_searches,)),
        info=_no_info(num_searches),
    )


_init = jax.jit(fresh, static_argnames="num_searches")
_shape = jax.jit(fresh, static_argnames="num_searches")  # is never called


def advance(
    problem: Problem,
    search: Search,
    state: RunState,
    num_steps: jax.Array | int,
    *,
    exchange: Exchange | None = None,
    target: jax.Array | float | None = None,
    patience: jax.Array | int | None = None,
    check_every: jax.Array | int | None = None,
    implementation: Implementation = "auto",
    axis_name: str | None = None,
) -> RunState:
    """Returns the state after `num_steps` more steps, or fewer if the run ends before.

    Args:
      num_steps: [] integer up to 2**31 - 1.
      exchange: what searches learn from one another, or None.
      target: [] end once a search has a cost of at most this, as `problem.cost` counts (of a QAP
        without its `offset`); None for no target.
      patience: [] integer up to `MAX_PATIENCE`; end once so many steps bring no better cost.
      check_every: steps between stop tests, up to `MAX_PATIENCE`, counted from the run's start;
        None for what the search asks for, or 100.
      implementation: how steps are run; all ways give the same searches. See
        `kernels.Implementation`.
      axis_name: the name of the `pmap` axis over which the searches are spread, or None.

    Returns:
      The state; its `status` is `TARGET`, `PATIENCE`, `LOCAL_OPTIMA` or `RUNNING`.
    """
    refuse_orphans()
    contracts.check_exchange(exchange)
    spaces.check(problem, search, exchange)
    traced = is_traced((problem, search, state))
    choice = stepping.choose(implementation, _device(state.index), problem, search, traced)
    return advance_by(
        choice.implementation,
        problem,
        search,
        state,
        num_steps,
        exchange=exchange,
        target=target,
        patience=patience,
        check_every=check_every,
        axis_name=axis_name,
    )


def check_interval(search: Search, check_every: Any) -> Any:
    """Returns the steps between stop tests: `check_every`, what the search asks for, or 100."""
    wanted = getattr(search, "check_every", None) if check_every is None else check_every
    return _CHECK_EVERY if wanted is None else wanted


def is_traced(tree: Any) -> bool:
    """Returns whether the caller is being traced, by `jit` or another transformation."""
    probe = lax.add(np.float32(0), np.float32(0))
    return any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves((probe, tree)))


def _device(array: jax.Array) -> jax.Device:
    """Returns a device that holds `array`; one of JAX's default platform while it is traced."""
    return jax.devices()[0] if isinstance(array, Tracer) else next(iter(array.devices()))


def advance_by(
    implementation: Implementation,
    problem: Problem,
    search: Search,
    state: RunState,
    num_steps: jax.Array | int,
    *,
    exchange: Exchange | None,
    target: jax.Array | float | None,
    patience: jax.Array | int | None,
    check_every: jax.Array | int | None,
    axis_name: str | None,
) -> RunState:
    """Returns what `advance` does, by an implementation that was chosen before."""
    return _advance(
        problem,
        search,
        state,
        int32(num_steps),
        exchange,
        None if target is None else _device_target(target, state.best_cost.dtype),
        None if patience is None else int32(patience),
        int32(check_interval(search, check_every)),
        implementation,
        axis_name,
    )


def _device_target(target: Any, dtype: Any) -> jax.Array:
    if isinstance(target, int | float | np.integer | np.floating):
        target = highest_cost_that_meets(target, dtype)
    elif jnp.issubdtype(dtype, jnp.integer) and jnp.issubdtype(target.dtype, jnp.floating):
        target = jnp.floor(target)
    return number(target, dtype)


@functools.partial(jax.jit, static_argnames=("implementation", "axis_name"))
def _advance(
    problem: Problem,
    search: Search,
    state: RunState,
    num_steps: jax.Array,
    exchange_rule: Exchange | None,
    target: jax.Array | None,
    patience: jax.Array | None,
    check_every: jax.Array,
    implementation: Implementation,
    axis_name: str | None,
) -> RunState:
    drifts = exchanging.drifts(state.best_cost)
    periods: dict[str, jax.Array] = {}
    if drifts:
        periods["refresh"] = jnp.int32(REFRESH_EVERY)
    if target is not None or patience is not None or hasattr(search, "is_done"):
        periods["stop_test"] = check_every
    if exchange_rule is not None:
        periods["exchange"] = exchange_rule.every

    def refresh(state: RunState, is_due: dict[str, jax.Array]) -> RunState:
        """Recomputes costs that have drifted before anything is decided by them."""
        where = jnp.full_like(state.index, is_due["refresh"], bool)
        if "exchange" in is_due:
            where |= is_due["exchange"]
        if "stop_test" in is_due:
            where |= is_due["stop_test"] & _claims(search, state, patience)
        return lax.cond(
            where.any(), functools.partial(_refreshed, problem, search), _kept, state, where
        )

    def stop_test(state: RunState) -> RunState:
        return _stop_test(search, state, target, patience, axis_name)

    def exchange_solutions(state: RunState) -> RunState:
        assert exchange_rule is not None
        return _exchange(problem, search, state, exchange_rule, axis_name)

    def goes_on(carry: tuple[RunState, jax.Array]) -> jax.Array:
        state, left = carry
        return (state.status == Status.RUNNING) & (left > 0)

    def block(carry: tuple[RunState, jax.Array]) -> tuple[RunState, jax.Array]:
        state, left = carry
        due = {
            name: jnp.maximum(every - getattr(state.since, name), 1)
            for name, every in periods.items()
        }
        limits = (counts.until_carry(state.step), stepping.max_steps(implementation))
        length = functools.reduce(jnp.minimum, (*due.values(), *limits), left)
        state = _steps(problem, search, state, length, target, implementation)
        is_due = {name: at == length for name, at in due.items()}
        if drifts:
            state = refresh(state, is_due)
        for name, event in (("stop_test", stop_test), ("exchange", exchange_solutions)):
            if name in is_due:
                state = lax.cond(is_due[name], event, lambda state: state, state)
        since = {
            name: jnp.where(now, 0, getattr(state.since, name)) for name, now in is_due.items()
        }
        if "stop_test" not in since:  # stop tests of a later call are counted from the start, too
            since["stop_test"] = state.since.stop_test % check_every
        return state._replace(since=state.since._replace(**since)), left - length

    # A start that meets the target ends the run before its first step.
    hit = jax.vmap(stepping.note_hit, in_axes=(None, None, 0, 0, None))(
        search, target, state.searches, state.hit, state.step
    )
    num_new = _num_hits(state._replace(hit=hit), axis_name) - _num_hits(state, axis_name)
    is_met = num_new > 0 if target is None else (num_new > 0) & (state.best_cost <= target)
    state = state._replace(
        hit=hit,
        status=jnp.where(is_met, jnp.int32(Status.TARGET), state.status),
        info=_no_info(state.index.shape[0]),
    )
    state = lax.while_loop(goes_on, block, (state, num_steps))[0]
    costs = _settled_costs(problem, search, state)
    return state._replace(best_cost=collectives.minimum(costs.min(), axis_name))


def _settled_costs(problem: Problem, search: Search, state: RunState) -> jax.Array:
    """Returns [S] best costs without drift; the state itself stays: a run may be cut anywhere."""
    settled = exchanging.settled(problem, search, state.searches)
    return exchanging.best_costs(search, settled, state.index)


def _claims(search: Search, state: RunState, patience: jax.Array | None) -> jax.Array:
    """Returns which searches say that they have met the target, or improved on all, [S] bool."""
    claims = ~counts.is_never(state.hit)
    if patience is not None:
        claims |= exchanging.best_costs(search, state.searches, state.index) < state.tested_cost
    return claims & (state.index >= 0)


def _refreshed(problem: Problem, search: Search, state: RunState, where: jax.Array) -> RunState:
    """Returns the state with the costs of some searches, [S] bool, recomputed."""
    fresh = exchanging.settled(problem, search, state.searches)
    return state._replace(searches=exchanging.choose(where, fresh, state.searches))


def _kept(state: RunState, where: jax.Array) -> RunState:
    return state


def _confirmed(state: RunState, costs: jax.Array, target: jax.Array | None) -> RunState:
    """Returns the state without the hits of searches whose true cost, [S], misses the target."""
    if target is None or not exchanging.drifts(costs):
        return state
    never = counts.never(state.index.shape)
    hit = jax.tree.map(lambda at, none: jnp.where(costs <= target, at, none), state.hit, never)
    return state._replace(hit=hit)


def _exchange(
    problem: Problem, search: Search, state: RunState, rule: Exchange, axis_name: str | None
) -> RunState:
    key = random.exchange_key(state.key, state.step.high)
    stream = random.Stream(key, state.step.low, counts.as_int32(state.step))
    searches, ancestor = exchanging.apply(
        rule, stream, problem, search, state.searches, state.ancestor, state.index, axis_name
    )
    return state._replace(searches=searches, ancestor=ancestor)


def _steps(
    problem: Problem,
    search: Search,
    state: RunState,
    length: jax.Array,
    target: jax.Array | None,
    implementation: Implementation,
) -> RunState:
    """Returns the state after `length` steps, between which nothing else happens."""
    keys = random.search_key(state.key, state.index.astype(jnp.uint32), state.step.high)
    courses = stepping.run(
        Fixed(problem, search, state.step, target),
        keys,
        Running(state.searches, state.hit, state.info),
        length,
        implementation,
    )
    return state._replace(
        step=counts.add(state.step, length),
        since=Since(*(count + length for count in state.since)),
        searches=courses.search,
        hit=courses.hit,
        info=courses.info,
    )


def _stop_test(
    search: Search,
    state: RunState,
    target: jax.Array | None,
    patience: jax.Array | None,
    axis_name: str | None,
) -> RunState:
    costs = exchanging.best_costs(search, state.searches, state.index)
    state = _confirmed(state, costs, target)
    best_cost = collectives.minimum(costs.min(), axis_name)
    stale = jnp.minimum(state.stale, MAX_PATIENCE) + state.since.stop_test
    stale = jnp.where(best_cost < state.tested_cost, 0, stale)
    tested_cost = jnp.minimum(best_cost, state.tested_cost)
    status = state.status
    if patience is not None:
        status = jnp.where(stale >= patience, jnp.int32(Status.PATIENCE), status)
    is_done = getattr(search, "is_done", None)
    if is_done is not None:
        goes_on = (state.index >= 0) & ~jax.vmap(is_done)(state.searches)
        num_left = collectives.total(jnp.sum(goes_on, dtype=jnp.int32), axis_name)
        status = jnp.where(num_left == 0, jnp.int32(Status.LOCAL_OPTIMA), status)
    if target is not None:
        has_hit = _num_hits(state, axis_name) > 0
        status = jnp.where(has_hit, jnp.int32(Status.TARGET), status)
    return state._replace(tested_cost=tested_cost, stale=stale, status=status)


def _num_hits(state: RunState, axis_name: str | None) -> jax.Array:
    has_hit = (state.index >= 0) & ~counts.is_never(state.hit)
    return collectives.total(jnp.sum(has_hit, dtype=jnp.int32), axis_name)


def _no_info(size: int) -> Info:
    return Info(*(jnp.zeros(size, jnp.int32) for _ in Info._fields))
