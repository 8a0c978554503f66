"""What solutions are: a part that is made for permutations refuses vectors, and so on."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from jaxopt_search.guards import contracts
from jaxopt_search.types import Problem, VectorProblem

PERMUTATION = "permutation"
_EXPECTED = {
    PERMUTATION: "permutations of 0 to n - 1, [n] int32",
    "vector": "vectors of a js.VectorProblem",
}


def check(problem: Problem, search: Any = None, exchange: Any = None) -> None:
    """Refuses a search or an exchange that is not made for a problem's solutions.

    A problem on vectors must keep the contract of `types.VectorProblem`.

    Raises:
      ValueError: if a part is for another space, or domain sizes are out of range.
      TypeError: if a problem on vectors lacks what `types.VectorProblem` says.
    """
    parts = *(() if search is None else search.parts), *(() if exchange is None else (exchange,))
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
    start = contracts.solution_shape(problem)
    if not isinstance(start, jax.ShapeDtypeStruct) or start.ndim != 1 or start.dtype != jnp.int32:
        raise TypeError(f"{name} whose solutions are {start}, expected [n] int32")
    shape, dtype = jnp.shape(sizes), jnp.result_type(sizes)
    if shape != start.shape or dtype != jnp.int32:
        raise TypeError(
            f"{name} whose domain_sizes are {dtype}{list(shape)}, expected int32{list(start.shape)}"
        )
    if isinstance(sizes, Tracer):
        return
    sizes = np.asarray(sizes)
    if wrong := sizes[(sizes < 1) | (sizes > most)].tolist():
        raise ValueError(f"{name} with a domain of size {wrong[0]}, expected 1 to {most}")
