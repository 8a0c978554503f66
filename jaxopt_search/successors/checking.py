"""Whether heuristics, states and what else a user hands in are as they should be.

Shapes and dtypes are checked once for each kind, on the host, before anything is compiled. `check`
is a debug mode that also looks at values.
"""

import functools
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxopt_search.backends import bit_sets, random
from jaxopt_search.checks import MAX_INT32
from jaxopt_search.contracts import check_alike, check_part, kind_of_array
from jaxopt_search.successors import algorithm, heuristics
from jaxopt_search.successors.algorithm import Course, Variables
from jaxopt_search.successors.heuristics import HOOKS, Aggregate, LocalHeuristic

Kind: TypeAlias = tuple[Any, tuple[Any, ...]]
"""The structure of heuristics, problem and states, and the shapes and dtypes of the leaves."""


class Shapes(NamedTuple):
    """The shapes of what a user hands in, as `jax.ShapeDtypeStruct`s.

    Attributes:
      types: the heuristics, one for each type of variables.
      problem: what they read.
      state: one state.
      num_states: how many there are.
    """

    types: tuple[Any, ...]
    problem: Any
    state: Any
    num_states: int


def as_types(heuristic: Any) -> tuple[Any, ...]:
    """Returns the heuristics of all types of variables.

    Raises:
      TypeError: for what is no heuristic, or no pytree.
      ValueError: if there is none.
    """
    types = tuple(heuristic) if type(heuristic) in (tuple, list) else (heuristic,)
    if not types:
        raise ValueError("heuristic is empty, expected a LocalHeuristic or several")
    for one in types:
        check_part(one, LocalHeuristic, "heuristic")
    return types


def as_active(active: Any, types: tuple[Any, ...], num_states: int) -> tuple[jax.Array, ...] | None:
    """Returns the sets of active variables of all types, or None."""
    if active is None:
        return None
    active = tuple(active) if type(active) in (tuple, list) else (active,)
    if len(active) != len(types):
        raise ValueError(f"active has {len(active)} sets, expected one for each of {len(types)}")
    for own, one in zip(active, types, strict=True):
        shape = num_states, bit_sets.num_words(one.num_variables)
        if jnp.result_type(own) != jnp.uint32 or jnp.shape(own) not in (shape, shape[1:]):
            raise ValueError(
                f"active is {kind_of_array(own)} for {one.num_variables} variables, expected"
                f" uint32{list(shape)}; see bit_sets.pack"
            )
    return active


def kind_of(types: tuple[Any, ...], problem: Any, states: Any) -> Kind:
    """Returns the kind of what is handed in."""
    leaves, structure = jax.tree.flatten((types, problem, states))
    return structure, tuple((np.shape(leaf), jnp.result_type(leaf)) for leaf in leaves)


@functools.lru_cache(maxsize=256)
def look_at(kind: Kind) -> Shapes:
    """Returns the shapes of what is handed in, if it is as it should be.

    Raises:
      TypeError: naming a function of a heuristic, and what it returns.
      ValueError: for a number that is out of range, or states of different lengths.
    """
    structure, leaves = kind
    types, problem, states = structure.unflatten(jax.ShapeDtypeStruct(*leaf) for leaf in leaves)
    found = [leaf.shape for leaf in jax.tree.leaves(states)]
    if len({shape[:1] for shape in found}) != 1 or found[0][:1] in ((), (0,)):
        raise ValueError(f"states has leaves of shapes {found}, expected [X, ...] each, X > 0")
    state = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), states)
    for one in types:
        _check_numbers(one)
        jax.eval_shape(_check_functions, one, problem, state)
    return Shapes(types, problem, state, found[0][0])


def _check_numbers(heuristic: Any) -> None:
    kind = type(heuristic).__name__
    for name, most in (
        ("num_variables", MAX_INT32),
        ("max_possibilities", heuristics.MAX_POSSIBILITIES),
        ("max_weight", heuristics.MAX_WORD),
    ):
        number: Any = getattr(heuristic, name, None)
        # NumPy's might wrap.
        if type(number) is not int or not 1 <= number <= most:
            expected = f"an integer of Python from 1 to {most}"
            raise ValueError(f"{kind}.{name} is {number!r}, expected {expected}")
    for name in ("before_variable", "after_variable", "active_now"):
        if heuristic.independent and getattr(heuristic, name) is not None:
            raise ValueError(
                f"{kind}.independent is True beside {name}, expected one of the two: independent"
                " variables are drawn all at once, before any has its turn"
            )
    aggregates = heuristic.aggregates
    is_tuple = isinstance(aggregates, tuple | list)
    if not is_tuple or not all(isinstance(one, Aggregate) for one in aggregates):
        raise TypeError(f"{kind}.aggregates is {aggregates!r:.80}, expected a tuple of Aggregates")


