# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
"""Exchanges, also as programs of their own.

A large exchange, such as a recombination by edge assembly, takes as long to compile as the steps.
As a program of its own it is compiled beside them, and serves all ways to run them. The searches
take the same course.

On a GPU, where kernels take long to compile, all exchanges that make children are programs of their
own at first. A small one is then called as often as its steps take a millisecond, and that call
takes longer. So a program with both takes over as soon as it is compiled, during the run.
"""

import functools

import jax
from jax import lax

from jaxopt_search import capabilities
from jaxopt_search.engine import collectives, exchanging
from jaxopt_search.engine.kept_programs import kept
from jaxopt_search.engine.state import RunState
from jaxopt_search.portable import counts, random
from jaxopt_search.results import Status
from jaxopt_search.types import Exchange, Problem, Search


def is_apart(exchange: Exchange | None, device: jax.Device) -> bool:
    """Returns whether runs on a device make an exchange by its own program, if only at first."""
    if exchange is None:
        return False
    return capabilities.compiles_apart(exchange) or is_apart_at_first(exchange, device)


def is_apart_at_first(exchange: Exchange | None, device: jax.Device) -> bool:
    """Returns whether one program with the steps takes over as soon as it is compiled."""
    if exchange is None or capabilities.compiles_apart(exchange):
        return False
    return capabilities.combine(exchange) is not None and device.platform != "cpu"


def exchanged(
    exchange: Exchange, problem: Problem, search: Search, state: RunState, axis_name: str | None
) -> RunState:
    """Returns the state after an exchange."""
    key = random.exchange_key(state.key, state.step.high)
    stream = random.Stream(key, state.step.low, counts.as_int32(state.step))
    searches, ancestor = exchanging.apply(
        exchange, stream, problem, search, state.searches, state.ancestor, state.index, axis_name
    )
    return state._replace(searches=searches, ancestor=ancestor)


@functools.partial(kept, static_argnames="axis_name")
def exchange_if_due(
    exchange: Exchange,
    problem: Problem,
    search: Search,
    state: RunState,
    is_due: jax.Array,
    *,
    axis_name: str | None,
) -> RunState:
    """Returns the state after an exchange if the run has not ended and `is_due`, [] bool, holds."""

    def exchange_now(state: RunState) -> RunState:
        after = exchanged(exchange, problem, search, state, axis_name)
        # Costs have no drift here: those of the steps were settled, and a child's is its own.
        best = exchanging.best_costs(search, after.searches, after.index).min()
        return after._replace(best_cost=collectives.minimum(best, axis_name))

    def as_it_is(state: RunState) -> RunState:
        return state

    is_running = state.status == Status.RUNNING
    return lax.cond(is_due & is_running, exchange_now, as_it_is, state)
