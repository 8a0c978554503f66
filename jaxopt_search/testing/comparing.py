"""What the checks share: drawing, comparing, and saying what is wrong where."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

import jaxopt_search
from jaxopt_search.backends import random
from jaxopt_search.backends.costs import cost_of
from jaxopt_search.neighborhoods.full_evaluation import FullEvaluation

Meaning = Callable[[Any], Any]
"""Maps solutions with leading axes, NumPy arrays, to what they mean: equal where they do."""


class Solutions(NamedTuple):
    """What is known of a problem's solutions.

    Attributes:
      problem: whose they are.
      some: such solutions, with one leading axis.
      is_solution: the user's own test of one solution; None for one by the problem's space.
      meaning: see `Meaning`; None where different solutions mean something different.
      tolerance: by what share of the larger one float costs may differ; None where all is exact.
    """

    problem: Any
    some: Any
    is_solution: Any = None
    meaning: Meaning | None = None
    tolerance: float | None = None

    def are_in_space(self, solutions: Any, axes: int = 1) -> np.ndarray:
        """Returns which solutions, with so many leading axes, are some."""
        shape, space = jax.tree.leaves(solutions)[0].shape[:axes], self.problem.space
        if self.is_solution is not None:
            places = np.ndindex(shape)
            holds = [bool(self.is_solution(part_of(solutions, *place))) for place in places]
            return np.array(holds, bool).reshape(shape)

        def kinds(tree: Any, axes: int) -> Any:
            return jax.tree.map(lambda leaf: (leaf.shape[axes:], leaf.dtype), tree)

        has_kinds = kinds(solutions, axes) == kinds(self.some, 1)
        if space is None or not has_kinds:
            return np.full(shape, has_kinds)
        x = np.asarray(solutions)
        if space == "vector":
            return np.all((x >= 0) & (x < np.asarray(self.problem.domain_sizes)), axis=-1)
        return np.all(np.sort(x, axis=-1) == np.arange(x.shape[-1]), axis=-1)

    def meanings(self, solutions: Any) -> Any:
        """Returns what solutions mean, leaves that are NumPy arrays with the same leading axes."""
        solutions = jax.tree.map(np.asarray, solutions)
        return solutions if self.meaning is None else self.meaning(solutions)

    def differ(self, one: Any, other: Any, axes: int = 1) -> np.ndarray:
        """Returns which solutions mean something different, [...] bool with the leading axes."""
        same = same_leaves(self.meanings(one), self.meanings(other), axes=axes)
        return ~np.logical_and.reduce(jax.tree.leaves(same))

    def as_set(self, solutions: Any) -> list[bytes]:
        """Returns something hashable for each solution, equal where they mean the same."""
        leaves = jax.tree.leaves(self.meanings(solutions))
        return [b"".join(part.tobytes() for part in one) for one in zip(*leaves, strict=True)]


@dataclasses.dataclass(frozen=True)
class Laws:
    """Checks of a part at many places at once, such as the steps of walks.

    A law that fails is an error that names it, the first place where it fails, and what is there.

    Attributes:
      part: its name.
      known: about the solutions.
      axes: the names of the leading axes, by which places are told apart.
      shown: pytrees with these axes, by name, of which a message shows what stands at its place.
    """

    part: str
    known: Solutions
    axes: tuple[str, ...]
    shown: dict[str, Any] = dataclasses.field(default_factory=dict[str, Any])

    def hold(self, holds: Any, law: str, **more: Any) -> None:
        """Checks that truth values hold at all places; `more` is shown, too."""
        holds = np.asarray(holds)
        if holds.all():
            return
        place = tuple(map(int, np.argwhere(~holds)[0]))
        words = [f"{axis} {number}" for axis, number in zip(self.axes, place, strict=True)]
        words += [f"{name} {at(tree, *place)}" for name, tree in (self.shown | more).items()]
        raise AssertionError(f"{self.part}.{law}: {', '.join(words)}")

    def in_space(self, solutions: Any, law: str) -> None:
        """Checks that solutions are some."""
        found = self.known.are_in_space(solutions, len(self.axes))
        self.hold(found, f"{law} is outside of its space", solution=solutions)

    def same(self, tree: Any, other: Any, law: str, tolerance: float | None = None) -> None:
        """Checks that pytrees are the same, as `same_leaves` tells."""
        found = same_leaves(tree, other, tolerance, len(self.axes))
        for path, leaf in jax.tree_util.tree_leaves_with_path(found):
            self.hold(leaf, law, leaf=np.full(leaf.shape, jax.tree_util.keystr(path)))

    def costs(
        self, found: Any, expected: Any, law: str, scale: Any = None, where: Any = True, **more: Any
    ) -> None:
        """Checks that costs, or changes of costs of the size `scale`, agree where `where` holds."""
        found, expected = np.asarray(found), np.asarray(expected)
        scale = expected if scale is None else scale
        same = _agree(found, expected, self.known.tolerance, scale)
        self.hold(same | ~np.asarray(where), law, **more, found=found, expected=expected)


def look_at(problem: Any, starts: Any, tolerance: float = 0.0, **known: Any) -> Solutions:
    """Returns what is known about a problem's solutions, given some: `starts`.

    Args:
      tolerance: of float costs.
      known: `is_solution` and `meaning` of `Solutions`.
    """
    is_exact = has_exact_costs(problem)
    return Solutions(problem, starts, tolerance=None if is_exact else tolerance, **known)


def has_exact_costs(problem: Any) -> bool:
    """Returns whether costs are integers."""
    cost = jax.eval_shape(lambda: cost_of(problem, problem.init(jax.random.key(0))))
    return jnp.issubdtype(cost.dtype, jnp.integer)


def part_of(tree: Any, *place: Any) -> Any:
    """Returns what all leaves have at a place: an index or a slice of each leading axis."""
    return jax.tree.map(lambda leaf: leaf[place], tree)


@functools.partial(jax.jit, static_argnames=("number", "seed"))
def starts_of(problem: Any, number: int, seed: int) -> Any:
    """Returns random solutions, leaves [number, ...]."""
    return jax.vmap(problem.init)(start_keys(number, seed))


def start_keys(number: int, seed: int) -> jax.Array:
    """Returns the typed keys from which searches would start."""
    indices = jnp.arange(number, dtype=jnp.uint32)
    return random.start_key(random.as_key(seed), indices)


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
      tree, other: pytrees of the same structure; leaves of the same shapes, on the host.
      tolerance: of floats, as a share of the largest number of the leaf; None for the same bits.
      axes: how many leading axes to keep.
    """

    def is_same(one: Any, two: Any) -> np.ndarray:
        one, two = np.asarray(one), np.asarray(two)
        is_float = jnp.issubdtype(two.dtype, jnp.floating)
        largest = np.max(np.abs(two), where=np.isfinite(two), initial=1.0) if is_float else None
        same = _agree(one, two, tolerance if is_float else None, largest)
        return same.all(axis=tuple(range(axes, same.ndim)))

    chex.assert_trees_all_equal_structs(tree, other)
    return jax.tree.map(is_same, tree, other)


