"""A heuristic that is written differently but rates alike gives the same successors."""

import dataclasses
import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from successors import heuristics as parts

import jaxopt_search as js

NUM_VARIABLES, MOST = 9, 200
SMALL = 2**24 - 1  # exact in float32, and 200 of them add up to less than 2**32
_register = functools.partial(
    jax.tree_util.register_dataclass,
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
class Negative(parts.Table):
    """Forbids by negative weights in place of 0."""

    def weight(self, problem, rating, aggregates):
        weight = rating.astype(jnp.int32)
        return jnp.where(weight == 0, jnp.int32(-(2**31)), weight)


@_register
class OtherOrder(parts.Table):
    """Does in its hooks what it does in another order, and the same number twice."""

    def num_possibilities(self, problem, state, variable):
        return jnp.minimum(super().num_possibilities(problem, state, variable) * 1, jnp.int32(MOST))

    def assign(self, problem, state, variable, possibility, where):
        state = parts.noted(state, where, parts.ASSIGN, self.number, variable, possibility)
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
    "int32": lambda: table(rating="int32"),
    "float32": lambda: table(rating="float32"),
    "a pair": lambda: table(rating="pair"),
    "max_weight": lambda: table(max_weight=SMALL),
    "independent": lambda: table(independent=True),
    "another formula": lambda: rewritten(OtherFormula),
    "negative weights": lambda: rewritten(Negative),
    "another order": lambda: rewritten(OtherOrder),
}


def made(heuristic, **options):
    states = parts.states(3, NUM_VARIABLES)
    return js.successors.generate(
        3, heuristic, parts.ALONE, states, num_successors=4, order="random", **options
    )


@functools.cache
def expected():
    return made(table())


@pytest.mark.parametrize("way", WAYS)
def test_nothing_depends_on_how_a_heuristic_is_written(way):
    """Not a state, not a number drawn: neither on dtypes nor on what is declared."""
    number = list(WAYS).index(way)
    implementation = ("native", "xla")[number % 2]
    chex.assert_trees_all_equal(made(WAYS[way](), implementation=implementation), expected())
