# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false
"""Exchanges, also as programs of their own.

A large exchange, such as a recombination by edge assembly, takes as long to compile as the steps.
As programs of its own, one for what is offered and one that adopts it, it is compiled beside them,
and serves all ways to run them. A crossover may be divided between the two, as edge assembly is,
so that neither takes much longer than the other. The searches take the same course.

On a GPU, where kernels take long to compile, all exchanges that make children are programs of their
own at first. Where steps from one to the next take a millisecond, a call takes longer. So a program
with both takes over as soon as a thread has compiled it, during the run.
"""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from jaxopt_search.backends import counts, memory, random
from jaxopt_search.engine import collectives, exchanging
from jaxopt_search.engine.exchanging import Offer
from jaxopt_search.engine.kept_programs import kept
from jaxopt_search.engine.state import Later, Rules, RunState, with_best
from jaxopt_search.results import Status
from jaxopt_search.types import Exchange, Problem, Search


def is_apart(exchange: Exchange | Later | None, device: jax.Device) -> bool:
    """Returns whether runs on a device make an exchange by its own program, if only at first."""
    if exchange is None:
        return False
    return exchange.compiles_apart or is_apart_at_first(exchange, device)


def is_apart_at_first(exchange: Exchange | Later | None, device: jax.Device) -> bool:
    """Returns whether one program with the steps takes over as soon as it is compiled."""
    if exchange is None or exchange.compiles_apart:
        return False
    return exchange.combine is not None and device.platform != "cpu"


def without(rules: Rules, every: int, continues: bool) -> Rules:
    """Returns the rules of steps between which another program makes the exchange.

    Args:
      every: steps between exchanges.
      continues: whether steps of the same chunk came before.
    """
    return rules._replace(exchange=Later(np.int32(every), np.bool_(continues)))


def in_turns(
    make: Callable[[RunState, int, bool], RunState],
    exchange_if: Callable[[bool, RunState], RunState],
    state: RunState,
    num_steps: int,
    periods: tuple[int, int],
    calls_both: bool,
) -> RunState:
    """Returns the state after steps and exchanges, of which only the last may be under way.

    Args:
      make: returns a state after so many steps, the first ones of a chunk or not.
      exchange_if: returns a state after an exchange, if it is due.
      num_steps: of the chunk; 0 calls `make` all the same.
      periods: steps between exchanges, and since the last one.
      calls_both: whether 0 steps call `exchange_if`, too.
    """
    (every, since), left, status, is_first = periods, num_steps, None, True
    while left > 0 or is_first:
        length = min(left, max(every - since, 1))
        state = make(state, length, is_first)
        left, since, is_first = left - length, since + length, False
        is_due = length > 0 and since >= every
        if is_due or calls_both:
            state = exchange_if(is_due, state)
            since = 0 if is_due else since
        if status is not None and int(jax.device_get(status)) != Status.RUNNING:
            break
        status = state.status
    return state


def exchanged(
    exchange: Exchange, problem: Problem, search: Search, state: RunState, axis_name: str | None
) -> RunState:
    """Returns the state after an exchange."""
    own = state.searches, state.ancestor, state.index
    searches, ancestor = exchanging.apply(
        exchange, _stream(state), problem, search, *own, axis_name
    )
    return state._replace(searches=searches, ancestor=ancestor)


def _stream(state: RunState) -> random.Stream:
    """Returns what an exchange draws from."""
    key = memory.computed_once(random.exchange_key(state.key, state.step.high))
    return random.Stream(key, state.step.low, counts.as_int32(state.step))


@functools.partial(kept, static_argnames="axis_name")
def offered(
    exchange: Exchange,
    problem: Problem,
    search: Search,
    state: RunState,
    *,
    axis_name: str | None,
) -> Offer:
    """Returns what an exchange has for searches: the first of its programs."""
    own = state.searches, state.ancestor, state.index
    return exchanging.offered(exchange, _stream(state), problem, search, *own, axis_name)


@functools.partial(kept, static_argnames="axis_name")
def adopted(
    exchange: Exchange,
    problem: Problem,
    search: Search,
    state: RunState,
    offer: Offer,
    is_due: jax.Array,
    *,
    axis_name: str | None,
) -> RunState:
    """Returns the state after an exchange: the second one.

    Args:
      is_due: [] bool; the state stays where that does not hold, or the run has ended.
    """
    own = state.searches, state.ancestor
    searches, ancestor = exchanging.adopted(exchange, problem, search, *own, offer)
    # Costs have no drift here: those of the steps were settled, and a child's is its own.
    best = exchanging.best_costs(search, searches, state.index).min()
    after = searches, ancestor, collectives.minimum(best, axis_name)
    choose = functools.partial(jnp.where, is_due & (state.status == Status.RUNNING))
    searches, ancestor, best = jax.tree.map(choose, after, (*own, state.device_best))
    return with_best(problem, state._replace(searches=searches, ancestor=ancestor), best)
