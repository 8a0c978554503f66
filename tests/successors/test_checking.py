"""What `js.successors.check` finds wrong in a heuristic, and what it is content with."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from probes import refuses
from successors.tabled import STATES, tabled

import jaxopt_search as js
from jaxopt_search.backends.memory import load, store

MISTAKES = {
    "negative weight": (
        {"changes": [(1, 2, -5)]},
        "Seeing.weight returns -5, expected 0 or more, for possibility 2 of variable 1 in state 0",
    ),
    "NaN": (
        {"changes": [(2, 0, np.nan)]},
        "Seeing.rate returns a NaN, which forbids it, for possibility 0 of variable 2 in state 0",
    ),
    "too heavy": (
        {"changes": [(0, 3, 1001)]},
        "Seeing.weight returns 1001, above its max_weight, for possibility 3 of variable 0",
    ),
    "count too large": (
        {"counts": [4, 5, 4]},
        "Seeing.num_possibilities returns 5, expected 0 to 4, for variable 1 in state 0",
    ),
    "count below 0": (
        {"counts": [4, 4, -1]},
        "Seeing.num_possibilities returns -1, expected 0 to 4, for variable 2 in state 0",
    ),
    "not independent": (
        {"sight": 1},
        "Seeing is declared independent, but possibility 0 of variable 1 changes the weights"
        " of variable 2 in state 0",
    ),
    "a write where it must not": (
        {"leak": 1},
        "Seeing.assign returns another state where `where` is False",
    ),
    "a hook that writes where it must not": (
        {"hook_leak": 1},
        "Seeing.before_state returns another state where `where` is False, for variable 0 in",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_check_finds_mistakes(mistake):
    """In one line with the state, the variable and the possibility."""
    attributes, text = MISTAKES[mistake]
    with refuses(ValueError, text):
        js.successors.check(tabled(**attributes), None, STATES)


def test_check_is_content_with_what_is_right():
    """With weights of 0, few possibilities, and mistakes of variables that are not active."""
    active = js.successors.bit_sets.pack(np.asarray([[False, True, True]] * 2))
    js.successors.check(tabled([(1, 1, 0), (2, 3, 0)], [4, 0, 2]), None, STATES)
    js.successors.check(tabled([(0, 0, np.nan)], [9, 4, 4]), None, STATES, active)
    with pytest.raises(ValueError, match="changes the weights of variable 2 in state 1"):
        two = js.successors.bit_sets.pack(np.asarray([[True, False, True], [False, True, True]]))
        js.successors.check(tabled(sight=1), None, STATES, two)


class Twos(js.successors.LocalHeuristic):
    """Two variables of three values, each with a weight of 1 or what `bad` makes of it."""

    num_variables, max_possibilities = 2, 3

    def rate(self, problem, state, variable, possibility):
        return jnp.where(self.bad(state, variable), self.weighs, jnp.ones_like(possibility))

    def bad(self, state, variable):
        return jnp.bool_(False)

    def weight(self, problem, rating, aggregates):
        return rating

    def assign(self, problem, state, variable, possibility, where):
        return store(state, variable, possibility, where)

    weighs = -1


def entry(number, value, of=None):
    """Returns a condition: entry `number` of a state is `value`, for variable `of` or for both."""

    def bad(self, state, variable):
        return (load(state, jnp.int32(number)) == value) & ((variable == of) | (of is None))

    return bad


def mark(self, problem, state, *rest):
    *variable, where = rest
    return store(state, jnp.int32(2), 7, where & (variable[0] == 1 if variable else True))


LATE = {
    "before a variable": [{"before_variable": mark, "bad": entry(2, 7, 1)}],
    "after two variables": [{}, {"after_variable": mark}, {"bad": entry(2, 7, 1)}],
    "once it is activated": [
        {
            "before_variable": mark,
            "active_now": lambda self, p, state, left: left | jnp.uint32(2),
            "bad": entry(2, 7, 1),
        }
    ],
    "in independence": [{"independent": True, "weighs": 2, "bad": entry(0, 1, 1)}],
}


@pytest.mark.parametrize("when", LATE)
def test_check_finds_what_is_wrong_only_later(when):
    """After a hook, a value neither first nor last, or another type; of variable 1 each time."""
    types = [type("Late", (Twos,), attributes) for attributes in LATE[when]]
    active = [jnp.uint32([1 if "active_now" in own else 3]) for own in LATE[when]]
    for own in types:
        jax.tree_util.register_static(own)
    text = "variable 1" if when == "in independence" else "-1, expected .* of variable 1 in"
    with pytest.raises(ValueError, match=text):
        js.successors.check([own() for own in types], None, STATES, active)
