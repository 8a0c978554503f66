"""What the checks share: drawing, comparing, and saying what is wrong where."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxopt_search.backends import random
from jaxopt_search.backends.costs import cost_of
from jaxopt_search.neighborhoods.full_evaluation import FullEvaluation

Meaning = Callable[[Any], Any]
"""Maps solutions with leading axes, NumPy arrays, to what they mean: equal where they do."""


class Solutions(NamedTuple):
    """What is known of a problem's solutions.

    Attributes:
      are_in_space: maps solutions with one leading axis to which of them are some.
      meaning: see `Meaning`.
      tolerance: by what share of the larger one float costs may differ; None where all is exact.
    """

    are_in_space: Callable[[Any], np.ndarray]
    meaning: Meaning
    tolerance: float | None


def look_at(
    problem: Any, starts: Any, *, meaning: Meaning | None, tolerance: float, is_solution: Any
) -> Solutions:
    """Returns what is known about a problem's solutions, given some: `starts`."""
    cost = jax.eval_shape(functools.partial(cost_of, problem), of_first(starts))
    is_exact = jnp.issubdtype(cost.dtype, jnp.integer)
    return Solutions(
        _in_space(problem, starts, is_solution),
        (lambda solution: solution) if meaning is None else meaning,
        None if is_exact else tolerance,
    )


def _in_space(problem: Any, starts: Any, is_solution: Any) -> Callable[[Any], np.ndarray]:
    """Returns the test of solutions: the user's own, or one by the problem's space."""
    if is_solution is not None:
        return lambda solutions: np.array(
            [bool(is_solution(one)) for one in _unstacked(solutions)], bool
        )
    if problem.space == "vector":
        sizes = np.asarray(problem.domain_sizes)
        return lambda x: ((x >= 0) & (x < sizes)).all(axis=1)
    if problem.space == "permutation":
        return _are_permutations
    shapes = jax.tree.map(lambda leaf: (leaf.shape[1:], leaf.dtype), starts)

    def has_shape(solutions: Any) -> np.ndarray:
        found = jax.tree.map(lambda leaf: (leaf.shape[1:], leaf.dtype), solutions)
        return np.full(len(jax.tree.leaves(solutions)[0]), found == shapes)

    return has_shape


def _are_permutations(solutions: Any) -> np.ndarray:
    is_array = isinstance(solutions, np.ndarray | jax.Array) and solutions.ndim == 2
    if not is_array or solutions.dtype != np.int32:
        return np.zeros(len(jax.tree.leaves(solutions)[0]), bool)
    x = np.asarray(solutions)
    return (np.sort(x, axis=1) == np.arange(x.shape[1])).all(axis=1)


def _unstacked(tree: Any) -> list[Any]:
    number = len(jax.tree.leaves(tree)[0])
    return [jax.tree.map(lambda leaf, i=i: leaf[i], tree) for i in range(number)]


def of_first(tree: Any) -> Any:
    """Returns the first entry along the leading axis of all leaves."""
    return jax.tree.map(lambda leaf: leaf[0], tree)


@functools.partial(jax.jit, static_argnames=("number", "seed"))
def starts_of(problem: Any, number: int, seed: int) -> Any:
    """Returns random solutions, leaves [number, ...]."""
    return jax.vmap(problem.init)(start_keys(number, seed))


def start_keys(number: int, seed: int) -> jax.Array:
    """Returns the typed keys from which searches would start."""
    indices = jnp.arange(number, dtype=jnp.uint32)
    return jax.vmap(functools.partial(random.start_key, random.as_key(seed)))(indices)


def step_keys(number: int, seed: int) -> random.Key:
    """Returns the keys of the steps of searches, [number]."""
    indices = jnp.arange(number, dtype=jnp.uint32)
    return random.search_key(random.as_key(seed), indices, jnp.uint32(0))


def stream_at(key: random.Key, step: jax.Array) -> random.Stream:
    """Returns the random words of a search at a step, [] int32."""
    return random.Stream(key, step.astype(jnp.uint32), step)


