"""What a heuristic may get wrong: one line that says what and where, or a documented outcome."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from successors import heuristics as parts

import jaxopt_search as js
from jaxopt_search.portable.memory import load, store
from jaxopt_search.successors import Aggregate, generation, memory_use

NUM_VARIABLES, MOST = 3, 4


class Sound:
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


STATES = jnp.full((2, NUM_VARIABLES), -1, jnp.int32)


def refuses(monkeypatch, kind, text, call):
    """Checks that a call raises one line with this text, and compiles nothing."""

    def fail(*args):
        raise AssertionError("it was compiled before it was checked")

    for name in ("_keeping", "_donating"):
        monkeypatch.setattr(generation, name, fail)
    with pytest.raises(kind) as caught:
        call()
    message = str(caught.value)
    assert text in message and "\n" not in message, message
    assert type(caught.value) is kind


def returning(value):
    return lambda self, *args: value


FAULTS = {
    "shape of a rating": (
        {"rate": lambda self, p, s, v, possibility: possibility[:3]},
        "Faulty.rate returns shape (3,) for 4 possibilities, expected (4,)",
    ),
    "a rating for all": ({"rate": returning(1.0)}, "Faulty.rate returns shape ()"),
    "no rating": ({"rate": returning(None)}, "Faulty.rate returns no array"),
    "dtype of a rating": (
        {"rate": lambda self, p, s, v, possibility: possibility + 1j},
        "Faulty.rate returns complex64[4], expected integers, floats or bools",
    ),
    "dtype of a weight": (
        {"weight": lambda self, p, rating, a: rating * 0.5},
        "Faulty.weight returns float32[4], expected int32 or uint32",
    ),
    "truth as a weight": (
        {"weight": lambda self, p, rating, a: rating > 1},
        "Faulty.weight returns bool[4], expected int32 or uint32",
    ),
    "shape of a weight": (
        {"weight": lambda self, p, rating, a: rating[0]},
        "Faulty.weight returns shape () for 4 possibilities, expected (4,)",
    ),
    "a number as weight": ({"weight": returning(1)}, "Faulty.weight returns a int, expected an"),
    "no state": ({"assign": returning(None)}, "Faulty.assign returns another pytree"),
    "dtype of a state": (
        {"assign": lambda self, p, state, *args: state.astype(jnp.float32)},
        "Faulty.assign returns float32[3] at state, expected int32[3]",
    ),
    "shape of a state": (
        {"assign": lambda self, p, state, *args: state[:2]},
        "Faulty.assign returns int32[2] at state, expected int32[3]",
    ),
    **{
        f"nothing from {name}": ({name: returning(None)}, f"Faulty.{name} returns another pytree")
        for name in (
            "before_state",
            "after_state",
            "before_variable",
            "after_variable",
            "could_not_assign",
        )
    },
    "several counts": (
        {"num_possibilities": lambda self, p, state, variable: state},
        "Faulty.num_possibilities returns int32[3], expected int32[]",
    ),
    "part of a possibility": (
        {"num_possibilities": lambda self, p, state, variable: jnp.float32(2.5)},
        "Faulty.num_possibilities returns float32[], expected int32[]",
    ),
    "a number for a function": (
        {"num_possibilities": 3},
        "Faulty.num_possibilities is no function; see max_possibilities",
    ),
    "aggregates without a tuple": (
        {"aggregates": Aggregate(jnp.maximum, np.int32(0))},
        "Faulty.aggregates is a Aggregate, expected a tuple",
    ),
    "neutral element of another dtype": (
        {"aggregates": (Aggregate(jnp.maximum, np.float32(0)),)},
        "Faulty.aggregates[0].neutral returns float32[]",
    ),
    "a combination of another dtype": (
        {"aggregates": (Aggregate(lambda a, b: (a + b) * 1.0, np.int32(0)),)},
        "Faulty.aggregates[0].combine returns float32[4]",
    ),
    "a value for all": (
        {"aggregates": (Aggregate(jnp.maximum, np.int32(0), of=jnp.max),)},
        "Faulty.aggregates[0].of returns shape ()",
    ),
    "no aggregate": ({"aggregates": (jnp.maximum,)}, "Faulty.aggregates holds a ufunc"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_wrong_shapes_and_dtypes_are_refused(fault, monkeypatch):
    """By the name of the function, what it returns and what it must; nothing is compiled."""
    attributes, text = FAULTS[fault]
    heuristic = with_fault(**attributes)
    for call in (js.successors.generate, lambda key, *args: js.successors.check(*args)):
        refuses(monkeypatch, TypeError, text, lambda call=call: call(0, heuristic, None, STATES))


@pytest.mark.parametrize(
    ("attributes", "text"),
    [
        ({"max_possibilities": 0}, "max_possibilities is 0, expected an integer from 1 to"),
        ({"max_possibilities": 2**24 + 1}, "max_possibilities is 16777217"),
        ({"max_possibilities": 4.0}, "max_possibilities is 4.0"),
        ({"num_variables": 0}, "num_variables is 0, expected an integer from 1"),
        ({"num_variables": None}, "num_variables is None"),
        ({"max_weight": 0}, "max_weight is 0, expected an integer from 1 to 4294967295"),
        ({"max_weight": 2**32}, "max_weight is 4294967296"),
    ],
    ids=str,
)
def test_numbers_out_of_range_are_refused(attributes, text, monkeypatch):
    """Of variables and of possibilities."""
    heuristic = with_fault(**attributes)
    refuses(
        monkeypatch,
        ValueError,
        text,
        lambda: js.successors.generate(0, heuristic, None, STATES),
    )


ARGUMENTS: dict[str, Any] = {
    "num_successors": (0, "num_successors is 0, expected an integer from 1"),
    "order": ("up", "order is 'up', expected one of fixed, random"),
    "ratings": ("kept", "ratings is 'kept', expected one of auto, stored, recomputed"),
    "implementation": ("cuda", "implementation is 'cuda', expected one of auto, xla"),
    "devices": (99, "devices is 99, expected different ones of"),
    "active": (
        np.ones((2, 3), bool),
        "active is bool[2, 3] for 3 variables, expected uint32",
    ),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_wrong_arguments_are_refused(name, monkeypatch):
    """By their names and what was expected."""
    value, text = ARGUMENTS[name]
    heuristic = with_fault()
    refuses(
        monkeypatch,
        ValueError,
        text,
        lambda: js.successors.generate(0, heuristic, None, STATES, **{name: value}),
    )


@pytest.mark.parametrize(
    ("heuristic", "kind", "text"),
    [
        (None, TypeError, "heuristic is a NoneType without num_variables"),
        ((), ValueError, "heuristic is empty, expected a LocalHeuristic or several"),
        (Sound(), TypeError, "heuristic is a Sound, expected a pytree; decorate the class"),
    ],
    ids=["None", "empty", "no pytree"],
)
def test_what_is_no_heuristic_is_refused(heuristic, kind, text, monkeypatch):
    """With what it is, and what it lacks."""
    refuses(monkeypatch, kind, text, lambda: js.successors.generate(0, heuristic, None, STATES))


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Tabled:
    """Ratings, weights and counts as given: all of them data, so that it is compiled once.

    Attributes:
      ratings: [num_variables, max_possibilities] float32.
      counts: [num_variables] int32.
      sight: [] int32, times what the first variable has is added to the weights of the others.
      leak: [] int32, added to the state by `assign` where it must not write.
      hook_leak: [] int32, likewise by `before_variable`.
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

    def before_variable(self, problem, state, variable, where):
        first = load(state, jnp.int32(0))
        return store(state, jnp.int32(0), first + self.hook_leak, ~where)

    def assign(self, problem, state, variable, possibility, where):
        state = store(state, jnp.int32(0), load(state, jnp.int32(0)) + self.leak, ~where)
        return store(state, variable, possibility, where)


