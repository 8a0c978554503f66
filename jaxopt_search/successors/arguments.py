"""What a user hands in: looked at once for each kind, on the host, before anything is compiled."""

import functools
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxopt_search import capabilities
from jaxopt_search.backends import bit_sets
from jaxopt_search.checks import MAX_INT32
from jaxopt_search.successors import heuristics
from jaxopt_search.successors.heuristics import HOOKS, Aggregate

_NEEDED = ("num_variables", "max_possibilities", "rate", "weight", "assign")

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
      TypeError: for what lacks what a heuristic must have, or is no pytree.
      ValueError: if there is none.
    """
    types = tuple(heuristic) if type(heuristic) in (tuple, list) else (heuristic,)
    if not types:
        raise ValueError("heuristic is empty, expected a LocalHeuristic or several")
    for one in types:
        if isinstance(one, type):
            raise TypeError(f"heuristic is the class {one.__name__}, expected an object of it")
        kind = type(one).__name__
        for needed in capabilities.missing(one, _NEEDED):
            raise TypeError(f"heuristic is a {kind} without {needed}, expected a LocalHeuristic")
        if jax.tree_util.all_leaves([one]):
            raise TypeError(
                f"heuristic is a {kind}, expected a pytree; decorate the class with"
                " jax.tree_util.register_static or jaxopt_search.pytree"
            )
    return types


def kind_of(types: tuple[Any, ...], problem: Any, states: Any) -> Kind:
    """Returns the kind of what is handed in."""
    leaves, structure = jax.tree.flatten((types, problem, states))
    return structure, tuple(map(_shape_and_dtype, leaves))


def _shape_and_dtype(leaf: Any) -> tuple[tuple[int, ...], Any]:
    if isinstance(leaf, jax.Array):
        return leaf.shape, leaf.dtype
    return np.shape(leaf), jnp.result_type(leaf)


@functools.lru_cache(maxsize=256)
def look_at(kind: Kind) -> Shapes:
    """Returns the shapes of what is handed in, if it is as it should be.

    Raises:
      TypeError: naming a function of a heuristic, and what it returns.
      ValueError: for a number that is out of range, or states of different lengths.
    """
    structure, leaves = kind
    shapes = (jax.ShapeDtypeStruct(*leaf) for leaf in leaves)
    types, problem, states = structure.unflatten(shapes)
    found = [leaf.shape for leaf in jax.tree.leaves(states)]
    if len({shape[:1] for shape in found}) != 1 or found[0][:1] in ((), (0,)):
        raise ValueError(f"states has leaves of shapes {found}, expected [X, ...] each, X > 0")
    state = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), states)
    for one in types:
        _check_numbers(one)
        jax.eval_shape(_try, one, problem, state)
    return Shapes(types, problem, state, found[0][0])


def as_active(active: Any, types: tuple[Any, ...], num_states: int) -> tuple[jax.Array, ...] | None:
    """Returns the sets of active variables of all types, or None."""
    if active is None:
        return None
    active = tuple(active) if type(active) in (tuple, list) else (active,)
    if len(active) != len(types):
        raise ValueError(f"active has {len(active)} sets, expected one for each of {len(types)}")
    for own, one in zip(active, types, strict=True):
        shape = num_states, bit_sets.num_words(one.num_variables)
        kind, found = jnp.result_type(own), jnp.shape(own)
        if kind != jnp.uint32 or found not in (shape, shape[1:]):
            raise ValueError(
                f"active is {kind}{list(found)} for {one.num_variables} variables, expected"
                f" uint32{list(shape)}; see bit_sets.pack"
            )
    return active


def _check_numbers(heuristic: Any) -> None:
    kind, aggregates = type(heuristic).__name__, heuristics.aggregates_as_given(heuristic)
    numbers: tuple[tuple[str, Any, int], ...] = (
        ("num_variables", heuristic.num_variables, MAX_INT32),
        ("max_possibilities", heuristic.max_possibilities, heuristics.MAX_POSSIBILITIES),
        ("max_weight", heuristics.max_weight(heuristic), heuristics.MAX_WORD),
    )
    for name, number, most in numbers:
        is_integer = isinstance(number, int | np.integer) and not isinstance(number, bool)
        if not is_integer or not 1 <= number <= most:
            raise ValueError(f"{kind}.{name} is {number!r}, expected an integer from 1 to {most}")
    for name in ("before_variable", "after_variable", "active_now"):
        if heuristics.is_independent(heuristic) and heuristics.has_hook(heuristic, name):
            raise ValueError(
                f"{kind}.independent is True beside {name}, expected one of the two: independent"
                " variables are drawn all at once, before any has its turn"
            )
    if not isinstance(aggregates, tuple | list):
        raise TypeError(f"{kind}.aggregates is a {type(aggregates).__name__}, expected a tuple")
    for one in aggregates:
        if not isinstance(one, Aggregate):
            raise TypeError(f"{kind}.aggregates holds a {type(one).__name__}, expected Aggregates")


def _try(heuristic: Any, problem: Any, state: Any) -> None:
    """Calls each function of a heuristic once, for the dtypes and shapes that it returns."""
    kind, variable, where = type(heuristic).__name__, jnp.int32(0), jnp.bool_(True)
    count = heuristics.counting(heuristic)
    if not (callable(count) or capabilities.missing(heuristic, ("num_possibilities",))):
        raise TypeError(f"{kind}.num_possibilities is no function; see max_possibilities")
    if count is not None:
        number: Any = count(problem, state, variable)
        if np.shape(number) or jnp.result_type(number) != jnp.int32:
            raise TypeError(f"{kind}.num_possibilities returns {_kind(number)}, expected int32[]")
    possibility = lax.iota(jnp.int32, heuristics.num_lanes(heuristic))
    rating = heuristic.rate(problem, state, variable, possibility)
    _check_lanes(f"{kind}.rate", rating, possibility.shape)
    folded = []
    for place, aggregate in enumerate(heuristics.aggregates_of(heuristic)):
        value = rating if aggregate.of is None else aggregate.of(rating)
        _check_lanes(f"{kind}.aggregates[{place}].of", value, possibility.shape)
        neutral = jax.tree.map(jnp.asarray, aggregate.neutral)
        wanted = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((), leaf.dtype), value)
        _check_alike(f"{kind}.aggregates[{place}].neutral", neutral, wanted)
        combined = aggregate.combine(value, value)
        _check_alike(f"{kind}.aggregates[{place}].combine", combined, value)
        folded.append(neutral)
    weight = heuristic.weight(problem, rating, tuple(folded))
    if not isinstance(weight, jax.Array | np.ndarray):
        raise TypeError(f"{kind}.weight returns a {type(weight).__name__}, expected an array")
    _check_lanes(f"{kind}.weight", weight, possibility.shape)
    if weight.dtype not in (jnp.int32, jnp.uint32):
        raise TypeError(f"{kind}.weight returns {_kind(weight)}, expected int32 or uint32")
    after = heuristic.assign(problem, state, variable, jnp.int32(0), where)
    _check_alike(f"{kind}.assign", after, state)
    for name, arguments in hooks(variable, where):
        after = heuristics.hook(heuristic, name, problem, state, *arguments)
        _check_alike(f"{kind}.{name}", after, state)
    left = bit_sets.everything(heuristic.num_variables)
    active = heuristics.active_now(heuristic, problem, state, left)
    if jnp.shape(active) != left.shape or jnp.result_type(active) != left.dtype:
        raise TypeError(f"{kind}.active_now returns {_kind(active)}, expected {_kind(left)}")


def hooks(variable: jax.Array, where: jax.Array) -> list[tuple[str, tuple[jax.Array, ...]]]:
    """Returns the names of all hooks, each with its arguments after the state."""
    of_state, of_variable = (where,), (variable, where)
    return [(name, of_state if name.endswith("state") else of_variable) for name in HOOKS]


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
            raise TypeError(f"{name} returns {_kind(leaf)}, expected integers, floats or bools")


def _check_alike(name: str, tree: Any, like: Any) -> None:
    if jax.tree.structure(tree) != jax.tree.structure(like):
        raise TypeError(f"{name} returns another pytree than it was given")
    for (path, new), old in zip(
        jax.tree_util.tree_leaves_with_path(tree), jax.tree.leaves(like), strict=True
    ):
        if jnp.shape(new) != jnp.shape(old) or jnp.result_type(new) != jnp.result_type(old):
            raise TypeError(
                f"{name} returns {_kind(new)} at state{jax.tree_util.keystr(path)}, expected"
                f" {_kind(old)}"
            )


def _kind(leaf: Any) -> str:
    return f"{jnp.result_type(leaf)}{list(jnp.shape(leaf))}"