def _check_functions(heuristic: Any, problem: Any, state: Any) -> None:
    """Calls each function of a heuristic once, for the dtypes and shapes that it returns."""
    kind, variable, where = type(heuristic).__name__, jnp.int32(0), jnp.bool_(True)
    count = heuristic.num_possibilities
    if count is not None and not callable(count):
        raise TypeError(f"{kind}.num_possibilities is no function; see max_possibilities")
    if count is not None:
        number = count(problem, state, variable)
        check_alike(f"{kind}.num_possibilities", number, variable)
    possibility = lax.iota(jnp.int32, heuristics.lanes_and_blocks(heuristic)[0])
    rating = heuristic.rate(problem, state, variable, possibility)
    _check_lanes(f"{kind}.rate", rating, possibility.shape)
    folded: list[Any] = []
    for place, aggregate in enumerate(heuristic.aggregates):
        name = f"{kind}.aggregates[{place}]"
        value = heuristics.values(aggregate, rating, None)
        _check_lanes(f"{name}.of", value, possibility.shape)
        folded.append(jax.tree.map(jnp.asarray, aggregate.neutral))
        scalars = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((), leaf.dtype), value)
        check_alike(f"{name}.neutral", folded[-1], scalars)
        check_alike(f"{name}.combine", aggregate.combine(value, value), value)
    weight = heuristic.weight(problem, rating, tuple(folded))
    _check_lanes(f"{kind}.weight", weight, possibility.shape)
    if jnp.result_type(weight) not in (jnp.int32, jnp.uint32):
        raise TypeError(f"{kind}.weight returns {kind_of_array(weight)}, expected int32 or uint32")
    after = heuristic.assign(problem, state, variable, jnp.int32(0), where)
    check_alike(f"{kind}.assign", after, state)
    for name, arguments in _hooks(variable, where):
        after = heuristics.hook(heuristic, name, problem, state, *arguments)
        check_alike(f"{kind}.{name}", after, state)
    left = bit_sets.everything(heuristic.num_variables)
    active = heuristics.active_now(heuristic, problem, state, left)
    check_alike(f"{kind}.active_now", active, left)


def _hooks(variable: jax.Array, where: jax.Array) -> list[tuple[str, tuple[jax.Array, ...]]]:
    """Returns the names of all hooks, each with its arguments after the state."""
    return [(name, (where,) if name.endswith("state") else (variable, where)) for name in HOOKS]


def _check_lanes(name: str, tree: Any, shape: tuple[int, ...]) -> None:
    leaves = jax.tree.leaves(tree)
    if not leaves:
        raise TypeError(f"{name} returns no array, expected one number for each possibility")
    for leaf in leaves:
        if jnp.shape(leaf) != shape:
            raise TypeError(
                f"{name} returns shape {jnp.shape(leaf)} for {shape[0]} possibilities, expected"
                f" {shape}"
            )
        if not hasattr(leaf, "dtype") or jnp.issubdtype(leaf.dtype, jnp.complexfloating):
            raise TypeError(
                f"{name} returns {kind_of_array(leaf)}, expected integers, floats or bools"
            )


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
    have the weights that they had.

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
      ... class HighestFirst(js.successors.LocalHeuristic):
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
    types = as_types(heuristic)
    num_states = look_at(kind_of(types, problem, states)).num_states
    sets = as_active(active, types, num_states)
    for place in range(num_states):
        state = jax.tree.map(lambda leaf, place=place: jnp.asarray(leaf)[place], states)
        for number, one in enumerate(types):
            own = bit_sets.full(one.num_variables) if sets is None else sets[number]
            own = jnp.broadcast_to(own, (num_states, np.shape(own)[-1]))[place]
            state = _check_type(one, problem, state, own, f"state {place}")


def _in_fixed_order(heuristic: Any, problem: Any) -> Variables:
    return Variables(heuristic, problem, 0, "fixed", "stored")