def same_leaves(tree: Any, other: Any, tolerance: float | None = None, axes: int = 0) -> Any:
    """Returns for each leaf whether it is the same in both, [...] bool with the leading axes.

    Args:
      tree, other: pytrees of the same structure; leaves of the same shapes, NumPy arrays or not.
      tolerance: of floats, as a share of the largest number of the leaf; None for the same bits.
      axes: how many leading axes to keep.
    """

    def is_same(one: Any, two: Any) -> Any:
        xp = np if isinstance(one, np.ndarray) and isinstance(two, np.ndarray) else jnp
        same = (one == two) | ((one != one) & (two != two))
        if tolerance is not None and jnp.issubdtype(two.dtype, jnp.floating) and two.size:
            largest = xp.max(xp.where(xp.isfinite(two), xp.abs(two), 0), initial=1.0)
            with np.errstate(invalid="ignore"):
                same = same | (xp.abs(one - two) <= tolerance * largest)
        return same.all(axis=tuple(range(axes, same.ndim)))

    chex.assert_trees_all_equal_structs(tree, other)
    return jax.tree.map(is_same, tree, other)


def changes(after: np.ndarray, before: np.ndarray) -> np.ndarray:
    """Returns `after - before`, 0 from one infinite cost to another; integers may wrap."""
    with np.errstate(invalid="ignore", over="ignore"):
        return np.where(after == before, np.zeros_like(after), after - before)


def costs_agree(found: Any, expected: Any, scale: Any, tolerance: float | None) -> np.ndarray:
    """Returns where costs, or changes of costs of the size `scale`, agree; NumPy arrays."""
    found, expected = np.asarray(found), np.asarray(expected)
    with np.errstate(invalid="ignore"):
        same = (found == expected) | (np.isnan(found) & np.isnan(expected))
        if tolerance is not None:
            largest = np.maximum(np.where(np.isfinite(scale), np.abs(scale), 1), 1)
            same = same | (np.abs(found - expected) <= tolerance * largest)
    return same


def require(holds: Any, say: Callable[..., str]) -> None:
    """Raises an error where `holds`, an array of truth values, does not: at the first place.

    Args:
      say: maps the place's indices to what is wrong there.
    """
    holds = np.asarray(holds)
    if not holds.all():
        raise AssertionError(say(*map(int, np.argwhere(~holds)[0])))


def require_leaves(holds: Any, say: Callable[..., str]) -> None:
    """As `require`, of pytrees of truth values: `say` gets the name of a leaf, then indices."""
    for path, leaf in jax.tree_util.tree_leaves_with_path(holds):
        require(leaf, functools.partial(say, jax.tree_util.keystr(path)))


def differs_in_meaning(one: Any, other: Any, meaning: Meaning, axes: int = 1) -> np.ndarray:
    """Returns which solutions mean something different, [...] bool with the leading axes."""
    one, other = (meaning(jax.tree.map(np.asarray, tree)) for tree in (one, other))
    return ~np.logical_and.reduce(
        [np.asarray(leaf) for leaf in jax.tree.leaves(same_leaves(one, other, axes=axes))]
    )


def as_sets(solutions: Any, meaning: Meaning) -> list[bytes]:
    """Returns something hashable for each solution, equal where they mean the same."""
    leaves = jax.tree.leaves(meaning(jax.tree.map(np.asarray, solutions)))
    return [
        b"".join(np.asarray(leaf[i]).tobytes() for leaf in leaves) for i in range(len(leaves[0]))
    ]


def at(tree: Any, *place: int) -> Any:
    """Returns an entry of all leaves as Python numbers and lists, to be shown."""
    return jax.tree.map(lambda leaf: np.asarray(leaf)[place].tolist(), tree)


def name_of(part: Any) -> str:
    """Returns the name of a part's class; of moves priced in full, the name of the moves."""
    return type(part.moves if isinstance(part, FullEvaluation) else part).__name__


def require_same_runs(runs: Sequence[tuple[str, Any]], what: str, is_exact: bool) -> None:
    """Raises an error if pytrees differ from the first one: in bits, or of floats in shapes.

    Args:
      runs: names and pytrees.
      what: begins the message.
      is_exact: whether costs are integers.
    """
    (name, expected), *others = runs
    expected = jax.device_get(expected)
    for other, found in others:
        message = f"{what} differ between {name!r} and {other!r}"
        found = jax.device_get(found)
        chex.assert_trees_all_equal_shapes_and_dtypes(expected, found, custom_message=message)
        if is_exact:
            chex.assert_trees_all_equal(expected, found, custom_message=message)
