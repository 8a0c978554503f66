# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
"""The loop that runs many searches and stops: pure functions over `RunState`.

`init`, `advance` and `run` are jit-compiled and can be called inside a user's own `jit` and `vmap`.
All searches step together. Between steps, at fixed distances from the start, come the events:
float costs are refreshed, the stop test is made, solutions are exchanged. So the course of a run
does not depend on how it is cut into calls of `advance`.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxopt_search import contracts
from jaxopt_search.backends import Implementation, counts, loops, memory, random
from jaxopt_search.backends.costs import meets
from jaxopt_search.checks import int32
from jaxopt_search.engine import devices, stepping
from jaxopt_search.engine.compile import Program, jit
from jaxopt_search.engine.devices import device_of, is_traced
from jaxopt_search.engine.exchange import choose, exchange_now
from jaxopt_search.engine.starting import init, no_info
from jaxopt_search.engine.state import (
    MAX_PATIENCE,
    Later,
    Rules,
    RunState,
    Since,
    best_costs,
    device_target,
    drifts,
    make_rules,
    settled,
    with_all_limits,
    with_best,
)
from jaxopt_search.engine.stepping import Fixed, Running
from jaxopt_search.interrupts import refuse_orphans
from jaxopt_search.results import Status
from jaxopt_search.types import Exchange, Problem, Search, Solution

REFRESH_EVERY = 10_000
"""Steps after which running float costs are computed again."""


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

    Arguments are as in `init` and `advance`; `max_steps` is at most 2**31 - 1.

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
    dtype = state.device_best.dtype
    rules = make_rules(search, dtype, target=device_target(problem, target, dtype))
    return _ended(problem, search, state, rules.target)


@jax.jit
def _ended(problem: Problem, search: Search, state: RunState, target: Any) -> RunState:
    """Returns the state with its last status, and with the hits that are true."""
    with loops.varying_alike(problem, search, state) as (problem, search, state):
        state = _confirm(state, _settled_costs(problem, search, state), target)
    ended = jnp.where(_num_hits(state, None) > 0, Status.TARGET, Status.MAX_STEPS)
    is_running = state.status == Status.RUNNING
    return state._replace(status=jnp.where(is_running, ended.astype(jnp.int32), state.status))


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
      target: [] end once a search has a cost of at most this, as `problem.cost` counts; None for no
        target.
      patience: [] integer up to `MAX_PATIENCE`; end once this many steps bring no better cost.
      check_every: steps between stop tests, up to `MAX_PATIENCE`, counted from the run's start;
        None for what the search asks for, or 100.
      implementation: how steps are run; all ways give the same searches. See
        `backends.Implementation`.
      axis_name: the name of the `pmap` axis over which the searches are spread, or None.

    Returns:
      The state; its `status` is `TARGET`, `PATIENCE`, `LOCAL_OPTIMA` or `RUNNING`.

    Example:
      >>> import jaxopt_search as js
      >>> problem = js.tsp([[0, 3, 4, 5], [3, 0, 5, 4], [4, 5, 0, 3], [5, 4, 3, 0]])
      >>> search = js.simulated_annealing(js.Relocate(), 1.0)
      >>> state = js.init(0, problem, search, num_searches=4)
      >>> state = advance(problem, search, state, 50)
      >>> int(state.step), int(state.best_cost), js.Status(int(state.status)).name
      (50, 14, 'RUNNING')
    """
    refuse_orphans()
    contracts.check_exchange(exchange)
    contracts.check_spaces(problem, search, exchange)
    traced = is_traced((problem, search, state))
    if implementation == "auto" and loops.axes_of((problem, search, state)):
        implementation = "xla"  # JAX does not tell kernels over which axes of a mesh values vary
    choice = stepping.choose(implementation, device_of(state.index), problem, search, traced)
    dtype = state.device_best.dtype
    rules = make_rules(
        search,
        dtype,
        exchange=exchange,
        target=device_target(problem, target, dtype),
        patience=patience,
        check_every=check_every,
    )
    rules = with_all_limits(rules, search, dtype)
    return advance_by(choice.implementation, problem, search, state, num_steps, rules, axis_name)


def advance_by(
    implementation: Implementation,
    problem: Problem,
    search: Search,
    state: RunState,
    num_steps: jax.Array | int,
    rules: Rules,
    axis_name: str | None = None,
) -> RunState:
    """Like `advance`, by an implementation that was chosen before and by rules already made."""
    return _advance(
        problem,
        search,
        state,
        int32(num_steps),
        rules,
        implementation=implementation,
        axis_name=axis_name,
    )