def _agree(found: np.ndarray, expected: np.ndarray, tolerance: float | None, scale: Any) -> Any:
    """Returns which numbers agree: in all bits or, of the size `scale`, within the tolerance."""
    same = (found == expected) | ((found != found) & (expected != expected))
    if tolerance is None:
        return same
    largest = np.maximum(np.where(np.isfinite(scale), np.abs(scale), 1), 1)
    with np.errstate(invalid="ignore"):
        return same | (np.abs(found - expected) <= tolerance * largest)


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
    (name, expected), *others = jax.device_get(runs)
    for other, found in others:
        message = f"{what} differ between {name!r} and {other!r}"
        chex.assert_trees_all_equal_shapes_and_dtypes(expected, found, custom_message=message)
        if is_exact:
            chex.assert_trees_all_equal(expected, found, custom_message=message)


def check_implementations(
    search: Any,
    problem: Any,
    *,
    implementations: Sequence[str] | None = None,
    num_searches: int = 3,
    num_steps: int = 60,
    seed: int = 0,
) -> None:
    """Checks that a search makes the same steps in every implementation, bit for bit.

    Of float costs, which compilers round differently, only shapes and dtypes are compared.

    Args:
      search, problem: as in `run`.
      implementations: names of `backends.Implementation`, the first of which is right; None for
        `"xla"` and, where the search is portable, `"native"` on CPUs and `"interpret"`, the kernel
        without a GPU.
      num_searches, num_steps, seed: of each run.

    Raises:
      AssertionError: naming two implementations and what differs.

    Example:
      >>> import jaxopt_search as js
      >>> problem = js.nqueens(6)
      >>> search = js.simulated_annealing(js.QueenSwap(), 1.0)
      >>> js.testing.check_implementations(search, problem, implementations=("xla", "native"))
    """
    names = ["xla"] if implementations is None else list(implementations)
    if implementations is None and search.is_portable(problem):
        if obstacle := jaxopt_search.why_not_portable(problem, search):
            kind = type(search).__name__
            raise AssertionError(f"{kind} says that it is portable, but {obstacle}")
        names += ["native"] * (jax.default_backend() == "cpu") + ["interpret"]
    options = {"num_searches": num_searches, "max_steps": num_steps}
    runs = [
        (name, jaxopt_search.run(seed, problem, search, implementation=name, **options))  # type: ignore[arg-type]
        for name in names
    ]
    what = f"{type(search).__name__}: the states after {num_steps} steps"
    require_same_runs(runs, what, has_exact_costs(problem))
