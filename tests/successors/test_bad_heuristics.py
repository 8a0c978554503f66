"""What a heuristic may get wrong: one line that says what and where, or a documented outcome."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from probes import refuses
from successors.tabled import MOST, NUM_VARIABLES, STATES, tabled

import jaxopt_search as js
from jaxopt_search.backends.memory import store
from jaxopt_search.successors import Aggregate
from jaxopt_search.successors.heuristics import HOOKS


class Sound(js.successors.LocalHeuristic):
    """A heuristic without faults, of which others differ in one thing."""

    num_variables, max_possibilities, is_portable = NUM_VARIABLES, MOST, True

    def rate(self, problem, state, variable, possibility):
        return possibility

    def weight(self, problem, rating, aggregates):
        return rating + jnp.int32(1)

    def assign(self, problem, state, variable, possibility, where):
        return store(state, variable, possibility, where)


def with_fault(**attributes):
    """Returns a heuristic that has these in place of what `Sound` has."""
    kind = type("Faulty", (Sound,), attributes)
    jax.tree_util.register_static(kind)
    return kind()


def returning(value):
    return lambda self, *args: value


FAULTS = {
    "shape of a rating": (
        {"rate": lambda self, p, s, v, possibility: possibility[:3]},
        "Faulty.rate returns shape (3,) for 4 possibilities, expected (4,)",
    ),
    "dtype of a weight": (
        {"weight": lambda self, p, rating, a: rating * 0.5},
        "Faulty.weight returns float32[4], expected int32 or uint32",
    ),
    "dtype of a state": (
        {"assign": lambda self, p, state, *args: state.astype(jnp.float32)},
        "Faulty.assign returns float32[3], expected int32[3]",
    ),
    **{
        f"nothing from {name}": ({name: returning(None)}, f"Faulty.{name} returns another pytree")
        for name in HOOKS
    },
    "several counts": (
        {"num_possibilities": lambda self, p, state, variable: state},
        "Faulty.num_possibilities returns int32[3], expected int32[]",
    ),
    "a number for a function": (
        {"num_possibilities": 3},
        "Faulty.num_possibilities is no function; see max_possibilities",
    ),
    "aggregates without a tuple": (
        {"aggregates": Aggregate(jnp.maximum, np.int32(0))},
        "Faulty.aggregates is Aggregate(combine=",
    ),
    "a combination of another dtype": (
        {"aggregates": (Aggregate(lambda a, b: (a + b) * 1.0, np.int32(0)),)},
        "Faulty.aggregates[0].combine returns float32[4]",
    ),
    "a set of another dtype": (
        {"active_now": returning(jnp.int32(7))},
        "Faulty.active_now returns int32[], expected uint32[1]",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_wrong_shapes_and_dtypes_are_refused(fault):
    """By the name of the function, what it returns and what it must."""
    attributes, text = FAULTS[fault]
    heuristic = with_fault(**attributes)
    for call in (js.successors.generate, lambda key, *args: js.successors.check(*args)):
        with refuses(TypeError, text):
            call(0, heuristic, None, STATES)


REFUSED: list[Any] = [
    (None, {}, TypeError, "heuristic is None, expected a js.successors.LocalHeuristic"),
    ((), {}, ValueError, "heuristic is empty, expected a LocalHeuristic or several"),
    (Sound(), {}, TypeError, "heuristic is a Sound, expected a pytree; decorate the class"),
    ({"max_possibilities": 0}, {}, ValueError, "max_possibilities is 0, expected an integer"),
    ({"num_variables": None}, {}, ValueError, "num_variables is None"),
    ({"max_weight": 2**32}, {}, ValueError, "max_weight is 4294967296"),
    ({"max_weight": np.uint32(9)}, {}, ValueError, "expected an integer of Python from 1"),
    ({"independent": True, "active_now": returning(0)}, {}, ValueError, "beside active_now"),
    ({}, {"num_successors": 0}, ValueError, "num_successors is 0, expected an integer from 1"),
    ({}, {"order": "up"}, ValueError, "order is 'up', expected one of fixed, random"),
    ({}, {"ratings": "kept"}, ValueError, "expected one of auto, stored, recomputed"),
    ({}, {"implementation": "gpu"}, ValueError, "implementation is 'gpu', expected one of auto"),
    ({}, {"devices": 99}, ValueError, "devices is 99, expected different ones of"),
    ({}, {"active": np.ones((2, 3), bool)}, ValueError, "active is bool[2, 3] for 3 variables"),
]
"""A heuristic, or what is wrong with one, and options; the error and its text."""


@pytest.mark.parametrize(
    ("heuristic", "options", "kind", "text"), REFUSED, ids=[row[-1] for row in REFUSED]
)
def test_what_is_no_heuristic_or_out_of_range_is_refused(heuristic, options, kind, text):
    """By its name, what it is, and what was expected."""
    if isinstance(heuristic, dict):
        heuristic = with_fault(**heuristic)
    with refuses(kind, text):
        js.successors.generate(0, heuristic, None, STATES, **options)


def drawn(heuristic, number=64, **options):
    states = jnp.full((number, NUM_VARIABLES), -1, jnp.int32)
    found = js.successors.generate(1, heuristic, None, states, **options)
    return np.asarray(found.states), found.assigned[0].ravel()


def test_what_is_forbidden_is_not_drawn():
    """A negative weight counts as 0, a NaN forbids, a count is brought into its range."""
    changes = [(0, 0, -5), (0, 1, np.nan), (1, 3, -(2.0**31)), (1, 0, np.nan), (2, 2, 0)]
    values, assigned = drawn(tabled(changes, [9, 4, 3]))
    seen = [set(column) for column in values.T.tolist()]
    assert seen == [{2, 3}, {1, 2}, {0, 1}]
    assert set(assigned.tolist()) == {0b111}


def test_all_weights_zero_and_no_possibilities():
    """The variable stays as it is without a `could_not_assign`, and is not among the assigned."""
    changes = [(1, p, weight) for p, weight in enumerate((0, -1, np.nan, 0))]
    values, assigned = drawn(tabled(changes, [4, 4, -2]))
    assert (values[:, 0] >= 0).all() and (values[:, 1:] == -1).all()
    assert set(assigned.tolist()) == {0b001}


def test_no_active_variable():
    """The state stays as it is, but for hooks around a state; bits beyond the last do nothing."""
    values, assigned = drawn(with_fault(), active=jnp.uint32([2**32 - 8]))
    assert (values == -1).all() and not assigned.any()


def test_a_state_that_is_done_stays_so_while_others_go_on():
    """Even if `active_now` would then activate something: here it turns over variable 2."""
    heuristic = with_fault(active_now=lambda self, p, state, left: left ^ jnp.uint32(4))
    active = jnp.uint32([[1], [3]])
    _, assigned = drawn(heuristic, 2, active=active, implementation="xla")
    assert assigned.tolist() == [1, 7]


def test_an_error_of_a_heuristic_reaches_the_user():
    """As it was raised, before anything is compiled."""

    def rate(self, *args):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        js.successors.generate(0, with_fault(rate=rate), None, STATES)
