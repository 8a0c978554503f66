# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
"""The target of searches one after the other on a CPU, compiled into one function."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental.xla_metadata import set_xla_metadata

from jaxopt_search.backends import loops, memory
from jaxopt_search.backends.backend import Backend, Index

# XLA for CPUs runs a program as a list of small functions, at 0.1 us or more for each. Loops whose
# buffers take less than a kilobyte it compiles as one, and marks them so; here larger ones are
# marked. Where XLA does not know the marks, they do nothing.
_MARKS = {"xla_cpu_small_call": "true", "inlineable": "false"}


class Native(Backend):
    """A search by itself on a CPU; lanes are the elements of vectors."""

    is_native = True

    def store(self, buffer: Any, index: Index, value: jax.Array, where: jax.Array) -> Any:
        # As a scatter, XLA would check the bounds of each.
        value = jnp.where(where, value, self.load(buffer, index, None))
        place = index if isinstance(index, tuple) else (index,)
        value = value.reshape((1,) * buffer.ndim)
        return lax.dynamic_update_slice(buffer, value, place, allow_negative_indices=False)

    def store_lanes(self, buffer: Any, index: Any, value: jax.Array, where: jax.Array) -> Any:
        *row, lanes = index

        # One after the other is as fast there, and compiles as one function.
        def one(lane: jax.Array, buffer: jax.Array) -> jax.Array:
            return self.store(buffer, (*row, lanes[lane]), value[lane], where[lane])

        return loops.fori_loop(0, lanes.shape[0], one, buffer)

    def each_index(
        self, num: jax.Array, max_num: int, body: Callable[..., Any], tree: Any, tile: int
    ) -> Any:
        return self.fori_loop(num, lambda i, tree: body(i, jnp.bool_(True), tree), tree)

    def num_lanes(self, number: int) -> int:
        return -(-number // 8) * 8

    def after(self, where: jax.Array, done: Any) -> jax.Array:
        for array in jax.tree.leaves(done):
            # XLA does not know that two bits are at most 3.
            where = where & ((array.ravel()[0].astype(jnp.int32) & 3) <= 3)
        return where


BACKENDS = {"native": Native()}


def as_one_function(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Returns `fn` to be compiled as one function by XLA for CPUs, with no threads inside.

    It is traced for the target `"native"`. Under `vmap` it is called for one element after the
    other.

    The function that is returned has one argument more, the first: [] bool, False when it runs but
    not known to be so when it is compiled.

    Args:
      fn: maps pytrees of arrays to one. It may hold elementwise operations, reads at indices,
        writes at one index, reductions, loops and conditionals; not scatters, sorts or products
        of matrices, which this way of compiling does not know.
    """

    def unmarked(never: jax.Array, *arguments: Any) -> Any:
        with set_xla_metadata(**dict.fromkeys(_MARKS)), memory.one_search("native"):
            (first, *others), structure = jax.tree.flatten(fn(*arguments))
            # All arguments are needed for the result: unused ones crash the compiler.
            for leaf in jax.tree.leaves(arguments):
                first = jnp.where(never, leaf.ravel()[0].astype(first.dtype), first)
            return structure.unflatten([first, *others])

    def marked(*arguments: Any) -> Any:
        with set_xla_metadata(**_MARKS):
            return jax.jit(unmarked)(*arguments)

    return jax.custom_batching.sequential_vmap(marked)