class Seeing(Tabled):
    """Its weights depend on what another variable has."""

    def rate(self, problem, state, variable, possibility):
        seen = jnp.where(variable == 2, load(state, jnp.int32(1)), jnp.int32(0)) * self.sight
        rating = super().rate(problem, state, variable, possibility)
        return rating + seen.astype(jnp.float32)


jax.tree_util.register_dataclass(
    Seeing,
    data_fields=("ratings", "counts", "sight", "leak", "hook_leak"),
    meta_fields=("max_weight",),
)


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
        "Seeing.num_possibilities returns 5 for variable 1 in state 0, expected 0 to",
    ),
    "count below 0": (
        {"counts": [4, 4, -1]},
        "Seeing.num_possibilities returns -1 for variable 2 in state 0, expected 0 to",
    ),
    "not independent": (
        {"sight": 1},
        "Seeing is declared independent, but possibility 0 of variable 1 makes a difference to"
        " variable 2 in state 0",
    ),
    "a write where it must not": (
        {"leak": 1},
        "Seeing.assign returns another state where `where` is False",
    ),
    "a hook that writes where it must not": (
        {"hook_leak": 1},
        "Seeing.before_variable returns another state where `where` is False, for variable 0 in",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_check_finds_mistakes(mistake):
    """In one line with the state, the variable and the possibility."""
    attributes, text = MISTAKES[mistake]
    with pytest.raises(ValueError) as caught:
        js.successors.check(tabled(**attributes), None, STATES)
    assert text in str(caught.value) and "\n" not in str(caught.value), caught.value


def test_check_is_content_with_what_is_right():
    """With weights of 0, few possibilities, and mistakes of variables that are not active."""
    active = js.successors.bit_sets.pack(np.asarray([[False, True, True]] * 2))
    js.successors.check(tabled([(1, 1, 0), (2, 3, 0)], [4, 0, 2]), None, STATES)
    js.successors.check(tabled([(0, 0, np.nan)], [9, 4, 4]), None, STATES, active)
    with pytest.raises(ValueError, match="makes a difference to variable 2 in state 1"):
        two = js.successors.bit_sets.pack(np.asarray([[True, False, True], [False, True, True]]))
        js.successors.check(tabled(sight=1), None, STATES, two)


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


def test_an_error_of_a_heuristic_reaches_the_user():
    """As it was raised, before anything is compiled."""

    def rate(self, *args):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        js.successors.generate(0, with_fault(rate=rate), None, STATES)


def test_side_effects_of_a_hook_happen_when_it_is_traced():
    """Not for each state or variable; and they change no result."""
    calls = []

    def before_variable(self, problem, state, variable, where):
        calls.append(len(calls))
        return state

    heuristic = with_fault(before_variable=before_variable)
    (first, _), num_calls = drawn(heuristic), len(calls)
    assert 0 < num_calls < 64
    (again, _), (plain, _) = drawn(heuristic), drawn(with_fault())
    np.testing.assert_array_equal(first, plain)
    np.testing.assert_array_equal(again, plain)


def test_too_much_memory_is_refused_with_the_sizes(monkeypatch):
    """Before anything is allocated: of that many states there are only the shapes."""
    heuristic = parts.table(np.ones((3, 1000), np.int64))
    states = parts.states(64, 3)
    needed = js.successors.memory_estimate(
        heuristic, parts.ALONE, states, num_successors=2**20, implementation="xla"
    )
    monkeypatch.setattr(memory_use.capacity, "free_bytes", lambda device: needed - 1)
    text = (
        f"64 states with 1048576 successors each take {needed / 2**30:.1f} GiB, and"
        f" {(needed - 1) / 2**30:.1f} GiB are free on"
    )
    refuses(
        monkeypatch,
        MemoryError,
        text,
        lambda: js.successors.generate(
            0,
            heuristic,
            parts.ALONE,
            states,
            num_successors=2**20,
            ratings="stored",
            implementation="xla",
        ),
    )
