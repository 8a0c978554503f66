# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
"""The loop that runs many searches and stops: pure functions over `RunState`.

`init`, `advance` and `run` are jit-compiled and can be called inside a user's own `jit` and `vmap`.
All searches step together. Between steps, at fixed distances from the start, come the events:
float costs are refreshed, the stop test is made, solutions are exchanged. So the course of a run
does not depend on how it is cut into calls of `advance`.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxopt_search.backends import Implementation, counts, loops, random
from jaxopt_search.backends.costs import meets
from jaxopt_search.checks import int32
from jaxopt_search.engine import collectives, events, exchanging, stepping
from jaxopt_search.engine.apart import exchanged
from jaxopt_search.engine.events import Events, Run
from jaxopt_search.engine.kept_programs import Program, kept
from jaxopt_search.engine.starting import device_of, init, no_info
from jaxopt_search.engine.state import (
    MAX_PATIENCE,
    Later,
    Rules,
    RunState,
    Since,
    device_target,
    make_rules,
    with_all_limits,
    with_best,
)
from jaxopt_search.engine.stepping import Fixed, Running
from jaxopt_search.engine.tracing import is_traced
from jaxopt_search.guards import contracts, spaces
from jaxopt_search.guards.forks import refuse_orphans
from jaxopt_search.results import Status
from jaxopt_search.types import Exchange, Problem, Search, Solution


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
        state = _confirmed(state, _settled_costs(problem, search, state), target)
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
    spaces.check(problem, search, exchange)
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


@functools.partial(kept, static_argnames=("implementation", "axis_name"))
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
        return _advanced(problem, search, state, num_steps, rules, implementation, axis_name)


def _advanced(
    problem: Problem,
    search: Search,
    state: RunState,
    num_steps: jax.Array,
    rules: Rules,
    implementation: Implementation,
    axis_name: str | None,
) -> RunState:
    run = Run(problem, search, rules, implementation, axis_name)

    def goes_on(carry: tuple[RunState, jax.Array]) -> jax.Array:
        state, left = carry
        return (state.status == Status.RUNNING) & (left > 0)

    def block(carry: tuple[RunState, jax.Array]) -> tuple[RunState, jax.Array]:
        """Steps up to the next event, and the events that are due then."""
        state, left = carry
        length, is_due = events.next_events(run, state, left)
        state = _steps(run, state, length)
        state = _refresh(run, state, is_due)
        state = events.when_due("stop_test", is_due, functools.partial(_stop_test, run), state)
        if isinstance(rules.exchange, Later):
            left = jnp.where(is_due["exchange"], length, left)  # the last block
        else:
            state = events.when_due("exchange", is_due, functools.partial(_exchange, run), state)
        return events.noted(run, state, is_due), left - length

    state = _tested_at_the_start(run, state)
    state, _ = loops.while_loop(goes_on, block, (state, num_steps))
    if isinstance(rules.exchange, Later):  # it goes on, and drift is nobody's concern yet
        costs = exchanging.best_costs(search, state.searches, state.index)
    else:
        costs = _settled_costs(problem, search, state)
    return with_best(problem, state, collectives.minimum(costs.min(), axis_name))


def _tested_at_the_start(run: Run, state: RunState) -> RunState:
    """Returns the state, ended if a start meets the target: before the first step.

    What an exchange has brought is tested after the next step, also if the run is cut between.
    """
    target = run.rules.target
    hit = jax.vmap(stepping.note_hit, in_axes=(None, None, 0, 0, None))(
        run.search, target, state.searches, state.hit, state.step
    )
    axis_name = run.axis_name
    num_new = _num_hits(state._replace(hit=hit), axis_name) - _num_hits(state, axis_name)
    is_met = (num_new > 0) & meets(state.device_best, target)
    status = jnp.where(is_met, jnp.int32(Status.TARGET), state.status)
    has_exchanged = (state.since.exchange == 0) & ~counts.is_zero(state.step)
    later = run.rules.exchange
    continues = later.continues if isinstance(later, Later) else jnp.bool_(False)
    tested = state._replace(hit=hit, status=status)
    choose = functools.partial(jnp.where, has_exchanged | continues)
    info = jax.tree.map(
        functools.partial(jnp.where, continues), state.info, no_info(len(state.index))
    )
    return jax.tree.map(choose, state, tested)._replace(info=info)


def _steps(run: Run, state: RunState, length: jax.Array) -> RunState:
    """Returns the state after `length` steps, between which nothing else happens."""
    running = stepping.run(
        Fixed(run.problem, run.search, state.step, run.rules.target),
        random.search_key(state.key, state.index.astype(jnp.uint32), state.step.high),
        Running(state.searches, state.hit, state.info),
        length,
        run.implementation,
    )
    return state._replace(
        step=counts.add(state.step, length),
        since=Since(*(count + length for count in state.since)),
        searches=running.search,
        hit=running.hit,
        info=running.info,
    )


def _refresh(run: Run, state: RunState, is_due: Events) -> RunState:
    """Recomputes costs that have drifted before anything is decided by them."""
    if not exchanging.drifts(state.device_best):
        return state
    where = jnp.full_like(state.index, is_due["refresh"], bool)
    if "exchange" in is_due:
        where |= is_due["exchange"]
    if "stop_test" in is_due:
        where |= is_due["stop_test"] & _claims(run, state)

    def refreshed(state: RunState, where: jax.Array) -> RunState:
        fresh = exchanging.settled(run.problem, run.search, state.searches)
        return state._replace(searches=exchanging.choose(where, fresh, state.searches))

    return lax.cond(where.any(), refreshed, lambda state, where: state, state, where)


def _claims(run: Run, state: RunState) -> jax.Array:
    """Returns which searches say that they have met the target, or improved on all, [S] bool."""
    claims = ~counts.is_never(state.hit)
    if run.rules.patience is not None:
        costs = exchanging.best_costs(run.search, state.searches, state.index)
        claims |= costs < state.device_tested
    return claims & (state.index >= 0)


def _stop_test(run: Run, state: RunState) -> RunState:
    rules = run.rules
    costs = exchanging.best_costs(run.search, state.searches, state.index)
    state = _confirmed(state, costs, rules.target)
    best_cost = collectives.minimum(costs.min(), run.axis_name)
    stale = jnp.minimum(state.stale, MAX_PATIENCE) + state.since.stop_test
    stale = jnp.where(best_cost < state.device_tested, 0, stale)
    device_tested = jnp.minimum(best_cost, state.device_tested)
    status = state.status
    if rules.patience is not None:
        status = jnp.where(stale >= rules.patience, jnp.int32(Status.PATIENCE), status)
    is_done = run.search.is_done
    if is_done is not None:
        goes_on = (state.index >= 0) & ~jax.vmap(is_done)(state.searches)
        num_left = collectives.total(jnp.sum(goes_on, dtype=jnp.int32), run.axis_name)
        status = jnp.where(num_left == 0, jnp.int32(Status.LOCAL_OPTIMA), status)
    if rules.target is not None:
        has_hit = _num_hits(state, run.axis_name) > 0
        status = jnp.where(has_hit, jnp.int32(Status.TARGET), status)
    return state._replace(device_tested=device_tested, stale=stale, status=status)


def _exchange(run: Run, state: RunState) -> RunState:
    exchange = run.rules.exchange
    assert exchange is not None and not isinstance(exchange, Later)
    return exchanged(exchange, run.problem, run.search, state, run.axis_name)


def _settled_costs(problem: Problem, search: Search, state: RunState) -> jax.Array:
    """Returns [S] best costs without drift; the state itself stays: a run may be cut anywhere."""
    settled = exchanging.settled(problem, search, state.searches)
    return exchanging.best_costs(search, settled, state.index)


def _confirmed(state: RunState, costs: jax.Array, target: jax.Array | None) -> RunState:
    """Returns the state without the hits of searches whose true cost, [S], misses the target."""
    if target is None or not exchanging.drifts(costs):
        return state
    never = counts.never(state.index.shape)
    hit = jax.tree.map(lambda at, none: jnp.where(meets(costs, target), at, none), state.hit, never)
    return state._replace(hit=hit)


def _num_hits(state: RunState, axis_name: str | None) -> jax.Array:
    has_hit = (state.index >= 0) & ~counts.is_never(state.hit)
    return collectives.total(jnp.sum(has_hit, dtype=jnp.int32), axis_name)
