"""Heuristics whose ratings, weights and counts are data, sound or with a mistake."""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np

import jaxopt_search as js
from jaxopt_search.backends.memory import load, store

NUM_VARIABLES, MOST = 3, 4


STATES = jnp.full((2, NUM_VARIABLES), -1, jnp.int32)


@js.pytree
@dataclasses.dataclass(frozen=True, kw_only=True)
class Tabled(js.successors.LocalHeuristic):
    """Ratings, weights and counts as given: all of them data, so that it is compiled once.

    Attributes:
      ratings: [num_variables, max_possibilities] float32.
      counts: [num_variables] int32.
      sight: [] int32, times what the first variable has is added to the weights of the others.
      leak: [] int32, added to the state by `assign` where it must not write.
      hook_leak: [] int32, likewise by `before_state`.
    """

    ratings: Any
    counts: Any
    sight: Any
    leak: Any
    hook_leak: Any
    max_weight: int = dataclasses.field(default=1000, metadata={"static": True})
    num_variables, max_possibilities, is_portable, independent = NUM_VARIABLES, MOST, True, True

    def num_possibilities(self, problem, state, variable):
        return load(self.counts, variable)

    def rate(self, problem, state, variable, possibility):
        return load(self.ratings, (variable, possibility))

    def weight(self, problem, rating, aggregates):
        return jnp.where(rating != rating, jnp.int32(1000), rating.astype(jnp.int32))

    def before_state(self, problem, state, where):
        first = load(state, jnp.int32(0))
        return store(state, jnp.int32(0), first + self.hook_leak, ~where)

    def assign(self, problem, state, variable, possibility, where):
        state = store(state, jnp.int32(0), load(state, jnp.int32(0)) + self.leak, ~where)
        return store(state, variable, possibility, where)


@js.pytree
class Seeing(Tabled):
    """Its weights depend on what another variable has."""

    def rate(self, problem, state, variable, possibility):
        seen = jnp.where(variable == 2, load(state, jnp.int32(1)), jnp.int32(0)) * self.sight
        rating = super().rate(problem, state, variable, possibility)
        return rating + seen.astype(jnp.float32)


def tabled(changes=(), counts=None, sight=0, leak=0, hook_leak=0):
    """Returns a sound heuristic but for some ratings, triples (variable, possibility, rating)."""
    ratings = np.ones((NUM_VARIABLES, MOST), np.float32)
    for variable, possibility, rating in changes:
        ratings[variable, possibility] = rating
    return Seeing(
        ratings=jnp.asarray(ratings),
        counts=jnp.asarray([MOST] * NUM_VARIABLES if counts is None else counts, jnp.int32),
        sight=jnp.int32(sight),
        leak=jnp.int32(leak),
        hook_leak=jnp.int32(hook_leak),
    )