def program(
    implementation: Implementation, problem: Problem, search: Search, state: Any, rules: Rules
) -> Program:
    """Returns the program of `advance_by` on a single device, for a state of these shapes."""
    static = {"implementation": implementation, "axis_name": None}
    return Program(_advance, (problem, search, state, np.int32(0), rules), static)


@functools.partial(jit, static_argnames=("implementation", "axis_name"))
def _advance(
    problem: Problem,
    search: Search,
    state: RunState,
    num_steps: jax.Array,
    rules: Rules,
    *,
    implementation: Implementation,
    axis_name: str | None,
) -> RunState:
    inputs = problem, search, state, num_steps, rules
    with loops.varying_alike(*inputs) as (problem, search, state, num_steps, rules):
        call = _Call(problem, search, rules, implementation, axis_name)
        state = _test_at_the_start(call, state)
        state, _ = loops.while_loop(
            lambda carry: (carry[0].status == Status.RUNNING) & (carry[1] > 0),
            functools.partial(_advance_to_event, call),
            (state, num_steps),
        )
        if isinstance(rules.exchange, Later):  # an exchange follows, which drift does not touch
            costs = best_costs(search, state.searches, state.index)
        else:
            costs = _settled_costs(problem, search, state)
        return with_best(problem, state, devices.minimum(costs.min(), axis_name))


class _Call(NamedTuple):
    """What stays the same during a call, within the compiled program."""

    problem: Problem
    search: Search
    rules: Rules
    implementation: Implementation
    axis_name: str | None


class _Due(NamedTuple):
    """Which events are due, [] bool each; None for an event that there never is."""

    refresh: Any
    stop_test: Any
    exchange: Any


def _advance_to_event(call: _Call, carry: tuple[RunState, jax.Array]) -> tuple[RunState, jax.Array]:
    """Makes steps up to the next event, and the events that are due then."""
    state, left = carry
    length, due = _next_event(call, state, left)
    state = _steps(call, state, length)
    state = _refresh(call, state, due)
    if due.stop_test is not None:
        test = functools.partial(_stop_test, call)
        state = lax.cond(due.stop_test, test, lambda state: state, state)
    rule = call.rules.exchange
    if isinstance(rule, Later):
        left = jnp.where(due.exchange, length, left)  # the last steps of this program
    elif rule is not None:
        meet = functools.partial(exchange_now, rule, call.problem, call.search)
        meet = functools.partial(meet, axis_name=call.axis_name)
        state = lax.cond(due.exchange, meet, lambda state: state, state)
    since = state.since
    if due.refresh is not None:
        since = since._replace(refresh=jnp.where(due.refresh, 0, since.refresh))
    if due.exchange is not None:
        since = since._replace(exchange=jnp.where(due.exchange, 0, since.exchange))
    if due.stop_test is not None:
        since = since._replace(stop_test=jnp.where(due.stop_test, 0, since.stop_test))
    else:  # stop tests of a later call are counted from the start, too
        since = since._replace(stop_test=_since_stop_test(call, state))
    return state._replace(since=since), left - length


def _next_event(call: _Call, state: RunState, left: jax.Array) -> tuple[jax.Array, _Due]:
    """Returns the steps until the next event, at most `left`, and what is due then."""
    rules, refresh, stop_test, exchange = call.rules, None, None, None
    if drifts(state.device_best):
        refresh = jnp.maximum(jnp.int32(REFRESH_EVERY) - state.since.refresh, 1)
    may_end = rules.target is not None or rules.patience is not None
    if may_end or call.search.is_done is not None:
        stop_test = jnp.maximum(rules.check_every - _since_stop_test(call, state), 1)
    if rules.exchange is not None:
        exchange = jnp.maximum(rules.exchange.every - state.since.exchange, 1)
    until = _Due(refresh, stop_test, exchange)
    limits = counts.until_carry(state.step), stepping.max_steps(call.implementation)
    length = functools.reduce(jnp.minimum, (*jax.tree.leaves(until), *limits), left)
    # Else XLA would compile all of it again for whatever depends on it.
    return memory.computed_once((length, jax.tree.map(lambda at: at == length, until)))


def _since_stop_test(call: _Call, state: RunState) -> jax.Array:
    """Returns the steps since the last stop test; `check_every` may have changed since."""
    return lax.rem(state.since.stop_test, call.rules.check_every)


