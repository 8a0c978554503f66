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
def apply(rule, problem, search, state, stream=None):
    return loop.apply(rule, stream, problem, search, state, "xla", None)


def stream_at(counter, seed=1):
    return random.Stream(random.as_key(seed), jnp.uint32(counter), jnp.int32(10))
