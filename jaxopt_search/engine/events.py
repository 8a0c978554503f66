# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
"""When something happens between steps: refreshes, stop tests, exchanges; by fixed distances."""

import functools
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jax import lax

from jaxopt_search.backends import Implementation, counts, memory
from jaxopt_search.engine import exchanging, stepping
from jaxopt_search.engine.state import Rules, RunState
from jaxopt_search.types import Problem, Search

REFRESH_EVERY = 10_000
"""Steps after which running float costs are computed again."""

Events: TypeAlias = dict[str, jax.Array]
"""Which events are due, [] bool, by name."""


class Run(NamedTuple):
    """What stays the same during a call, within the compiled program."""

    problem: Problem
    search: Search
    rules: Rules
    implementation: Implementation
    axis_name: str | None


def _periods(run: Run, state: RunState) -> Events:
    """Returns the steps between two events of a kind, of the kinds that there are, by name."""
    rules, periods = run.rules, dict[str, jax.Array]()
    if exchanging.drifts(state.device_best):
        periods["refresh"] = jnp.int32(REFRESH_EVERY)
    may_end = rules.target is not None or rules.patience is not None
    if may_end or run.search.is_done is not None:
        periods["stop_test"] = rules.check_every
    if rules.exchange is not None:
        periods["exchange"] = rules.exchange.every
    return periods


def next_events(run: Run, state: RunState, left: jax.Array) -> tuple[jax.Array, Events]:
    """Returns the steps until the next event, at most `left`, and which are due then, by name."""
    since = state.since._replace(stop_test=_since_stop_test(run, state))
    due = {
        name: jnp.maximum(every - getattr(since, name), 1)
        for name, every in _periods(run, state).items()
    }
    limits = (counts.until_carry(state.step), stepping.max_steps(run.implementation))
    length = functools.reduce(jnp.minimum, (*due.values(), *limits), left)
    # Else XLA would compile all of it again for whatever depends on it.
    return memory.computed_once((length, {name: at == length for name, at in due.items()}))


def _since_stop_test(run: Run, state: RunState) -> jax.Array:
    """Returns the steps since the last stop test; `check_every` may have changed since."""
    return lax.rem(state.since.stop_test, run.rules.check_every)


def noted(run: Run, state: RunState, is_due: Events) -> RunState:
    """Returns the state with the counts of steps since the events that have just been."""
    since = {name: jnp.where(now, 0, getattr(state.since, name)) for name, now in is_due.items()}
    if "stop_test" not in since:  # stop tests of a later call are counted from the start, too
        since["stop_test"] = _since_stop_test(run, state)
    return state._replace(since=state.since._replace(**since))


def when_due(
    name: str, is_due: Events, event: Callable[[RunState], RunState], state: RunState
) -> RunState:
    if name not in is_due:
        return state
    return lax.cond(is_due[name], event, lambda state: state, state)
