"""What solutions are: a part that is made for permutations refuses vectors, and so on.

A search, its neighborhood, an exchange or a crossover may say in `space` what kind of solutions it
is for, and so may a problem. The library knows two kinds: `"permutation"`, [n] int32 with each of 0
to n - 1 once; and `"vector"`, [n] int32 with values below `problem.domain_sizes`, see
`types.VectorProblem`.
"""

from collections.abc import Callable, Hashable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer

from jaxopt_search import capabilities
from jaxopt_search.backends import random
from jaxopt_search.guards import contracts

PERMUTATION = "permutation"
VECTOR = "vector"
_NUM_STARTS = 16
_NAMES = {PERMUTATION: "permutations", VECTOR: "vectors"}
_EXPECTED = {
    PERMUTATION: "permutations of 0 to n - 1, [n] int32,",
    VECTOR: "vectors, [n] int32, with domain_sizes and max_domain,",
}
_DOMAINS = ("domain_sizes", "max_domain")
_seen: set[Hashable] = set()  # kinds of problems whose starts were found right


def check(problem: Any, *parts: Any) -> None:
    """Refuses parts, a search or an exchange, that are not made for a problem's solutions.

    Where a problem does not say what its solutions are, some random starts are looked at, once;
    only their shape where the problem is traced. A neighborhood for permutations takes such a
    problem as it is. A problem on vectors must keep the contract of `types.VectorProblem`.

    Raises:
      ValueError: if a part is for another space, or domain sizes or starts are out of range.
      TypeError: if a problem on vectors lacks what `types.VectorProblem` says.
    """
    declared = capabilities.space(problem)
    is_vector = declared == VECTOR
    for part, is_move in _with_moves(parts):
        space = capabilities.space(part)
        if space is None or space == declared:
            continue
        if found := _misfit(problem, declared, space, is_move):
            raise ValueError(
                f"problem is a {type(problem).__name__} whose solutions {found}, expected"
                f" {_EXPECTED.get(space, repr(space))} for {type(part).__name__}"
            )
        is_vector = is_vector or space == VECTOR
    if is_vector:
        _check_vectors(problem)


def _misfit(problem: Any, declared: str | None, space: str, is_move: bool) -> str:
    """Returns what a problem's solutions are where they are not what a part is for, else "".

    Args:
      declared: the space of the problem.
      space: of the part, another one.
      is_move: whether the part is a neighborhood.
    """
    if declared is not None:
        return f"are {_NAMES.get(declared, repr(declared))}"
    if space == VECTOR:
        return "" if has_domains(problem) else "are not said to be vectors"
    if space != PERMUTATION:
        return "are not said to be anything"
    return "" if is_move else _no_permutation(problem)


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


def _no_permutation(problem: Any) -> str:
    """Returns what random starts are instead of permutations, or ""."""
    kind = _kind(problem, PERMUTATION)
    if kind in _seen:
        return ""
    n, found = _length(problem)
    if found or _is_traced(problem):
        return found
    return _look(problem, kind, lambda starts: np.sort(starts, axis=1) != np.arange(n))


def _check_vectors(problem: Any) -> None:
    """Refuses a problem on vectors that does not keep the contract of `types.VectorProblem`."""
    name = f"problem is a {type(problem).__name__} on vectors"
    if lacks := capabilities.missing(problem, _DOMAINS):
        raise TypeError(f"{name} without {lacks[0]}, see types.VectorProblem")
    capabilities.has_hooks(problem)
    sizes, most = problem.domain_sizes, problem.max_domain
    if not isinstance(most, int) or isinstance(most, bool):
        raise TypeError(f"{name} whose max_domain is {most!r}, expected a static integer")
    n, found = _length(problem)
    if found:
        raise TypeError(f"{name} whose solutions {found}, expected [n] int32")
    shape, dtype = jnp.shape(sizes), jnp.result_type(sizes)
    if shape != (n,) or dtype != jnp.int32:
        raise TypeError(f"{name} whose domain_sizes are {dtype}{list(shape)}, expected int32[{n}]")
    if _is_traced(problem):
        return
    sizes = np.asarray(sizes)
    if wrong := sizes[(sizes < 1) | (sizes > most)].tolist():
        raise ValueError(f"{name} with a domain of size {wrong[0]}, expected 1 to {most}")
    kind = _kind(problem, VECTOR)
    # The library's own problems, which keep an instance on the host, have the right starts.
    if kind in _seen or capabilities.original(problem) is not None:
        return
    if found := _look(problem, kind, lambda starts: (starts < 0) | (starts >= sizes)):
        raise ValueError(f"{name} whose starts {found}, expected values below domain_sizes")


def _kind(problem: Any, space: str) -> Hashable:
    leaves, structure = jax.tree.flatten(problem)
    return (
        space,
        structure,
        tuple((jnp.shape(leaf), jnp.result_type(leaf)) for leaf in leaves),
    )


def _is_traced(problem: Any) -> bool:
    return any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(problem))


def _length(problem: Any) -> tuple[int, str]:
    """Returns n where solutions are [n] int32; else what they are."""
    shape = contracts.solution_shape(problem)
    if not isinstance(shape, jax.ShapeDtypeStruct):
        return 0, "are not one array"
    if shape.ndim != 1 or shape.dtype != jnp.int32:
        return 0, f"are {shape.dtype}{list(shape.shape)}"
    return shape.shape[0], ""


def _look(problem: Any, kind: Hashable, is_wrong: Callable[[np.ndarray], np.ndarray]) -> str:
    """Returns a random start that is wrong in some element, or ""; then the kind counts as seen."""
    with jax.ensure_compile_time_eval():
        keys = jax.vmap(_key)(lax.iota(jnp.uint32, _NUM_STARTS))
        starts = np.asarray(jax.vmap(problem.init)(keys))
    wrong = is_wrong(starts).any(axis=1)
    if wrong.any():
        start = np.array2string(starts[wrong][0], separator=", ", threshold=8, edgeitems=4)
        return f"may be {start}"
    _seen.add(kind)
    return ""


def _key(index: jax.Array) -> jax.Array:
    return random.start_key(random.as_key(0), index)
