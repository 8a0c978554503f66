"""What the heuristics of the tests enter into the trace of a state: every event, in its order."""

from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxopt_search.backends import memory
from jaxopt_search.successors import LocalHeuristic

FNV_PRIME = 16777619
UNTOUCHED, WITHOUT_VALUE = -1, -2
(
    BEFORE_STATE,
    AFTER_STATE,
    BEFORE_VARIABLE,
    AFTER_VARIABLE,
    ASSIGN,
    COULD_NOT_ASSIGN,
) = range(1, 7)


class State(NamedTuple):
    """A state of any of these heuristics, without the axis of states.

    Attributes:
      values: [total] int32, the possibility of each variable of all types, or why it has none.
      used: [variables] int32, the switches of `Switching`.
      last: [] int32, a number that assignments change and ratings may look at.
      trace: [] uint32, all events in their order.
    """

    values: Any
    used: Any
    last: Any
    trace: Any


def states(number, total, num_values=1, seed=0):
    """Returns [number] states, which differ in what no assignment changes by itself."""
    numbers = jnp.arange(number, dtype=jnp.uint32)
    return State(
        values=jnp.full((number, total), UNTOUCHED, jnp.int32),
        used=jnp.zeros((number, num_values), jnp.int32),
        last=(numbers * jnp.uint32(7) + jnp.uint32(seed)).astype(jnp.int32),
        trace=jnp.uint32(seed) ^ numbers,
    )


class Coupling(NamedTuple):
    """The problem of `Table`: how much of the past its variables see. A pytree of scalars.

    Attributes:
      weight: [] uint32, times `State.last` it is added to weights above 0.
      count: [] int32, times `State.last % 3` it is taken from the number of possibilities.
      step: [] int32, what events other than assignments add to `State.last`.
    """

    weight: Any
    count: Any
    step: Any


ALONE = Coupling(jnp.uint32(0), jnp.int32(0), jnp.int32(0))
COUPLED = Coupling(jnp.uint32(0x9E3779B1), jnp.int32(1), jnp.int32(4))


def code(event, number, variable, possibility):
    return event + 8 * (number + 8 * (variable + 256 * possibility))


def noted(state, where, event, number, variable=None, possibility=None):
    """Returns `state` with an event in its trace."""
    zero = jnp.int32(0)
    event = code(
        jnp.int32(event),
        jnp.int32(number),
        zero if variable is None else variable,
        zero if possibility is None else possibility,
    )
    trace = (state.trace ^ event.astype(jnp.uint32)) * jnp.uint32(FNV_PRIME)
    return state._replace(trace=jnp.where(where, trace, state.trace))


class Noting(LocalHeuristic):
    """The hooks that only enter what happened."""

    is_portable = True

    def after_state(self, problem, state, where):
        return noted(state, where, AFTER_STATE, self.number)

    def after_variable(self, problem, state, variable, where):
        return noted(state, where, AFTER_VARIABLE, self.number, variable)

    def before_state(self, problem, state, where):
        return noted(state, where, BEFORE_STATE, self.number)

    def before_variable(self, problem, state, variable, where):
        return noted(state, where, BEFORE_VARIABLE, self.number, variable)

    def could_not_assign(self, problem, state, variable, where):
        at = variable + jnp.int32(self.offset)
        values = memory.store(state.values, at, jnp.int32(WITHOUT_VALUE), where)
        state = state._replace(values=values)
        return noted(state, where, COULD_NOT_ASSIGN, self.number, variable)

    def assign(self, problem, state, variable, possibility, where):
        values = memory.store(state.values, variable + jnp.int32(self.offset), possibility, where)
        state = state._replace(values=values)
        return noted(state, where, ASSIGN, self.number, variable, possibility)
