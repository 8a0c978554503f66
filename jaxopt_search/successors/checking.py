"""A debug mode that looks for what a heuristic must not do, and says where it does it."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxopt_search.backends import bit_sets, random
from jaxopt_search.successors import arguments, heuristics, one_state
from jaxopt_search.successors.draw import Drawn, rate_all
from jaxopt_search.successors.one_state import Course, Type


class _Seen(NamedTuple):
    """What a heuristic says of each variable in a state, after its `before_variable`.

    Attributes:
      number: [n] of possibilities, as it says.
      weights: [n, R] as it says.
      is_rated: [n, R] whether the rating has no NaN.
      changes: [n, R] whether `assign` changes the state where it must not.
      hooks_change: [n] for each hook, whether it does.
    """

    number: jax.Array
    weights: jax.Array
    is_rated: jax.Array
    changes: jax.Array
    hooks_change: dict[str, jax.Array]


def check(heuristic: Any, problem: Any, states: Any, active: Any = None) -> None:
    """Looks for mistakes of heuristics in some states; slow, for small examples.

    Types and their active variables are taken in the fixed order, with all hooks. Each variable is
    given every value that is not forbidden, and after each, all that are left are rated, as if they
    came next; one of the values stays. Of an independent type, all other active variables must then
    have the weights that they had, and must be assigned to the same effect as before it.

    Args:
      heuristic, problem, states, active: as in `generate`.

    Raises:
      ValueError: for a negative weight, one above `max_weight`, a NaN in a rating, a number of
        possibilities out of range, an `assign` or a hook that writes where it must not, or
        variables that are declared independent and are not: with the state, the variable and the
        possibility. Else as `generate`.
      TypeError: as `generate`.

    Example:
      >>> import jaxopt_search as js
      >>> @jax.tree_util.register_static
      ... class HighestFirst:
      ...     num_variables, max_possibilities = 2, 3
      ...     def rate(self, problem, state, variable, possibility):
      ...         return possibility
      ...     def weight(self, problem, rating, aggregates):
      ...         return rating - 1
      ...     def assign(self, problem, state, variable, possibility, where):
      ...         return js.memory.store(state, variable, possibility, where)
      >>> check(HighestFirst(), None, jnp.zeros((1, 2), jnp.int32))
      Traceback (most recent call last):
        ...
      ValueError: HighestFirst.weight returns -1, expected 0 or more, ...
    """
    types = arguments.as_types(heuristic)
    num_states = arguments.look_at(arguments.kind_of(types, problem, states)).num_states
    sets = arguments.as_active(active, types, num_states)
    for place in range(num_states):
        state = jax.tree.map(lambda leaf, place=place: jnp.asarray(leaf)[place], states)
        for number, one in enumerate(types):
            own = bit_sets.full(one.num_variables) if sets is None else sets[number]
            own = jnp.broadcast_to(own, (num_states, np.shape(own)[-1]))[place]
            state = _check_type(one, problem, state, own, f"state {place}")


def _check_type(heuristic: Any, problem: Any, state: Any, active: jax.Array, where: str) -> Any:
    """Returns a state after its variables of a type."""
    kind, is_independent = Type(0, heuristic, "fixed"), heuristics.is_independent(heuristic)
    state = one_state.opened(kind, problem, state)
    course = one_state.begin(kind, problem, state, active)
    is_active = _is_in(course.left, heuristic)
    weights = _check_state(heuristic, problem, state, is_active, where)
    while (is_left := _is_in(course.left, heuristic)).any():
        variable, ways = int(is_left.argmax()), []
        choices = [np.flatnonzero(own).tolist() or [-1] for own in weights]
        for number, value in enumerate(choices[variable]):
            after = _turn(heuristic, problem, course, np.int32(value))
            seen = is_active if is_independent else _is_in(after.left, heuristic)
            new = _check_state(heuristic, problem, after.state, seen, where)
            ways.append((after, new))
            if is_independent:
                values = np.asarray([own[number % len(own)] for own in choices], np.int32)
                swapped = _order_matters(
                    heuristic, problem, course.state, np.int32(variable), values
                )
                is_wrong = is_active & ((new != weights).any(axis=1) | np.asarray(swapped))
                is_wrong[variable] = False
                for other in np.flatnonzero(is_wrong):
                    raise ValueError(
                        f"{type(heuristic).__name__} is declared independent, but possibility"
                        f" {value} of variable {variable} makes a difference to variable {other} in"
                        f" {where}"
                    )
        course, weights = ways[variable % len(ways)]
    return one_state.closed(kind, problem, course.state)


def _is_in(bits: jax.Array, heuristic: Any) -> np.ndarray:
    """Returns which variables are in a set, [n] bool."""
    return np.asarray(bit_sets.unpack(bits.reshape(-1), heuristic.num_variables))


@jax.jit
def _turn(heuristic: Any, problem: Any, course: Course, value: jax.Array) -> Course:
    """Returns the course after the next variable, which is given a value; none if it is -1."""

    def draw_one(state: Any, variable: jax.Array) -> Drawn:
        return Drawn(jnp.maximum(value, 0), value >= 0)

    kind, key = Type(0, heuristic, "fixed"), random.as_key(0)
    return one_state.step(kind, problem, key, draw_one, jnp.int32(0), course)


def _check_state(
    heuristic: Any, problem: Any, state: Any, is_active: np.ndarray, where: str
) -> np.ndarray:
    """Returns the weights of all possibilities, [n, R], 0 for what is forbidden."""
    kind, most = type(heuristic).__name__, heuristic.max_possibilities
    seen = jax.device_get(_look(heuristic, problem, state))
    for variable in np.flatnonzero(is_active & ((seen.number < 0) | (seen.number > most))):
        raise ValueError(
            f"{kind}.num_possibilities returns {seen.number[variable]} for variable {variable} in"
            f" {where}, expected 0 to max_possibilities, {most}"
        )
    for name, is_wrong in seen.hooks_change.items():
        for variable in np.flatnonzero(is_active & is_wrong):
            raise ValueError(
                f"{kind}.{name} returns another state where `where` is False, for variable"
                f" {variable} in {where}"
            )
    is_there = is_active[:, None] & (np.arange(most) < seen.number[:, None])
    weights = seen.weights.astype(np.int64)
    found = (
        (~seen.is_rated, "rate", lambda at: "a NaN, which forbids it"),
        (weights < 0, "weight", lambda at: f"{weights[at]}, expected 0 or more"),
        (
            weights > heuristics.max_weight(heuristic),
            "weight",
            lambda at: f"{weights[at]}, above its max_weight",
        ),
        (seen.changes, "assign", lambda at: "another state where `where` is False"),
    )
    for is_wrong, name, what in found:
        for variable, possibility in np.argwhere(is_wrong & is_there):
            raise ValueError(
                f"{kind}.{name} returns {what((variable, possibility))}, for possibility"
                f" {possibility} of variable {variable} in {where}"
            )
    return np.where(is_there, weights, 0)


@jax.jit
def _look(heuristic: Any, problem: Any, given: Any) -> _Seen:
    possibilities = lax.iota(jnp.int32, heuristic.max_possibilities)

    def look_at(variable: jax.Array) -> _Seen:
        true, never = jnp.bool_(True), jnp.bool_(False)
        state = heuristics.hook(heuristic, "before_variable", problem, given, variable, true)
        number = jnp.int32(heuristic.max_possibilities)
        if (count := heuristics.counting(heuristic)) is not None:
            number = count(problem, state, variable)
        rating, aggregates = rate_all(heuristic, problem, state, variable)
        weights = heuristic.weight(problem, rating, aggregates)
        rated = heuristics.only_rated(rating, None)
        if rated is None:
            rated = jnp.ones_like(possibilities, bool)
        assign = functools.partial(heuristic.assign, problem, state, variable)
        after = jax.vmap(lambda possibility: assign(possibility, never))(possibilities)
        hooks_change = {}
        for name, further in arguments.hooks(variable, never):
            after_hook = heuristics.hook(heuristic, name, problem, state, *further)
            hooks_change[name] = _differs(after_hook, state, False)
        changes = _differs(after, state, True)
        return _Seen(jnp.asarray(number), weights, rated, changes, hooks_change)

    return jax.vmap(look_at)(lax.iota(jnp.int32, heuristic.num_variables))


@jax.jit
def _order_matters(
    heuristic: Any, problem: Any, state: Any, variable: jax.Array, values: jax.Array
) -> jax.Array:
    """Returns whether it matters which of two variables comes first, [n] for each other one."""

    def assign(state: Any, variable: jax.Array) -> Any:
        value, name = values[variable], "could_not_assign"
        possibility = jnp.maximum(value, 0)
        state = heuristic.assign(problem, state, variable, possibility, value >= 0)
        return heuristics.hook(heuristic, name, problem, state, variable, value < 0)

    def both_ways(other: jax.Array) -> jax.Array:
        first = assign(assign(state, variable), other)
        return _differs(first, assign(assign(state, other), variable), False)

    return jax.vmap(both_ways)(lax.iota(jnp.int32, heuristic.num_variables))


def _differs(tree: Any, other: Any, has_axis: bool) -> jax.Array:
    """Returns whether pytrees differ; of each entry, if the first one has an axis more."""
    found = []
    for leaf, like in zip(jax.tree.leaves(tree), jax.tree.leaves(other), strict=True):
        like = jnp.broadcast_to(like, leaf.shape) if not has_axis else like[None]
        like = jnp.broadcast_to(like, leaf.shape)
        is_same = (like == leaf) | ((like != like) & (leaf != leaf))
        axes = tuple(range(int(has_axis), leaf.ndim))
        found.append(~is_same.all(axis=axes))
    return functools.reduce(jnp.logical_or, found)
