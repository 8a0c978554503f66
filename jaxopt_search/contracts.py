"""Checks that a user's parts keep the contracts of `types`; on the host, nothing compiled.

An exception that the user's code raises comes out as it is.

A search, its neighborhood, an exchange or a crossover may say in `space` what kind of solutions it
is for, and so may a problem. The library knows two kinds: `"permutation"`, [n] int32 with each of 0
to n - 1 once; and `"vector"`, [n] int32 with values below `problem.domain_sizes`, see
`types.VectorProblem`.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxopt_search import capabilities
from jaxopt_search.types import Solution

PERMUTATION = "permutation"
VECTOR = "vector"

_PROBLEM = ("init", "cost")
_SEARCH = ("init", "control", "step", "best_cost", "best", "evaluations_per_step")
_EXCHANGE = ("every", "passes_on", "donors")
_ORDERING = ("every", "order")
_DOMAINS = ("domain_sizes", "max_domain")
_MAKERS = {"TSPInstance": "tsp_from_instance", "QAPInstance": "qap_from_instance"}
_NAMES = {PERMUTATION: "permutations", VECTOR: "vectors"}
_EXPECTED = {
    PERMUTATION: 'permutations of 0 to n - 1, [n] int32, and to say so by space = "permutation",',
    VECTOR: "vectors, [n] int32, with domain_sizes and max_domain,",
}


def solution_shape(problem: Any) -> Any:
    """Returns the shapes and dtypes of a solution, as `jax.ShapeDtypeStruct`s.

    Raises:
      TypeError: if `problem.init` returns anything but arrays.
    """
    return _start.eval_shape(problem)


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
    cost = capabilities.device_cost(problem)(solution)
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


def check_problem(problem: Any) -> tuple[Any, jax.ShapeDtypeStruct]:
    """Returns the shapes of a solution and of its cost.

    Required are: a pytree whose leaves are arrays; `init`, which returns an array or a pytree of
    arrays that are not empty; and `cost`, which returns one number, int32 or float32. Unsigned and
    narrow costs are refused because their differences wrap, and bool ones because they have none.

    Raises:
      TypeError: naming what is missing or wrong.
    """
    check_has_members(problem)
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
        return solution, _cost.eval_shape(problem, solution)
    except Exception as error:
        given = jax.tree.map(lambda leaf: f"{leaf.dtype}{list(leaf.shape)}", solution)
        error.add_note(f"problem.cost was given what problem.init returns: {given}")
        raise


def check_has_members(problem: Any) -> None:
    """Refuses what lacks a member of a problem, or is no pytree; leaves may be shapes."""
    _check_part("problem", problem, _PROBLEM, _maker_of(problem))


def _maker_of(data: Any) -> str:
    """Returns what a problem is, and how what is no problem yet becomes one."""
    kind = type(data).__name__
    if isinstance(data, list | tuple | np.ndarray | jax.Array):
        return "one such as tsp_from_coords makes of coordinates, and tsp or qap of matrices"
    if kind in _MAKERS:
        return f"one such as {_MAKERS[kind]} makes of it"
    return "one such as tsp returns"


def check_search(search: Any, name: str = "search") -> None:
    """Refuses what is no `types.Search`: a pytree with the members that every run needs.

    Required are `init`, `control`, `step`, `best_cost`, `best` and `evaluations_per_step`. A run
    without an exchange and of integer costs needs no more.

    Raises:
      TypeError: naming what is missing.
    """
    _check_part(name, search, _SEARCH, "one such as simulated_annealing returns")


def check_exchange(exchange: Any) -> None:
    """Refuses what is no `types.Exchange`, unless it is None.

    Required are a pytree and `every`; and either `order`, or `passes_on` and `donors`.

    Raises:
      TypeError: naming what is missing.
    """
    if exchange is not None:
        is_ordering = capabilities.order(exchange) is not None
        _check_part(
            "exchange",
            exchange,
            _ORDERING if is_ordering else _EXCHANGE,
            "None or one such as ring returns",
        )


def _check_part(name: str, part: Any, needed: tuple[str, ...], expected: str) -> None:
    if isinstance(part, type):
        raise TypeError(f"{name} is the class {part.__name__}, expected {expected}")
    lacks = capabilities.missing(part, needed)
    if lacks and not capabilities.missing(part, ("__name__",)):
        raise TypeError(f"{name} is the function {part.__name__}, expected {expected}")
    if lacks:
        kind = "None" if part is None else f"a {type(part).__name__} without {lacks[0]}"
        raise TypeError(f"{name} is {kind}, expected {expected}")
    if jax.tree_util.all_leaves([part]):
        raise TypeError(
            f"{name} is a {type(part).__name__}, expected a pytree; decorate the class with"
            " jaxopt_search.pytree or jax.tree_util.register_static"
        )
    _refuse_static_arrays(name, part, jax.tree.structure(part))


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


def check_spaces(problem: Any, *parts: Any) -> None:
    """Refuses parts, a search or an exchange, that are not made for a problem's solutions.

    A neighborhood for permutations takes a problem that does not say what its solutions are; other
    parts want to know. A problem on vectors must keep the contract of `types.VectorProblem`; its
    starts are for `testing.check_problem` to look at.

    Raises:
      ValueError: if a part is for another space, or domain sizes are out of range.
      TypeError: if a problem on vectors lacks what `types.VectorProblem` says.
    """
    declared = capabilities.space(problem)
    is_vector = declared == VECTOR
    for part, is_move in _with_moves(parts):
        space = capabilities.space(part)
        if space is None or space == declared:
            continue
        is_taken = is_move and space == PERMUTATION or space == VECTOR and has_domains(problem)
        if declared is not None or not is_taken:
            kind = _NAMES.get(space, repr(space))
            found = "not said to be " + kind if declared is None else _NAMES.get(declared)
            raise ValueError(
                f"problem is a {type(problem).__name__} whose solutions are"
                f" {found or repr(declared)}, expected {_EXPECTED.get(space, kind)} for"
                f" {type(part).__name__}"
            )
        is_vector = is_vector or space == VECTOR
    if is_vector:
        _check_vectors(problem)


def has_domains(problem: Any) -> bool:
    """Returns whether a problem is on vectors: it says so, or says nothing and has domain sizes."""
    space = capabilities.space(problem)
    return space == VECTOR or (space is None and capabilities.domain_sizes(problem) is not None)


def _with_moves(parts: tuple[Any, ...]) -> list[tuple[Any, bool]]:
    """Returns parts, and those that they have in turn, with whether each is a neighborhood."""
    found = []
    for part in parts:
        neighborhood = capabilities.neighborhood(part)
        found += [(part, False), (neighborhood, True), (capabilities.moves(neighborhood), True)]
        if (local_search := capabilities.local_search(part)) is not None:
            found += _with_moves((local_search,))
    return found


def _check_vectors(problem: Any) -> None:
    """Refuses a problem on vectors that does not keep the contract of `types.VectorProblem`."""
    name = f"problem is a {type(problem).__name__} on vectors"
    if lacks := capabilities.missing(problem, _DOMAINS):
        raise TypeError(f"{name} without {lacks[0]}, see types.VectorProblem")
    capabilities.has_hooks(problem)
    sizes, most = problem.domain_sizes, problem.max_domain
    if not isinstance(most, int) or isinstance(most, bool):
        raise TypeError(f"{name} whose max_domain is {most!r}, expected a static integer")
    solution = solution_shape(problem)
    if not isinstance(solution, jax.ShapeDtypeStruct):
        raise TypeError(f"{name} whose solutions are not one array, expected [n] int32")
    if solution.ndim != 1 or solution.dtype != jnp.int32:
        found = f"{solution.dtype}{list(solution.shape)}"
        raise TypeError(f"{name} whose solutions are {found}, expected [n] int32")
    shape, dtype = jnp.shape(sizes), jnp.result_type(sizes)
    if shape != solution.shape or dtype != jnp.int32:
        wanted = f"int32{list(solution.shape)}"
        raise TypeError(f"{name} whose domain_sizes are {dtype}{list(shape)}, expected {wanted}")
    if isinstance(sizes, jax.core.Tracer | jax.ShapeDtypeStruct):
        return
    sizes = np.asarray(sizes)
    if wrong := sizes[(sizes < 1) | (sizes > most)].tolist():
        raise ValueError(f"{name} with a domain of size {wrong[0]}, expected 1 to {most}")