def _test_at_the_start(call: _Call, state: RunState) -> RunState:
    """Returns the state, ended if a start meets the target: before the first step.

    What an exchange has brought is tested after the next step, also if the run is cut between.
    """
    target = call.rules.target
    hit = jax.vmap(stepping.note_hit, in_axes=(None, None, 0, 0, None))(
        call.search, target, state.searches, state.hit, state.step
    )
    axis_name = call.axis_name
    num_new = _num_hits(state._replace(hit=hit), axis_name) - _num_hits(state, axis_name)
    is_met = (num_new > 0) & meets(state.device_best, target)
    status = jnp.where(is_met, jnp.int32(Status.TARGET), state.status)
    has_exchanged = (state.since.exchange == 0) & ~counts.is_zero(state.step)
    later = call.rules.exchange
    continues = later.continues if isinstance(later, Later) else jnp.bool_(False)
    tested = state._replace(hit=hit, status=status)
    choose = functools.partial(jnp.where, has_exchanged | continues)
    info = jax.tree.map(
        functools.partial(jnp.where, continues), state.info, no_info(len(state.index))
    )
    return jax.tree.map(choose, state, tested)._replace(info=info)


def _steps(call: _Call, state: RunState, length: jax.Array) -> RunState:
    """Returns the state after `length` steps, between which nothing else happens."""
    running = stepping.run(
        Fixed(call.problem, call.search, state.step, call.rules.target),
        random.search_key(state.key, state.index.astype(jnp.uint32), state.step.high),
        Running(state.searches, state.hit, state.info),
        length,
        call.implementation,
    )
    return state._replace(
        step=counts.add(state.step, length),
        since=Since(*(count + length for count in state.since)),
        searches=running.search,
        hit=running.hit,
        info=running.info,
    )


def _refresh(call: _Call, state: RunState, due: _Due) -> RunState:
    """Recomputes costs that have drifted before anything is decided by them."""
    if not drifts(state.device_best):
        return state
    where = jnp.full_like(state.index, due.refresh, bool)
    if due.exchange is not None:
        where |= due.exchange
    if due.stop_test is not None:
        where |= due.stop_test & _claims(call, state)

    def refreshed(state: RunState, where: jax.Array) -> RunState:
        fresh = settled(call.problem, call.search, state.searches)
        return state._replace(searches=choose(where, fresh, state.searches))

    return lax.cond(where.any(), refreshed, lambda state, where: state, state, where)


def _claims(call: _Call, state: RunState) -> jax.Array:
    """Returns which searches say that they have met the target, or improved on all, [S] bool."""
    claims = ~counts.is_never(state.hit)
    if call.rules.patience is not None:
        costs = best_costs(call.search, state.searches, state.index)
        claims |= costs < state.device_tested
    return claims & (state.index >= 0)


def _stop_test(call: _Call, state: RunState) -> RunState:
    rules = call.rules
    costs = best_costs(call.search, state.searches, state.index)
    state = _confirm(state, costs, rules.target)
    best_cost = devices.minimum(costs.min(), call.axis_name)
    stale = jnp.minimum(state.stale, MAX_PATIENCE) + state.since.stop_test
    stale = jnp.where(best_cost < state.device_tested, 0, stale)
    device_tested = jnp.minimum(best_cost, state.device_tested)
    status = state.status
    if rules.patience is not None:
        status = jnp.where(stale >= rules.patience, jnp.int32(Status.PATIENCE), status)
    is_done = call.search.is_done
    if is_done is not None:
        goes_on = (state.index >= 0) & ~jax.vmap(is_done)(state.searches)
        num_left = devices.total(jnp.sum(goes_on, dtype=jnp.int32), call.axis_name)
        status = jnp.where(num_left == 0, jnp.int32(Status.LOCAL_OPTIMA), status)
    if rules.target is not None:
        has_hit = _num_hits(state, call.axis_name) > 0
        status = jnp.where(has_hit, jnp.int32(Status.TARGET), status)
    return state._replace(device_tested=device_tested, stale=stale, status=status)


def _settled_costs(problem: Problem, search: Search, state: RunState) -> jax.Array:
    """Returns [S] best costs without drift; the state itself stays: a run may be cut anywhere."""
    searches = settled(problem, search, state.searches)
    return best_costs(search, searches, state.index)


def _confirm(state: RunState, costs: jax.Array, target: jax.Array | None) -> RunState:
    """Returns the state without the hits of searches whose true cost, [S], misses the target."""
    if target is None or not drifts(costs):
        return state
    never = counts.never(state.index.shape)
    hit = jax.tree.map(lambda at, none: jnp.where(meets(costs, target), at, none), state.hit, never)
    return state._replace(hit=hit)


def _num_hits(state: RunState, axis_name: str | None) -> jax.Array:
    has_hit = (state.index >= 0) & ~counts.is_never(state.hit)
    return devices.total(jnp.sum(has_hit, dtype=jnp.int32), axis_name)
