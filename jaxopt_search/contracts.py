"""Checks that a user's parts keep the contracts of `types`; on the host, nothing compiled.

An exception that the user's code raises comes out as it is.
"""

import types
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from jaxopt_search.checks import MAX_INT32
from jaxopt_search.types import Exchange, Problem, Search, Solution, VectorProblem

PERMUTATION = "permutation"
_EXPECTED = {
    PERMUTATION: "permutations of 0 to n - 1, [n] int32",
    "vector": "vectors of a js.VectorProblem",
}
_PARTS = {
    "Problem": "js.Problem, one such as tsp returns",
    "Search": "js.Search, one such as simulated_annealing returns",
    "Exchange": "js.Exchange, None or one such as ring returns",
    "Neighborhood": "js.Neighborhood, such as Relocate(), or js.Moves",
    "ByElement": "js.ByElement, such as two_opt",
    "Acceptance": "js.acceptance.Acceptance, one such as threshold returns",
    "Crossover": "js.Crossover, one such as edge_assembly returns",
    "LocalHeuristic": "js.successors.LocalHeuristic",
}
"""What is expected, by the name of the base class."""
_OF_DATA = "js.Problem, as tsp_from_coords makes of coordinates, and tsp or qap of matrices"
_MAKERS = dict.fromkeys(("list", "tuple", "ndarray", "ArrayImpl"), _OF_DATA) | {
    "TSPInstance": "js.Problem, one such as tsp_from_instance makes of it",
    "QAPInstance": "js.Problem, one such as qap_from_instance makes of it",
}
"""How objects of other classes become problems, by the name of the class."""


def solution_shape(problem: Any) -> Any:
    """Returns the shapes and dtypes of a solution, as `jax.ShapeDtypeStruct`s.

    Raises:
      TypeError: if `problem.init` returns anything but arrays.
    """
    leaves, structure = jax.tree.flatten(problem)
    # Within a kernel leaves are buffers, which have a shape and a dtype, too.
    kinds = [leaf if hasattr(leaf, "dtype") else jax.typeof(leaf) for leaf in leaves]
    shapes = (jax.ShapeDtypeStruct(kind.shape, kind.dtype) for kind in kinds)
    return _start.eval_shape(structure.unflatten(shapes))


@jax.jit
def _start(problem: Any) -> Solution:
    solution = problem.init(jax.random.key(0, impl="threefry2x32"))
    leaves = jax.tree.leaves(solution)
    kinds = (int, float, complex, np.ndarray, np.generic, jax.Array)
    is_list_of_numbers = isinstance(solution, list) and not any(map(np.ndim, leaves))
    if not leaves or is_list_of_numbers or not all(isinstance(leaf, kinds) for leaf in leaves):
        kind = "None" if solution is None else f"a {type(solution).__name__}"
        raise TypeError(f"problem.init returns {kind}, expected an array or a pytree of arrays")
    if not all(map(np.size, leaves)):
        raise TypeError("problem.init returns an empty array, expected one that has elements")
    return solution


@jax.jit
def _cost(problem: Any, solution: Solution) -> jax.Array:
    cost = problem.device_cost(solution)
    if not isinstance(cost, int | float | np.ndarray | np.generic | jax.Array):
        kind = "None" if cost is None else f"a {type(cost).__name__}"
        raise TypeError(f"problem.cost returns {kind}, expected one number, int32 or float32")
    cost = jnp.asarray(cost)
    if cost.shape:
        raise TypeError(
            f"problem.cost returns an array of shape {cost.shape}, expected one number of shape ()"
        )
    if cost.dtype not in ("int32", "int64", "float32", "float64"):
        raise TypeError(
            f"problem.cost returns a number of dtype {cost.dtype}, expected int32 or float32; add"
            " .astype to it"
        )
    return cost


def check_parts(
    problem: Any, *searches: Any, exchange: Any = None
) -> tuple[Any, jax.ShapeDtypeStruct]:
    """Returns the shapes of a solution and of its cost, if the parts of a run suit one another.

    Required is a `types.Problem`, a pytree whose leaves are arrays. Its `init` returns an array or
    a pytree of arrays that are not empty, its `cost` one number, int32 or float32. Unsigned and
    narrow costs are refused because their differences wrap, bool ones because they have none.

    Raises:
      TypeError: naming what is missing or wrong.
      ValueError: as `check_spaces` says.
    """
    check_part(problem, Problem)
    for path, leaf in jax.tree_util.tree_leaves_with_path(problem):
        try:
            jax.typeof(leaf)
        except TypeError:
            raise TypeError(
                f"problem{jax.tree_util.keystr(path)} is a {type(leaf).__name__}, expected an"
                " array; mark fields that are not arrays as static"
            ) from None
    solution = solution_shape(problem)
    try:
        cost = _cost.eval_shape(problem, solution)
    except Exception as error:
        given = jax.tree.map(lambda leaf: f"{leaf.dtype}{list(leaf.shape)}", solution)
        error.add_note(f"problem.cost was given what problem.init returns: {given}")
        raise
    check_spaces(problem, *searches, exchange=exchange)
    return solution, cost


