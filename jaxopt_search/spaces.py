"""What solutions are, so that what is made for permutations refuses others.

A search, an exchange or a crossover may say `space`, what kind of solutions it is for, and so may a
problem. The library knows one kind, `"permutation"`: [n] int32 with each of 0 to n - 1 once.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer

from jaxopt_search import random

PERMUTATION = "permutation"
_NUM_STARTS = 16
_seen: set[Any] = set()  # the kinds of problems whose starts were permutations


def check(problem: Any, *parts: Any) -> None:
    """Refuses parts, a search or an exchange, that are not made for a problem's solutions.

    Of a problem that does not say what its solutions are, some random starts are looked at, once;
    only their shape where the problem is traced.

    Raises:
      ValueError: if a part is for another space.
    """
    for part in parts:
        space, declared = getattr(part, "space", None), getattr(problem, "space", None)
        if space is None or space == declared:
            continue
        if declared is None and space == PERMUTATION:
            found = _no_permutation(problem)
        else:
            found = f"are {'not said to be anything' if declared is None else repr(declared)}"
        if found:
            raise ValueError(
                f"problem is a {type(problem).__name__} whose solutions {found}, expected"
                f" {_EXPECTED.get(space, repr(space))} for {type(part).__name__}"
            )


_EXPECTED = {PERMUTATION: "permutations of 0 to n - 1, [n] int32,"}


def _no_permutation(problem: Any) -> str:
    """Returns what random starts are instead of permutations, or ""."""
    leaves, structure = jax.tree.flatten(problem)
    kind = structure, tuple((jnp.shape(leaf), jnp.result_type(leaf)) for leaf in leaves)
    if kind in _seen:
        return ""
    shape = jax.eval_shape(problem.init, _key(jnp.uint32(0)))
    is_array = isinstance(shape, jax.ShapeDtypeStruct)
    if not is_array or shape.ndim != 1 or shape.dtype != jnp.int32:
        return f"are {shape.dtype}{list(shape.shape)}" if is_array else "are not one array"
    if any(isinstance(leaf, Tracer) for leaf in leaves):
        return ""
    with jax.ensure_compile_time_eval():
        keys = jax.vmap(_key)(lax.iota(jnp.uint32, _NUM_STARTS))
        starts = np.asarray(jax.vmap(problem.init)(keys))
    wrong = (np.sort(starts, axis=1) != np.arange(shape.shape[0])).any(axis=1)
    if wrong.any():
        start = np.array2string(starts[wrong][0], separator=", ", threshold=8, edgeitems=4)
        return f"may be {start}"
    _seen.add(kind)
    return ""


def _key(index: jax.Array) -> jax.Array:
    return random.start_key(random.as_key(0), index)
