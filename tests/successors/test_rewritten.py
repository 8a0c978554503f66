"""A heuristic that is written differently but rates alike gives the same successors."""

import dataclasses
import functools

import jax.numpy as jnp
import numpy as np
import pytest
from successors import comparing, traces
from successors import heuristics as parts

import jaxopt_search as js

NUM_VARIABLES, MOST = 9, 256
SMALL = 2**24 - 1  # exact in float32, and 256 of them add up to less than 2**32
_register = functools.partial(
    js.pytree,
    data_fields=("weights", "counts"),
    meta_fields=tuple(
        field.name
        for field in dataclasses.fields(parts.Table)
        if field.name not in ("weights", "counts")
    ),
)


def table(**options):
    rng = np.random.default_rng(8)
    weights = rng.integers(0, SMALL + 1, (NUM_VARIABLES, MOST))
    weights[:, ::3] = 0
    weights[2] = 0
    return parts.table(weights, rng.integers(0, MOST + 1, NUM_VARIABLES), **options)


@_register
class OtherFormula(parts.Table):
    """Rates by what is lacking, with what is forbidden as NaN, and weighs by an aggregate."""

    aggregates = (js.successors.Aggregate(jnp.minimum, np.float32(np.inf)),)

    def rate(self, problem, state, variable, possibility):
        weight = super().rate(problem, state, variable, possibility)
        lacking = jnp.float32(SMALL) - weight.astype(jnp.float32)
        return jnp.where(weight == 0, jnp.float32(jnp.nan), lacking)

    def weight(self, problem, rating, aggregates):
        (least,) = aggregates
        more = jnp.float32(SMALL) - least
        return (more - (rating - least)).astype(jnp.int32)


@_register
class OtherOrder(parts.Table):
    """Forbids by negative weights; its hooks do all in another order, and some of it twice."""

    def weight(self, problem, rating, aggregates):
        weight = rating.astype(jnp.int32)
        return jnp.where(weight == 0, jnp.int32(-(2**31)), weight)

    def num_possibilities(self, problem, state, variable):
        return jnp.minimum(super().num_possibilities(problem, state, variable) * 1, jnp.int32(MOST))

    def assign(self, problem, state, variable, possibility, where):
        state = traces.noted(state, where, traces.ASSIGN, self.number, variable, possibility)
        for value in (jnp.int32(-7), possibility):
            values = js.memory.store(state.values, variable, value, where)
            state = state._replace(values=values)
        last = (state.last + possibility) & jnp.int32(0xFFFF)
        return state._replace(last=jnp.where(where, last, state.last))


def rewritten(kind):
    """Returns the table as another class."""
    plain = table()
    return kind(**{field.name: getattr(plain, field.name) for field in dataclasses.fields(plain)})


WAYS = {
    "floats of small weight": lambda: table(rating="float32", max_weight=SMALL),
    "pairs": lambda: table(rating="pair"),
    "another formula": lambda: rewritten(OtherFormula),
    "another order": lambda: rewritten(OtherOrder),
}


STATES = parts.states(3, NUM_VARIABLES)


@functools.cache
def expected():
    """Returns what the reference makes of the table as it is."""
    return comparing.expected(3, (table(),), parts.ALONE, STATES, None, 4, "random")


@pytest.mark.parametrize("way", WAYS)
def test_nothing_depends_on_how_a_heuristic_is_written(way):
    """Not a state, not a number drawn: neither on dtypes nor on what is declared."""
    found = js.successors.generate(
        3,
        WAYS[way](),
        parts.ALONE,
        STATES,
        num_successors=4,
        order="random",
        implementation=("auto", "xla")[list(WAYS).index(way) % 2],
    )
    comparing.assert_equal(found, expected(), STATES)