def check_part(part: Any, base: type, name: str | None = None) -> None:
    """Refuses an object that is no `types.Problem`, `Search` or the like, or no pytree.

    Args:
      part: its leaves may be shapes.
      base: which of them it is to be.
      name: for the message; None for the name of the class.

    Raises:
      TypeError: saying what it is.
    """
    name = name or base.__name__.lower()
    kind = type(part).__name__
    if not isinstance(part, base):
        found = "None" if part is None else f"a {kind}"
        if isinstance(part, type | types.FunctionType):
            found = f"the {'class' if isinstance(part, type) else 'function'} {part.__name__}"
        expected = _MAKERS.get(kind if base is Problem else "", _PARTS[base.__name__])
        raise TypeError(f"{name} is {found}, expected a {expected}")
    if jax.tree_util.all_leaves([part]):
        raise TypeError(
            f"{name} is a {kind}, expected a pytree; decorate the class with jaxopt_search.pytree"
            " or jax.tree_util.register_static"
        )
    _refuse_static_arrays(name, part, jax.tree.structure(part))


def check_exchange(exchange: Any) -> None:
    """Refuses what is no `types.Exchange`, one at no steps, and one that passes on nothing known.

    Raises:
      TypeError, ValueError: naming what is wrong.
    """
    check_part(exchange, Exchange)
    kind, every = type(exchange).__name__, getattr(exchange, "every", 0.0)
    if jnp.shape(every) or not jnp.issubdtype(jnp.result_type(every), jnp.integer):
        raise TypeError(f"{kind}.every is {kind_of_array(every)}, expected int32 of shape ()")
    if not isinstance(every, Tracer | jax.ShapeDtypeStruct) and not 1 <= int(every) <= MAX_INT32:
        raise ValueError(f"{kind}.every is {every}, expected an integer from 1 to {MAX_INT32}")
    if exchange.passes_on not in ("best", "current"):
        raise ValueError(
            f"{kind}.passes_on is {exchange.passes_on!r}, expected 'best' or 'current'"
        )


def _refuse_static_arrays(name: str, part: Any, structure: Any) -> None:
    """Refuses a part whose static fields, at any depth, hold arrays."""
    static = list(structure.node_data() or ())
    while static:
        value = static.pop()
        if isinstance(value, tuple | list):
            static += value
        elif isinstance(value, np.ndarray | jax.Array):
            own = (key for key, held in getattr(part, "__dict__", {}).items() if held is value)
            raise TypeError(
                f"{name} has a static array ({next(own, type(value).__name__)}), which JAX cannot"
                " compare; expected it as a leaf, not marked static, or as a tuple of numbers"
            )
    for child in structure.children():
        _refuse_static_arrays(name, part, child)


def check_spaces(problem: Problem, *searches: Any, exchange: Any = None) -> None:
    """Refuses searches and exchanges that are none, or are not made for a problem's solutions.

    A problem on vectors must keep the contract of `types.VectorProblem`.

    Raises:
      ValueError: if a part is for another space, domain sizes are out of range, or the exchange has
        an impossible setting.
      TypeError: if one is none, or a problem on vectors lacks what `types.VectorProblem` says.
    """
    parts = list[Any]()
    for search in searches:
        check_part(search, Search)
        parts += search.parts
    if exchange is not None:
        check_exchange(exchange)
        parts.append(exchange)
    for part in parts:
        if part.space not in (None, problem.space):
            kind, own = type(problem).__name__, problem.space
            found = f"says space = {own!r}" if own else "does not say what its solutions are"
            raise ValueError(
                f"problem is a {kind} and {found}, expected space = {part.space!r} for"
                f" {type(part).__name__}: {_EXPECTED.get(part.space, part.space)}"
            )
    if isinstance(problem, VectorProblem):
        _check_vectors(problem)


def _check_vectors(problem: VectorProblem) -> None:
    """Refuses a problem on vectors that does not keep the contract of `types.VectorProblem`."""
    name = f"problem is a {type(problem).__name__} on vectors"
    for needed in ("domain_sizes", "max_domain"):
        if not hasattr(problem, needed):
            raise TypeError(f"{name} without {needed}, see js.VectorProblem")
    assert problem.has_hooks in (True, False)  # which raises where there are some but not all
    sizes, most = problem.domain_sizes, problem.max_domain
    if not isinstance(most, int) or isinstance(most, bool):
        raise TypeError(f"{name} whose max_domain is {most!r}, expected a static integer")
    start = solution_shape(problem)
    if not isinstance(start, jax.ShapeDtypeStruct) or start.ndim != 1 or start.dtype != jnp.int32:
        raise TypeError(f"{name} whose solutions are {start}, expected [n] int32")
    shape, dtype = jnp.shape(sizes), jnp.result_type(sizes)
    if shape != start.shape or dtype != jnp.int32:
        raise TypeError(
            f"{name} whose domain_sizes are {dtype}{list(shape)}, expected int32{list(start.shape)}"
        )
    if isinstance(sizes, Tracer | jax.ShapeDtypeStruct):
        return
    sizes = np.asarray(sizes)
    if wrong := sizes[(sizes < 1) | (sizes > most)].tolist():
        raise ValueError(f"{name} with a domain of size {wrong[0]}, expected 1 to {most}")


def check_alike(name: str, tree: Any, like: Any) -> None:
    """Refuses what a user's function `name` returns if it is not as `like`, dtypes and shapes."""
    if jax.tree.structure(tree) != jax.tree.structure(like):
        raise TypeError(f"{name} returns another pytree than it was given")
    pairs = zip(jax.tree.leaves_with_path(tree), jax.tree.leaves(like), strict=True)
    for (path, new), old in pairs:
        if kind_of_array(new) != kind_of_array(old):
            at = f" at state{jax.tree_util.keystr(path)}" if path else ""
            raise TypeError(
                f"{name} returns {kind_of_array(new)}{at}, expected {kind_of_array(old)}"
            )


def kind_of_array(leaf: Any) -> str:
    """Returns dtype and shape, such as `int32[3]`."""
    return f"{jnp.result_type(leaf)}{list(jnp.shape(leaf))}"
