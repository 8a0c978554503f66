"""Local heuristics for the tests in portable JAX; `plain.py` has each once more in plain Python.

What they do is data: weights, counts, how much a variable sees of those before it. So many cases
share one compilation. Every hook enters what it did into `State.trace`, from which the order of all
events can be told.
"""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from successors.traces import ALONE, COUPLED, Noting, states  # noqa: F401, for tests

import jaxopt_search as js
import jaxopt_search.successors
from jaxopt_search.backends import bit_sets, memory

_register = js.pytree
_static = functools.partial(dataclasses.field, metadata={"static": True})


@_register
@dataclasses.dataclass(frozen=True, kw_only=True)
class Table(Noting):
    """Weights from a table, as they are or changed by what was assigned before.

    Attributes:
      weights: [num_variables, max_possibilities] uint32.
      counts: [num_variables] int32, possibilities of each variable, before clipping.
      rating: what `rate` returns: "uint32", or "pair" of the halves of a word.
    """

    weights: Any
    counts: Any
    num_variables: int = _static()
    max_possibilities: int = _static()
    number: int = _static(default=0)
    offset: int = _static(default=0)
    rating: str = _static(default="uint32")
    max_weight: int = _static(default=2**32 - 1)

    def num_possibilities(self, problem, state, variable):
        return memory.load(self.counts, variable) - problem.count * (state.last % 3)

    def rate(self, problem, state, variable, possibility):
        weight = memory.load(self.weights, (variable, possibility))
        more = problem.weight * state.last.astype(jnp.uint32)
        weight = jnp.where(weight == 0, weight, weight + more)
        if self.rating == "pair":
            return {"low": weight & jnp.uint32(0xFFFF), "high": weight >> jnp.uint32(16)}
        return weight

    def weight(self, problem, rating, aggregates):
        if self.rating == "pair":
            return (rating["high"] << jnp.uint32(16)) | rating["low"]
        return rating

    def before_state(self, problem, state, where):
        state = state._replace(last=jnp.where(where, state.last + problem.step, state.last))
        return super().before_state(problem, state, where)

    def before_variable(self, problem, state, variable, where):
        state = state._replace(last=jnp.where(where, state.last + problem.step, state.last))
        return super().before_variable(problem, state, variable, where)

    def assign(self, problem, state, variable, possibility, where):
        last = (state.last + possibility) & jnp.int32(0xFFFF)
        state = state._replace(last=jnp.where(where, last, state.last))
        return super().assign(problem, state, variable, possibility, where)


@_register
@dataclasses.dataclass(frozen=True, kw_only=True)
class Apart(Table):
    """A `Table` whose variables are independent."""

    independent = True
    before_variable = after_variable = None


@_register
@dataclasses.dataclass(frozen=True, kw_only=True)
class Switching(Table):
    """A `Table` in which each turn activates a variable or deactivates it, of any type.

    `State.used` has a switch for each variable of all types: 1 activates it, 2 deactivates it.
    """

    def switched(self, state, variable, possibility, where):
        at = (variable + possibility + self.offset + 1) % state.used.shape[0]
        switch = 1 + (variable + possibility) % 2
        return state._replace(used=memory.store(state.used, at, switch, where))

    def could_not_assign(self, problem, state, variable, where):
        state = super().could_not_assign(problem, state, variable, where)
        return self.switched(state, variable, jnp.int32(0), where)

    def assign(self, problem, state, variable, possibility, where):
        state = super().assign(problem, state, variable, possibility, where)
        return self.switched(state, variable, possibility, where)

    def active_now(self, problem, state, left):
        def switch(variable, left):
            switch = memory.load(state.used, variable + self.offset)
            left = bit_sets.added(left, variable, switch == 1)
            return bit_sets.removed(left, variable, switch == 2)

        return memory.fori_loop(jnp.int32(self.num_variables), switch, left)


def table(weights, counts=None, kind=Table, **options):
    """Returns a `Table` of a table, by default with all its possibilities."""
    weights = np.asarray(weights, np.uint32)
    counts = np.full(len(weights), weights.shape[1]) if counts is None else counts
    return kind(
        weights=jnp.asarray(weights),
        counts=jnp.asarray(counts, jnp.int32),
        num_variables=weights.shape[0],
        max_possibilities=weights.shape[1],
        **options,
    )


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Positions(Noting):
    """Each variable is assigned how many were assigned before it."""

    num_variables: int
    max_possibilities = 1
    number = offset = 0

    def rate(self, problem, state, variable, possibility):
        return possibility

    def weight(self, problem, rating, aggregates):
        return jnp.ones_like(rating)

    def assign(self, problem, state, variable, possibility, where):
        values = memory.store(state.values, variable, state.last, where)
        last = jnp.where(where, state.last + 1, state.last)
        return state._replace(values=values, last=last)


class Rated(NamedTuple):
    """A rating of `Mapped`."""

    value: Any
    key: Any


def mix(*words):
    """Returns a word that depends on every bit of all words, in JAX or in NumPy's uint32."""
    found = words[0]
    for word in words[1:]:
        found = (found ^ (found >> np.uint32(15))) * np.uint32(0x2C1B3C6D) ^ word
    return found ^ (found >> np.uint32(13))


def _bits(value):
    return jax.lax.bitcast_convert_type(value, jnp.uint32)


def _better(a, b):
    """Returns the pair with the higher value, of equal ones that with the lower key."""
    takes_a = (a.value > b.value) | ((a.value == b.value) & (a.key <= b.key))
    return Rated(jnp.where(takes_a, a.value, b.value), jnp.where(takes_a, a.key, b.key))


_SEVERAL = (
    js.successors.Aggregate(jnp.maximum, np.float32(-np.inf), of=lambda rating: rating.value),
    js.successors.Aggregate(jnp.minimum, np.float32(np.inf), of=lambda rating: rating.value),
    js.successors.Aggregate(jnp.add, np.float32(0), of=lambda rating: rating.value),
    js.successors.Aggregate(_better, Rated(np.float32(-np.inf), np.int32(2**31 - 1))),
    js.successors.Aggregate(jnp.bitwise_xor, np.int32(0), of=lambda rating: rating.key),
)


@_register
@dataclasses.dataclass(frozen=True, kw_only=True)
class Mapped(Noting):
    """Weights that depend on every bit of five aggregates, a sum of floats and a pair among them.

    Attributes:
      ratings: [num_variables, max_possibilities] float32; NaN forbids.
      counts: [num_variables] int32.
    """

    ratings: Any
    counts: Any
    num_variables: int = _static()
    max_possibilities: int = _static()
    number: int = _static(default=0)
    offset: int = _static(default=0)
    aggregates: tuple = _static(default=_SEVERAL)

    def num_possibilities(self, problem, state, variable):
        return memory.load(self.counts, variable)

    def rate(self, problem, state, variable, possibility):
        return Rated(memory.load(self.ratings, (variable, possibility)), possibility)

    def weight(self, problem, rating, aggregates):
        highest, lowest, total, best, parity = aggregates
        words = (highest, lowest, total, best.value, best.key, parity)
        mixed = mix(*(_bits(word) for word in words))
        return mix(mixed, _bits(rating.value), _bits(rating.key)) % jnp.uint32(5)


def mapped(ratings, counts, **options):
    return Mapped(
        ratings=jnp.asarray(ratings, jnp.float32),
        counts=jnp.asarray(counts, jnp.int32),
        num_variables=ratings.shape[0],
        max_possibilities=ratings.shape[1],
        **options,
    )
