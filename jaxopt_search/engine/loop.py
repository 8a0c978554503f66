# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
"""The loop that runs many searches, has them exchange, and stops: pure functions of `RunState`.

`init`, `advance` and `run` are jit-compiled and can be called inside a user's own `jit` and `vmap`.
All searches step together. Between steps, at fixed distances from the start, come the events:
float costs are refreshed, the stop test is made, solutions are exchanged. So the course of a run
does not depend on how it is cut into calls of `advance`.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search import contracts
from jaxopt_search.backends import Implementation, counts, loops, memory, random
from jaxopt_search.backends.costs import meets, no_nan
from jaxopt_search.checks import int32
from jaxopt_search.engine import devices, stepping
from jaxopt_search.engine.compile import jit
from jaxopt_search.engine.devices import device_of, is_traced
from jaxopt_search.engine.starting import init
from jaxopt_search.engine.state import (
    MAX_PATIENCE,
    Rules,
    RunState,
    Since,
    best_costs,
    choose,
    device_target,
    drifts,
    make_rules,
    settled,
    with_best,
)
from jaxopt_search.engine.stepping import Fixed, Running
from jaxopt_search.interrupts import refuse_orphans
from jaxopt_search.results import Status
from jaxopt_search.types import Exchange, Problem, Search, Solution, null_delta

REFRESH_EVERY = 10_000
"""Steps after which running float costs are computed again."""
_FIRST_OF_SEARCHES = random.MAX_SLOTS // 2  # of the slots, those before are for `donors`


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
    return _ended(problem, search, state, device_target(problem, target, state.device_best.dtype))


@jax.jit
def _ended(problem: Problem, search: Search, state: RunState, target: Any) -> RunState:
    """Returns the state with its last status, and with the hits that are true."""
    with loops.varying_alike(problem, search, state) as (problem, search, state):
        state = _confirm(state, _true_costs(problem, search, state), target)
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
    contracts.check_spaces(problem, search, exchange=exchange)
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
    return advance_by(
        problem,
        search,
        state,
        int32(num_steps),
        rules,
        implementation=choice.implementation,
        axis_name=axis_name,
    )


@functools.partial(jit, static_argnames=("implementation", "axis_name"))
def advance_by(
    problem: Problem,
    search: Search,
    state: RunState,
    num_steps: jax.Array,
    rules: Rules,
    *,
    implementation: Implementation,
    axis_name: str | None = None,
) -> RunState:
    """Like `advance`, by an implementation that was chosen before and by rules already made.

    Args:
      implementation: one of `backends.Implementation`, not `"auto"`.
      axis_name: as in `advance`.
    """

    def to_next_event(carry: tuple[RunState, jax.Array]) -> tuple[RunState, jax.Array]:
        """Makes steps up to the next event, and the events that are due then."""
        state, left = carry
        is_float, rule = drifts(state.device_best), rules.exchange
        # Stop tests are counted from the start of the run; `check_every` may have changed since.
        tested = lax.rem(state.since.stop_test, rules.check_every)
        until = Since(
            refresh=REFRESH_EVERY - state.since.refresh if is_float else None,
            stop_test=rules.check_every - tested,
            exchange=None if rule is None else rule.every - state.since.exchange,
        )
        until = jax.tree.map(lambda steps: jnp.maximum(steps, 1), until)
        limits = counts.until_carry(state.step), stepping.max_steps(implementation)
        length = functools.reduce(jnp.minimum, (*jax.tree.leaves(until), *limits), left)
        # Else XLA would compile all of it again for whatever depends on it.
        length, due = memory.computed_once(
            (length, jax.tree.map(lambda steps: steps == length, until))
        )
        running = stepping.run(
            Fixed(problem, search, state.step, rules.target),
            random.search_key(state.key, state.index.astype(jnp.uint32), state.step.high),
            Running(state.searches, state.hit, state.info),
            length,
            implementation,
        )
        state = state._replace(
            step=counts.add(state.step, length),
            since=Since(*(count + length for count in state.since)),
            searches=running.search,
            hit=running.hit,
            info=running.info,
        )
        if is_float:  # costs that have drifted are recomputed before anything is decided by them
            costs = best_costs(search, state.searches, state.index)
            claims = ~counts.is_never(state.hit) | (costs < state.device_tested)
            where = due.refresh | (due.stop_test & claims & (state.index >= 0))
            if rule is not None:
                where |= due.exchange

            def refreshed(state: RunState) -> RunState:
                fresh = settled(problem, search, state.searches)
                return state._replace(searches=choose(where, fresh, state.searches))

            state = lax.cond(where.any(), refreshed, lambda state: state, state)
        test = functools.partial(_stop_test, search, rules, axis_name)
        state = lax.cond(due.stop_test, test, lambda state: state, state)
        if rule is not None:
            how = {"implementation": implementation, "axis_name": axis_name}
            meet = functools.partial(exchange_now, rule, problem, search, **how)
            is_due = due.exchange & (state.status == Status.RUNNING)
            state = lax.cond(is_due, meet, lambda state: state, state)
        each = zip(due, state.since, strict=True)
        since = [
            jnp.minimum(count, MAX_PATIENCE) if is_due is None else jnp.where(is_due, 0, count)
            for is_due, count in each
        ]
        return loops.varying((state._replace(since=Since(*since)), left - length))

    inputs = problem, search, state, num_steps, rules
    with loops.varying_alike(*inputs) as (problem, search, state, num_steps, rules):
        state = _test_at_the_start(search, rules.target, axis_name, state)
        info = jax.tree.map(jnp.zeros_like, state.info)
        state, _ = lax.while_loop(
            lambda carry: (carry[0].status == Status.RUNNING) & (carry[1] > 0),
            to_next_event,
            loops.varying((state._replace(info=info), num_steps)),
        )
        # The searches themselves stay as they are: a run may be cut anywhere.
        costs = _true_costs(problem, search, state)
        return with_best(problem, state, devices.minimum(costs.min(), axis_name))


def _test_at_the_start(
    search: Search, target: jax.Array, axis_name: str | None, state: RunState
) -> RunState:
    """Returns the state, ended if a start meets the target: before the first step.

    What an exchange has brought is tested after the next step, also if the run is cut between.
    """
    hit = jax.vmap(stepping.note_hit, in_axes=(None, None, 0, 0, None))(
        search, target, state.searches, state.hit, state.step
    )
    num_new = _num_hits(state._replace(hit=hit), axis_name) - _num_hits(state, axis_name)
    is_met = (num_new > 0) & meets(state.device_best, target)
    status = jnp.where(is_met, jnp.int32(Status.TARGET), state.status)
    has_exchanged = (state.since.exchange == 0) & ~counts.is_zero(state.step)
    hit, status = choose(has_exchanged, (state.hit, state.status), (hit, status))
    return state._replace(hit=hit, status=status)


def _stop_test(search: Search, rules: Rules, axis_name: str | None, state: RunState) -> RunState:
    costs = best_costs(search, state.searches, state.index)
    state = _confirm(state, costs, rules.target)
    best_cost = devices.minimum(costs.min(), axis_name)
    stale = jnp.minimum(state.stale, MAX_PATIENCE) + state.since.stop_test
    stale = jnp.where(best_cost < state.device_tested, 0, stale)
    status = jnp.where(stale >= rules.patience, jnp.int32(Status.PATIENCE), state.status)
    if search.is_done is not None:
        goes_on = (state.index >= 0) & ~jax.vmap(search.is_done)(state.searches)
        num_left = devices.total(jnp.sum(goes_on, dtype=jnp.int32), axis_name)
        status = jnp.where(num_left == 0, jnp.int32(Status.LOCAL_OPTIMA), status)
    status = jnp.where(_num_hits(state, axis_name) > 0, jnp.int32(Status.TARGET), status)
    device_tested = jnp.minimum(best_cost, state.device_tested)
    return state._replace(device_tested=device_tested, stale=stale, status=status)


def _true_costs(problem: Problem, search: Search, state: RunState) -> jax.Array:
    """Returns [S] best costs without drift."""
    return best_costs(search, settled(problem, search, state.searches), state.index)


def _confirm(state: RunState, costs: jax.Array, target: jax.Array) -> RunState:
    """Returns the state without the hits of searches whose true cost, [S], misses the target."""
    if not drifts(costs):
        return state
    never = counts.never(state.index.shape)
    return state._replace(hit=choose(meets(costs, target), state.hit, never))


def _num_hits(state: RunState, axis_name: str | None) -> jax.Array:
    has_hit = (state.index >= 0) & ~counts.is_never(state.hit)
    return devices.total(jnp.sum(has_hit, dtype=jnp.int32), axis_name)


# Exchanges: the rule names donors, and their solutions are moved here.


def exchange_now(
    rule: Exchange,
    problem: Problem,
    search: Search,
    state: RunState,
    *,
    implementation: Implementation,
    axis_name: str | None,
) -> RunState:
    """Returns this device's part of a run after an exchange among all of its searches.

    Args:
      rule: who gets what from whom.
      state: with S searches per device.
      implementation: by what steps are made.
      axis_name: the device axis, or None.
    """
    searches, ancestor, index = state.searches, state.ancestor, state.index
    key = memory.computed_once(random.exchange_key(state.key, state.step.high))
    stream = random.Stream(key, state.step.low, counts.as_int32(state.step))

    def own_part(of_all: jax.Array, size: int) -> jax.Array:
        return lax.dynamic_slice_in_dim(of_all, devices.device_index(axis_name) * size, size)

    if (order := rule.order) is not None:
        if search.individuals is None:
            raise TypeError(f"search is a {type(search).__name__}, expected one that has islands")
        own = jax.vmap(search.individuals)(searches)
        islands, size = jax.tree.leaves(own)[0].shape[:2]
        everyone = jax.tree.map(
            lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), devices.all_gather(own, axis_name)
        )
        is_padding = jnp.repeat(devices.all_gather(index, axis_name) < 0, size)
        places = order(stream, is_padding)
        contracts.check_alike(f"{type(rule).__name__}.order", places, is_padding.astype(jnp.int32))
        places = own_part(jnp.asarray(places), islands * size)
        individuals = jax.tree.map(
            lambda leaf, like: leaf[places].reshape(like.shape), everyone, own
        )
        return state._replace(searches=jax.vmap(search.with_individuals)(searches, individuals))
    is_padding, is_best = index < 0, rule.passes_on == "best"
    costs = no_nan(jax.vmap(search.best_cost if is_best else search.current_cost)(searches))
    costs = jnp.where(is_padding, null_delta(costs.dtype), costs)
    solution_of = search.best if is_best else search.current
    solutions = jax.vmap(solution_of, in_axes=(None, 0))(problem, searches)
    num_searches = devices.total(jnp.sum(~is_padding, dtype=jnp.int32), axis_name)
    all_costs = devices.all_gather(costs, axis_name)
    donors = rule.donors(stream, all_costs, num_searches)
    contracts.check_alike(f"{type(rule).__name__}.donors", donors, all_costs.astype(jnp.int32))
    donors = own_part(jnp.asarray(donors), len(index))
    everyone = devices.all_gather((solutions, ancestor), axis_name)
    given, ancestors = jax.tree.map(lambda leaf: leaf[jnp.maximum(donors, 0)], everyone)

    def words() -> tuple[jax.Array, jax.Array]:
        """Returns two random words of each search, [S] uint32."""
        slots = jnp.maximum(index, 0).astype(jnp.uint32) + jnp.uint32(_FIRST_OF_SEARCHES)
        first, second = memory.computed_once(stream.words(slots, 2))
        return first, second

    if (combine := rule.combine) is not None:
        own = solutions
        if not is_best:
            own = jax.vmap(search.best, in_axes=(None, 0))(problem, searches)
        given = combine(words(), problem, own, given, implementation)
        contracts.check_alike(f"{type(rule).__name__}.combine", given, own)
    adopts = (donors >= 0) & ~is_padding
    restarts = rule.starts_anew(all_costs, num_searches)
    if restarts is None and not rule.is_generational:
        adopted = jax.vmap(search.adopt, in_axes=(None, 0, 0))(problem, searches, given)
        searches, ancestor = choose(adopts, (adopted, ancestors), (searches, ancestor))
        return state._replace(searches=searches, ancestor=ancestor)
    # Then the first one continues from the best of all, and the others start anew.
    restarts = jnp.bool_(False) if restarts is None else restarts
    begins = restarts | rule.is_generational
    is_first, keys = index == 0, random.typed_key(words())
    best, of_best = jax.tree.map(lambda leaf: leaf[jnp.argmin(all_costs)][None], everyone)
    given = choose(begins & is_first, best, given)
    others = begins & ~is_first

    def draw(given: Any) -> Any:
        return choose(others, jax.vmap(problem.init)(keys), given)

    given = lax.cond(restarts, draw, lambda given: given, given)
    ancestors = jnp.where(restarts, index, ancestors)
    ancestors = jnp.where(begins & is_first, of_best, ancestors)
    started = jax.vmap(search.init_with, in_axes=(0, None, 0))(keys, problem, given)
    adopted = jax.vmap(search.adopt, in_axes=(None, 0, 0))(problem, searches, given)
    new = choose(others, started, adopted), jnp.maximum(ancestors, 0)
    searches, ancestor = choose(adopts | begins, new, (searches, ancestor))
    return state._replace(searches=searches, ancestor=ancestor)