def _check_type(heuristic: Any, problem: Any, state: Any, active: jax.Array, where: str) -> Any:
    """Returns a state after its variables of a type."""
    of, is_independent = _in_fixed_order(heuristic, problem), heuristic.independent
    state = algorithm.open_state(of, state)
    course = algorithm.begin(of, state, active)
    is_active = _is_in(course.left, heuristic)
    weights = _check_state(heuristic, problem, state, is_active, where)
    while (is_left := _is_in(course.left, heuristic)).any():
        variable, ways = int(is_left.argmax()), []
        for value in np.flatnonzero(weights[variable]).tolist() or [-1]:
            after = _turn(heuristic, problem, course, np.int32(value))
            seen = is_active if is_independent else _is_in(after.left, heuristic)
            new = _check_state(heuristic, problem, after.state, seen, where)
            ways.append((after, new))
            is_changed = is_independent & (new != weights).any(axis=1)
            is_changed[variable] = False
            for other in np.flatnonzero(is_changed):
                raise ValueError(
                    f"{type(heuristic).__name__} is declared independent, but possibility {value}"
                    f" of variable {variable} changes the weights of variable {other} in {where}"
                )
        course, weights = ways[variable % len(ways)]
    return heuristics.hook(heuristic, "after_state", problem, course.state, jnp.bool_(True))


def _is_in(bits: jax.Array, heuristic: Any) -> np.ndarray:
    """Returns which variables are in a set, [n] bool."""
    return np.asarray(bit_sets.unpack(bits.reshape(-1), heuristic.num_variables))


@jax.jit
def _turn(heuristic: Any, problem: Any, course: Course, value: jax.Array) -> Course:
    """Returns the course after the next variable, which is given a value; none if it is -1."""
    of, drawn = _in_fixed_order(heuristic, problem), jnp.full(heuristic.num_variables, value)
    return algorithm.turn(of, random.as_key(0), drawn, jnp.int32(0), course)


def _check_state(
    heuristic: Any, problem: Any, state: Any, is_active: np.ndarray, where: str
) -> np.ndarray:
    """Returns the weights of all possibilities, [n, R], 0 for what is forbidden."""
    kind, most = type(heuristic).__name__, heuristic.max_possibilities
    seen = jax.device_get(_look(heuristic, problem, state))
    is_there = is_active[:, None] & (np.arange(most) < seen.number[:, None])
    weights, elsewhere = seen.weights.astype(np.int64), "another state where `where` is False"
    is_out, is_above = (seen.number < 0) | (seen.number > most), weights > heuristic.max_weight
    found = [
        ("num_possibilities", is_out, lambda at: f"{seen.number[at]}, expected 0 to {most}"),
        *((name, is_wrong, lambda at: elsewhere) for name, is_wrong in seen.hooks_change.items()),
        ("rate", ~seen.is_rated, lambda at: "a NaN, which forbids it"),
        ("weight", weights < 0, lambda at: f"{weights[at]}, expected 0 or more"),
        ("weight", is_above, lambda at: f"{weights[at]}, above its max_weight"),
        ("assign", seen.changes, lambda at: elsewhere),
    ]
    for name, is_wrong, what in found:  # of variables, [n], or of their possibilities, [n, R]
        counts = is_active if is_wrong.ndim == 1 else is_there
        for at in map(tuple, np.argwhere(is_wrong & counts).tolist()):
            of = "" if len(at) == 1 else f"possibility {at[1]} of "
            text = f"returns {what(at)}, for {of}variable {at[0]} in {where}"
            raise ValueError(f"{kind}.{name} {text}")
    return np.where(is_there, weights, 0)


@jax.jit
def _look(heuristic: Any, problem: Any, given: Any) -> _Seen:
    possibilities = lax.iota(jnp.int32, heuristic.max_possibilities)

    def look_at(variable: jax.Array) -> _Seen:
        true, never = jnp.bool_(True), jnp.bool_(False)
        state = heuristics.hook(heuristic, "before_variable", problem, given, variable, true)
        number = jnp.int32(heuristic.max_possibilities)
        if (count := heuristic.num_possibilities) is not None:
            number = count(problem, state, variable)
        of = _in_fixed_order(heuristic, problem)
        rating, aggregates = algorithm.rate_all(of, state, variable)
        weights = heuristic.weight(problem, rating, aggregates)
        rated: Any = heuristics.only_rated(rating, jnp.ones_like(possibilities, bool))

        def changes(possibility: jax.Array) -> jax.Array:
            after = heuristic.assign(problem, state, variable, possibility, never)
            return _differs(after, state)

        hooks_change = {
            name: _differs(heuristics.hook(heuristic, name, problem, state, *further), state)
            for name, further in _hooks(variable, never)
        }
        changed = jax.vmap(changes)(possibilities)
        return _Seen(jnp.asarray(number), weights, rated, changed, hooks_change)

    return jax.vmap(look_at)(lax.iota(jnp.int32, heuristic.num_variables))


def _differs(tree: Any, other: Any) -> jax.Array:
    """Returns whether pytrees differ, [] bool; NaNs are alike."""
    is_same = functools.partial(jnp.array_equal, equal_nan=True)
    return ~jnp.stack(jax.tree.leaves(jax.tree.map(is_same, tree, other))).all()
