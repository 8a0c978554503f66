"""Loops of many small operations on a CPU, compiled into one function."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental.xla_metadata import set_xla_metadata

# XLA for CPUs runs a program as a list of small functions, at 0.1 us or more for each. Loops whose
# buffers take less than a kilobyte it compiles as one, and marks them so; here larger ones are
# marked. Where XLA does not know the marks, they do nothing.
_MARKS = {"xla_cpu_small_call": "true", "inlineable": "false"}


def as_one_function(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Returns `fn` to be compiled as one function by XLA for CPUs, with no threads inside.

    The function that is returned has one argument more, the first: [] bool, False when it runs but
    not known to be so when it is compiled.

    Args:
      fn: maps pytrees of arrays to one. It may hold elementwise operations, reads at indices,
        writes at one index, reductions, loops and conditionals; not scatters, sorts or products
        of matrices, which this way of compiling does not know.
    """

    def unmarked(never: jax.Array, *arguments: Any) -> Any:
        with set_xla_metadata(**dict.fromkeys(_MARKS)):
            return _with_all_used(never, fn(*arguments), arguments)

    def marked(*arguments: Any) -> Any:
        with set_xla_metadata(**_MARKS):
            return jax.jit(unmarked)(*arguments)

    return marked


def _with_all_used(never: jax.Array, results: Any, arguments: Any) -> Any:
    """Returns `results`, for which now all arguments are needed: unused ones crash the compiler."""
    (first, *others), structure = jax.tree.flatten(results)
    for leaf in jax.tree.leaves(arguments):
        first = jnp.where(never, leaf.ravel()[0].astype(first.dtype), first)
    return structure.unflatten([first, *others])
