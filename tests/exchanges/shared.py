"""Searches that exchange, and what is drawn for them."""

import jax
import jax.numpy as jnp
from cases import matrix_tsp

import jaxopt_search as js
from jaxopt_search.backends import random
from jaxopt_search.engine import loop
from jaxopt_search.types import null_delta

HIGHEST = int(null_delta(jnp.int32))


def states_and_tours(num_searches=5):
    problem = matrix_tsp(8)
    search = js.simulated_annealing(js.Relocate(), 200.0)
    state = js.run(0, problem, search, num_searches=num_searches, max_steps=30)
    return problem, search, state


@jax.jit
def apply(rule, problem, search, state):
    """Returns the searches and their ancestors after an exchange."""
    how = {"implementation": "xla", "axis_name": None}
    after = loop.exchange_now(rule, problem, search, state, **how)
    return after.searches, after.ancestor


def stream_of(state):
    """Returns what an exchange draws from where a run stands."""
    key = random.exchange_key(state.key, state.step.high)
    return random.Stream(key, state.step.low, state.step.low.astype(jnp.int32))
