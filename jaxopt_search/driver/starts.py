"""Start solutions of a user's own: checked, and one of them spread over all searches."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxopt_search import capabilities
from jaxopt_search.backends import random
from jaxopt_search.checks import plain_array
from jaxopt_search.guards import spaces
from jaxopt_search.problems.finite import vector
from jaxopt_search.types import Problem, Solution


class First(NamedTuple):
    """Start solutions of the first searches; the others start at random. For the solvers.

    Attributes:
      number: how many there are.
      build: returns them, with a leading axis; it is called while programs compile.
    """

    number: int
    build: Callable[[], np.ndarray]


class Starts(NamedTuple):
    """Checked start solutions.

    Attributes:
      solutions: one for each search, with a leading axis, or one for all; or some for the first
        searches. Of some that are still to be built, their shapes.
      is_one: whether it is one for all.
      build: returns those that are still to be built; else None.
    """

    solutions: Any
    is_one: bool
    build: Callable[[], Any] | None = None

    def built(self) -> "Starts":
        """Returns the start solutions, all there."""
        return self if self.build is None else Starts(self.build(), self.is_one)


def check_starts(problem: Problem, shape: Any, num_searches: int, initial: Any) -> Starts:
    """Returns what `solve` was given as `initial`.

    Args:
      shape: of one solution.

    Raises:
      ValueError, TypeError: if it does not hold solutions of the problem, or as many as needed.
    """
    check = check_of(problem)
    if isinstance(initial, First):
        assert check is not None
        return _to_build(shape, min(initial.number, num_searches), initial.build, check)
    starts = _checked_arrays(shape, initial) if check is None else _checked_rows(check, initial)
    if not starts.is_one:
        found = len(jax.tree.leaves(starts.solutions)[0])
        if found != num_searches:
            raise ValueError(f"initial holds {found} solutions, expected {num_searches}")
    return starts


def _to_build(
    shape: jax.ShapeDtypeStruct,
    number: int,
    build: Callable[[], np.ndarray],
    check: Callable[[Any, str], np.ndarray],
) -> Starts:
    @functools.cache  # processes that share a run compare what is built before they use it
    def checked() -> Any:
        return _checked_rows(check, build()[:number]).solutions

    return Starts(jax.ShapeDtypeStruct((number, *shape.shape), shape.dtype), False, checked)


def check_of(problem: Any) -> Callable[[Any, str], np.ndarray] | None:
    """Returns what checks one start solution, if there is such a thing."""
    if (original := capabilities.original(problem)) is not None:
        return original.check
    if spaces.has_domains(problem):
        return functools.partial(vector.check_vector, np.asarray(problem.domain_sizes))
    return None


def _checked_rows(check: Callable[[Any, str], np.ndarray], initial: Any) -> Starts:
    initial = plain_array(initial, "initial")
    if initial.ndim <= 1:
        return Starts(check(initial, "initial"), True)
    return Starts(np.array([check(row, f"initial[{i}]") for i, row in enumerate(initial)]), False)


def _checked_arrays(shape: Any, initial: Any) -> Starts:
    """Returns start solutions of a problem that has no check of its own."""
    if jax.tree_util.all_leaves([shape]):
        initial = plain_array(initial, "initial")
    elif isinstance(initial, list) and len(initial) == jax.tree.structure(shape).num_leaves:
        initial = jax.tree.unflatten(jax.tree.structure(shape), initial)  # as `load_best` has it
    if jax.tree.structure(initial) != jax.tree.structure(shape):
        raise ValueError(
            f"initial is {jax.tree.structure(initial)}, expected {jax.tree.structure(shape)} as"
            " problem.init returns"
        )
    first = jax.tree.leaves(initial)[0]
    is_one = np.ndim(first) <= jax.tree.leaves(shape)[0].ndim
    lead = () if is_one else (len(first),)
    return Starts(
        jax.tree.map(lambda leaf, one: _checked_leaf(leaf, lead, one), initial, shape), is_one
    )


def _checked_leaf(leaf: Any, lead: tuple[int, ...], one: jax.ShapeDtypeStruct) -> np.ndarray:
    """Returns a part of a user's start solutions with the dtype of a random one."""
    array = plain_array(leaf, "initial")
    if array.shape != lead + one.shape or not np.can_cast(array.dtype, one.dtype, "same_kind"):
        raise ValueError(
            f"initial has a part of shape {array.shape} and dtype {array.dtype}, expected"
            f" {lead + one.shape} and {one.dtype}"
        )
    converted = array.astype(one.dtype)
    if one.dtype.kind in "iu" and (lost := array[converted != array]).size:
        raise ValueError(f"initial holds {lost[0]}, expected what {one.dtype} can hold")
    return converted


def shapes(starts: Starts, num_searches: int) -> Any:
    """Returns the shapes of what `for_all` returns."""
    lead = (num_searches,) if starts.is_one else ()
    return jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct(lead + leaf.shape, leaf.dtype), starts.solutions
    )


def for_all(problem: Problem, key: random.Key, starts: Starts, num_searches: int) -> Solution:
    """Returns start solutions for the searches, leaves [num_searches, ...] or less, on the device.

    Of one for all, the first search gets just that, and the others solutions close by.
    """
    solutions = jax.tree.map(jax.device_put, starts.solutions)
    return _around(problem, key, solutions, num_searches) if starts.is_one else solutions


def _around(problem: Problem, key: random.Key, one: Solution, num_searches: int) -> Solution:
    index = lax.iota(jnp.uint32, num_searches)

    def start(index: jax.Array) -> Solution:
        moved = capabilities.perturbed(problem, random.start_key(key, index), one)
        return jax.tree.map(lambda a, b: jnp.where(index == 0, a, b), one, moved)

    return jax.vmap(start)(index)
